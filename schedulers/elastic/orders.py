"""Rules that serve jobs one after another: each takes all that it can use of what those before it left."""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.elastic import ElasticView, Floats
from jobcast.domain.elastic_kernels import FLOATS, FLOATS_2D, RULE, VIEW, grant, njit, speed_on, types
from jobcast.domain.rounding_kernels import rounded

SAME_GPU_S = 1e-3
"""Attained service that counts as equal, GPU-seconds: less than any event is apart, more than sums round off."""


@njit(types.void(VIEW, FLOATS, FLOATS_2D), cache=True)
def _in_order(view: ElasticView, keys: Floats, gpus: Floats) -> None:
    """Serve the active jobs by their keys, smallest first, ties in order of submission."""
    free = view.capacity.copy()
    for i in np.argsort(keys, kind="mergesort"):
        if free.sum() <= tolerance.GPUS:
            return
        job = view.active[i]
        grant(view, job, free, view.most[job], gpus)


@njit(RULE, cache=True)
def fifo(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """In order of submission. No later job can delay an earlier one, so its forecasts are exact. PCS, section 2.2."""
    free = view.capacity.copy()
    for i in range(view.count):
        if free.sum() <= tolerance.GPUS:
            return
        grant(view, view.active[i], free, view.most[view.active[i]], gpus)


@njit(RULE, cache=True)
def srsf(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """Shortest remaining service first: GPUs x time left on the most GPUs. PCS, section 5.1 (Tiresias)."""
    keys = np.empty(view.count)
    for i in range(view.count):
        job = view.active[i]
        keys[i] = rounded(view.most[job] * view.left_s[job] / speed_on(view, job, view.most[job]))
    _in_order(view, keys, gpus)


@njit(RULE, cache=True)
def las(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """Least attained service first: GPU-seconds held so far, to the millisecond. Tiresias, section 3.

    Ties, such as of jobs that have waited since they came, go in order of submission.
    """
    keys = np.empty(view.count)
    for i in range(view.count):
        keys[i] = np.rint(view.held_gpu_s[view.active[i]] / SAME_GPU_S)
    _in_order(view, keys, gpus)
