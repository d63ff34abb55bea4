"""Rules that let finished jobs vote on a job's duration bin. SIA, section 5.4.2."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jobcast.features.durations import DEPTHS, group_counts

Floats = NDArray[np.float64]
VOTERS = DEPTHS[-1]
"""Finished jobs of a group that vote."""
MIN_SAME_TAG = 3
"""Finished jobs of the same tag that it takes for them to decide."""
Rule: TypeAlias = Callable[[Floats, int], Floats]


def tag_pool_width(rows: Floats, n_bins: int, voters: int = VOTERS, min_same_tag: int = MIN_SAME_TAG) -> Floats:
    """Votes of jobs of the same tag if enough have finished, else of the same pool and width, else of the pool.

    SIA, section 5.4.2, with "similar" width = the same.

    Parameters
    ----------
    rows : (n_jobs, F), see `features.durations.duration_columns`
    n_bins : B
    voters : finished jobs of a group that vote, one of `DEPTHS`

    Returns
    -------
    (n_jobs, B), zeros where none of the job's groups has finished jobs.
    """
    tag = group_counts(rows, "tag", voters, n_bins)
    return np.where(tag.sum(axis=1, keepdims=True) >= min_same_tag, tag, last_n(rows, n_bins, voters))


def last_n(rows: Floats, n_bins: int, voters: int = VOTERS) -> Floats:
    """Votes of the last finished jobs of the same pool and width, else of the pool; as `tag_pool_width`."""
    like, pool = (group_counts(rows, group, voters, n_bins) for group in ("pool_width", "pool"))
    return np.where(like.any(axis=1, keepdims=True), like, pool)


RULES: Mapping[str, Rule] = {"tag-pool-width": tag_pool_width, "last-n": last_n}
"""Name -> rule of (rows, number of bins)."""


def shares(votes: NDArray[Any], prior: Floats, prior_weight: float) -> Floats:
    """Probabilities from votes, (n_jobs, B): (votes + weight x prior) / (all votes + weight).

    >>> shares(np.array([[3.0, 1.0]]), np.array([0.5, 0.5]), 1.0).tolist()
    [[0.7, 0.3]]
    """
    proba: Floats = (votes + prior_weight * prior) / (votes.sum(axis=1, keepdims=True) + prior_weight)
    return proba
