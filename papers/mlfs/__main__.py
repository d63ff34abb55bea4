"""The figures of MLFS, made anew: `python -m papers.mlfs`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from jobcast.domain.errors import UserError
from jobcast.traces.owners import scratch_room
from papers.driver import Paper, data_folder, make_figures

ITEMS = ("figure4", "figure5", "figure6", "figure7", "figure8", "bars")
"""Each is a module of this package, with a function of its name."""
PAPER = Paper("MLFS", "reproduce-mlfs", ITEMS, "philly", "philly/, curves/")
RUNS = ".runs.jsonl"
"""In the folder of all figures, which share runs; it is not kept in version control."""
SEEDS = 10

ABOUT = """Make the figures of MLFS anew, all of them or those named.

\b
FIGURE: figure4 (20 servers), figure5 (550 servers), figure6, figure7, figure8 (parts of MLF-H),
        bars (orders of the paper with confidence intervals)
JOBCAST_DATA names the folder of traces.

\b
Example:
  JOBCAST_DATA=data/raw python -m papers.mlfs bars --seeds 3 --policies mlfs,mlf_h --out figures
"""


def reproduce(
    names: tuple[str, ...],
    out: Path,
    data: Path,
    *,
    resume: bool = False,
    seeds: int = SEEDS,
    policies: tuple[str, ...] = (),
    jobs: int = 2,
) -> None:
    """Make some of `ITEMS`, see `make_figures`.

    Parameters
    ----------
    resume : whether runs that are on file count; pages are made anew
    seeds : draws of each workload
    policies : that are compared; none: all
    jobs : runs at a time

    Raises ConfigError for an unknown name.
    """
    from jobcast.models.registry import find_home
    from papers.mlfs.bench import Bench
    from papers.mlfs.rows import rows_of
    from papers.run_file import RunFile

    home = find_home()
    rows, notes = rows_of(home, policies)
    with scratch_room("mlfs") as folder:
        file = RunFile(out / RUNS, resume=resume)
        bench = Bench(data, home, folder, file, rows, notes, tuple(range(seeds)), jobs)

        def make(name: str, data: Path, into: Path) -> None:
            module = import_module(f"papers.mlfs.{name}")
            figure: Callable[[Bench, Path], None] = getattr(module, name)
            figure(bench, into)

        make_figures(PAPER, names, out, data, make)


@click.command(PAPER.target, help=ABOUT, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("docs", "mlfs"), show_default=True
)
@click.option("--resume", is_flag=True, help="Go on with the runs that are on file.")
@click.option("--seeds", type=click.IntRange(1), default=SEEDS, show_default=True, help="Draws of each workload.")
@click.option("--policies", default="", metavar="NAME,...", help="Compare these alone.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Runs at a time.")
def main(figures: tuple[str, ...], out: Path, resume: bool, seeds: int, policies: str, jobs: int) -> None:
    """See `ABOUT`."""
    chosen = tuple(name.strip() for name in policies.split(",") if name.strip())
    try:
        reproduce(
            figures or ITEMS, out, data_folder(PAPER), resume=resume, seeds=seeds, policies=chosen, jobs=jobs
        )  # fmt: skip
    except UserError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
