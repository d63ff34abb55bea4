"""The figures of PCS, made anew: `python -m jobcast.pipelines.reproduce.pcs`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from jobcast.domain.errors import UserError
from jobcast.pipelines.reproduce.driver import Paper, data_folder, make_figures

DEFAULT_OUT = Path("docs", "pcs")
FRONTS = "fronts"
"""Made first when a figure needs it and it is missing."""
ITEMS = (FRONTS, "figure1", "figure3", "figure4", "figure7", "figure8", "figure9", "figure10")
"""Each is a module of this package, with a function of its name."""
SEARCHED = ("figure3", "figure4", "figure7", "figure8", "figure10")
"""Figures of configurations that were searched for."""
PAPER = Paper("PCS", "reproduce-pcs", ITEMS, "pcs", "pcs/")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_OUT, show_default=True)
@click.option("--resume", is_flag=True, help="Leave figures alone whose folder is there.")
def main(figures: tuple[str, ...], out: Path, resume: bool) -> None:
    """Make the figures of PCS anew, all of them or those named.

    \b
    FIGURE: fronts (the searches that figures choose configurations from), figure1, figure3,
            figure4 (with 5 and 6), figure7, figure8, figure9, figure10
    JOBCAST_DATA names the folder of traces.

    \b
    Example:
      JOBCAST_DATA=data/raw python -m jobcast.pipelines.reproduce.pcs figure7 --out figures
    """
    try:
        reproduce(figures or ITEMS, out, data_folder(PAPER), resume=resume)
    except UserError as error:
        raise click.ClickException(str(error)) from None


def reproduce(names: tuple[str, ...], out: Path, data: Path, *, resume: bool = False) -> None:
    """Make some of `ITEMS`, see `make_figures`; fronts first where they are needed and missing.

    Raises ConfigError for an unknown name.
    """

    def make(name: str, data: Path, into: Path) -> None:
        figure: Callable[[Path, Path, Path], None] = getattr(
            import_module(f"jobcast.pipelines.reproduce.pcs.{name}"), name
        )
        figure(data, into, out / FRONTS)

    missing = FRONTS not in names and not (out / FRONTS).is_dir() and set(names) & set(SEARCHED)
    make_figures(PAPER, ((FRONTS,) if missing else ()) + names, out, data, make, resume=resume)


if __name__ == "__main__":
    main()
