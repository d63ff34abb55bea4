"""How wide intervals must be: from applications left out one by one inside of the training curves."""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from jobcast.domain.arrays import Floats
from jobcast.models.curves.numbers import SPREAD_SHARES, CurveNumbers
from jobcast.models.curves.pooling import ByApp, core_numbers
from jobcast.models.curves.prior import CurvePrior
from jobcast.traces.learning_curves import LearningCurve

LEVEL = 0.9
DEFAULT_POINTS = 200
"""Before an application is seen, deviations are normal, as computed; kept as so many quantiles."""
LEAST_SPREAD, MOST_SPREAD = 0.5, 4.0
NORMAL_QUANTILE = float(ndtri(0.5 + LEVEL / 2))
LEAST_EPOCHS = 5


def calibrated_spread(by_app: ByApp, prior: CurvePrior | None) -> tuple[float, ...]:
    """By SPREAD_SHARES, what to multiply standard deviations with so that nine in ten intervals hold.

    The quantile of all applications' deviations together, where each counts once, and so does the default.
    """
    usual = ndtri(0.5 + (np.arange(DEFAULT_POINTS) + 0.5) / DEFAULT_POINTS / 2)
    found: list[list[Floats]] = [[usual] for _ in SPREAD_SHARES[1:-1]]
    for app, runs in by_app.items():
        long = [run for run in runs if len(run.metric) >= LEAST_EPOCHS]
        if long:
            others = {name: rest for name, rest in by_app.items() if name != app}
            numbers = core_numbers(others, prior)
            for place, share in enumerate(SPREAD_SHARES[1:-1]):
                off = deviations(long, share, numbers)
                if off.size:
                    found[place].append(off)
    spread = [float(np.clip(pooled_quantile(parts) / NORMAL_QUANTILE, LEAST_SPREAD, MOST_SPREAD)) for parts in found]
    return (spread[0], *spread, spread[-1])


def pooled_quantile(parts: Sequence[Floats]) -> float:
    """The LEVEL quantile of all parts together, each of which weighs the same.

    >>> pooled_quantile([np.zeros(9), np.array([1.0, 2.0, 3.0])])
    3.0
    """
    value = np.concatenate(parts)
    weight = np.concatenate([np.full(part.size, 1 / part.size / len(parts)) for part in parts])
    order = np.argsort(value, kind="stable")
    place = np.searchsorted(np.cumsum(weight[order]), LEVEL)
    return float(value[order][min(int(place), value.size - 1)])


def deviations(runs: Sequence[LearningCurve], share: float, numbers: CurveNumbers) -> Floats:
    """How many standard deviations off later epochs were, forecast by what other applications taught.

    What cuts of the learning rate may have done is left out of the deviation of nine intervals in ten.
    """
    from jobcast.models.curves.accuracy_curve import AccuracyCurve

    rows = [max(1, int(np.searchsorted(run.epoch, round(share * run.epoch[-1]), "right"))) for run in runs]
    kept = [(run, row) for run, row in zip(runs, rows, strict=True) if row < len(run.metric)]
    if not kept:
        return np.zeros(0)
    model = AccuracyCurve.from_numbers(numbers)
    forecast = model.forecast([run.prefix(row) for run, row in kept], [int(run.epoch[-1]) for run, _ in kept])
    most = max(len(run.metric) - row for run, row in kept)
    later = np.array([np.resize(run.epoch[row:], most) for run, row in kept])
    actual = np.array([np.resize(run.metric[row:], most) for run, row in kept])
    real = np.arange(most) < np.array([len(run.metric) - row for run, row in kept])[:, None]
    mean, sd, worse, better = forecast.parts(later.astype(float))
    change = forecast.direction[:, None] * (actual - mean)
    by_cuts = np.where(change < 0, worse, better) * NORMAL_QUANTILE
    off: Floats = np.sqrt(np.maximum(change**2 - by_cuts**2, 0.0)) / sd
    return off[real]
