"""How fast a run levels off, from its last epochs and from what is usual; compiled.

Near its end any rise is close to c - a exp(-r p). Its rate r is known from other runs within a factor, and from the run
itself as far as noise lets it: each rate of a grid is weighted by both, c and a solved for.
"""

import math
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from jobcast.models.curves.columns import CENTER
from jobcast.models.curves.scaling import FREE, MISFIT

njit: Any = numba.njit
Floats = NDArray[np.float64]
RATES, WIDEST_FACTOR = 15, 6.0
"""Of the grid, evenly spaced in log r, up to so many times the usual rate and down to that part of it."""
RATE_SD = 0.4
"""Standard deviation of log r over applications."""
AMPLITUDE_SD = 0.5
"""Standard deviation of a around 1, the whole rise."""
_F1, _F2 = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")
_I1 = types.Array(types.int64, 1, "C")


@njit(types.void(_I1, _F2, _F2, _F2, _F2, types.float64, types.float64, _F2, _F2, _F2), cache=True)  # type: ignore[untyped-decorator]
def rises_ahead(
    points: NDArray[np.int64],
    x: Floats,
    v: Floats,
    weight: Floats,
    scale: Floats,
    usual_rate: float,
    temper: float,
    share: Floats,
    mean: Floats,
    variance: Floats,
) -> None:
    """Median and variance (n, e), in v, of what is gained from the level on by times p = `share` (n, e); written.

    Parameters
    ----------
    points, x, v, weight, scale : see `Fits`
    usual_rate : of other runs
    temper : power of the likelihood
    """
    rate, amplitude, log_weight, misfit = np.empty(RATES), np.empty(RATES), np.empty(RATES), np.empty(RATES)
    for row in range(points.size):
        used, best = points[row], -math.inf
        told = temper * max(used - FREE, 0) / used
        for k in range(RATES):
            off = (2.0 * k / (RATES - 1) - 1.0) * math.log(WIDEST_FACTOR)
            rate[k] = usual_rate * math.exp(off)
            s0, s1, s2, t0, t1 = 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(used):
                left, w = -math.exp(-rate[k] * (x[row, i] - 1.0) / 100.0), weight[row, i]
                s0 += w
                s1 += w * left
                s2 += w * left * left
                t0 += w * v[row, i]
                t1 += w * left * v[row, i]
            apart = s2 - s1 * s1 / s0
            slope = (t1 - s1 * t0 / s0 + 1.0 / AMPLITUDE_SD**2) / (apart + 1.0 / AMPLITUDE_SD**2)
            level = (t0 - slope * s1) / s0
            cost = 0.0
            for i in range(used):
                left = -math.exp(-rate[k] * (x[row, i] - 1.0) / 100.0)
                cost += weight[row, i] * (v[row, i] - level - slope * left) ** 2
            amplitude[k], misfit[k] = slope, cost / used
            cost += ((slope - 1.0) / AMPLITUDE_SD) ** 2
            log_weight[k] = -0.5 * (told * cost + (off / RATE_SD) ** 2)
            best = max(best, log_weight[k])
        total = 0.0
        for k in range(RATES):
            log_weight[k] = math.exp(log_weight[k] - best)
            total += log_weight[k]
        middle, below = RATES - 1, 0.0
        for k in range(RATES):
            if below + log_weight[k] >= 0.5 * total:
                middle, below = k, (0.5 * total - below) / log_weight[k] - 0.5
                break
            below += log_weight[k]
        for column in range(share.shape[1]):
            first, second, off, center = 0.0, 0.0, 0.0, 0.0
            for k in range(RATES):
                gained = amplitude[k] * (
                    math.exp(-rate[k] * scale[row, CENTER]) - math.exp(-rate[k] * share[row, column])
                )
                first += log_weight[k] / total * gained
                second += log_weight[k] / total * gained * gained
                off += log_weight[k] / total * misfit[k]
                if k == middle:
                    center += (1.0 - abs(below)) * gained
                elif k == middle + (1 if below > 0 else -1):
                    center += abs(below) * gained
            mean[row, column] = center if 0 < middle < RATES - 1 else first
            wrong = max(off - 1.0, 0.0)
            variance[row, column] = max(second - first * first, 0.0) * (1.0 + wrong) + wrong * MISFIT * MISFIT
