"""Concave majorants of rows: what a Lagrangian relaxation sees of functions that are not concave."""

import numpy as np

from jobcast.schedulers.shockwave.work import Floats


def majorant_slopes(values: Floats) -> Floats:
    """Slopes of the least concave function above each row, (n, m) for values (n, m + 1) at 0, 1, ..., m.

    The slope over [i, i + 1] is the least over a <= i of the largest over b > i of (v_b - v_a) / (b - a).

    >>> majorant_slopes(np.array([[0.0, 0.0, 4.0, 5.0]])).tolist()
    [[2.0, 2.0, 1.0]]
    """
    points = values.shape[1]
    slopes = np.full((len(values), points, points), -np.inf)  # by row, a, b - 1 ... filled for b > a
    for begin in range(points - 1):
        span = np.arange(1, points - begin)
        slopes[:, begin, begin + 1 :] = (values[:, begin + 1 :] - values[:, begin, None]) / span
    best = np.maximum.accumulate(slopes[:, :, ::-1], axis=2)[:, :, ::-1]  # largest over b >= column
    upto = np.where(np.tri(points, points, -1, dtype=bool)[None, :, :].transpose(0, 2, 1), best, np.inf)
    majorant: Floats = upto.min(axis=1)[:, 1:]
    return majorant
