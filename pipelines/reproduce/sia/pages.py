"""The page of a figure over draws: what it is, its plot, medians and ranges, and the paper's claims beside them."""

from collections.abc import Iterable
from pathlib import Path

from jobcast.pipelines.reproduce.sheets import Claim, claims, picture, write_page


def write_draws_page(
    out: Path, name: str, title: str, about: str, *, says: str, shown: str, found: Iterable[Claim]
) -> None:
    """Write `NAME.md` into a folder.

    Parameters
    ----------
    about : what was run
    says : of the plot `NAME.svg`, for those who cannot see it
    shown : the table
    found : claims of the paper
    """
    parts = [
        f"# {title}",
        about,
        picture(name, says),
        "## Medians and ranges over draws",
        shown,
        "## Against the paper",
        claims(found),
    ]
    write_page(out, name, parts)
