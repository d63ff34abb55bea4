"""Themis: those whom sharing has delayed most take GPUs first, until the next lease. PCS, section 5.1; Themis, 5."""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.elastic import ElasticView, Floats, Ints
from jobcast.domain.elastic_kernels import FLOATS, INTS, RULE, VIEW, grant, njit, types
from jobcast.domain.rounding_kernels import rounded


@njit(types.float64(VIEW, types.int64, types.float64), cache=True)
def _rho(view: ElasticView, job: int, free: float) -> float:
    """Time that a job takes if it gets what is free, over the time that its share of the cluster would have taken.

    Its share is that of as many jobs as it has met on average, over events. On g GPUs it is held to be g times as fast
    as on one, whatever its speedup.
    """
    share = min(view.capacity.sum() / view.contention[job], view.jobs.most[job])
    shared_s = view.now_s - view.jobs.submit_s[job] + view.left_s[job] / min(free, view.most[job])
    return float(rounded(shared_s / (view.jobs.size_s[job] / share)))


@njit(types.void(INTS, FLOATS, types.int64), cache=True)
def _settle(order: Ints, rho: Floats, begin: int) -> None:
    """Sort what is nearly sorted, order[begin:] by `rho`, highest first; equal ones stay as they are."""
    for i in range(begin + 1, len(order)):
        job, k = order[i], i
        while k > begin and rho[order[k - 1]] < rho[job]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = job


@njit(RULE, cache=True)
def themis(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """The job of the highest rho takes all that it can use, then the highest of what is left of the others, and so on.

    rho depends on what is left as soon as that is less than a job can use. Equal ones stay as they were sorted before,
    at first in order of submission. Whole GPUs.
    """
    free = view.capacity.copy()
    left, usable, widest = free.sum(), 0.0, 0.0
    for i in range(view.count):
        usable += view.most[view.active[i]]
        widest = max(widest, view.most[view.active[i]])
    if usable <= left:
        for i in range(view.count):
            grant(view, view.active[i], free, view.most[view.active[i]], gpus)
        return
    rho = np.empty(view.count)
    for i in range(view.count):
        rho[i] = _rho(view, view.active[i], left)
    order = np.argsort(-rho, kind="mergesort")
    for k in range(view.count):
        if left < widest:
            for i in order[k:]:
                if view.most[view.active[i]] > left:
                    rho[i] = _rho(view, view.active[i], left)
            _settle(order, rho, k)
        job = view.active[order[k]]
        left -= grant(view, job, free, view.most[job], gpus)
        if left <= tolerance.GPUS:
            return
