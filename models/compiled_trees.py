"""Compiled loops that serve fitted models: what Python would take longest for, on the few rows of a forecast.

LightGBM's trees as arrays and one compiled loop: small ensembles answer a few rows in microseconds.

A call of LightGBM's own predictor costs a tenth of a millisecond whatever the trees; a forecast asks many small ones.

Compiled loops that serve classifiers: what Python would take longest for, on the few rows of a forecast.

Each row is computed by itself, in one order, so it gets the same bits alone as among many.
"""

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats

njit: Any = numba.njit
_ROWS = types.Array(types.float32, 2, "C", readonly=True)
_INTS = types.Array(types.int32, 1, "C", readonly=True)
_FLOATS = types.Array(types.float64, 1, "C", readonly=True)
_OUT = types.Array(types.float64, 1, "C")
Ints = NDArray[np.int32]


@njit([_OUT(_ROWS, _INTS, _INTS, _FLOATS, _INTS, _INTS, _FLOATS)], cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def tree_sums(
    X: NDArray[np.float32], roots: Ints, feature: Ints, threshold: Floats, left: Ints, right: Ints, leaf: Floats
) -> Floats:
    """Sum over trees of the leaf that each row falls into, (n_rows,), added up in the order of the trees.

    A node is a position in `feature`, `threshold`, `left`, `right`, the row going left where x <= threshold; a negative
    number is the leaf ~node.
    """
    sums = np.zeros(X.shape[0])
    for i in range(X.shape[0]):
        total = 0.0
        for root in roots:
            node = root
            while node >= 0:
                node = left[node] if X[i, feature[node]] <= threshold[node] else right[node]
            total += leaf[~node]
        sums[i] = total
    return sums


@dataclass(frozen=True, slots=True, eq=False)
class SmallTrees:
    """The trees of a LightGBM booster on plain numbers, without missing values or categories.

    Attributes
    ----------
    roots : (trees,) first node of each tree, or ~leaf where a tree is a leaf
    feature, threshold, left, right : (nodes,); see `tree_sums`
    leaf : (leaves,) values
    """

    roots: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    leaf: Floats

    @classmethod
    def of(cls, booster: Any) -> "SmallTrees":
        """From a booster."""
        nodes: list[list[float]] = []
        leaves: list[float] = []

        def placed(tree: dict[str, Any]) -> int:
            if "leaf_value" in tree:
                leaves.append(float(tree["leaf_value"]))
                return ~(len(leaves) - 1)
            at = len(nodes)
            nodes.append([float(tree["split_feature"]), float(tree["threshold"]), 0.0, 0.0])
            nodes[at][2] = placed(tree["left_child"])
            nodes[at][3] = placed(tree["right_child"])
            return at

        roots = [placed(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]]
        table = np.array(nodes, np.float64).reshape(-1, 4)
        whole = [np.ascontiguousarray(table[:, column], np.int32) for column in (0, 2, 3)]
        return cls(
            np.array(roots, np.int32), whole[0], np.ascontiguousarray(table[:, 1]), whole[1], whole[2], np.array(leaves)
        )

    def __call__(self, X: NDArray[np.float32]) -> Floats:
        """Sums of the trees for rows (n, F), (n,): LightGBM's raw score."""
        sums: Floats = tree_sums(X, self.roots, self.feature, self.threshold, self.left, self.right, self.leaf)
        return sums


_TABLE = types.Array(types.float64, 2, "C", readonly=True)
_BOOLS = types.Array(types.boolean, 1, "C", readonly=True)


@njit([_OUT(_ROWS, _FLOATS, _FLOATS, _TABLE, _TABLE, types.float64)], cache=True)  # type: ignore[untyped-decorator]
def bent_logits(
    X: NDArray[np.float32],
    center: Floats,
    scale: Floats,
    knot: Floats,
    weight: Floats,
    intercept: float,
) -> Floats:
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
    threshold: Floats,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    missing_left: NDArray[np.bool_],
    value: Floats,
) -> Floats:
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
