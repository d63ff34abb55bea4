"""Rules of duration bins to beat: what one would forecast without learning anything."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.horizons import bin_labels
from jobcast.features.durations import duration_columns, edges_s
from jobcast.models import scores
from jobcast.models.duration_rules import last_n, shares, tag_pool_width
from jobcast.models.job_duration import PRIOR_WEIGHT

LIKE_WIDTH = 20
"""Finished jobs of the same pool and width that a rule counts."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Votes: TypeAlias = Callable[[Floats, Sequence[float]], Floats]


def majority(rows: Floats, horizons_min: Sequence[float]) -> Floats:
    """No votes: the training data's shares decide."""
    return np.zeros((len(rows), len(horizons_min) + 1))


def last_finished(rows: Floats, horizons_min: Sequence[float]) -> Floats:
    """The last finished job of the same pool and width, else of the pool."""
    columns, log_edges = duration_columns(horizons_min), [math.log(edge) for edge in edges_s(horizons_min)]
    like, pool = (rows[:, columns.index(f"{group} log last s")] for group in ("pool_width", "pool"))
    log_s = np.where(np.isnan(like), pool, like)
    votes = np.zeros((len(rows), len(horizons_min) + 1))
    known = np.flatnonzero(~np.isnan(log_s))
    votes[known, np.searchsorted(log_edges, log_s[known], side="left")] = 1.0
    return votes


def last_20_pool_width(rows: Floats, horizons_min: Sequence[float]) -> Floats:
    """The last 20 finished jobs of the same pool and width, else of the pool."""
    return last_n(rows, len(horizons_min) + 1, LIKE_WIDTH)


def paper(rows: Floats, horizons_min: Sequence[float]) -> Floats:
    """The rule of SIA, section 5.4.2."""
    return tag_pool_width(rows, len(horizons_min) + 1)


DURATION_RULES: Mapping[str, Votes] = {
    "majority": majority,
    "last_finished": last_finished,
    "last_20_pool_width": last_20_pool_width,
    "tag_pool_width": paper,
}
"""Name -> rule: the votes by bin, (n_jobs, B), of (rows, inner edges of the bins in minutes)."""


def baseline_figures(
    rows: Floats, truth: Ints, prior: Floats, horizons_min: Sequence[float]
) -> dict[str, dict[str, Any]]:
    """Figures of each rule, as `scores.bin_scores` without `by_bin`.

    The bin with most votes is forecast, the longer of equals, and the training data's most frequent one where none
    votes. Probabilities are votes mixed with the training data's shares, as a rule of `JobDuration` mixes them.

    Parameters
    ----------
    rows : (n_jobs, F)
    truth : (n_jobs,) true bins
    prior : (B,) the training data's shares
    """
    told = {}
    for name, rule in DURATION_RULES.items():
        votes = rule(rows, horizons_min)
        forecast = scores.likeliest_bin(np.where(votes.any(axis=1, keepdims=True), votes, prior))
        probability = shares(votes, prior, PRIOR_WEIGHT)
        told[name] = scores.bin_scores(truth, forecast, probability, bin_labels(horizons_min))
        del told[name]["by_bin"]
    return told
