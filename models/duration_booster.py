"""From rows of a job's features to its duration bin: votes of finished jobs, a booster, the cheapest bin.

LightGBM over duration bins: class probabilities from the rows of `features.durations`.

Jobs come in bursts of one user that resemble each other, so that rows are far fewer than they seem: what works is
small trees, few columns a tree and splits at random places (extra trees), which all keep single bursts from being
learnt, and each job of a burst weighs less. Recent jobs weigh more, since the mix of bins drifts.

Which bin to tell a scheduler: the one whose expected cost is least.

Rules that let finished jobs vote on a job's duration bin. SIA, section 5.4.2.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import DAY_S
from jobcast.features.durations import (
    DEPTHS,
    GROUPS,
    START_DEPTHS,
    STARTED,
    column_number,
    duration_columns,
    edges_s,
    group_counts,
    group_width,
    started_width,
)
from jobcast.models.classifier import smallest_leaf
from jobcast.models.metadata import booster_data, booster_of, trained_booster
from jobcast.models.scores import mean


def log_loss(proba: Floats, bins: Ints) -> float:
    """Mean of -log of the true bin's probability.

    >>> round(log_loss(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1])), 4)
    0.4904
    """
    true = proba[np.arange(len(bins)), bins]
    # None of no rows becomes 0, which no fold has.
    return float(mean(-np.log(np.maximum(true, np.finfo(np.float64).tiny))) or 0.0)


UNDER_COST = 100.0
"""Cost of an hour that a job overstays on as many GPUs as all lenders have, in bins too long.

