"""Quantiles of the load to come, at any level, from either algorithm of `NewLoad`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.models.load_quantile import LEVELS, QuantileLoad, quantile_of
from jobcast.models.new_load import NewLoad

Floats = NDArray[np.float64]


def load_quantiles(loads: NewLoad, X: NDArray[Any], levels: Sequence[float]) -> Floats:
    """GPUs that the loads of several windows stay within with given probabilities, whatever is demanded of estimates.

    The learnt distribution as it is; below the median and above the highest quantile of the windows with load it is
    flat. Of `sliding-max`, the empirical quantiles of the past windows that it looks at.

    Parameters
    ----------
    loads : a fitted estimate
    X : (n, H, F) its rows
    levels : (L,) probabilities in (0, 1)

    Returns
    -------
    (n, H, L); a longer window never holds less than a shorter one.
    """
    rule, wanted = loads.rule_, np.asarray(levels, np.float64)
    if isinstance(rule, QuantileLoad):
        by_horizon = _of_distributions(rule, X, wanted)
    else:
        by_horizon = np.moveaxis(np.quantile(X, wanted, axis=2, method="higher"), 0, 2)
    rising: Floats = np.maximum.accumulate(by_horizon, axis=1)
    return rising


def _of_distributions(rule: QuantileLoad, X: NDArray[Any], levels: Floats) -> Floats:
    """All horizons and levels in one call, for each call costs as much as hundreds of rows."""
    n, horizons = X.shape[:2]
    parts = [rule.distributions_[horizon].parts(X[:, horizon]) for horizon in range(horizons)]
    share = np.stack([share for share, _ in parts], axis=1).ravel()
    amounts = np.stack([amounts for _, amounts in parts], axis=1).reshape(-1, len(LEVELS))
    each: Any = np.tile(levels, n * horizons)
    gpus = quantile_of(np.repeat(share, len(levels)), np.repeat(amounts, len(levels), axis=0), each)
    return gpus.reshape(n, horizons, len(levels))
