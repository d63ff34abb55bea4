"""How a training run stands, for OptStop: from what was measured and the forecast of it. MLFS, section 3.5.

What a user keeps is the checkpoint of the best epoch so far.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.optstop import OptStop, Standing, stall_epochs
from jobcast.models.curves.forecast import CurveForecast

Floats = NDArray[np.float64]


def standing_of(metric: ArrayLike, forecast: CurveForecast, rule: OptStop) -> Standing:
    """Standing of n runs from what was measured and the forecast of it.

    Parameters
    ----------
    metric : (n, L) of epoch column + 1, NaN where it was not measured; what is past `forecast.seen` is not read
    forecast : of the same n runs
    rule : tells over how many epochs runs must stall
    """
    table = np.array(metric, np.float64, ndmin=2)
    table[np.arange(table.shape[1]) >= forecast.seen[:, None]] = np.nan
    before = forecast.seen - stall_epochs(forecast.epochs, rule.stall_share)
    past = np.where(np.arange(table.shape[1]) < before[:, None], table, np.nan)
    mean, below, above = (each[:, 0] for each in forecast.at(forecast.epochs[:, None]))
    way = forecast.direction
    return Standing(_best(table, way), _best(past, way), forecast.sure, mean, below, above, way)


def _best(table: Floats, direction: Floats) -> Floats:
    """(n,) best value of each row; NaN where it has none."""
    ways = np.where(np.isfinite(table), direction[:, None] * table, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(ways), direction * ways, np.nan)
