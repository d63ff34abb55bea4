"""Table 1 and the figures of Shockwave, made anew: `python -m papers.shockwave`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from papers.driver import Paper, command_of, make_figures, write_page_of_all

ITEMS = (
    "table1", "figure2", "figure4", "figure5", "figure7", "figure8", "figure9", "figure10", "figure11", "figure12",
    "figure13", "figure16", "figure17",
)  # fmt: skip
"""Each is a module of this package, with a function of its name."""
PAPER = Paper("Shockwave", "reproduce-shockwave", ITEMS, "shockwave", "shockwave/, philly/, curves/")


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
    figure: Callable[[Path, Path], None] = getattr(import_module(f"papers.shockwave.{name}"), name)
    figure(data, out)


def write_results(out: Path) -> None:
    """Put the pages of all folders there are into one, in order."""
    write_page_of_all(PAPER, out)


main = command_of(PAPER, reproduce, ABOUT)

if __name__ == "__main__":
    main()
