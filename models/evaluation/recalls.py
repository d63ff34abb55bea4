"""How recall differs from hour to hour and from pool to pool. SIA, appendix B, Figures 21 and 22."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.features.corpus import Mask

HOUR_S = 3600.0
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def recall_per_pool_hour(arrives: Mask, declared: Mask, pool_index: NDArray[Any], tick_s: Floats) -> dict[str, Any]:
    """Recall within each hour of each pool: errors that hang together make it 0 or 1. SIA, Figure 21.

    Parameters
    ----------
    arrives, declared : (n_rows,) what came and what was forecast
    pool_index, tick_s : (n_rows,) pool and instant of each row, seconds from the epoch

    Returns
    -------
    hours : pool-hours in which at least one window has arrivals; the others have no recall
    mean, p10 ... p90, cdf : see `distribution`
    share_0, share_1 : of those hours in which none, all of the windows with arrivals were forecast
    extremes_if_independent : what `share_0 + share_1` would be if each window of an hour were forecast or missed by
        itself, with the recall of all; well above it, errors are correlated in time

    Examples
    --------
    One pool, two hours: both windows of the first are found, one of two of the second.

    >>> tick_s = np.array([0.0, 300.0, 3600.0, 3900.0, 7200.0])
    >>> arrives, declared = np.array([1, 1, 1, 1, 0], bool), np.array([1, 1, 1, 0, 0], bool)
    >>> told = recall_per_pool_hour(arrives, declared, np.zeros(5, int), tick_s)
    >>> told["hours"], told["mean"], told["share_0"], told["share_1"], told["cdf"]
    (2, 0.75, 0.0, 0.5, [{'recall': 0.5, 'share': 0.5}, {'recall': 1.0, 'share': 1.0}])
    """
    came = np.flatnonzero(arrives)
    hour = np.floor(tick_s[came] / HOUR_S).astype(np.int64)
    cell = np.stack([np.asarray(pool_index)[came].astype(np.int64), hour])
    _, position, windows = np.unique(cell, axis=1, return_inverse=True, return_counts=True)
    found = np.bincount(position.ravel(), weights=declared[came].astype(np.float64), minlength=len(windows))
    recall = found / np.maximum(windows, 1)
    whole = float(declared[came].mean()) if len(came) else 0.0
    apart = whole**windows + (1.0 - whole) ** windows
    return {
        "hours": len(recall),
        "share_0": _mean(recall == 0.0),
        "share_1": _mean(recall == 1.0),
        "extremes_if_independent": _mean(apart),
        **distribution(recall),
    }


def recall_by_pool(recalls: Mapping[str, float | None]) -> dict[str, Any]:
    """Distribution of the pools' recalls, each pool counted once; pools without arrivals have none. SIA, Figure 22.

    >>> recall_by_pool({"a": 0.25, "b": 0.75, "c": None})["cdf"]
    [{'recall': 0.25, 'share': 0.5}, {'recall': 0.75, 'share': 1.0}]
    """
    known = np.array([recall for recall in recalls.values() if recall is not None], np.float64)
    return {"pools": len(known), **distribution(known)}


def distribution(recall: Floats) -> dict[str, Any]:
    """`mean`, quantiles `p10` to `p90`, and `cdf`: each recall that occurs and the share at or below it."""
    values, counts = np.unique(recall, return_counts=True)
    below = np.cumsum(counts) / max(len(recall), 1)
    return {
        "mean": _mean(recall),
        **{f"p{100 * q:g}": float(np.quantile(recall, q)) if len(recall) else None for q in QUANTILES},
        "cdf": [{"recall": float(at), "share": float(share)} for at, share in zip(values, below, strict=True)],
    }


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None
