"""Shockwave, Table 1 with Figures 1 and 15: what a fairness filter makes of three jobs on four GPUs."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from papers.results import Page, lines, read_rows
from papers.shockwave.toy import Score, adaptive_scores, all_scores, filter_scores, leaves_filter_at, score

FAIR = 1.0 + 1e-9
"""Sharing incentive holds up to this rho."""
FIGURES = ("worst_rho", "mean_jct", "makespan")
THIRD, TWO_THIRDS, ONE = Fraction(1, 3), Fraction(2, 3), Fraction(1)
PRINTED = read_rows(Path(__file__).with_suffix(".csv"))
"""Table 1 in its order: shares pass by round, the last one from there on; schedules have a letter a round for each GPU,
a dot where it idles."""


class Row(NamedTuple):
    """A line of Table 1, made anew.

    Attributes
    ----------
    printed : what the paper says
    scored : figures of the printed schedule
    reachable : figures of every schedule that such a filter can lead to, by how its ties are broken; best first
    leaves_filter_at : first round of the printed schedule that such a filter never grants; None: it keeps to it
    """

    printed: Mapping[str, str]
    scored: Score
    reachable: tuple[Score, ...]
    leaves_filter_at: int | None


def table1_rows() -> list[Row]:
    """Score the printed schedules, and run a filter of our own for the same shares. Lines in the order of Table 1."""
    rows = []
    for one in PRINTED:
        schedule, shares = one["schedule"].split(), list(map(Fraction, one["shares"].split()))
        reachable, leaves_at = _best_first(filter_scores(shares)), leaves_filter_at(schedule, shares)
        rows.append(Row(one, score(schedule), reachable, leaves_at))
    return rows


def table1(data: object, page: Page) -> None:
    """Our figures beside the paper's, and what can be reproduced of them; nothing is read: the toy is the paper's."""
    rows = table1_rows()
    adaptive, *fixed = rows
    every = all_scores()
    least = {name: min(getattr(one, name) for one in every) for name in FIGURES}
    page.write(
        scored=lines(map(_scored_line, rows)),
        every="Every" if all(agrees(row) for row in rows) else "Not every",
        requested=max(row.scored.worst_requested_rho for row in rows),
        reached=lines(map(_reached_line, rows)),
        fixed=len(fixed),
        kept=sum(row.leaves_filter_at is None for row in fixed),
        fair=sum(any(one.worst_rho <= FAIR for one in row.reachable) for row in fixed),
        adaptive=_figures(adaptive.scored),
        any_share=_figures(_best_first(adaptive_scores((THIRD, TWO_THIRDS, ONE)))[0]),
        leaves=adaptive.leaves_filter_at,
        best="it" if _best_first(every)[0] == adaptive.scored else "another schedule",
        **least,
    )


def _scored_line(row: Row) -> tuple[str, ...]:
    printed, scored = row.printed, row.scored
    return (
        printed["filter"],
        printed["figure"],
        ", ".join(f"{rho:.2f}" for rho in scored.rho),
        f"{scored.worst_rho:.2f}",
        printed["worst_rho"],
        "yes" if scored.worst_rho <= FAIR else "no",
        f"{scored.mean_jct:.2f}",
        printed["mean_jct"],
        f"{scored.makespan}",
        printed["makespan"],
        f"{scored.worst_requested_rho:.2f}",
    )


def _reached_line(row: Row) -> tuple[str, ...]:
    kept = "yes" if row.leaves_filter_at is None else f"not from round {row.leaves_filter_at} on"
    return (row.printed["filter"], "; ".join(map(_figures, row.reachable)), kept)


def agrees(row: Row) -> bool:
    """Whether the scored figures round to the printed ones."""
    pairs = [(row.printed[name], getattr(row.scored, name)) for name in FIGURES]
    return all(f"{value:.{len(text.partition('.')[2])}f}" == text for text, value in pairs)


def _best_first(scores: Iterable[Score]) -> tuple[Score, ...]:
    return tuple(sorted(scores, key=lambda one: (one.worst_rho, one.mean_jct, one.makespan, one.ends)))


def _figures(scored: Score) -> str:
    return f"{scored.worst_rho:.2f} / {scored.mean_jct:.2f} / {scored.makespan}"
