"""Confidence intervals of the figures of duration bins, from sums by day."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from jobcast.models.evaluation.intervals import Interval, day_block_intervals, days_of, sums_by_day
from jobcast.models.scores import ECE_BINS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def duration_intervals(
    truth: Ints, forecast: Ints, probability: Floats, submit_s: Floats, draws: int
) -> dict[str, Interval]:
    """Intervals of accuracy, macro F1, log loss, calibration error and the under-predicted share, by days.

    Parameters
    ----------
    truth, forecast, submit_s : (n_jobs,)
    probability : (n_jobs, B)
    draws : of days; 0 gives {}
    """
    if not draws:
        return {}
    n_bins, row = probability.shape[1], np.arange(len(truth))
    sure, right = probability[row, forecast], forecast == truth
    which = np.minimum((sure * ECE_BINS).astype(np.int64), ECE_BINS - 1)
    columns = {
        "n": np.ones(len(truth)),
        "accuracy": right,
        "under_predicted": forecast < truth,
        "log_loss": -np.log(np.maximum(probability[row, truth], np.finfo(np.float64).tiny)),
    }
    columns |= {f"hits {b}": right & (truth == b) for b in range(n_bins)}
    columns |= {f"both {b}": (truth == b).astype(np.float64) + (forecast == b) for b in range(n_bins)}
    columns |= {f"gap {b}": np.where(which == b, sure - right, 0.0) for b in range(ECE_BINS)}
    days, sums = sums_by_day(days_of(submit_s), columns)

    def figures(weights: Floats) -> Mapping[str, float | None]:
        total = {name: float(weights @ column) for name, column in sums.items()}
        f1 = [2 * total[f"hits {b}"] / total[f"both {b}"] for b in range(n_bins) if total[f"both {b}"]]
        plain = {name: total[name] / total["n"] for name in ("accuracy", "under_predicted", "log_loss")}
        gaps = sum(abs(total[f"gap {b}"]) for b in range(ECE_BINS))
        return {**plain, "macro_f1": float(np.mean(f1)), "ece": gaps / total["n"]}

    return day_block_intervals(figures, days, draws)
