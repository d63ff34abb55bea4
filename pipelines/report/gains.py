"""What one configuration is worth against another on the same jobs, with intervals that draw whole days."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import DAY_S, HOUR_S
from jobcast.simulator.metrics import is_slowed, times_as_fast

DRAWS = 1000
CONFIDENCE = 0.95
DAYS_A_WEEK = 7.0
LEAST_DAYS = 2
"""With a single day there is nothing to resample."""
RULES: Mapping[str, Callable[[float], float]] = {
    # Quantiles of logarithms are logarithms of quantiles: exp keeps the order.
    "speedup": math.exp,
    "mean_jct_change_s": lambda seconds: seconds,
    "slowed_change_pct": lambda share: 100 * share,
}
"""What is compared, and how it comes from its mean over jobs."""


def paired_gains(
    jct_a: ArrayLike,
    jct_b: ArrayLike,
    submit_s: ArrayLike,
    *,
    seed: int,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    jct_baseline: ArrayLike | None = None,
    block_days: int = 1,
) -> dict[str, Any]:
    """Compare two configurations job by job; intervals by a moving-blocks bootstrap over days of submission.

    Jobs of a day share its queues, so that days, not jobs, are drawn: runs of `block_days` consecutive days with
    jobs (UTC, circular), each as likely as any other. Percentile intervals; Kuensch (1989), Efron (1979).

    Parameters
    ----------
    jct_a, jct_b : (n_jobs,) completion times in seconds of the same jobs under a and b, > 0
    submit_s : (n_jobs,) seconds from the epoch
    jct_baseline : (n_jobs,) completion times that "slowed" is measured against
    block_days : length of a block; longer where congestion lasts for days

    Returns
    -------
    `jobs`, `days` (how much was seen; a day counts when a job was submitted on it), `draws`, `confidence`, and with
    their bounds (`speedup_low`, `speedup_high`), None where too few days were seen: `speedup`, geometric mean over jobs
    of JCT under b / JCT under a; `mean_jct_change_s`, of a less b; `slowed_change_pct`, percentage points of jobs
    slowed against the baseline, a less b, None without one.

    Raises
    ------
    ValueError
        The arrays do not fit each other, are empty, or hold a completion time that is not finite, or negative.

    Examples
    --------
    >>> gains = paired_gains([1.0, 2.0], [2.0, 4.0], [0.0, 86400.0], seed=0)
    >>> gains["speedup"], gains["slowed_change_pct"]
    (2.0, None)
    """
    a, b = _times("jct_a", jct_a), _times("jct_b", jct_b)
    # Days without jobs do not count: only days that were seen can be drawn.
    days = np.unique(np.floor(np.asarray(submit_s, dtype=np.float64) / DAY_S), return_inverse=True)[1]
    _same_length(a, b, days)
    # Sums by day are enough: each draw is a weighting of days.
    columns = [np.ones_like(a), np.log(times_as_fast(a, b)), a - b]
    if jct_baseline is not None:
        base = _times("jct_baseline", jct_baseline)
        _same_length(a, base)
        columns.append(is_slowed(a, base).astype(np.float64) - is_slowed(b, base))
    sums = np.column_stack([np.bincount(days, column) for column in columns])
    drawn = _weights(len(sums), draws, block_days, np.random.default_rng(seed)) @ sums
    seen, means = sums.sum(axis=0), drawn[:, 1:] / drawn[:, :1]
    told: dict[str, Any] = {"jobs": len(a), "days": len(sums), "draws": draws, "confidence": confidence}
    told |= {f"{name}{end}": None for name in RULES for end in ("", "_low", "_high")}
    # What is slowed has a column where there is a baseline.
    for (name, rule), whole, by_draw in zip(RULES.items(), seen[1:] / seen[0], means.T, strict=False):
        told[name] = rule(float(whole))
        if len(sums) >= LEAST_DAYS:
            ends = np.quantile(by_draw, ((1 - confidence) / 2, (1 + confidence) / 2))
            told[f"{name}_low"], told[f"{name}_high"] = (rule(float(end)) for end in ends)
    return told


def saved_hours(jct_s: Floats, base_s: Floats, gpus: NDArray[Any], days: float) -> dict[str, float | None]:
    """How much sooner people have their results than under the baseline, hours a week.

    `saved_h_week` counts each job's hours once (those of completion times), `saved_gpu_h_week` times the GPUs that it
    asked for (hours of waiting GPUs). Jobs that never ran under one of them are left out; None where that is all, or
    where less than a day was seen, which makes no week.

    >>> saved_hours(np.array([3600.0, 7200.0]), np.array([10800.0, 3600.0]), np.array([4, 1]), days=3.5)
    {'saved_h_week': 2.0, 'saved_gpu_h_week': 14.0}
    """
    ran = np.isfinite(jct_s) & np.isfinite(base_s)
    sooner_h = (base_s - jct_s)[ran] / HOUR_S
    if not ran.any() or days < 1.0:
        return {"saved_h_week": None, "saved_gpu_h_week": None}
    weeks = days / DAYS_A_WEEK
    return {
        "saved_h_week": float(sooner_h.sum() / weeks),
        "saved_gpu_h_week": float((sooner_h * gpus[ran]).sum() / weeks),
    }


def _times(name: str, values: ArrayLike) -> Floats:
    times = np.asarray(values, dtype=np.float64)
    if not len(times):
        raise ValueError(f"{name}: no jobs to compare")
    wrong = ~(np.isfinite(times) & (times >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name}[{row}]: {times[row]} is no completion time; leave out jobs that never ran")
    return times


def _same_length(*arrays: NDArray[Any]) -> None:
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise ValueError(f"arrays of {lengths} jobs; give the same jobs in the same order for each configuration")


def _weights(days: int, draws: int, block_days: int, rng: np.random.Generator) -> Floats:
    """How often each day occurs in each draw, shape (draws, days); every draw has as many days as were seen."""
    block = min(block_days, days)
    # Rounded up: the last block is cut so that a draw has as many days as were seen.
    starts = rng.integers(0, days, (draws, -(-days // block), 1))
    # Circular, so that the first and last days are drawn as often as others.
    drawn = ((starts + np.arange(block)) % days).reshape(draws, -1)[:, :days]
    # A number for each pair of draw and day: one count over all draws.
    cells = (np.arange(draws)[:, None] * days + drawn).ravel()
    return np.bincount(cells, minlength=draws * days).reshape(draws, days).astype(np.float64)
