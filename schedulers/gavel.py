"""Gavel's max-min fairness: the worst-off job runs as much as it can."""

from collections.abc import Sequence

import numba
import numpy as np
from numba import types

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.rounds import RoundState

_FLOATS = types.Array(types.float64, 1, "C")
CENTRE, WATER = "centre", "water"
HALVINGS = 60  # of an interval: below the spacing of floats near 1


class Gavel:
    """Shares of time that maximise the least width x share / weight. Gavel (OSDI 2020).

    On GPUs of one kind a job's throughput is its throughput alone x its share, and cancels against Gavel's
    normalisation, the throughput of an equal share. What remains is the linear programme

        maximise z  subject to  widths x shares >= weights z,  sum of widths x shares <= GPUs,  0 <= shares <= 1,

    whose value is z = min(GPUs / sum of weights, least width / weight). Where the second is smaller the optimum is a
    whole face.

    Parameters
    ----------
    fill : which point of the face: `centre`, its analytic centre, near which an interior-point solver stops, as
        Gavel's own does; `water`, the lexicographic optimum by water filling, which maximises the second-worst too,
        and so on
    """

    name = "gavel"

    def __init__(self, fill: str = CENTRE) -> None:
        self._fill = _FILLS[fill]

    def shares(self, state: RoundState) -> Sequence[float]:
        """Share of the time for each active job, (n_active,)."""
        if not state.active:
            return []
        widths = np.array([active.job.gpus for active in state.active], dtype=np.float64)
        weights = np.array([active.weight for active in state.active])
        shares: list[float] = self._fill(widths, weights, float(state.total_gpus)).tolist()
        return shares


def water(widths: Floats, weights: Floats, gpus: float) -> Floats:
    """Lexicographic max-min shares, (n,).

    Parameters
    ----------
    widths, weights : (n,) of the jobs
    gpus : of the cluster

    >>> water(np.array([1.0, 4.0]), np.array([1.0, 1.0]), 4.0).tolist()
    [1.0, 0.75]
    """
    order = np.argsort(widths / weights, kind="stable")
    ordered, claims = widths[order], np.cumsum(weights[order[::-1]])[::-1]
    # What is left to the others, at one level, where the first so many run always: most where no other one is bound.
    level = float(((gpus - np.cumsum(ordered) + ordered) / claims).max())
    return np.minimum(weights * level / widths, 1.0)


def centre(widths: Floats, weights: Floats, gpus: float) -> Floats:
    """Analytic centre of all max-min optimal shares, (n,).

    It maximises the sum of the logarithms of the slacks that are not zero on the whole face. At price p of a GPU, a
    share s with floor f solves 1 / (s - f) + 1 / s - 1 / (1 - s) = width x p, and p x idle GPUs = 1.

    Parameters
    ----------
    widths, weights : (n,) of the jobs
    gpus : of the cluster

    >>> centre(np.array([1.0, 4.0]), np.array([1.0, 1.0]), 8.0).round(3).tolist()
    [1.0, 0.665]
    """
    level = min(gpus / weights.sum(), float((widths / weights).min()))
    shares: Floats = np.minimum(weights * level / widths, 1.0)
    free, spare = widths / weights != level, gpus - float(widths @ shares)
    # Else there is no face: these floors are the one optimum.
    if spare > tolerance.GPUS:
        shares[free] = _between(shares[free], widths[free], spare)
    return shares


def _between(floors: Floats, widths: Floats, spare: float) -> Floats:
    """Central shares above their floors that take less than the spare GPUs; the idle rest is found by halving."""
    low, high = 0.0, spare
    for _ in range(HALVINGS):
        idle = 0.5 * (low + high)
        # What is used falls as the price rises, and with it as idle GPUs fall: so halving finds it.
        used = float(widths @ (_central(floors, widths / idle) - floors))
        low, high = (low, idle) if used + idle > spare else (idle, high)
    return _central(floors, widths / high)


@numba.njit(_FLOATS(_FLOATS, _FLOATS), cache=True, error_model="numpy")
def _central(floors: Floats, prices: Floats) -> Floats:
    """Shares at which the pull of their own bounds balances a price, (n,), by halving."""
    central = np.empty(len(floors))
    for job in range(len(floors)):
        floor, low, high = floors[job], floors[job], 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if 1.0 / (middle - floor) + 1.0 / middle - 1.0 / (1.0 - middle) > prices[job]:
                low = middle
            else:
                high = middle
        central[job] = 0.5 * (low + high)
    return central


_FILLS = {CENTRE: centre, WATER: water}
