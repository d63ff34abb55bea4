"""The figures and tables of ANDREAS, made anew: `python -m papers.andreas`."""

from pathlib import Path
from typing import Any

import click

from jobcast.domain.errors import ConfigError
from papers.driver import Paper, command_of, count, make_figures

ITEMS = ("figure3", "figure2", "table3", "figure4", "openb", "exact", "effects")
NEED_DATA = ("openb",)
PAPER = Paper("ANDREAS", "reproduce-andreas", "andreas", ITEMS, "openb", "openb/", NEED_DATA)
RUNS = ".runs.jsonl"
"""In the folder of all items, which share runs; it is not kept in version control."""
SEEDS = 10
DEFAULT_NODES = "10,20,30,50,75,100"

ABOUT = """Make the figures and tables of ANDREAS anew, all of them or those named.

\b
ITEM: figure3 (nodes of two V100 or one T4), figure2 (four V100 or two T4), table3 (predicted and simulated 'real'
      costs), figure4 (schedule and power, with figure 5), openb (1,213 nodes), exact (gap to the optimum),
      effects (what parts of it are worth)
JOBCAST_DATA names the folder of traces; openb alone needs it.

\b
Example:
  python -m papers.andreas figure3 effects --seeds 2 --nodes 10,20 --out figures
"""


def reproduce(
    names: tuple[str, ...],
    out: Path,
    data: Path,
    *,
    resume: bool = False,
    seeds: int = SEEDS,
    nodes: tuple[int, ...] | None = None,
    jobs: int = 2,
) -> None:
    """Make some of `ITEMS`, see `make_figures`.

    Parameters
    ----------
    resume : whether runs that are on file count; pages are made anew
    seeds : draws of each workload, at most; openb and effects take fewer
    nodes : of Figures 2 and 3; None: the default ones
    jobs : runs at a time

    Raises ConfigError for an unknown name.
    """
    from papers.andreas.bench import Bench
    from papers.andreas.workloads import NODES
    from papers.run_file import RunFile

    bench = Bench(data, RunFile(out / RUNS, resume=resume), seeds, nodes or NODES, jobs)

    def make(name: str, data: Path, into: Path) -> None:
        PAPER.item(name)(bench, into)

    make_figures(PAPER, names, out, data, make)


def read_nodes(text: str) -> tuple[int, ...]:
    """Ascending numbers of nodes. Raises ConfigError.

    >>> read_nodes("20, 10")
    (10, 20)
    """
    try:
        found = sorted({int(one) for one in text.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 2:
        raise ConfigError(f"--nodes {text}: whole numbers of at least 2 are expected, such as {DEFAULT_NODES}")
    return tuple(found)


def _reproduce(*places: Any, nodes: str, **chosen: Any) -> None:
    """`reproduce` with nodes between commas."""
    reproduce(*places, nodes=read_nodes(nodes), **chosen)


OPTIONS = (
    count("seeds", SEEDS, "Draws of each workload."),
    click.Option(["--nodes"], default=DEFAULT_NODES, show_default=True, metavar="N,...", help="Of Figures 2 and 3."),
    count("jobs", 2, "Runs at a time."),
)
main = command_of(PAPER, _reproduce, ABOUT, OPTIONS, word="ITEM")

if __name__ == "__main__":
    main()
