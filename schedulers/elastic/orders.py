"""Rules that serve jobs one after another: each takes all that it can use of what those before it left.

Beside them max-min fairness: equal shares, and what some cannot use goes to the others in equal shares again. Themis:
those whom sharing has delayed most take GPUs first, until the next lease. PCS, section 5.1; Themis, 5.
"""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F2, I1, njit, types
from jobcast.domain.elastic import ElasticView
from jobcast.domain.elastic_kernels import RULE, VIEW, grant, speed_on
from jobcast.domain.rounding_kernels import rounded


@njit(types.float64(F1, F1, types.float64), cache=True)
def level(least: Floats, most: Floats, gpus: float) -> float:
    """The share of a job bound by neither its least nor its most, so that all shares add up to `gpus`.

    With such a level L a job holds min(max(L, least), most). `gpus` is at least the sum of `least`; where it is more
    than that of `most`, the level is the highest of these, and everybody holds its most.
    """
    steps = np.sort(np.concatenate((least, most)))
    # From each step on grows who is past its least and not at its most.
    past = np.searchsorted(np.sort(least), steps, side="right")
    growing = past - np.searchsorted(np.sort(most), steps, side="right")
    # GPUs held at each step: linear in between, so that interpolation is exact.
    held = np.empty(len(steps))
    held[0] = least.sum()
    for k in range(1, len(steps)):
        held[k] = held[k - 1] + growing[k - 1] * (steps[k] - steps[k - 1])
    return float(np.interp(gpus, held, steps))


@njit(RULE, cache=True)
def fair(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """The same number of GPUs for every job, none more than it can use; with numbers[0] whole GPUs only.

    Jobs are admitted in order of submission while the least of them all fits. Of whole GPUs, those that are left over
    when the level is rounded down go one by one to the jobs at that level, in order of submission.
    """
    free = view.capacity.copy()
    total, admitted = free.sum(), 0
    jobs = np.empty(view.count, dtype=np.int64)
    least, most = np.empty(view.count), np.empty(view.count)
    needed = 0.0
    for i in range(view.count):
        job = view.active[i]
        # Nobody shrinks below its least, so that a late job with a large one may be left out.
        if needed + view.jobs.least[job] <= total + tolerance.GPUS:
            jobs[admitted], least[admitted] = job, view.jobs.least[job]
            most[admitted] = max(view.most[job], view.jobs.least[job])
            needed += least[admitted]
            admitted += 1
    if admitted == 0:
        return
    least, most = least[:admitted].copy(), most[:admitted].copy()
    height = level(least, most, total)
    spare = 0.0
    if numbers[0] > 0.0:
        # Rounded down, so that all fit; what is left goes out one by one.
        height = np.floor(height)
        spare = total - np.minimum(np.maximum(height, least), most).sum()
    for i in range(admitted):
        wanted = min(max(height, least[i]), most[i])
        if spare >= 1.0 - tolerance.GPUS and least[i] <= height and most[i] >= height + 1.0:
            wanted += 1.0
            spare -= 1.0
        grant(view, jobs[i], free, wanted, gpus)


@njit(types.float64(VIEW, types.int64, types.float64, types.boolean), cache=True)
def _rho(view: ElasticView, job: int, free: float, scaled: bool) -> float:
    """Time that a job takes if it gets what is free, over the time that its share of the cluster would have taken.

    Its share is that of as many jobs as it has met on average, over events. On g GPUs it is held to be g times as fast
    as on one, whatever its speedup, unless `scaled`.
    """
    share = min(view.capacity.sum() / view.contention[job], view.jobs.most[job])
    speed = min(free, view.most[job])
    if scaled:
        share, speed = speed_on(view, job, share), speed_on(view, job, speed)
    shared_s = view.now_s - view.jobs.submit_s[job] + view.left_s[job] / speed
    return float(rounded(shared_s / (view.jobs.size_s[job] / share)))


@njit(types.void(I1, F1, types.int64), cache=True)
def _settle(order: Ints, rho: Floats, begin: int) -> None:
    """Sort what is nearly sorted, order[begin:] by `rho`, highest first; equal ones stay as they are."""
    for i in range(begin, len(order)):
        job, k = order[i], i
        while k > begin and rho[order[k - 1]] < rho[job]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = job


@njit(RULE, cache=True)
def themis(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """The job of the highest rho takes all that it can use, then the highest of what is left of the others, and so on.

    rho depends on what is left as soon as that is less than a job can use. Equal ones stay as they were sorted before,
    at first in order of submission. Whole GPUs. With numbers[0] rho knows how jobs speed up.
    """
    scaled = numbers[0] > 0.0
    free = view.capacity.copy()
    left, usable = free.sum(), view.most[view.active[: view.count]]
    # Everybody gets all that it can use, in whatever order.
    if usable.sum() <= left:
        for i in range(view.count):
            grant(view, view.active[i], free, view.most[view.active[i]], gpus)
        return
    rho = np.empty(view.count)
    for i in range(view.count):
        rho[i] = _rho(view, view.active[i], left, scaled)
    order, widest = np.argsort(-rho, kind="mergesort"), usable.max()
    for k in range(view.count):
        # Only now does somebody get less than it can use, and its rho with it.
        if left < widest:
            for i in order[k:]:
                if view.most[view.active[i]] > left:
                    rho[i] = _rho(view, view.active[i], left, scaled)
            _settle(order, rho, k)
        job = view.active[order[k]]
        left -= grant(view, job, free, view.most[job], gpus)
        if left <= tolerance.GPUS:
            return


# Attained service that counts as equal, GPU-seconds: less than any event is apart, more than sums round off.
SAME_GPU_S = 1e-3


@njit(types.void(VIEW, F1, F2), cache=True)
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
