"""Fronts: what nothing else beats, how far off it something lies, and the volume that a search has won."""

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.elastic import Floats

FLOOR = 0.01
"""Added to both sides of a ratio of objectives, % or seconds: an error of 0.001 % is no worse than one of 0."""


def pareto_mask(values: Floats) -> NDArray[np.bool_]:
    """(n,) rows of (n, n_objectives) that no other dominates; of equal rows the first.

    >>> pareto_mask(np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0], [2.0, 2.0]])).tolist()
    [True, True, False, False]
    """
    no_worse = (values[:, None, :] <= values[None, :, :]).all(axis=2)
    better = no_worse & (values[:, None, :] < values[None, :, :]).any(axis=2)
    same = no_worse & no_worse.T
    earlier = np.triu(same, 1)
    beaten = (better | earlier).any(axis=0)
    return ~np.asarray(beaten, dtype=np.bool_)


def behind(values: Floats, front: Floats) -> Floats:
    """(n,) by which share each row is worse, in its weakest objective, than the row of the front closest to it.

    0.1: within 10 % of the closest Pareto-optimal point, as Figure 10c of PCS counts. 0 or less: on the front.

    Parameters
    ----------
    values, front : (n, n_objectives) and (n_front, n_objectives), at least 0
    """
    ratio = (values[:, None, :] + FLOOR) / (front[None, :, :] + FLOOR)
    return np.asarray(ratio.max(axis=2).min(axis=1) - 1.0, dtype=np.float64)


def uncovered(values: Floats, front: Floats) -> Floats:
    """(n,) by which share the front's best answer to each row is worse than it, in its weakest objective.

    0.02: a row of the front is within 2 % in all objectives. 0 or less: one is no worse anywhere.
    """
    ratio = (front[None, :, :] + FLOOR) / (values[:, None, :] + FLOOR)
    return np.asarray(ratio.max(axis=2).min(axis=1) - 1.0, dtype=np.float64)


def thinned(values: Floats, rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many rows, evenly along the first objective, its ends included."""
    ordered = rows[np.argsort(values[rows, 0], kind="stable")]
    if len(ordered) <= most:
        return ordered
    return ordered[np.unique(np.linspace(0, len(ordered) - 1, most).round().astype(np.int64))]


def hypervolume_curve(values: Floats, ideal: Floats, reference: Floats) -> Floats:
    """(n,) hypervolume won after each evaluation, as a share of the box between `ideal` and `reference`.

    Fair between searches only with one box for all of them. Figure 9c of PCS.

    Parameters
    ----------
    values : (n, n_objectives) in the order of evaluation
    ideal, reference : (n_objectives,) the best of all objectives, and what counts as no gain
    """
    from pymoo.indicators.hv import HV

    width = np.maximum(reference - ideal, 1e-12)
    scaled = (values - ideal) / width
    volume = HV(ref_point=np.ones(values.shape[1]))
    front = np.zeros((0, values.shape[1]))
    curve = np.zeros(len(values))
    last = 0.0
    for row, point in enumerate(scaled):
        if (point < 1.0).all() and not (front <= point).all(axis=1).any():
            front = np.vstack([front[~(point <= front).all(axis=1)], point])
            last = float(volume(front))
        curve[row] = last
    return curve
