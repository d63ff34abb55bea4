"""The figures and tables of SIA, made anew: `python -m papers.sia`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from jobcast.domain.errors import UserError
from papers.driver import Paper, data_folder, make_figures

ITEMS = ("figure5", "figure24", "figure13", "figure14", "figure15a", "figure15b", "figure16", "table17", "preemption")
"""Each is a module of this package, with a function of its name."""
NEED_DATA = ("figure13", "figure14", "figure15a", "figure16", "table17", "preemption")
PAPER = Paper("SIA", "reproduce-sia", ITEMS, "philly", "philly/")
RUNS, HOME = ".runs.jsonl", ".home"
"""In the folder of all items, which share runs and predictors; they are not kept in version control."""
SEEDS, DRAWS = 10, 100

ABOUT = """Make the figures and tables of SIA anew, all of them or those named.

\b
ITEM: figure5, figure24 (the potential, on synthetic workloads), figure13 (random draws of four queues), figure14
      (numbers of queues), figure15a (what predictors are worth), figure15b (the virtual clock and the MILP),
      figure16 (locality), table17 (all pools, with figure 18), preemption (of a share of the jobs)
JOBCAST_DATA names the folder of traces; figures 5, 24 and 15b do without. How long each took is told as it is done;
runs that are on file are not made again with --resume.

\b
Example:
  python -m papers.sia figure5 figure13 --seeds 2 --draws 10 --out figures
"""


def reproduce(
    names: tuple[str, ...],
    out: Path,
    data: Path,
    *,
    resume: bool = False,
    seeds: int = SEEDS,
    draws: int = DRAWS,
    jobs: int = 2,
) -> None:
    """Make some of `ITEMS`, see `make_figures`.

    Parameters
    ----------
    resume : whether runs that are on file count; pages are made anew
    seeds, draws : of synthetic workloads, and of random pools (all but Figure 13 take a tenth of them)
    jobs : runs at a time

    Raises ConfigError for an unknown name.
    """
    from papers.run_file import RunFile
    from papers.sia.bench import Bench

    bench = Bench(data, out / HOME, RunFile(out / RUNS, resume=resume), seeds, draws, jobs)

    def make(name: str, data: Path, into: Path) -> None:
        module = import_module(f"papers.sia.{name}")
        item: Callable[[Bench, Path], None] = getattr(module, name)
        item(bench, into)

    make_figures(PAPER, names, out, data, make)


@click.command(PAPER.target, help=ABOUT, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("items", nargs=-1, metavar="[ITEM]...")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("docs", "sia"), show_default=True)
@click.option("--resume", is_flag=True, help="Go on with the runs that are on file.")
@click.option("--seeds", type=click.IntRange(1), default=SEEDS, show_default=True, help="Draws of synthetic workloads.")
@click.option("--draws", type=click.IntRange(1), default=DRAWS, show_default=True, help="Draws of random pools.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Runs at a time.")
def main(items: tuple[str, ...], out: Path, resume: bool, seeds: int, draws: int, jobs: int) -> None:
    """See `ABOUT`."""
    names = items or ITEMS
    try:
        data = data_folder(PAPER) if set(names) & set(NEED_DATA) else Path()
        reproduce(names, out, data, resume=resume, seeds=seeds, draws=draws, jobs=jobs)
    except UserError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
