"""Shockwave, Table 1 with Figures 1 and 15: what a fairness filter makes of three jobs on four GPUs."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from papers.shockwave.toy import (
    Score,
    adaptive_scores,
    all_scores,
    filter_scores,
    leaves_filter_at,
    score,
)

FAIR = 1.0 + 1e-9
"""Sharing incentive holds up to this rho."""
THIRD, TWO_THIRDS, ONE = Fraction(1, 3), Fraction(2, 3), Fraction(1)


@dataclass(frozen=True, slots=True)
class Printed:
    """A schedule and its figures as the paper prints them.

    Attributes
    ----------
    filter : as in Table 1
    figure : where the schedule stands
    shares : passing the filter, by round; the last one holds from there on
    schedule : for each GPU a letter a round, a dot where it idles
    """

    filter: str
    figure: str
    shares: tuple[Fraction, ...]
    schedule: tuple[str, ...]
    worst_rho: str
    mean_jct: str
    makespan: str


PRINTED = (
    Printed(
        "Adaptive - 1/⅓/⅔",
        "15 (c)",
        (TWO_THIRDS, TWO_THIRDS, TWO_THIRDS, THIRD),
        ("BBBAAAA", "BBBAAAA", "CCCAAAA", "CCCBB.."),
        "0.83",
        "5",
        "7",
    ),
    Printed("Fixed - 1/3", "15 (a)", (THIRD,), ("AAABAAA", "BBABAAA", "CBACAB.", "CCCCBB."), "1.0", "5.7", "7"),
    Printed("Fixed - 2/3", "1", (TWO_THIRDS,), ("ABAABAA", "ABAABAA", "BCCBCAA", "BCCBC.."), "1.1", "5.7", "7"),
    Printed("Fixed - 1", "15 (b)", (ONE,), ("AAAAAAA", "ABBABAA", "BBCBBA.", "CCCCCB."), "1.1", "6.0", "7"),
)
"""Table 1 in its order."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of Table 1, made anew.

    Attributes
    ----------
    printed : what the paper says
    scored : figures of the printed schedule
    reachable : figures of every schedule that such a filter can lead to, by how its ties are broken; best first
    leaves_filter_at : first round of the printed schedule that such a filter never grants; None: it keeps to it
    """

    printed: Printed
    scored: Score
    reachable: tuple[Score, ...]
    leaves_filter_at: int | None


def table1_rows() -> tuple[Row, ...]:
    """Score the printed schedules, and run a filter of our own for the same shares. Lines in the order of Table 1."""
    return tuple(
        Row(
            printed,
            score(printed.schedule),
            _best_first(filter_scores(printed.shares)),
            leaves_filter_at(printed.schedule, printed.shares),
        )
        for printed in PRINTED
    )


def table1(data: Path, out: Path) -> None:
    """Write `table1.md` into a folder: our figures beside the paper's, and what can be reproduced of them.

    Parameters
    ----------
    data : folder of traces; nothing is read, the toy stands in the paper
    out : folder, made where it is missing
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "table1.md").write_text(page(table1_rows()), encoding="utf-8")


def page(rows: Iterable[Row]) -> str:
    """Markdown of the table with its findings."""
    rows = tuple(rows)
    parts = [
        "# Table 1: a fairness filter on three jobs",
        _SETTING,
        "## The printed schedules, scored",
        _markdown(_SCORED_HEAD, map(_scored_line, rows)),
        _about_scores(rows),
        "## The filter, run",
        _RULE,
        _markdown(_REACHED_HEAD, map(_reached_line, rows)),
        _about_filters(rows),
    ]
    return "\n\n".join(parts) + "\n"


_SETTING = (
    "Jobs A, B and C take 12, 8 and 6 rounds on one GPU and ask for 3, 2 and 2 of 4 GPUs; on fewer they slow down "
    "linearly (Shockwave, caption of Figure 1). Rounds and GPUs are whole. rho is the time until a job ends over the "
    "time that it takes on an equal share of the GPUs, 4/3 GPUs: 9, 6 and 4.5 rounds."
)
_RULE = (
    "In each round the share f of the unfinished jobs (rounded up) that attained the fewest GPU-rounds passes the "
    "filter, after section 2.1: the one rule, of those tried, that is consistent with all three fixed schedules. How "
    "they share the GPUs is our choice, since all splits are equally efficient here: "
    "one GPU at a time goes to the job that attained least; what is left goes to the others in the same way. Ties are "
    "frequent, from the first round on; the paper does not say how they are broken. All ways are followed."
)
_SCORED_HEAD = (
    "filter", "figure", "rho of A, B, C", "worst rho", "paper", "fair", "mean JCT", "paper", "makespan", "paper",
    "worst rho, requested GPUs",
)  # fmt: skip
_REACHED_HEAD = ("filter", "figures reached (worst rho / mean JCT / makespan)", "printed schedule is one of them")


