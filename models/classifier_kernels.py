"""Compiled loops that serve classifiers: what Python would take longest for, on the few rows of a forecast.

Each row is computed by itself, in one order, so it gets the same bits alone as among many.
"""

import math
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

njit: Any = numba.njit
_ROWS = types.Array(types.float32, 2, "C", readonly=True)
_FLOATS = types.Array(types.float64, 1, "C", readonly=True)
_TABLE = types.Array(types.float64, 2, "C", readonly=True)
_INTS = types.Array(types.int32, 1, "C", readonly=True)
_BOOLS = types.Array(types.boolean, 1, "C", readonly=True)
_OUT = types.Array(types.float64, 1, "C")


@njit([_OUT(_ROWS, _FLOATS, _FLOATS, _TABLE, _TABLE, types.float64)], cache=True)  # type: ignore[untyped-decorator]
def bent_logits(
    X: NDArray[np.float32],
    center: NDArray[np.float64],
    scale: NDArray[np.float64],
    knot: NDArray[np.float64],
    weight: NDArray[np.float64],
    intercept: float,
) -> NDArray[np.float64]:
    """Intercept + sum over columns of a line in z = asinh((x - center) / scale) that bends at knots, shape (n_rows,).

    `knot` is of shape (n_features, n_knots), `weight` of (n_features, 1 + n_knots): the slope and what each knot adds
    to it. A missing x counts as the center.
    """
    logits = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        total = intercept
        for column in range(X.shape[1]):
            x = X[i, column]
            z = 0.0 if math.isnan(x) else math.asinh((x - center[column]) / scale[column])
            total += weight[column, 0] * z
            for k in range(knot.shape[1]):
                if z > knot[column, k]:
                    total += weight[column, 1 + k] * (z - knot[column, k])
        logits[i] = total
    return logits


@njit([_OUT(_ROWS, _INTS, _INTS, _FLOATS, _INTS, _INTS, _BOOLS, _FLOATS)], cache=True)  # type: ignore[untyped-decorator]
def forest_means(
    X: NDArray[np.float32],
    root: NDArray[np.int32],
    column: NDArray[np.int32],
    threshold: NDArray[np.float64],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    missing_left: NDArray[np.bool_],
    value: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Mean over trees of the value of the row's leaf, shape (n_rows,). A node without a left child is a leaf."""
    means = np.zeros(X.shape[0])
    for i in range(X.shape[0]):
        for tree in range(root.size):
            node = root[tree]
            while left[node] >= 0:
                x = X[i, column[node]]
                if math.isnan(x):
                    node = left[node] if missing_left[node] else right[node]
                else:
                    node = left[node] if x <= threshold[node] else right[node]
            means[i] += value[node]
        means[i] /= root.size
    return means
