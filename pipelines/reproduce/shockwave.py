"""Table 1 and the figures of Shockwave, made anew: `python -m jobcast.pipelines.reproduce.shockwave`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from jobcast.domain.errors import UserError
from jobcast.pipelines.reproduce.driver import Paper, data_folder, make_figures, write_page_of_all

DEFAULT_OUT = Path("docs", "shockwave")
ITEMS = (
    "table1", "figure2", "figure4", "figure5", "figure7", "figure8", "figure9", "figure10", "figure11", "figure12",
    "figure13", "figure16", "figure17",
)  # fmt: skip
"""Each is a module of this package, with a function of its name."""
PAPER = Paper("Shockwave", "reproduce-shockwave", ITEMS, "shockwave", "shockwave/, philly/, curves/")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_OUT, show_default=True)
@click.option("--resume", is_flag=True, help="Leave figures alone whose folder is there.")
def main(figures: tuple[str, ...], out: Path, resume: bool) -> None:
    """Make Table 1 and the figures of Shockwave anew, all of them or those named.

    \b
    FIGURE: table1, figure2, figure4, figure5, figure7 ... figure13, figure16, figure17
    JOBCAST_DATA names the folder of traces.

    \b
    Example:
      JOBCAST_DATA=data/raw python -m jobcast.pipelines.reproduce.shockwave figure7 --out figures
    """
    try:
        reproduce(figures or ITEMS, out, data_folder(PAPER), resume=resume)
    except UserError as error:
        raise click.ClickException(str(error)) from None


def reproduce(names: tuple[str, ...], out: Path, data: Path, *, resume: bool = False) -> None:
    """Make some of `ITEMS`, see `make_figures`. Raises ConfigError for an unknown name."""
    make_figures(PAPER, names, out, data, _make, resume=resume)


def _make(name: str, data: Path, out: Path) -> None:
    figure: Callable[[Path, Path], None] = getattr(import_module(f"jobcast.pipelines.reproduce.{name}"), name)
    figure(data, out)


def write_results(out: Path) -> None:
    """Put the pages of all folders there are into one, in order."""
    write_page_of_all(PAPER, out)


if __name__ == "__main__":
    main()