def _scored_line(row: Row) -> tuple[str, ...]:
    printed, scored = row.printed, row.scored
    return (
        printed.filter,
        printed.figure,
        ", ".join(f"{rho:.2f}" for rho in scored.rho),
        f"{scored.worst_rho:.2f}",
        printed.worst_rho,
        "yes" if scored.worst_rho <= FAIR else "no",
        f"{scored.mean_jct:.2f}",
        printed.mean_jct,
        f"{scored.makespan}",
        printed.makespan,
        f"{scored.worst_requested_rho:.2f}",
    )


def _reached_line(row: Row) -> tuple[str, ...]:
    at = row.leaves_filter_at
    return (
        row.printed.filter,
        "; ".join(map(_figures, row.reachable)),
        "yes" if at is None else f"not from round {at} on",
    )


def _about_scores(rows: tuple[Row, ...]) -> str:
    same = all(agrees(row) for row in rows)
    worst = max(row.scored.worst_requested_rho for row in rows)
    return (
        ("Every printed figure follows from its schedule. " if same else "Not every printed figure follows. ")
        + "The definition that section 2.1 gives in words, run time on the requested GPUs x number of jobs, does not "
        f"lead to them: it calls every schedule fair (last column, at most {worst:.2f}). The row f of Figure 15 (c) "
        "reads ⅔, ⅔, ⅔, ⅓, ⅓, ⅓, ⅓; Table 1 names a filter of 1 as well, which stands nowhere in it."
    )


def _about_filters(rows: tuple[Row, ...]) -> str:
    adaptive, *fixed = rows
    kept = [row.printed.filter for row in fixed if row.leaves_filter_at is None]
    fair = [row.printed.filter for row in fixed if any(one.worst_rho <= FAIR for one in row.reachable)]
    best = _best_first(all_scores())[0]
    any_share = _best_first(adaptive_scores((THIRD, TWO_THIRDS, ONE)))
    return (
        f"{len(kept)} of {len(fixed)} schedules with a fixed filter come out of this rule, if ties fall as they need. "
        f"But so do others: {len(fair)} of {len(fixed)} fixed filters can end with nobody above 1, and what Table 1 "
        "tells apart is then how ties fall, not the filter.\n\n"
        f"The adaptive schedule ({_figures(adaptive.scored)}) does not come out of a filter of this kind, not even of "
        f"one that takes any of the three shares in any round ({_figures(any_share[0])} at best): in round "
        f"{adaptive.leaves_filter_at} it serves B and C although A has attained least. It is the better schedule all "
        f"the same: over all schedules in whole GPUs and rounds, worst rho is at least {_least('worst_rho'):.2f}, mean "
        f"JCT at least {_least('mean_jct'):.2f} and makespan at least {_least('makespan')}, and "
        + ("it" if best == adaptive.scored else "another schedule")
        + " reaches all three at once."
    )


def agrees(row: Row) -> bool:
    """Whether the scored figures round to the printed ones."""
    printed, scored = row.printed, row.scored
    pairs = (
        (printed.worst_rho, scored.worst_rho),
        (printed.mean_jct, scored.mean_jct),
        (printed.makespan, scored.makespan),
    )
    return all(f"{value:.{len(text.partition('.')[2])}f}" == text for text, value in pairs)


def _least(figure: str) -> float:
    least: float = min(getattr(one, figure) for one in all_scores())
    return least


def _best_first(scores: Iterable[Score]) -> tuple[Score, ...]:
    return tuple(sorted(scores, key=lambda one: (one.worst_rho, one.mean_jct, one.makespan, one.ends)))


def _figures(scored: Score) -> str:
    return f"{scored.worst_rho:.2f} / {scored.mean_jct:.2f} / {scored.makespan}"


def _markdown(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ("---",) * len(head), *lines))
