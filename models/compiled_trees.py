"""Compiled loops that serve fitted models: what Python would take longest for, on the few rows of a forecast.

LightGBM's trees as arrays and one compiled loop: small ensembles answer a few rows in microseconds.

A call of LightGBM's own predictor costs a tenth of a millisecond whatever the trees; a forecast asks many small ones.

Compiled loops that serve classifiers: what Python would take longest for, on the few rows of a forecast.

Each row is computed by itself, in one order, so it gets the same bits alone as among many.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba.cpython.unsafe import numbers
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.compiled import F1, F2, READ_F1, READ_F2, njit, types

trailing_zeros: Any = numbers.trailing_zeros
_ROWS = types.Array(types.float32, 2, "C", readonly=True)
_INTS = types.Array(types.int32, 1, "C", readonly=True)
_COLUMNS = types.Array(types.uint32, 1, "C", readonly=True)
_THRESHOLDS = types.Array(types.float32, 1, "C", readonly=True)
_MASKS = types.Array(types.uint32, 1, "C", readonly=True)
MOST_LEAVES = 32
"""Bits of a word."""
LANES = 8
"""Numbers that a processor compares at once: rows are filled up to a multiple, since what is left takes longer."""
_ALL_BITS = 2**MOST_LEAVES - 1
ALL, ONE = np.uint32(_ALL_BITS), np.uint32(1)
Masks = NDArray[np.uint32]
Ints = NDArray[np.int32]


@njit([F2(_ROWS, _INTS, _INTS, _COLUMNS, _THRESHOLDS, _MASKS, _MASKS, _INTS, READ_F1)], cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def tree_sums(
    X: NDArray[np.float32],
    ends: Ints,
    first_node: Ints,
    column: NDArray[np.uint32],
    threshold: NDArray[np.float32],
    mask: Masks,
    missing: Masks,
    first_leaf: Ints,
    leaf: Floats,
) -> Floats:
    """Sum over each ensemble's trees of the leaf that each row falls into, (ensembles, n_rows), in the trees' order.

    Each node is looked at, by all rows together and without a branch: which way a row goes cannot be foreseen, and a
    wrong guess costs more than several nodes. A node that a row passes on the right strikes out the leaves on its
    left; the row's leaf is the first that is left [1]. See `SmallTrees`.

    References
    ----------
    .. [1] Lucchese et al., QuickScorer: A Fast Algorithm to Rank Documents with Additive Ensembles of Regression Trees,
       SIGIR 2015.
    """
    n = X.shape[0]
    # Rows are padded, columns lie next to each other: the innermost loop runs over rows without a branch.
    filled = (n + LANES - 1) // LANES * LANES
    columns = np.zeros((X.shape[1], filled), np.float32)
    for i in range(n):
        for j in range(X.shape[1]):
            columns[j, i] = X[i, j]
    # One sum tells whether any value is missing; without one the second loop below is skipped.
    missing_any = np.isnan(columns.sum())
    sums, leaves, begin = np.zeros((ends.size, n)), np.empty(filled, np.uint32), 0
    for ensemble in range(ends.size):
        of_rows = sums[ensemble]
        for tree in range(begin, ends[ensemble]):
            # Each bit is a leaf, from left to right; at first a row may end in any.
            leaves[:] = ALL
            for node in range(first_node[tree], first_node[tree + 1]):
                x, least, kept = columns[column[node]], threshold[node], mask[node]
                for i in range(filled):
                    # True less 1 is 0, False less 1 wraps round to all bits: a row that goes left keeps all leaves.
                    leaves[i] &= kept | (np.uint32(x[i] > least) - ONE)
                if missing_any:
                    # Missing values compare as False above, as if they went left: set right here.
                    for i in range(filled):
                        leaves[i] &= missing[node] | (np.uint32(math.isnan(x[i])) - ONE)
            for i in range(n):
                # The lowest bit that is left is the leftmost leaf. Added tree by tree, as LightGBM adds.
                of_rows[i] += leaf[first_leaf[tree] + trailing_zeros(leaves[i])]  # type: ignore[call-arg, unused-ignore]
        begin = ends[ensemble]
    return sums


@njit([F1(types.Array(types.float64, 1, "A", readonly=True))], cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def sigmoids(z: Floats) -> Floats:
    """1 / (1 + exp(-z)) of each, as LightGBM computes it, (n,)."""
    result = np.empty(z.size)
    for i in range(z.size):
        result[i] = 1.0 / (1.0 + math.exp(-z[i]))
    return result


@njit([F2(F2)], cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def softmaxes(z: Floats) -> Floats:
    """Shares of classes (n, B) from raw scores (B, n), as LightGBM computes them."""
    result = np.empty((z.shape[1], z.shape[0]))
    for i in range(z.shape[1]):
        # Less the largest, so that no exponential overflows; LightGBM does the same.
        most = z[:, i].max()
        total = 0.0
        for k in range(z.shape[0]):
            result[i, k] = math.exp(z[k, i] - most)
            total += result[i, k]
        for k in range(z.shape[0]):
            result[i, k] /= total
    return result


def rounded_down(thresholds: Floats) -> NDArray[np.float32]:
    """In single precision, none larger: x <= threshold says the same of every x in single precision."""
    single = thresholds.astype(np.float32)
    # Rounding to the nearest may have gone up, which would send the numbers in between another way.
    return np.where(single > thresholds, np.nextafter(single, np.float32(-np.inf)), single)


@dataclass(frozen=True, slots=True, eq=False)
class SmallTrees:
    """The trees of LightGBM boosters on numbers, without categories, of at most `MOST_LEAVES` leaves.

    Attributes
    ----------
    ends : (boosters,) number of trees up to the end of each
    first_node, first_leaf : (trees + 1,), (trees,)
    column, threshold : (nodes,) a row goes left where x <= threshold. In single precision, like the rows: rounded down,
        which sends each of those the same way
    mask, missing : (nodes,) bits of the leaves that stay for a row that goes right, and for one whose x is missing
    leaf : (leaves,) values, each tree's from left to right
    """

    ends: Ints
    first_node: Ints
    column: NDArray[np.uint32]
    threshold: NDArray[np.float32]
    mask: Masks
    missing: Masks
    first_leaf: Ints
    leaf: Floats

    @classmethod
    def of(cls, *boosters: Any) -> "SmallTrees":
        """From boosters; None is one without trees, whose sums are 0. ValueError for a tree of too many leaves."""
        return cls._of([[] if booster is None else booster.dump_model()["tree_info"] for booster in boosters])

    @classmethod
    def of_classes(cls, booster: Any, classes: int) -> "SmallTrees":
        """From a booster of many classes, whose trees take turns: an ensemble a class. Raises as `of`."""
        # LightGBM lists the first tree of every class, then the second of every class.
        trees = booster.dump_model()["tree_info"]
        return cls._of([trees[number::classes] for number in range(classes)])

    @classmethod
    def _of(cls, ensembles: Sequence[Sequence[dict[str, Any]]]) -> "SmallTrees":
        nodes: list[tuple[int, float, int, int]] = []
        leaves: list[float] = []
        first_node: list[int] = [0]
        first_leaf: list[int] = []
        ends: list[int] = []

        def placed(tree: dict[str, Any]) -> None:
            if "leaf_value" in tree:
                leaves.append(float(tree["leaf_value"]))
                return
            # The node's place is taken before its children, for the order of the nodes.
            begin, at = len(leaves) - first_leaf[-1], len(nodes)
            nodes.append((0, 0.0, 0, 0))
            placed(tree["left_child"])
            # All leaves but those below the left child, which are the ones just placed.
            kept = _ALL_BITS ^ ((1 << len(leaves) - first_leaf[-1]) - (1 << begin))
            # LightGBM takes a missing value for 0 where training had none.
            left = tree["default_left"] if tree["missing_type"] != "None" else tree["threshold"] >= 0.0
            nodes[at] = tree["split_feature"], tree["threshold"], kept, _ALL_BITS if left else kept
            placed(tree["right_child"])

        for ensemble in ensembles:
            for tree in ensemble:
                first_leaf.append(len(leaves))
                placed(tree["tree_structure"])
                first_node.append(len(nodes))
                if len(leaves) - first_leaf[-1] > MOST_LEAVES:
                    raise ValueError(f"a tree of {len(leaves) - first_leaf[-1]} leaves, at most {MOST_LEAVES} are read")
            ends.append(len(first_leaf))
        # Boosters without any split have no nodes at all.
        column, threshold, mask, missing = zip(*nodes, strict=True) if nodes else ((),) * 4
        single = rounded_down(np.array(threshold, np.float64))
        of_trees = np.array(ends, np.int32), np.array(first_node, np.int32)
        bits = np.array(mask, np.uint32), np.array(missing, np.uint32)
        return cls(
            *of_trees, np.array(column, np.uint32), single, *bits, np.array(first_leaf, np.int32), np.array(leaves)
        )

    def __call__(self, X: NDArray[np.float32]) -> Floats:
        """Sums of the trees for rows (n, F), (boosters, n): LightGBM's raw scores."""
        sums: Floats = tree_sums(
            X, self.ends, self.first_node, self.column, self.threshold, self.mask, self.missing, self.first_leaf,
            self.leaf,
        )  # fmt: skip
        return sums


