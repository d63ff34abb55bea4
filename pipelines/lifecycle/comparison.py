"""Two versions on the same rows: figures beside each other, and the main one's difference with a paired interval.

When a version is worse than the one whose place it would take.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.models.evaluation.intervals import CONFIDENCE, DRAWS, DayDraws, Interval
from jobcast.pipelines.lifecycle.rows import Blocks
from jobcast.pipelines.wording import number, percent, signed

Compared = dict[str, Any]


def compare_rows(ours: Blocks, theirs: Blocks, names: tuple[str, str], draws: int = DRAWS, seed: int = 0) -> Compared:
    """Figures of two versions on the same rows.

    Parameters
    ----------
    ours, theirs : rows by block; blocks that both hold are compared, those without rows are left out
    names : what to call the two, as keys
    draws, seed : of the paired intervals: whole days are drawn, the same for both

    Returns
    -------
    `figure`, the main one, and `less_is_better`; `blocks`: block -> the figures of each by name, and `difference` (of
    the main figure, the first less the second) with `interval`; `difference` and `interval` of its mean over blocks,
    None where it is undefined or, for the interval, too few days were seen.
    """
    blocks: Compared = {}
    drawn: list[tuple[DayDraws, Floats]] = []
    for name in [name for name in ours if name in theirs and len(ours[name])]:
        mine, other = ours[name], theirs[name]
        days = DayDraws(mine.time_s, draws, seed)
        differences = mine.main_draws(days) - other.main_draws(days)
        figures = mine.figures(), other.figures()
        blocks[name] = {
            **dict(zip(names, figures, strict=True)),
            "difference": _difference(figures[0][mine.MAIN], figures[1][mine.MAIN]),
            "interval": days.interval(differences),
        }
        drawn.append((days, differences))
    kind = next(iter(ours.values()))
    known = [block["difference"] for block in blocks.values() if block["difference"] is not None]
    return {
        "figure": kind.MAIN,
        "less_is_better": kind.MAIN_IS_LOSS,
        "blocks": blocks,
        "difference": float(np.mean(known)) if known else None,
        "interval": _mean_interval(drawn),
        "confidence": CONFIDENCE,
        "draws": draws,
    }


def main_mean(compared: Mapping[str, Any], name: str) -> float | None:
    """Mean over the blocks of one version's main figure."""
    values = [block[name][compared["figure"]] for block in compared["blocks"].values()]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _mean_interval(drawn: Sequence[tuple[DayDraws, Floats]]) -> Interval:
    """Interval of the mean over blocks; draws in which a block is undefined do not count."""
    if not drawn:
        return None
    fewest = min((days for days, _ in drawn), key=lambda days: len(days.days))
    return fewest.interval(np.mean([differences for _, differences in drawn], axis=0))


CANDIDATE, CHAMPION = "candidate", "champion"
UNTOLD_SHARE = 0.05
"""Where too few days were seen for an interval, a main figure worse by this share of the champion's counts."""
SLOWED_TOLERANCE_PCT = 0.5
"""Percentage points of the jobs that may be slowed more than under the champion."""
SPEEDUP_TOLERANCE_SHARE = 0.05
"""Share of the champion's geometric-mean speedup that may be lost."""

RULES = {
    "figure": "the main figure's mean over horizons is worse and its paired interval leaves no doubt",
    "figure_without_interval_share": UNTOLD_SHARE,
    "slowed_pct_more": SLOWED_TOLERANCE_PCT,
    "speedup_less_share": SPEEDUP_TOLERANCE_SHARE,
}
"""What counts as worse, for results."""


def why_worse(figures: Mapping[str, Any], backtest: Mapping[str, Any] | None) -> list[str]:
    """Each way in which the candidate is worse, with its figures; empty where it may be promoted.

    Parameters
    ----------
    figures : `comparison.compare_rows` of the candidate and the champion
    backtest : figures of `sia` with each, by the same names; None where none was run
    """
    return [*_figure(figures), *([] if backtest is None else why_slower(backtest[CANDIDATE], backtest[CHAMPION]))]


def _figure(figures: Mapping[str, Any]) -> list[str]:
    difference, interval = figures["difference"], figures["interval"]
    if difference is None:
        return []
    loss = difference if figures["less_is_better"] else -difference
    theirs = main_mean(figures, CHAMPION) or 0.0
    if interval is None:
        worse, told = loss > UNTOLD_SHARE * abs(theirs), "too few days for an interval"
    else:
        low, high = interval
        worse = low > 0 if figures["less_is_better"] else high < 0
        told = f"{100 * figures['confidence']:g} % {signed(low)} to {signed(high)}"
    ours = number(main_mean(figures, CANDIDATE))
    return [f"{figures['figure']} {ours} against {number(theirs)} ({signed(difference)}, {told})"] if worse else []


def why_slower(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Each way in which jobs fare worse, of figures of `sia` with two sets of versions."""
    found = []
    if ours["slowed_pct"] > theirs["slowed_pct"] + SLOWED_TOLERANCE_PCT:
        found.append(f"slows {percent(ours['slowed_pct'])} of the jobs against {percent(theirs['slowed_pct'])}")
    if ours["speedup_gmean"] < theirs["speedup_gmean"] * (1 - SPEEDUP_TOLERANCE_SHARE):
        found.append(f"speedup {number(ours['speedup_gmean'])} against {number(theirs['speedup_gmean'])}")
    return found
