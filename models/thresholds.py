"""Thresholds on probabilities of arrivals: one for reporting, one that guards the scheduler."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNINFORMED_F1 = 0.5
"""Where no threshold can be chosen on data: the likelier class."""
UNINFORMED_GATE = 0.0
"""Where no arrival was seen to be missed: never declare a window idle."""
HARD_PERIODS = 0.25
"""Share of the half weeks that may be harder than the gate is made for; see `lasting_gate`."""
LEAST_ARRIVALS = 20
"""Windows with arrivals that a period needs for a threshold of its own: one in twenty may be missed."""
HALF_WEEK_S = 302400.0
MONDAY_OFFSET_S = 259200.0
"""1970-01-01 was a Thursday: three days more, modulo a week, count from Monday."""


def best_f1_threshold(arrives: NDArray[np.bool_], probability: NDArray[Any]) -> float:
    """Probability from which on "jobs arrive" has the best F1; the largest of equally good ones.

    Parameters
    ----------
    arrives : shape (n_rows,)
    probability : shape (n_rows,)

    Notes
    -----
    Candidates are the probabilities themselves, so all rows at or above the threshold count as arrivals.

    Examples
    --------
    >>> best_f1_threshold(np.array([False, False, True, True]), np.array([0.1, 0.6, 0.5, 0.9]))
    0.5
    """
    hits = int(arrives.sum())
    if not hits:
        return UNINFORMED_F1
    order = np.argsort(-probability, kind="stable")
    ranked = probability[order]
    last_of_tie = np.append(ranked[1:] != ranked[:-1], True)
    found = np.cumsum(arrives[order])[last_of_tie]
    declared = np.flatnonzero(last_of_tie) + 1
    f1 = 2.0 * found / (declared + hits)
    return float(ranked[last_of_tie][f1.argmax()])


def gate_threshold(arrives: NDArray[np.bool_], probability: NDArray[Any], miss_share: float) -> float:
    """Largest threshold that misses at most `miss_share` of the windows with arrivals.

    A window is missed when jobs arrive and its probability is below the threshold: the scheduler then gives
    GPUs away that their owners come for.

    Examples
    --------
    >>> gate_threshold(np.ones(4, bool), np.array([0.3, 0.1, 0.2, 0.4]), miss_share=0.25)
    0.2
    """
    of_arrivals = np.sort(probability[arrives])
    if not len(of_arrivals):
        return UNINFORMED_GATE
    may_miss = min(int(np.floor(miss_share * len(of_arrivals) + 1e-9)), len(of_arrivals) - 1)
    return float(of_arrivals[may_miss])


def lasting_gate(
    arrives: NDArray[np.bool_], probability: NDArray[Any], period: NDArray[Any], miss_share: float
) -> float:
    """Threshold that misses at most `miss_share` of the windows with arrivals, and does so in most periods alone.

    Of thresholds that are each chosen on one period, the lower quartile, but never more than `gate_threshold` of all
    periods together. What comes differs from what was, and volume that falls makes misses of what was safe: the
    threshold of all weeks together misses too much as soon as hard weeks come in a row.

    Parameters
    ----------
    arrives : shape (n_rows,)
    probability : shape (n_rows,)
    period : shape (n_rows,), equal numbers in equal periods (see `half_week`); those with few arrivals have no say
    miss_share : in [0, 1)

    Notes
    -----
    Chosen on October of Philly: thresholds from the past were checked on the week after, four times. Over 5, 60 and
    720 minutes the threshold of all weeks together missed 4.8, 6.0 and 5.1 % (worst week 8.5 %), this one 4.2, 5.4
    and 3.7 % (7.1 %). Periods of a day are too short to tell (3.4, 5.2, 2.8 %), and free less.

    Examples
    --------
    >>> probability, period = np.repeat([0.5, 0.3], 20), np.repeat([0, 1], 20)
    >>> lasting_gate(np.ones(40, bool), probability, period, miss_share=0.75)
    0.35
    >>> lasting_gate(np.ones(40, bool), probability, np.zeros(40), miss_share=0.75)
    0.5
    """
    together = gate_threshold(arrives, probability, miss_share)
    of_arrivals, when = probability[arrives], period[arrives]
    periods, count = np.unique(when, return_counts=True)
    alone = [
        gate_threshold(np.ones(n, np.bool_), of_arrivals[when == one], miss_share)
        for one, n in zip(periods, count, strict=True)
        if n >= LEAST_ARRIVALS
    ]
    return min(together, float(np.quantile(alone, HARD_PERIODS))) if alone else together


def half_week(tick_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Number of the half week of instants, shape (n_rows,): from Monday 0:00 or Thursday 12:00 UTC on.

    >>> half_week(np.array([345599.0, 345600.0, 648000.0])).tolist()  # 1970-01-04, a Sunday; 5th; 8th at noon
    [1.0, 2.0, 3.0]
    """
    number: NDArray[np.float64] = np.floor((tick_s + MONDAY_OFFSET_S) / HALF_WEEK_S)
    return number
