"""Figures of merit: pure functions of what was forecast and what came. None where a figure is undefined."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools

ECE_BINS = 15
"""Equal-width bins of the calibration error."""
Floats = NDArray[Any]
Figure = float | None


def detection(truth: Bools, declared: Bools) -> dict[str, Figure]:
    """Precision, recall and F1 of the class True.

    Examples
    --------
    >>> detection(np.array([True, True, False]), np.array([True, False, False]))
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6666666666666666}
    >>> detection(np.array([False]), np.array([False]))
    {'precision': None, 'recall': None, 'f1': None}
    """
    from sklearn.metrics import precision_recall_fscore_support

    if not len(truth):
        return {"precision": None, "recall": None, "f1": None}
    precision, recall, f1, _ = precision_recall_fscore_support(
        truth, declared, average="binary", pos_label=True, zero_division=np.nan
    )
    return {"precision": defined(precision), "recall": defined(recall), "f1": defined(f1)}


def idle_detection(arrives: Bools, declared: Bools) -> dict[str, Figure]:
    """Precision, recall and F1 of the windows without arrivals."""
    return detection(~arrives, ~declared)


def pr_auc(truth: Bools, probability: Floats) -> Figure:
    """Average precision: the area under the steps of the precision-recall curve."""
    from sklearn.metrics import average_precision_score

    # scikit-learn warns and gives 0 without a positive row; undefined is the truth.
    return defined(average_precision_score(truth, probability)) if truth.any() else None


def roc_auc(truth: Bools, probability: Floats) -> Figure:
    """Probability that a window with arrivals is ranked above one without."""
    from sklearn.metrics import roc_auc_score

    # scikit-learn warns of a single class.
    return defined(roc_auc_score(truth, probability)) if len(np.unique(truth)) == 2 else None


def reliability(truth: Bools, probability: Floats, bins: int = ECE_BINS) -> list[dict[str, float]]:
    """Mean forecast and share that came true, in equal-width bins of the forecast; empty bins are left out.

    Examples
    --------
    >>> reliability(np.array([True, False]), np.array([0.9, 0.7]), bins=2)
    [{'forecast': 0.8, 'observed': 0.5, 'n': 2}]
    """
    which = calibration_bin(probability, bins)
    n = np.bincount(which, minlength=bins)
    forecast = np.bincount(which, weights=probability, minlength=bins)
    observed = np.bincount(which, weights=truth.astype(np.float64), minlength=bins)
    return [
        {"forecast": float(forecast[b] / n[b]), "observed": float(observed[b] / n[b]), "n": int(n[b])}
        for b in np.flatnonzero(n)
    ]


def calibration_bin(probability: Floats, bins: int = ECE_BINS) -> NDArray[np.int64]:
    """Number of the equal-width bin of each forecast, (n_rows,); one of exactly 1 belongs to the last.

    >>> calibration_bin(np.array([0.0, 0.5, 0.49, 1.0]), bins=2).tolist()
    [0, 1, 0, 1]
    """
    return np.minimum((probability * bins).astype(np.int64), bins - 1)


def ece(truth: Bools, probability: Floats, bins: int = ECE_BINS) -> Figure:
    """Expected calibration error: mean over rows of |mean forecast - share that came true| of their bin.

    Examples
    --------
    >>> round(ece(np.array([True, False]), np.array([0.9, 0.7])), 3)
    0.4
    """
    if not len(truth):
        return None
    gaps = [row["n"] * abs(row["forecast"] - row["observed"]) for row in reliability(truth, probability, bins)]
    return float(sum(gaps) / len(truth))


def gate(arrives: Bools, declared: Bools) -> dict[str, Figure]:
    """What a gate misses and what it frees.

    Parameters
    ----------
    arrives : shape (n_rows,)
    declared : shape (n_rows,), False where the gate declares the window idle

    Returns
    -------
    miss_rate : share of the windows with arrivals that were declared idle
    freed_idle_share : share of the windows without arrivals that were declared idle

    Examples
    --------
    >>> gate(np.array([True, True, False, False]), np.array([True, False, False, True]))
    {'miss_rate': 0.5, 'freed_idle_share': 0.5}
    """
    return {"miss_rate": mean(~declared[arrives]), "freed_idle_share": mean(~declared[~arrives])}


def coverage(load_gpus: Floats, estimate_gpus: Floats) -> dict[str, Figure]:
    """How far a load estimate covers the loads that came, and at what price.

    Parameters
    ----------
    load_gpus, estimate_gpus : shape (n_rows,)

    Returns
    -------
    coverage, coverage_nonzero : share of windows with load <= estimate; the same where load > 0
    over : sum of the estimates / sum of the loads
    missed : share of the load that exceeds its window's estimate

    Examples
    --------
    >>> coverage(np.array([0.0, 4.0, 4.0]), np.array([2.0, 4.0, 2.0]))
    {'coverage': 0.6666666666666666, 'coverage_nonzero': 0.5, 'over': 1.0, 'missed': 0.25}
    """
    covered, total = load_gpus <= estimate_gpus, float(load_gpus.sum(dtype=np.float64))
    missed = float(np.maximum(load_gpus - estimate_gpus, 0.0).sum(dtype=np.float64))
    return {
        "coverage": mean(covered),
        "coverage_nonzero": mean(covered[load_gpus > 0]),
        "over": float(estimate_gpus.sum(dtype=np.float64)) / total if total else None,
        "missed": missed / total if total else None,
    }


def worst_pool(coverages: Mapping[str, Mapping[str, Figure]]) -> tuple[str | None, Figure]:
    """Pool with the smallest coverage, the first by name of equals, and its coverage.

    Examples
    --------
    >>> worst_pool({"b": {"coverage": 0.9}, "a": {"coverage": 0.9}, "c": {"coverage": None}})
    ('a', 0.9)
    """
    known = [(figures["coverage"], pool) for pool, figures in coverages.items() if figures["coverage"] is not None]
    if not known:
        return None, None
    # Pairs compare by coverage, then by name.
    smallest, pool = min(known)
    return pool, smallest


def bin_scores(
    truth: NDArray[np.int64], forecast: NDArray[np.int64], probability: Floats, labels: Sequence[str]
) -> dict[str, Any]:
    """Figures of forecasts of duration bins that come with probabilities.

    Parameters
    ----------
    truth, forecast : shape (n_jobs,), indices of bins
    probability : shape (n_jobs, n_bins)
    labels : names of the bins, shape (n_bins,)

    Returns
    -------
    What `bin_rule_scores` gives, and

    log_loss : mean of -log of the probability of the true bin
    ece : calibration error of the probability of the forecast bin
    """
    row = np.arange(len(truth))
    # The smallest number above 0 keeps a forecast of 0 that came true finite.
    log_loss = -np.log(np.maximum(probability[row, truth], np.finfo(np.float64).tiny))
    return {
        **bin_rule_scores(truth, forecast, labels),
        "log_loss": mean(log_loss),
        "ece": ece(forecast == truth, probability[row, forecast]),
    }


def bin_rule_scores(truth: NDArray[np.int64], forecast: NDArray[np.int64], labels: Sequence[str]) -> dict[str, Any]:
    """Figures of forecasts of duration bins without probabilities.

    Returns
    -------
    n, accuracy
    macro_f1 : mean over the bins that occur or are forecast of their F1
    under_predicted : share of jobs whose bin is longer than forecast, which is what hurts a scheduler
    by_bin : bin -> n, precision, recall, f1
    """
    by_bin = {
        label: {"n": int((truth == index).sum()), **detection(truth == index, forecast == index)}
        for index, label in enumerate(labels)
    }
    # Bins that neither occur nor are forecast have no F1 and do not count as 0.
    f1 = [figures["f1"] for figures in by_bin.values() if figures["f1"] is not None]
    return {
        "n": len(truth),
        "accuracy": mean(forecast == truth),
        "macro_f1": float(np.mean(f1)) if f1 else None,
        "under_predicted": mean(forecast < truth),
        "by_bin": by_bin,
    }


def likeliest_bin(probability: Floats) -> NDArray[np.int64]:
    """Likeliest bin of each row; of equals the longer one, since a job that outlasts its bin hurts others.

    Examples
    --------
    >>> likeliest_bin(np.array([[0.4, 0.4, 0.2], [0.7, 0.2, 0.1]])).tolist()
    [1, 0]
    """
    # argmax takes the first of equals, so of the bins turned round the longest.
    return np.asarray(probability.shape[1] - 1 - probability[:, ::-1].argmax(axis=1))


def skill(error: Figure, rule_error: Figure) -> Figure:
    """The share of a rule's error that is saved; None where there is none to save.

    >>> skill(0.5, 2.0), skill(0.0, 0.0), skill(None, None)
    (0.75, None, None)
    """
    return None if error is None or not rule_error else 1.0 - error / rule_error


def defined(figure: Any) -> Figure:
    """A figure as JSON may hold it: None for NaN.

    >>> defined(float("nan")), defined(np.float32(0.5))
    (None, 0.5)
    """
    return float(figure) if np.isfinite(figure) else None


def mean(values: NDArray[Any]) -> Figure:
    """Mean, None of nothing."""
    return float(values.mean()) if len(values) else None
