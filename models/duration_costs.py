"""Which bin to tell a scheduler: the one whose expected cost is least."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

UNDER_COST = 1.0
"""Cost of a bin too short, in bins too long, of each GPU that the job holds.

A job that stays too long keeps all its GPUs from those who lent them, while one that is told too long a bin waits by
itself. Of costs from 1 to 6 a GPU this was the fastest under SIA on 16 October to 5 November 2017 of Philly (load 0.8,
with and without the pool whose jobs come like clockwork; what was learnt being older; `benchmarks/choose_sia.py`) and
on a made-up campus, slowing at most 0.2 % of the jobs. A cost of 1 that does not count GPUs slowed 6 % on that campus.
Where pools are fuller (0.9, 0.95) jobs that run for days and were told an hour slow up to 3 % unless it is 3 or more.
"""
Floats = NDArray[np.float64]


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


def cheapest_bin(proba: Floats, under_cost: ArrayLike = UNDER_COST) -> NDArray[np.int64]:
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
    chosen: NDArray[np.int64] = proba.shape[1] - 1 - expected[:, ::-1].argmin(axis=1)
    return chosen