Chosen on 23 October to 5 November 2017 of Philly, what was learnt being older, on random draws of four pools as Figure
13 of SIA draws them, not on those (`benchmarks/choose_sia.py`); docs/sia.md has what came out."""
LENDERS_GPUS = 200.0
"""Quota of those that a job could borrow from, where no cluster is known."""
DIGITS = 9
"""Of expected costs: they differ in the last bits from machine to machine."""


def overstays_h(duration_s: Floats, bins: Ints, horizons_min: Sequence[float]) -> Floats:
    """Hours that jobs of bin j (column) run on after the longest run time of bin i (row), in the mean.

    (B, B), 0 for j <= i; where a bin holds no job, those at its lower edge stand for it.

    >>> overstays_h(np.array([60.0, 1800.0, 5400.0, 9000.0]), np.array([0, 1, 2, 2]), (5, 60)).round(2).tolist()
    [[0.0, 0.42, 1.92], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    edges_h = np.asarray(horizons_min, np.float64) / 60.0
    counts = np.bincount(bins, minlength=len(edges_h) + 1)
    sums_h = np.bincount(bins, weights=duration_s / 3600.0, minlength=len(edges_h) + 1)
    # Empty bins: the shortest run time that could have fallen there, which overstays least.
    means_h = np.where(counts > 0, sums_h / np.maximum(counts, 1), np.append(0.0, edges_h))
    # Nobody overstays the last bin, which has no end.
    later_h = np.maximum(means_h - np.append(edges_h, np.inf)[:, None], 0.0)
    return np.triu(later_h, 1)


def cheapest_bin(proba: Floats, overstay_h: Floats, cost: ArrayLike) -> Ints:
    """Bin with the least expected cost of each row, the longer of equals, (n_jobs,).

    A job told one bin too long waits while it could have run on idle GPUs: 1 a bin. One told too short keeps lent
    GPUs from their owners for as long as it overstays.

    Parameters
    ----------
    proba : (n_jobs, B) probabilities
    overstay_h : (B, B) hours that a job of bin j (column) overstays if it is told bin i (row)
    cost : of such an hour, in bins too long: of all jobs, or (n_jobs,) of each

    Examples
    --------
    >>> hours = np.array([[0.0, 0.5, 40.0], [0.0, 0.0, 39.0], [0.0, 0.0, 0.0]])
    >>> cheapest_bin(np.array([[0.6, 0.35, 0.05], [0.6, 0.35, 0.05]]), hours, [0.1, 1.0]).tolist()
    [0, 2]
    """
    result = np.arange(proba.shape[1])
    # Cost matrix of (told, true): bins by which the told one is too long.
    too_long = proba @ np.maximum(np.subtract.outer(result, result), 0).T.astype(np.float64)
    expected = too_long + np.asarray(cost, np.float64)[..., None] * (proba @ overstay_h.T)
    # Turned round, so that of equal costs the longer bin wins; rounded, so that machines agree on equals.
    return np.asarray(len(result) - 1 - np.round(expected, DIGITS)[:, ::-1].argmin(axis=1))


VOTERS = DEPTHS[-1]
"""Finished jobs of a group that vote."""
MIN_SAME_TAG = 3
"""Finished jobs of the same tag that it takes for them to decide."""
Votes: TypeAlias = Callable[[Floats, Sequence[float]], Floats]


def tag_pool_width(rows: Floats, horizons_min: Sequence[float]) -> Floats:
    """Votes of jobs of the same tag if enough have finished, else of the same pool and width, else of the pool.

    SIA, section 5.4.2, with "similar" width = the same.

    Parameters
    ----------
    rows : (n_jobs, F), see `features.durations.duration_columns`
    horizons_min : inner edges of the bins

    Returns
    -------
    (n_jobs, B), zeros where none of the job's groups has finished jobs.
    """
    tag = group_counts(rows, "tag", VOTERS, len(horizons_min) + 1)
    # Too few of the tag: width and pool decide, as SIA has it.
    return np.where(tag.sum(axis=1, keepdims=True) >= MIN_SAME_TAG, tag, last_n(rows, horizons_min))


def last_n(rows: Floats, horizons_min: Sequence[float], voters: int = VOTERS) -> Floats:
    """Votes of the last finished jobs of the same pool and width, else of the pool; as `tag_pool_width`.

    `voters` : finished jobs of a group that vote, one of `DEPTHS`
    """
    like, pool = (group_counts(rows, group, voters, len(horizons_min) + 1) for group in ("pool_width", "pool"))
    return np.where(like.any(axis=1, keepdims=True), like, pool)


LIKE_WIDTH = 20
"""Finished jobs of the same pool and width that a rule counts."""


def majority(rows: Floats, horizons_min: Sequence[float]) -> Floats:
    """No votes: the training data's shares decide."""
    return np.zeros((len(rows), len(horizons_min) + 1))


def last_finished(rows: Floats, horizons_min: Sequence[float]) -> Floats:
    """The last finished job of the same pool and width, else of the pool."""
    log_edges = [math.log(edge) for edge in edges_s(horizons_min)]
    like, pool = (rows[:, column_number(f"{group} log last s", horizons_min)] for group in ("pool_width", "pool"))
    log_s = np.where(np.isnan(like), pool, like)[:, None]
    # The logarithm is searched among logarithms, as features hold it.
    found = np.array(log_edges).searchsorted(log_s, side="left")
    return np.asarray(((found == np.arange(len(log_edges) + 1)) & ~np.isnan(log_s)).astype(np.float64))


def last_20_pool_width(rows: Floats, horizons_min: Sequence[float]) -> Floats:
    """The last 20 finished jobs of the same pool and width, else of the pool."""
    return last_n(rows, horizons_min, LIKE_WIDTH)


DURATION_RULES: Mapping[str, Votes] = {
    "majority": majority,
    "last_finished": last_finished,
    "last_20_pool_width": last_20_pool_width,
    "tag_pool_width": tag_pool_width,
}
"""Name -> rule to beat: the votes by bin, (n_jobs, B), of (rows, inner edges of the bins in minutes)."""
RULES: Mapping[str, Votes] = {"tag-pool-width": tag_pool_width, "last-n": last_n}
"""Algorithm -> rule, as those."""


def shares(votes: NDArray[Any], prior: Floats, prior_weight: float) -> Floats:
    """Probabilities from votes, (n_jobs, B): (votes + weight x prior) / (all votes + weight).

    >>> shares(np.array([[3.0, 1.0]]), np.array([0.5, 0.5]), 1.0).tolist()
    [[0.7, 0.3]]
    """
    # A Dirichlet prior of so many jobs, by whose shares unseen bins stay possible.
    return np.asarray((votes + prior_weight * prior) / (votes.sum(axis=1, keepdims=True) + prior_weight))


TRAINING_THREADS = 1
"""Small trees on tens of thousands of rows: threads would wait for one another more than they would work. Fixed, since
sums of gradients depend on how rows are shared out."""
HALF_COUNT = 0.5
"""Added to each bin's count before shares are taken."""
MODEL, QUEUE_MODEL = "booster.txt", "queue_booster.txt"


@dataclass(frozen=True, slots=True)
class DurationSettings:
    """Size and regularisation of the trees, chosen on Philly in October 2017 by weekly folds.

    Attributes
    ----------
    trees, leaves, learning_rate : trees a bin, leaves a tree at most
    min_rows_leaf : rows that a leaf must hold, scaled down on little data
    l2 : ridge on the leaves' values
    column_share : share of the columns that a tree may look at
    half_life_days : a job so much older weighs half
    """

    trees: int = 150
    leaves: int = 6
    learning_rate: float = 0.04
    min_rows_leaf: int = 300
    l2: float = 20.0
    column_share: float = 0.4
    half_life_days: float = 21.0


@dataclass(slots=True)
class DurationBooster:
    """Multi-class LightGBM.

    Parameters
    ----------
    n_bins : B
    settings : size and regularisation
    seed : of the columns and places that trees look at
    use_tags : whether columns of the group of the same tag are read
    """

    n_bins: int
    settings: DurationSettings = field(default_factory=DurationSettings)
    seed: int = 0
    use_tags: bool = True
    model_: Any = field(default=None, init=False)
    trees_: Any = field(default=None, init=False)

    def fit(self, rows: Floats, bins: Ints, age_s: Floats, burst: Ints | None = None) -> Self:
        """Train.

        Parameters
        ----------
        rows : (n_jobs, F)
        bins : (n_jobs,) duration bins
        age_s : (n_jobs,) how long before the end of the training time each job was submitted, seconds
        burst : (n_jobs,) jobs of equal numbers are of one burst: n of them weigh as much as sqrt(n); None = no bursts
        """
        weight = np.exp2(-age_s / (DAY_S * self.settings.half_life_days))
        if burst is not None:
            # n alike jobs weigh sqrt(n): between one observation and n independent ones.
            weight /= np.sqrt(np.bincount(burst)[burst])
            # Mean 1, so that min_rows_leaf and l2 mean the same with and without bursts.
            weight /= weight.mean()
        least = smallest_leaf(self.settings.min_rows_leaf, len(rows))
        how = {"objective": "multiclass", "num_class": self.n_bins, "min_data_in_leaf": least, "extra_trees": True}
        size = (self.settings, self.settings.trees, self.seed, TRAINING_THREADS)
        self.model_ = trained_booster(booster_data(self._matrix(rows), bins, weight), *size, how)
        return self

    def predict_proba(self, rows: Floats) -> Floats:
        """Probabilities of the bins, (n_jobs, B)."""
        from jobcast.models.compiled_trees import SmallTrees, softmaxes

        if self.trees_ is None:
            self.trees_ = SmallTrees.of_classes(self.model_, self.n_bins)
        return np.asarray(softmaxes(self.trees_(self._matrix(rows))))

    def _matrix(self, rows: Floats) -> NDArray[np.float32]:
        """Rows as the trees read them: counts as shares, float32 so that batch and live rows round alike."""
        matrix = shares_of_counts(rows, self.n_bins)
        if not self.use_tags:
            # The first group is that of the same tag, see `features.durations.GROUPS`.
            matrix[:, : group_width(self.n_bins)] = 0.0
            first = len(GROUPS) * group_width(self.n_bins)
            matrix[:, first : first + started_width(self.n_bins)] = 0.0
        return matrix

    def gain(self, horizons_min: Sequence[float]) -> dict[str, float]:
        """What each column's splits took off the loss, by name."""
        gains = self.model_.feature_importance(importance_type="gain").tolist()
        return dict(zip(duration_columns(horizons_min), gains, strict=True))

    def to_text(self) -> str:
        """LightGBM's own text format."""
        return str(self.model_.model_to_string())

    @classmethod
    def from_text(cls, text: str, n_bins: int, use_tags: bool) -> Self:
        """Read what `to_text` wrote."""
        booster = cls(n_bins, use_tags=use_tags)
        booster.model_ = booster_of(text)
        return booster


def shares_of_counts(rows: Floats, n_bins: int) -> NDArray[np.float32]:
    """Rows with each group's counts made shares, (count + 1/2) / (all + B/2): few jobs say little.

    >>> rows = np.zeros((1, len(duration_columns((5,)))))
    >>> rows[0, :2] = 3, 0
    >>> shares_of_counts(rows, 2)[0, :4].tolist()
    [0.875, 0.125, 0.5, 0.5]
    """
    # Copied: the caller's rows stay counts.
    matrix = rows.astype(np.float32)
    width, counted = group_width(n_bins), len(DEPTHS) * n_bins
    grouped = rows[:, : len(GROUPS) * width].reshape(len(rows), len(GROUPS), width)
    counts = grouped[:, :, :counted].reshape(len(rows), len(GROUPS), len(DEPTHS), n_bins) + HALF_COUNT
    counts /= counts.sum(axis=3, keepdims=True)
    target = matrix[:, : len(GROUPS) * width].reshape(len(rows), len(GROUPS), width)
    target[:, :, :counted] = counts.reshape(len(rows), len(GROUPS), counted)
    matrix[:, : len(GROUPS) * width] = target.reshape(len(rows), len(GROUPS) * width)
    first, width = len(GROUPS) * width, started_width(n_bins)
    counted = len(START_DEPTHS) * 2 * n_bins
    started = matrix[:, first : first + len(STARTED) * width].reshape(len(rows), len(STARTED), width)
    # Started jobs are counted in twice as many cells: half as much to each, and the prior weighs the same.
    begun = started[:, :, :counted].reshape(len(rows), len(STARTED), len(START_DEPTHS), 2 * n_bins) + HALF_COUNT / 2
    started[:, :, :counted] = (begun / begun.sum(axis=3, keepdims=True)).reshape(len(rows), len(STARTED), counted)
    matrix[:, first : first + len(STARTED) * width] = started.reshape(len(rows), len(STARTED) * width)
    return matrix
