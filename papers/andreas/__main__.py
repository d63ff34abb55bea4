"""Make the figures and tables of ANDREAS anew, all of them or those named.

\b
ITEM: figure3 (nodes of two V100 or one T4), figure2 (four V100 or two T4), table3 (predicted and simulated 'real'
      costs), figure4 (schedule and power, with figure 5), openb (1,213 nodes), exact (gap to the optimum),
      effects (what parts of it are worth)
JOBCAST_DATA names the folder of traces; openb alone needs it.

\b
Example:
  python -m papers.andreas figure3 effects --seeds 2 --nodes 10,20 --out figures
"""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from jobcast.domain.errors import ConfigError
from papers.driver import JOBS, Paper, command_of, count

ITEMS = ("figure3", "figure2", "table3", "figure4", "openb", "exact", "effects")
DEFAULT_NODES = "10,20,30,50,75,100"
"""Of Figures 2 and 3. ANDREAS, section V.B: 10 to 100; it does not print which."""


def opened(
    out: Path, data: Path, *, resume: bool, nodes: str = DEFAULT_NODES, **chosen: Any
) -> AbstractContextManager[Any]:
    """The bench of all figures; `chosen` as of `Bench`. Raises ConfigError for wrong nodes."""
    from papers.andreas.bench import Bench
    from papers.bench import RUNS, RunFile

    file = RunFile(out / RUNS, resume=resume)
    return nullcontext(Bench(data=data, file=file, nodes=read_nodes(nodes), **chosen))


def read_nodes(text: str) -> tuple[int, ...]:
    """Ascending numbers of nodes. Raises ConfigError.

    >>> read_nodes("20, 10")
    (10, 20)
    """
    try:
        found = sorted({int(one) for one in text.split(",")})
    except ValueError:
        found = []
    # Half of the nodes are of each kind: one alone is no scenario.
    if not found or found[0] < 2:
        raise ConfigError(f"--nodes {text}: whole numbers of at least 2 are expected, such as {DEFAULT_NODES}")
    return tuple(found)


WITHIN = dict.fromkeys(("figure2", "figure3"), "campaign")
PAPER = Paper("ANDREAS", "andreas", ITEMS, "openb/", ("openb",), opened, within=WITHIN)
OPTIONS = (
    count("seeds", 10, "Draws of each workload."),
    click.Option(["--nodes"], default=DEFAULT_NODES, show_default=True, metavar="N,...", help="Of Figures 2 and 3."),
    JOBS,
)
main = command_of(PAPER, __doc__, OPTIONS)

if __name__ == "__main__":
    main()
