"""Table 1 and the figures of Shockwave, made anew: `python -m papers.shockwave`."""

from pathlib import Path

from papers.driver import Paper, command_of, make_figures

ITEMS = (
    "table1", "figure2", "figure4", "figure5", "figure7", "figure8", "figure9", "figure10", "figure11", "figure12",
    "figure13", "figure16", "figure17",
)  # fmt: skip
PAPER = Paper("Shockwave", "reproduce-shockwave", "shockwave", ITEMS, "shockwave", "shockwave/, philly/, curves/")


ABOUT = """Make Table 1 and the figures of Shockwave anew, all of them or those named.

\b
FIGURE: table1, figure2, figure4, figure5, figure7 ... figure13, figure16, figure17
JOBCAST_DATA names the folder of traces.

\b
Example:
  JOBCAST_DATA=data/raw python -m papers.shockwave figure7 --out figures
"""


def reproduce(names: tuple[str, ...], out: Path, data: Path, *, resume: bool = False) -> None:
    """Make some of `ITEMS`, see `make_figures`. Raises ConfigError for an unknown name."""
    make_figures(PAPER, names, out, data, _make, resume=resume)


def _make(name: str, data: Path, out: Path) -> None:
    PAPER.item(name)(data, out)


main = command_of(PAPER, reproduce, ABOUT, resuming="Leave figures alone whose folder is there.")

if __name__ == "__main__":
    main()
