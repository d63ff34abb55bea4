"""How fast a run levels off, from its last epochs and from what is usual; compiled.

Near its end any rise is close to c - a exp(-r p). Its rate r is known from other runs within a factor, and from the run
itself as far as noise lets it: each rate of a grid is weighted by both, c and a solved for.

The usual rate is known from few applications, so that of another may be far off: log r has a Student t distribution,
and where a run itself tells that it is slower than usual, the prior yields. Rates fall along a run, so a prefix that
looks slow will not become fast, whereas most of those that look fast become slow. Therefore evidence for a slower rate
than usual counts by how closely an exponential follows the prefix; other evidence counts by the power `temper` only.
"""

import math
from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.compiled import F1, F2, njit, types
from jobcast.models.curves.points import Points
from jobcast.models.curves.scaling import CENTER, FREE, LEVEL, MISFIT, POINTS

RATES, WIDEST_FACTOR = 15, 6.0
"""Of the grid, evenly spaced in log r, up to so many times the usual rate and down to that part of it."""
RATE_SD, RATE_FREEDOM = 0.25, 2.0
"""Scale of log r over applications, and degrees of freedom: one less than the three applications it is known from."""
AMPLITUDE_SD = 0.5
"""Standard deviation of a, as a share of the rise that the level and the rate say."""
LEAST_REACHED = 0.05
"""Least rise so far, and share of the whole that it counts as, when a is expected."""
MOST_POWER = 5.0
"""Of the likelihood where an exponential follows the prefix closer than MISFIT and noise allow for."""
_F0 = types.float64


class Rates(NamedTuple):
    """Rates of the grid, the a of each and its posterior probability, (RATES,)."""

    rate: Floats
    amplitude: Floats
    share: Floats


@njit(_F0(POINTS, types.int64, _F0, _F0, _F0, _F0, types.NamedUniTuple(F1, 3, Rates)), cache=True)  # type: ignore[untyped-decorator]
def weigh_rates(
    points: Points, row: int, level: float, center: float, usual_rate: float, temper: float, grid: Rates
) -> float:
    """Write the grid of one curve; answers the mean misfit.

    Parameters
    ----------
    level, center : in v, and the mean p that it was measured at
    usual_rate, temper : see `rises_ahead`
    """
    used, x, v, weight = points.used[row], points.x[row], points.v[row], points.weight[row]
    rate, amplitude, share = grid
    least, likeliest, misfit = math.inf, 0, np.empty(RATES)
    for k in range(RATES):
        rate[k] = usual_rate * WIDEST_FACTOR ** (2.0 * k / (RATES - 1) - 1.0)
        # Rise in all that the level so far means at this rate; bounded where next to nothing is reached.
        whole = max(level - 1.0, LEAST_REACHED) / max(-math.expm1(-rate[k] * center), LEAST_REACHED)
        hold = 1.0 / (AMPLITUDE_SD * whole) ** 2
        s0, s1, s2, t0, t1 = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(used):
            left, w = -math.exp(-rate[k] * (x[i] - 1.0) / 100.0), weight[i]
            s0 += w
            s1 += w * left
            s2 += w * left * left
            t0 += w * v[i]
            t1 += w * left * v[i]
        # Weighted least squares with a prior on the slope, c eliminated.
        slope = (t1 - s1 * t0 / s0 + hold * whole) / (s2 - s1 * s1 / s0 + hold)
        start = (t0 - slope * s1) / s0
        cost = 0.0
        for i in range(used):
            left = -math.exp(-rate[k] * (x[i] - 1.0) / 100.0)
            cost += weight[i] * (v[i] - start - slope * left) ** 2
        amplitude[k], misfit[k] = slope, cost / used
        share[k] = cost + hold * (slope - whole) ** 2
        if share[k] < least:
            least, likeliest = share[k], k
    free = max(used - FREE, 0)
    power = temper
    # Slower than the middle of the grid, which is the usual rate.
    if 2 * likeliest < RATES - 1:
        power = min(temper * (1.0 + free) / (1.0 + least), MOST_POWER)
    power, best = power * free / used, -math.inf
    for k in range(RATES):
        off = (2.0 * k / (RATES - 1) - 1.0) * math.log(WIDEST_FACTOR) / RATE_SD
        # Twice the negative log density of Student's t.
        prior = (RATE_FREEDOM + 1.0) * math.log1p(off * off / RATE_FREEDOM)
        share[k] = -0.5 * (power * (share[k] - least) + prior)
        best = max(best, share[k])
    total, off = 0.0, 0.0
    for k in range(RATES):
        share[k] = math.exp(share[k] - best)
        total += share[k]
    for k in range(RATES):
        share[k] /= total
        off += share[k] * misfit[k]
    return float(off)


@njit(_F0(F1), cache=True)  # type: ignore[untyped-decorator]
def median_place(share: Floats) -> float:
    """Place in the grid, from 0 to RATES - 1, below which half of the probability (RATES,) lies."""
    below = 0.0
    for k in range(RATES):
        if below + share[k] >= 0.5:
            # Linear within a cell, whose probability lies around its place.
            return float(min(max(k + (0.5 - below) / share[k] - 0.5, 0.0), RATES - 1.0))
        below += share[k]
    return RATES - 1.0


@njit(types.void(POINTS, F2, _F0, _F0, F2, F2, F2), cache=True)  # type: ignore[untyped-decorator]
def rises_ahead(
    points: Points, scale: Floats, usual_rate: float, temper: float, share: Floats, mean: Floats, variance: Floats
) -> None:
    """Median and variance (n, e), in v, of what is gained from the level on by times p = `share` (n, e); written.

    Parameters
    ----------
    scale : (n, SCALE_WIDTH) see `scaling`
    usual_rate : of other runs
    temper : power of the likelihood
    """
    grid = Rates(np.empty(RATES), np.empty(RATES), np.empty(RATES))
    rate, amplitude, part = grid
    for row in range(points.used.size):
        level, center = scale[row, LEVEL], scale[row, CENTER]
        misfit = weigh_rates(points, row, level, center, usual_rate, temper, grid)
        # A mean misfit of 1 is what noise alone gives.
        wrong, place = max(misfit - 1.0, 0.0), median_place(part)
        lower = min(int(place), RATES - 2)
        for column in range(share.shape[1]):
            first, second, median = 0.0, 0.0, 0.0
            for k in range(RATES):
                gained = amplitude[k] * (math.exp(-rate[k] * center) - math.exp(-rate[k] * share[row, column]))
                first += part[k] * gained
                second += part[k] * gained * gained
                if k == lower:
                    median += (lower + 1 - place) * gained
                elif k == lower + 1:
                    median += (place - lower) * gained
            mean[row, column] = median
            variance[row, column] = max(second - first * first, 0.0) * (1.0 + wrong) + wrong * MISFIT * MISFIT
