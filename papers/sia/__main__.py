"""Make the figures and tables of SIA anew, all of them or those named.

\b
ITEM: figure1 (a worked example, with table 4), usage (of pools, figures 2 and 3), figure5, figure24 (the potential, on
      synthetic workloads), forecast_tables (of arrivals, tables 10, 20 and 23, figures 21 and 22), figure13 (random
      draws of four queues, gain against harm), figure14 (numbers of queues), figure15a (what predictors are worth),
      figure15b (the virtual clock and the MILP), figure16 (locality), table17 (all pools, with figure 18), preemption
      (of a share of the jobs)
JOBCAST_DATA names the folder of traces; figures 1, 5, 24 and 15b do without. How long each took is told as it is done;
runs that are on file are not made again with --resume.

\b
Example:
  python -m papers.sia figure5 figure13 --seeds 2 --draws 10 --out figures
"""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from papers.driver import JOBS, Paper, command_of, count

ITEMS = (
    "figure1", "usage", "figure5", "figure24", "forecast_tables", "figure13", "figure14", "figure15a",
    "figure15b", "figure16", "table17", "preemption",
)  # fmt: skip
WITHIN = dict.fromkeys(("figure14", "figure15a", "figure16", "preemption"), "queues")
WITHIN |= dict.fromkeys(("figure5", "figure24", "figure15b"), "potential")
NEED_DATA = ("usage", "forecast_tables", "figure13", "figure14", "figure15a", "figure16", "table17", "preemption")
HOME = ".home"
"""In the folder of all items, which share predictors; it is not kept in version control."""


def opened(out: Path, data: Path, *, resume: bool, **chosen: Any) -> AbstractContextManager[Any]:
    """The bench of all figures; `chosen` as of `Bench`."""
    from papers.bench import RUNS, RunFile
    from papers.sia.bench import Bench

    return nullcontext(Bench(data=data, home=out / HOME, file=RunFile(out / RUNS, resume=resume), **chosen))


PAPER = Paper("SIA", "sia", ITEMS, "philly/", NEED_DATA, opened, within=WITHIN)
OPTIONS = (count("seeds", 10, "Draws of synthetic workloads."), count("draws", 100, "Draws of random pools."), JOBS)
main = command_of(PAPER, __doc__, OPTIONS)

if __name__ == "__main__":
    main()
