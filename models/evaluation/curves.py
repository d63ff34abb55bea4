"""How good forecasts of training curves are: figures of `evaluate accuracy-curve`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TrainingError
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.curves.forecast import CurveForecast
from jobcast.traces.learning_curves import LearningCurve

LEVEL = 0.9
LEAST_EPOCHS = 3
"""Of an application that is left out: of two epochs, half of them seen, the whole range is what is still to come."""
CurveFigures = dict[str, Any]


def seen_epochs(epochs: int, prefix: float) -> int:
    """Epochs that are seen of a run: a share, at least one.

    >>> seen_epochs(100, 0.2), seen_epochs(2, 0.2)
    (20, 1)
    """
    return max(1, round(prefix * epochs))


def score_curves(model: AccuracyCurve, curves: Sequence[LearningCurve], prefix: float) -> CurveFigures:
    """Figures of a fitted model on whole curves, each seen up to epoch max(1, round(prefix * epochs)).

    Parameters
    ----------
    model : fitted
    curves : whole runs
    prefix : share of the epochs that is seen, in (0, 1)

    Returns
    -------
    curves : how many were scored
    mae : mean over curves of |last value - forecast of it| / (max - min of the whole curve)
    mae_last_value : the same for the last value seen
    coverage_90, width_90 : share of later epochs of all curves within the interval, and its mean width in that unit
    families : family -> mae of it alone

    Raises
    ------
    TrainingError
        The share is not in (0, 1), or no curve varies and goes on after it.
    """
    return pooled([curve_errors(model, curves, prefix)])


def curve_errors(model: AccuracyCurve, curves: Sequence[LearningCurve], prefix: float) -> dict[str, Any]:
    """What `score_curves` averages: (n,) errors, (n,) lists of later epochs covered and of widths, by family too."""
    if not 0 < prefix < 1:
        raise TrainingError(f"--prefix {prefix}: not between 0 and 1; give the share of the epochs that is seen")
    picked = [(curve, _rows_seen(curve, prefix)) for curve in curves if is_scored(curve, prefix)]
    if not picked:
        raise TrainingError("no curve varies and goes on after the share that is seen; give longer curves")
    whole = [curve for curve, _ in picked]
    forecast = model.forecast([curve.prefix(seen) for curve, seen in picked], [int(c.epoch[-1]) for c in whole])
    span = np.array([np.ptp(curve.metric) for curve in whole])
    last = np.array([curve.metric[-1] for curve in whole])
    known = np.array([curve.metric[seen - 1] for curve, seen in picked])
    covered, width = _later(forecast, picked, span)
    families = {name: np.abs(last - final) / span for name, final in forecast.family_finals.items()}
    return {
        "mae": np.abs(last - forecast.final_mean) / span,
        "mae_last_value": np.abs(last - known) / span,
        "covered": covered,
        "width": width,
        "families": families,
    }


def is_scored(curve: LearningCurve, prefix: float) -> bool:
    """Whether a curve varies and goes on after the share that is seen."""
    return _rows_seen(curve, prefix) < len(curve.metric) and bool(np.ptp(curve.metric) > 0)


def _rows_seen(curve: LearningCurve, prefix: float) -> int:
    """Rows up to the epoch; at least one, which counts where epochs were not measured."""
    return max(1, int(np.searchsorted(curve.epoch, seen_epochs(int(curve.epoch[-1]), prefix), side="right")))


def _later(
    forecast: CurveForecast, picked: Sequence[tuple[LearningCurve, int]], span: Floats
) -> tuple[list[Floats], list[Floats]]:
    """By curve: whether each later epoch's metric is in the interval, and how wide that is."""
    later = [curve.epoch[seen:] for curve, seen in picked]
    most = max(map(len, later))
    # Padded by the last epoch; the padding is cut off again below.
    epoch = np.array([np.pad(one, (0, most - one.size), mode="edge") for one in later], dtype=np.float64)
    low, high = forecast.interval(LEVEL, epoch)
    covered, width = [], []
    for row, (curve, seen) in enumerate(picked):
        actual = curve.metric[seen:]
        below, above = low[row, : actual.size], high[row, : actual.size]
        # A list a curve, since curves have different numbers of later epochs.
        covered.append(((below <= actual) & (actual <= above)).astype(float))
        width.append((above - below) / span[row])
    return covered, width


def pooled(parts: Sequence[dict[str, Any]]) -> CurveFigures:
    """Figures over the curves of all parts together."""
    mae, last = (np.concatenate([part[name] for part in parts]) for name in ("mae", "mae_last_value"))
    covered, width = (np.concatenate([row for part in parts for row in part[name]]) for name in ("covered", "width"))
    names = parts[0]["families"]
    return {
        "curves": len(mae),
        "mae": float(mae.mean()),
        "mae_last_value": float(last.mean()),
        "coverage_90": float(covered.mean()),
        "width_90": float(width.mean()),
        "families": {name: float(np.concatenate([part["families"][name] for part in parts]).mean()) for name in names},
    }
