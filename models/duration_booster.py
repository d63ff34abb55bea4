"""From rows of a job's features to its duration bin: votes of finished jobs, a booster, their blend, the cheapest bin.

LightGBM over duration bins: class probabilities from the rows of `features.durations`.

Jobs come in bursts of one user that resemble each other, so that rows are far fewer than they seem: what works is
small trees, few columns a tree and splits at random places (extra trees), which all keep single bursts from being
learnt. Recent jobs weigh more, since the mix of bins drifts.

A booster's probabilities, tempered and blended with the shares of finished jobs.

Which bin to tell a scheduler: the one whose expected cost is least.

Rules that let finished jobs vote on a job's duration bin. SIA, section 5.4.2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.features.durations import DEPTHS, GROUPS, duration_columns, group_counts, group_width
from jobcast.models.metadata import booster_of
from jobcast.models.scores import mean

WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Weights of the shares that are tried."""
TEMPERATURES = (0.9, 1.0, 1.1)
"""Temperatures that are tried: close to 1, since days of one fold say little of the next weeks' sureness."""


@dataclass(frozen=True, slots=True)
class Blend:
    """(1 - weight) x tempered booster + weight x shares.

    Attributes
    ----------
    weight : of the shares of finished jobs, in [0, 1]
    temperature : the booster's probabilities are raised to 1 / temperature and scaled to sum to 1: above 1 is less
        sure of itself. One number for all bins, which a changing mix of bins does not upset as one a bin would be [1].

    References
    ----------
    .. [1] Guo et al., On Calibration of Modern Neural Networks, ICML 2017, section 4.2.
    """

    weight: float = 0.0
    temperature: float = 1.0

    def __call__(self, booster: Floats, shares: Floats) -> Floats:
        """Probabilities, (n_jobs, B), from the booster's and the shares, each (n_jobs, B).

        >>> Blend(0.5, 0.5)(np.array([[0.6, 0.2, 0.2]]), np.array([[0.0, 1.0, 0.0]])).round(3).tolist()
        [[0.409, 0.545, 0.045]]
        """
        tempered = booster if self.temperature == 1.0 else booster ** (1.0 / self.temperature)
        tempered = tempered / tempered.sum(axis=1, keepdims=True)
        blended: Floats = (1.0 - self.weight) * tempered + self.weight * shares
        return blended


FIRST = Blend(0.2, 1.0)
"""What is taken where no later jobs are known to choose by; did best on Philly in October 2017, weeks ahead."""


def log_loss(proba: Floats, bins: Ints) -> float:
    """Mean of -log of the true bin's probability.

    >>> round(log_loss(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1])), 4)
    0.4904
    """
    true = proba[np.arange(len(bins)), bins]
    return float(mean(-np.log(np.maximum(true, np.finfo(np.float64).tiny))) or 0.0)


def best_blend(booster: Floats, shares: Floats, bins: Ints) -> Blend:
    """The blend with the least log loss on jobs that the booster has not seen; `FIRST` where there are none."""
    if not len(bins):
        return FIRST
    tried = [Blend(weight, temperature) for weight, temperature in product(WEIGHTS, TEMPERATURES)]
    return min(tried, key=lambda blend: log_loss(blend(booster, shares), bins))


UNDER_COST = 1.0
"""Cost of a bin too short, in bins too long, of each GPU that the job holds.

A job that stays too long keeps all its GPUs from those who lent them, while one that is told too long a bin waits by
itself. Of costs from 1 to 6 a GPU this was the fastest under SIA on 16 October to 5 November 2017 of Philly (load 0.8,
with and without the pool whose jobs come like clockwork; what was learnt being older; `benchmarks/choose_sia.py`) and
on a made-up campus, slowing at most 0.2 % of the jobs. A cost of 1 that does not count GPUs slowed 6 % on that campus.
Where pools are fuller (0.9, 0.95) jobs that run for days and were told an hour slow up to 3 % unless it is 3 or more.
"""


def cost_matrix(n_bins: int, under_cost: float = UNDER_COST) -> Floats:
    """Cost of telling bin i (row) of a job that falls into bin j (column), (B, B).

    A job told one bin too long waits while it could have run on idle GPUs: 1 a bin. One told too short keeps lent
    GPUs after their owners came for them: `under_cost` a bin. Bins grow geometrically, so that each further bin is
    about as much worse again as the one before is in orders of magnitude.

    >>> cost_matrix(3, 2.0).tolist()
    [[0.0, 2.0, 4.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]]
    """
    too_long = np.subtract.outer(np.arange(n_bins), np.arange(n_bins)).astype(np.float64)
    return np.where(too_long >= 0, too_long, -under_cost * too_long)