@njit([F1(_ROWS, READ_F1, READ_F1, READ_F2, READ_F2, types.float64)], cache=True)  # type: ignore[untyped-decorator]
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
            # The centre is the median, for which z is 0.
            z = 0.0 if math.isnan(x) else math.asinh((x - center[column]) / scale[column])
            total += weight[column, 0] * z
            for k in range(knot.shape[1]):
                # Below its knot a term is 0, as max(0, z - knot) was in training.
                if z > knot[column, k]:
                    total += weight[column, 1 + k] * (z - knot[column, k])
        logits[i] = total
    return logits


@njit([F1(READ_F1, READ_F2, READ_F1, READ_F1, types.float64, types.float64)], cache=True)  # type: ignore[untyped-decorator]
def mixture_quantiles(
    share: Floats, amounts: Floats, level: Floats, known: Floats, nothing: float, whole: float
) -> Floats:
    """Whole GPUs that a load does not pass with each row's probability `level`; see `load_quantile.quantile_of`.

    `known` are the levels of `amounts`; of a share below `nothing` it is as if of that; `whole` is what rounding may
    have taken off a whole number.
    """
    gpus, last = np.zeros(share.size), known.size - 2
    for i in range(share.size):
        # The level within windows with load: of all windows, 1 - share have none.
        within = (level[i] - (1.0 - share[i])) / max(share[i], nothing)
        if within <= 0.0:
            continue
        left = 0
        # Five levels: walking is faster than a binary search.
        while left < last and known[left + 1] <= within:
            left += 1
        weight = (within - known[left]) / (known[left + 1] - known[left])
        if weight < 0.0:
            weight = 0.0
        elif weight > 1.0:
            weight = 1.0
        logs = (1.0 - weight) * amounts[i, left] + weight * amounts[i, left + 1]
        # Rounded down after a little was added: 7.9999 from single precision is 8 GPUs.
        gpus[i] = np.floor(math.expm1(logs) + whole)
    return gpus


