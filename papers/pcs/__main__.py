"""Make the figures of PCS anew, all of them or those named.

\b
FIGURE: fronts (the searches that figures choose configurations from), figure1, figure3,
        figure4 (with 5 and 6), figure7, figure8, figure9, figure10
JOBCAST_DATA names the folder of traces.

\b
Example:
  JOBCAST_DATA=data/raw python -m papers.pcs figure7 --out figures
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from papers.driver import Paper, command_of

FRONTS = "fronts"
ITEMS = (FRONTS, "figure1", "figure3", "figure4", "figure7", "figure8", "figure9", "figure10")
SEARCHED = ("figure3", "figure4", "figure7", "figure8", "figure10")
"""Figures of configurations that were searched for."""


def opened(out: Path, data: Path, *, resume: bool) -> AbstractContextManager[Any]:
    """The folders that figures are made from."""
    from papers.pcs.fronts import Sources

    return nullcontext(Sources(data, out / FRONTS))


def planned(names: Sequence[str], out: Path) -> tuple[str, ...]:
    """The searches first where a figure needs them and they are missing."""
    missing = FRONTS not in names and not (out / FRONTS).is_dir() and set(names) & set(SEARCHED)
    return (*((FRONTS,) if missing else ()), *names)


PAPER = Paper("PCS", "pcs", ITEMS, "pcs/", opened=opened, kept=True, planned=planned, within={"figure8": "figure7"})
main = command_of(PAPER, __doc__, word="FIGURE")

if __name__ == "__main__":
    main()
