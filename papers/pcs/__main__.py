"""The figures of PCS, made anew: `python -m papers.pcs`."""

from pathlib import Path

from papers.driver import Paper, command_of, make_figures

FRONTS = "fronts"
"""Made first when a figure needs it and it is missing."""
ITEMS = (FRONTS, "figure1", "figure3", "figure4", "figure7", "figure8", "figure9", "figure10")
SEARCHED = ("figure3", "figure4", "figure7", "figure8", "figure10")
"""Figures of configurations that were searched for."""
PAPER = Paper("PCS", "reproduce-pcs", "pcs", ITEMS, "pcs", "pcs/")


ABOUT = """Make the figures of PCS anew, all of them or those named.

\b
FIGURE: fronts (the searches that figures choose configurations from), figure1, figure3,
        figure4 (with 5 and 6), figure7, figure8, figure9, figure10
JOBCAST_DATA names the folder of traces.

\b
Example:
  JOBCAST_DATA=data/raw python -m papers.pcs figure7 --out figures
"""


def reproduce(names: tuple[str, ...], out: Path, data: Path, *, resume: bool = False) -> None:
    """Make some of `ITEMS`, see `make_figures`; fronts first where they are needed and missing.

    Raises ConfigError for an unknown name.
    """

    def make(name: str, data: Path, into: Path) -> None:
        PAPER.item(name)(data, into, out / FRONTS)

    missing = FRONTS not in names and not (out / FRONTS).is_dir() and set(names) & set(SEARCHED)
    make_figures(PAPER, ((FRONTS,) if missing else ()) + names, out, data, make, resume=resume)


main = command_of(PAPER, reproduce, ABOUT, resuming="Leave figures alone whose folder is there.")

if __name__ == "__main__":
    main()