def cheapest_bin(proba: Floats, under_cost: ArrayLike = UNDER_COST) -> Ints:
    """Bin with the least expected cost of each row by `cost_matrix`, the longer of equals, (n_jobs,).

    It lies at a quantile of the job's distribution over bins: the under_cost / (1 + under_cost) one.

    Parameters
    ----------
    proba : (n_jobs, B) probabilities
    under_cost : of all jobs, or (n_jobs,) of each

    Examples
    --------
    >>> cheapest_bin(np.array([[0.6, 0.3, 0.1], [0.9, 0.05, 0.05]]), 2.0).tolist()
    [1, 0]
    >>> cheapest_bin(np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1]]), [1.0, 16.0]).tolist()
    [0, 2]
    """
    too_long = proba @ cost_matrix(proba.shape[1], 0.0).T  # expected bins by which each bin is too long
    too_short = proba @ cost_matrix(proba.shape[1], 0.0)  # the same matrix told the other way round
    expected = too_long + np.asarray(under_cost, dtype=np.float64)[..., None] * too_short
    chosen: Ints = proba.shape[1] - 1 - expected[:, ::-1].argmin(axis=1)
    return chosen


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


DAY_S = 86400.0
TRAINING_THREADS = 1
"""Small trees on tens of thousands of rows: threads would wait for one another more than they would work. Fixed, since
sums of gradients depend on how rows are shared out."""
SERVING_THREADS = 1
ROWS_PER_SMALLEST_LEAF = 50
"""On little data a leaf may hold one row in so many, rather than `min_rows_leaf`."""
HALF_COUNT = 0.5
"""Added to each bin's count before shares are taken."""
MODEL = "booster.txt"


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

    def fit(self, rows: Floats, bins: Ints, age_s: Floats) -> Self:
        """Train.

        Parameters
        ----------
        rows : (n_jobs, F)
        bins : (n_jobs,) duration bins
        age_s : (n_jobs,) how long before the end of the training time each job was submitted, seconds
        """
        import lightgbm

        weight = np.exp2(-age_s / (DAY_S * self.settings.half_life_days))
        data = lightgbm.Dataset(self._matrix(rows), label=bins, weight=weight, params={"verbosity": -1})
        self.model_ = lightgbm.train(self._parameters(len(rows)), data, num_boost_round=self.settings.trees)
        return self

    def _parameters(self, rows: int) -> dict[str, Any]:
        return {
            "objective": "multiclass",
            "num_class": self.n_bins,
            "num_leaves": self.settings.leaves,
            "learning_rate": self.settings.learning_rate,
            "min_data_in_leaf": max(1, min(self.settings.min_rows_leaf, rows // ROWS_PER_SMALLEST_LEAF)),
            "lambda_l2": self.settings.l2,
            "feature_fraction": self.settings.column_share,
            "extra_trees": True,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": TRAINING_THREADS,
            "verbosity": -1,
        }

    def predict_proba(self, rows: Floats) -> Floats:
        """Probabilities of the bins, (n_jobs, B)."""
        if not len(rows):
            return np.empty((0, self.n_bins))
        return np.asarray(self.model_.predict(self._matrix(rows), num_threads=SERVING_THREADS), np.float64)

    def _matrix(self, rows: Floats) -> NDArray[np.float32]:
        """Rows as the trees read them: counts as shares, float32 so that batch and live rows round alike."""
        matrix = shares_of_counts(rows, self.n_bins)
        if not self.use_tags:
            matrix[:, : group_width(self.n_bins)] = 0.0
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
    matrix = rows.astype(np.float32)
    width, counted = group_width(n_bins), len(DEPTHS) * n_bins
    grouped = rows[:, : len(GROUPS) * width].reshape(len(rows), len(GROUPS), width)
    counts = grouped[:, :, :counted].reshape(len(rows), len(GROUPS), len(DEPTHS), n_bins) + HALF_COUNT
    counts /= counts.sum(axis=3, keepdims=True)
    target = matrix[:, : len(GROUPS) * width].reshape(len(rows), len(GROUPS), width)
    target[:, :, :counted] = counts.reshape(len(rows), len(GROUPS), counted)
    matrix[:, : len(GROUPS) * width] = target.reshape(len(rows), len(GROUPS) * width)
    return matrix
