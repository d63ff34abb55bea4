"""What compiled rules and the engine of elastic jobs agree on: types of a view, and the demand function.

Importing numba takes a second, so only what computes imports this file.
"""

from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.compiled import F1, F2, F3, I1, njit, types
from jobcast.domain.elastic import ElasticJobs, ElasticView
from jobcast.domain.rounding_kernels import rounded

JOBS: Any = types.NamedTuple([F1, F1, F1, F1, I1, I1, F1, F1, F3, F2], ElasticJobs)
VIEW = types.NamedTuple([types.float64, F1, I1, types.int64, JOBS, F1, F1, F1, F1], ElasticView)
RULE = types.void(VIEW, F1, F2)
"""Signature of a rule: rule(view, numbers, gpus) fills gpus (n_jobs, n_types)."""
RULE_TYPE = types.FunctionType(RULE)


@njit(types.float64(F3, types.int64, types.int64, types.float64), cache=True)
def speedup_at(table: Any, model: int, locality: int, gpus: float) -> float:
    """Speed over one GPU: linear between whole numbers of GPUs, flat beyond the table."""
    last = table.shape[2] - 1
    # The table may be narrower than what jobs are given: more GPUs bring nothing more.
    if gpus >= last:
        return float(table[model, locality, last])
    low = int(gpus)
    share = gpus - low
    # A whole number of GPUs is the last column of a table at times: there is no next one to mix with.
    if share <= 0.0:
        return float(table[model, locality, low])
    return float(table[model, locality, low] * (1.0 - share) + table[model, locality, low + 1] * share)


@njit(types.float64(VIEW, types.int64, types.float64), cache=True)
def speed_on(view: ElasticView, job: int, gpus: float) -> float:
    """Speed of a job on so many GPUs of the first type, on the fewest nodes, over one GPU."""
    return float(speedup_at(view.jobs.speedup, view.jobs.model[job], 0, min(gpus, view.most[job])))


@njit(types.float64(VIEW, types.int64, F1, types.float64, F2), cache=True)
def grant(view: ElasticView, job: int, free: Floats, wanted: float, gpus: Any) -> float:
    """Give a job up to `wanted` GPUs more out of those free by type, those on which it is fastest first; what it got.

    A job that would hold fewer than its least gets nothing.
    """
    # What earlier passes of the same rule gave counts towards the least.
    held = 0.0
    for kind in range(len(free)):
        held += gpus[job, kind]
    if held + min(wanted, free.sum()) < view.jobs.least[job] - tolerance.GPUS:
        return 0.0
    got = 0.0
    # One type needs no order; most clusters have no more.
    if len(free) == 1:
        got = min(wanted, float(free[0]))
        gpus[job, 0] += got
        free[0] -= got
        return got
    slowness = np.empty(len(free))
    for kind in range(len(free)):
        # Rounded, so that types of equal speed stay in their order on every machine.
        slowness[kind] = -rounded(view.jobs.speed[view.jobs.model[job], kind])
    for kind in np.argsort(slowness, kind="mergesort"):
        part = min(wanted - got, free[kind])
        if part > 0.0:
            gpus[job, kind] += part
            free[kind] -= part
            got += part
    return got
