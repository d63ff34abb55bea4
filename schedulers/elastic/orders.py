"""Rules that serve jobs one after another: each takes all that it can use of what those before it left."""

import numpy as np
from numba import types

from jobcast.domain.elastic import ElasticView, Floats
from jobcast.domain.elastic_kernels import EPSILON, FLOATS, FLOATS_2D, RULE, VIEW, grant, njit, speed_on


@njit(types.void(VIEW, FLOATS, FLOATS_2D), cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def _in_order(view: ElasticView, keys: Floats, gpus: Floats) -> None:
    """Serve the active jobs by their keys, smallest first, ties in order of submission."""
    free = view.capacity.copy()
    for i in np.argsort(keys, kind="mergesort"):
        if free.sum() <= EPSILON:
            return
        job = view.active[i]
        grant(view, job, free, view.most[job], gpus)


@njit(RULE, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def fifo(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """In order of submission. No later job can delay an earlier one, so its forecasts are exact. PCS, section 2.2."""
    free = view.capacity.copy()
    for i in range(view.count):
        if free.sum() <= EPSILON:
            return
        grant(view, view.active[i], free, view.most[view.active[i]], gpus)


@njit(RULE, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def srsf(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """Shortest remaining service first: GPUs x time left on the most GPUs. PCS, section 5.1 (Tiresias)."""
    keys = np.empty(view.count)
    for i in range(view.count):
        job = view.active[i]
        keys[i] = view.most[job] * view.left_s[job] / speed_on(view, job, view.most[job])
    _in_order(view, keys, gpus)


@njit(RULE, cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def las(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """Least attained service first: GPU-seconds held so far; ties in order of submission. Tiresias, section 3."""
    keys = np.empty(view.count)
    for i in range(view.count):
        keys[i] = view.held_gpu_s[view.active[i]]
    _in_order(view, keys, gpus)
