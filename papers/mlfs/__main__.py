"""Make the figures of MLFS anew, all of them or those named.

\b
FIGURE: figure4 (20 servers), figure5 (550 servers), figure6, figure7, figure8 (parts of MLF-H),
        terms (each term of the priorities left out and alone),
        estimates (run times of jobs that never ran),
        bars (orders of the paper with confidence intervals),
        learning (MLF-RL; needs a champion of mlf-policy)
JOBCAST_DATA names the folder of traces.

\b
Example:
  JOBCAST_DATA=data/raw python -m papers.mlfs bars --seeds 3 --policies mlfs,mlf_h --out figures
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from papers.driver import JOBS, Paper, command_of, count

ITEMS = ("figure4", "figure5", "figure6", "figure7", "figure8", "terms", "estimates", "bars", "learning")
WITHIN = dict.fromkeys(("figure4", "figure5", "figure6", "figure7", "figure8"), "loads")
WITHIN |= dict.fromkeys(("terms", "estimates"), "priorities")
SEEDS = 10


@contextmanager
def opened(
    out: Path, data: Path, *, resume: bool, seeds: int = SEEDS, policies: str = "", jobs: int = 2
) -> Iterator[Any]:
    """The bench of all figures.

    Parameters
    ----------
    seeds : draws of each workload
    policies : that are compared, between commas; none: all
    jobs : runs at a time

    Raises ConfigError for an unknown policy.
    """
    from jobcast.models.registry import find_home
    from jobcast.traces.owners import scratch_room
    from papers.bench import RUNS, RunFile
    from papers.mlfs.bench import Bench
    from papers.mlfs.rows import rows_of

    home, file = find_home(), RunFile(out / RUNS, resume=resume)
    rows, notes = rows_of(home, tuple(name.strip() for name in policies.split(",") if name.strip()))
    places: dict[str, Any] = {"data": data, "home": home, "file": file}
    with scratch_room("mlfs") as folder:
        yield Bench(**places, folder=folder, rows=rows, notes=notes, seeds=tuple(range(seeds)), jobs=jobs)


PAPER = Paper("MLFS", "mlfs", ITEMS, "philly/, curves/", opened=opened, within=WITHIN)
OPTIONS = (
    count("seeds", SEEDS, "Draws of each workload."),
    click.Option(["--policies"], default="", metavar="NAME,...", help="Compare these alone."),
    JOBS,
)
main = command_of(PAPER, __doc__, OPTIONS, "FIGURE")

if __name__ == "__main__":
    main()
