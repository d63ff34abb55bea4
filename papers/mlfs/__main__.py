"""The figures of MLFS, made anew: `python -m papers.mlfs`."""

from pathlib import Path
from typing import Any

import click

from jobcast.traces.owners import scratch_room
from papers.driver import Paper, command_of, count, make_figures

ITEMS = ("figure4", "figure5", "figure6", "figure7", "figure8", "bars")
PAPER = Paper("MLFS", "reproduce-mlfs", "mlfs", ITEMS, "philly", "philly/, curves/")
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
            PAPER.item(name)(bench, into)

        make_figures(PAPER, names, out, data, make)


def _reproduce(*places: Any, policies: str, **chosen: Any) -> None:
    """`reproduce` with policies between commas."""
    named = tuple(name.strip() for name in policies.split(",") if name.strip())
    reproduce(*places, policies=named, **chosen)


OPTIONS = (
    count("seeds", SEEDS, "Draws of each workload."),
    click.Option(["--policies"], default="", metavar="NAME,...", help="Compare these alone."),
    count("jobs", 2, "Runs at a time."),
)
main = command_of(PAPER, _reproduce, ABOUT, OPTIONS)

if __name__ == "__main__":
    main()
