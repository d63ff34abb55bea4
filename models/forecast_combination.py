"""Two or more predictors of the same times as one: quantiles averaged, who erred less in the past counts for more.

Averages of quantiles keep the shape of what they are made of, where averages of probabilities spread (Lichtendahl,
Grushka-Cockayne and Winkler, Management Science 2013). Weights are Bates and Granger's (1969): inverse squares of past
errors. Times that span powers of ten are given as logarithms.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats

PRIOR = 20.0
"""Past forecasts that count as if all predictors had erred alike in them."""


def pinball_losses(truth: Floats, quantiles: Floats, levels: ArrayLike) -> Floats:
    """Mean pinball loss over levels, (n,), of quantiles (n, L) of what came, (n,).

    >>> pinball_losses(np.array([3.0]), np.array([[1.0, 2.0]]), (0.5, 0.9)).tolist()
    [0.95]
    """
    short, share = truth[:, None] - quantiles, np.asarray(levels)
    return np.asarray(np.maximum(share * short, (share - 1.0) * short).mean(axis=1))


def past_weights(losses: Sequence[Floats]) -> Floats:
    """Weights of predictors, (m,), adding up to 1, by the losses of each in its past forecasts, (n_i,) each.

    Without a past all count alike, with a short one nearly so: `PRIOR`.

    >>> past_weights([np.ones(2000), np.full(2000, 2.0)]).round(2).tolist()
    [0.8, 0.2]
    >>> past_weights([np.ones(0), np.ones(0)]).tolist()
    [0.5, 0.5]
    """
    past = [one[np.isfinite(one)] for one in losses]
    known = np.concatenate(past)
    # Who never erred, as all, gets as much as anybody.
    if not len(known) or not known.any():
        return np.full(len(past), 1.0 / len(past))
    alike = PRIOR * float(known.mean())
    mean = np.array([(float(one.sum()) + alike) / (len(one) + PRIOR) for one in past])
    return np.asarray(mean**-2.0 / (mean**-2.0).sum())


def combined_quantiles(quantiles: Sequence[Floats], weights: Floats) -> Floats:
    """Weighted means of predictors' quantiles, (n, L) each, never falling from level to level, (n, L).

    Where a predictor says nothing (NaN) the others' weights are scaled up; where none speaks the answer is NaN.

    >>> one, two = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([[3.0, 6.0], [np.nan, np.nan]])
    >>> combined_quantiles([one, two], np.array([0.75, 0.25])).tolist()
    [[1.5, 3.0], [1.0, 2.0]]
    """
    result = np.stack(quantiles)
    # A predictor speaks of a row as a whole.
    speaks = np.isfinite(result).all(axis=2, keepdims=True)
    share = np.where(speaks, weights[:, None, None], 0.0)
    total = share.sum(axis=0)
    mixed = (share * np.where(speaks, result, 0.0)).sum(axis=0) / np.where(total > 0.0, total, np.nan)
    return np.asarray(np.maximum.accumulate(mixed, axis=1))
