"""Columns as a programme for HiGHS: every job starts once, and capacity is kept at every step. SIA, Figure 19."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.schedulers.milp.columns import Columns
from jobcast.schedulers.milp.instance import Bools, Floats, Instance, Ints


@dataclass(frozen=True, slots=True)
class Programme:
    """min cost x, rows within their limits. Columns: a start each, then with fairness one alpha a segment.

    A segment is a stretch of steps in which the same columns run. Rows: one a job, then capacities, then shares.

    Attributes
    ----------
    cost : (n,)
    matrix : (rows, n) by columns, scipy's csc_array
    low, high : (rows,)
    starts : how many of the columns are starts
    at, length : (n_segments,) first step and number of steps
    capacity_of, share_of : segment of each capacity row; (segment, pool) of each share row, (n, 2)
    """

    cost: Floats
    matrix: Any
    low: Floats
    high: Floats
    starts: int
    at: Ints
    length: Ints
    capacity_of: Ints
    share_of: Ints


def build(instance: Instance, columns: Columns, beta: float = 0.0) -> Programme:
    """The programme of some columns; without `beta` only the capacities that may be exceeded and tell something new."""
    from scipy.sparse import bmat, coo_array, csc_array

    segments = np.unique(np.concatenate([[0], columns.begin, columns.end]))
    at, length = segments[:-1], np.diff(segments)
    low = np.searchsorted(at, columns.begin)
    high = np.searchsorted(at, columns.end)
    counts = high - low
    column = np.repeat(np.arange(len(columns)), counts)
    segment = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    width = instance.width[columns.job].astype(np.float64)
    runs = csc_array((width[column], (segment, column)), shape=(len(at), len(columns)))
    once = csc_array(
        (np.ones(len(columns)), (columns.job, np.arange(len(columns)))), shape=(len(instance), len(columns))
    )
    capacity_of = np.flatnonzero(_binding(instance, columns, low, high, len(at)))
    wait = (columns.start - instance.submit[columns.job]).astype(np.float64)
    limits = [np.ones(len(instance)), np.full(len(capacity_of), float(instance.gpus))]
    if beta <= 0:
        matrix = bmat([[once], [runs.tocsr()[capacity_of]]], format="csc")
        shares: Ints = np.zeros((0, 2), dtype=np.int64)
        cost = wait
    else:
        pools = np.flatnonzero(instance.quotas > 0)
        shares = np.stack([np.tile(np.arange(len(at)), len(pools)), np.repeat(pools, len(at))], axis=1)
        rank = np.searchsorted(pools, instance.pool[columns.job])
        held = coo_array((width[column], (rank[column] * len(at) + segment, column)), shape=(len(shares), len(columns)))
        quotas = instance.quotas[shares[:, 1]].astype(np.float64)
        alpha = coo_array((-quotas, (np.arange(len(shares)), shares[:, 0])), shape=(len(shares), len(at)))
        matrix = bmat([[once, None], [runs.tocsr()[capacity_of], None], [held, alpha]], format="csc")
        limits.append(np.zeros(len(shares)))
        cost = np.concatenate([wait, beta * length])
    upper = np.concatenate(limits)
    lower = np.full(len(upper), -np.inf)
    lower[: len(instance)] = 1.0
    return Programme(cost, matrix, lower, upper, len(columns), at, length, capacity_of, shares)


def _binding(instance: Instance, columns: Columns, low: Ints, high: Ints, count: int) -> Bools:
    """Segments whose capacity may be exceeded, without those whose neighbour runs all that they run, (count,)."""
    width = instance.width[columns.job]
    same = np.concatenate([[False], columns.job[1:] == columns.job[:-1]])
    before = np.where(same, np.concatenate([[0], high[:-1]]), 0)
    fresh = np.minimum(np.maximum(low, before), high)
    change = np.bincount(fresh, width, count + 1) - np.bincount(high, width, count + 1)
    over = np.cumsum(change)[:count] > instance.gpus
    some = high > low
    ends, begins = np.zeros(count + 1, dtype=np.bool_), np.zeros(count + 1, dtype=np.bool_)
    ends[high[some]] = True
    begins[low[some]] = True
    binding: Bools = over & ends[1:]  # where nothing ends, the next segment runs the same and more
    later = np.flatnonzero(binding)
    if len(later):
        opened = np.concatenate([[0], np.cumsum(begins)])
        since = np.concatenate([[1], opened[later[1:] + 1] - opened[later[:-1] + 1]])
        binding[later[since == 0]] = False  # where nothing began since the last one, that one ran the same and more
    return binding
