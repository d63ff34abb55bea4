"""The page of a figure over draws: what it is, its plot, medians and ranges, and the paper's claims beside them."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from papers.sheets import Claim, claims, picture, write_page
from papers.sia.bench import Bench
from papers.sia.measures import Measure, draws_text, table, write_runs
from papers.sia.plotting import boxes
from papers.sia.units import Done, Row
from papers.sia.workloads import PoolDraw

SHARE_OF_DRAWS = 0.1
"""Of Figure 13's draws, for each case of the other figures: the paper does not say how many there are."""


def draws_of(bench: Bench) -> int:
    """How many draws a case takes in all figures but the thirteenth."""
    return max(1, round(SHARE_OF_DRAWS * bench.draws))


def write_queues_page(
    bench: Bench,
    out: Path,
    name: str,
    title: str,
    about: str,
    *,
    says: str,
    draws: Sequence[PoolDraw],
    rows: Sequence[Row],
    panels: Sequence[Measure],
    columns: Sequence[Measure],
    found: Callable[[Sequence[Done]], Iterable[Claim]],
) -> None:
    """Run rows on draws of several numbers of queues; write `NAME.md`, its table and its plot of boxes into a folder.

    Parameters
    ----------
    about : what was run; `{draws}` stands for how many
    panels, columns : measures of the plot and of the table
    found : claims of the paper, from the runs
    """
    done = bench.run(draws, rows, draws_of(bench))
    write_runs(out, name, done)
    boxes(out, name, title, done, panels, "queues")
    told = about.format(draws=draws_text(draws_of(bench)))
    write_draws_page(out, name, title, told, says=says, shown=table(done, "queues", columns), found=found(done))


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
