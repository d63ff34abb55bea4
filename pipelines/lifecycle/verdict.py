"""When a version is worse than the one whose place it would take."""

from collections.abc import Mapping
from typing import Any

from jobcast.pipelines.lifecycle.comparison import main_mean
from jobcast.pipelines.wording import number, percent, signed

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
