"""Differences between policies on the same draws, with confidence intervals over draws."""

from collections.abc import Sequence

import numpy as np

from papers.confidence import Floats, Interval, interval_of
from papers.mlfs.measures import Measure
from papers.mlfs.units import Done


def values_of(measure: Measure, done: Sequence[Done], case: str, name: str) -> Floats:
    """(n_draws,) a measure by draw, in the order of seeds, as it is printed."""
    ours = sorted((one for one in done if (one.case, one.name) == (case, name)), key=lambda one: one.seed)
    return np.array([one.figures[measure.key] * measure.scale for one in ours])


def relative(measure: Measure, done: Sequence[Done], case: str, better: str, worse: str) -> Interval:
    """By how much one is better than another in the geometric mean over draws, %; NaN where a value is not above 0.

    The interval is that of the mean difference of logarithms, draw by draw.
    """
    y, z = (values_of(measure, done, case, name) for name in (better, worse))
    nan = float("nan")
    if not ((y > 0).all() and (z > 0).all()):
        return Interval(nan, nan, nan)
    logs = interval_of(np.log(y / z))
    if measure.lower:
        return Interval(*(float(-100 * np.expm1(value)) for value in (logs.mean, logs.high, logs.low)))
    return Interval(*(float(100 * np.expm1(value)) for value in (logs.mean, logs.low, logs.high)))


def apart(measure: Measure, done: Sequence[Done], case: str, better: str, worse: str) -> Interval:
    """By how much one is better than another, in the unit that is printed: the mean difference draw by draw."""
    difference = values_of(measure, done, case, better) - values_of(measure, done, case, worse)
    return interval_of(-difference if measure.lower else difference)
