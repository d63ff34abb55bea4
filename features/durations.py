"""Run times of the jobs most like a newly submitted one, among those that have finished: the batch way.

`finished.FinishedTracker` is the live way; both give the same rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN

GROUPS: tuple[str, ...] = ("tag", "pool_width", "pool", "all")
"""Finished jobs of the same tag; of the same pool and width; of the same pool; all. SIA, section 5.4.2."""
LAST_FINISHED = 50
"""How many finished jobs of a group count."""
MINUTE_S = 60.0
NO_KEY = -1
"""Group of a job that belongs to none: one without a tag."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class DurationHistory:
    """What was known of finished jobs when each job was submitted.

    Attributes
    ----------
    counts : (N, 4, B) int64, finished jobs by group (`GROUPS`) and duration bin, B = horizons + 1
    log_mean_s : (N, 4) float64, mean log of their run times in seconds; not-a-number where none has finished
    """

    counts: Ints
    log_mean_s: Floats


def duration_history(
    submit_s: ArrayLike,
    end_s: ArrayLike,
    duration_s: ArrayLike,
    gpus: ArrayLike,
    pools: Sequence[str],
    tags: Sequence[str],
    horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN,
    last_n: int = LAST_FINISHED,
) -> DurationHistory:
    """Class counts and mean log run time of the last finished jobs of each group, for every job at submission.

    A job sees those that ended by its submission (at one instant completions come before arrivals), the last
    `last_n` of each group by (end, row). Nothing that ends later changes its row.

    Parameters
    ----------
    submit_s, end_s : (N,) seconds from the epoch in the trace's order; end inf where a job has not ended
    duration_s : (N,) run times in seconds; ignored where the end is inf
    gpus : (N,) widths
    pools, tags : (N,) names; a job with an empty tag has no group of the same tag
    horizons_min : inner edges of the duration bins, see `domain.horizons.duration_bin`
    last_n : finished jobs of a group that count, at least 1

    Raises
    ------
    ValueError
        last_n is not positive.
    """
    from jobcast.features.duration_kernels import sweep

    if last_n < 1:
        raise ValueError(f"last_n must be at least 1, got {last_n}")
    submitted, ended = np.asarray(submit_s, np.float64), np.asarray(end_s, np.float64)
    lasted = np.asarray(duration_s, np.float64)
    # A job whose end rounds to its submission ended after it all the same: it must not see itself.
    ended = np.maximum(ended, np.nextafter(submitted, np.inf))
    finished = np.isfinite(ended)
    keys, sizes = group_keys(np.asarray(gpus).tolist(), pools, tags)
    counts, log_mean_s = sweep(
        submitted,
        ended,
        np.argsort(submitted, kind="stable"),
        np.argsort(ended, kind="stable"),
        keys,
        np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64),
        np.searchsorted(MINUTE_S * np.asarray(horizons_min, np.float64), lasted, side="left"),
        np.array([math.log(d) if f else 0.0 for d, f in zip(lasted.tolist(), finished.tolist(), strict=True)]),
        len(horizons_min) + 1,
        last_n,
    )
    return DurationHistory(counts, log_mean_s)


def group_keys(gpus: Sequence[int], pools: Sequence[str], tags: Sequence[str]) -> tuple[Ints, Ints]:
    """Number of each job's group, (4, N), counted through all kinds of groups, and the groups' sizes."""
    numbers: dict[tuple[object, ...], int] = {}
    rows = [
        [numbers.setdefault(("tag", tag), len(numbers)) if tag else NO_KEY for tag in tags],
        [numbers.setdefault(("pool_width", *both), len(numbers)) for both in zip(pools, gpus, strict=True)],
        [numbers.setdefault(("pool", pool), len(numbers)) for pool in pools],
        [numbers.setdefault(("all",), len(numbers))] * len(pools),
    ]
    keys = np.array(rows, np.int64)
    return keys, np.bincount(keys[keys != NO_KEY], minlength=len(numbers)).astype(np.int64)