NODE = np.dtype([("threshold", "f4"), ("column", "i2"), ("missing_left", "i2"), ("left", "i4"), ("right", "i4")])
"""A node of a forest, in one piece of memory: a large forest is walked as fast as its nodes are fetched."""
_NODES = types.Array(numba.from_dtype(NODE), 1, "C", readonly=True)


def forest_nodes(
    column: Ints, threshold: Floats, left: Ints, right: Ints, missing_left: NDArray[np.bool_]
) -> NDArray[np.void]:
    """Nodes as `forest_means` reads them, (nodes,)."""
    nodes = np.empty(len(column), NODE)
    for name, values in zip(
        NODE.names or (), (rounded_down(threshold), column, missing_left, left, right), strict=True
    ):
        nodes[name] = values
    return nodes


@njit([F1(_ROWS, _INTS, _NODES, READ_F1)], cache=True)  # type: ignore[untyped-decorator]
def forest_means(X: NDArray[np.float32], root: Ints, nodes: NDArray[np.void], value: Floats) -> Floats:
    """Mean over trees of the value of the row's leaf, shape (n_rows,). A node without a left child is a leaf.

    Rows go through a tree one after another, while its nodes are at hand.
    """
    means = np.zeros(X.shape[0])
    # Trees outside, rows inside: a tree's nodes stay in the cache for all rows.
    for tree in range(root.size):
        for i in range(X.shape[0]):
            at = root[tree]
            while nodes[at].left >= 0:
                x = X[i, nodes[at].column]
                if x <= nodes[at].threshold or (math.isnan(x) and nodes[at].missing_left != 0):
                    at = nodes[at].left
                else:
                    at = nodes[at].right
            means[i] += value[at]
    return means / root.size
