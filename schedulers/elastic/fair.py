"""Max-min fairness over jobs: equal shares, and what some cannot use goes to the others in equal shares again."""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.elastic import ElasticView, Floats
from jobcast.domain.elastic_kernels import FLOATS, RULE, grant, njit, types


@njit(types.float64(FLOATS, FLOATS, types.float64), cache=True)
def level(least: Floats, most: Floats, gpus: float) -> float:
    """The share of a job bound by neither its least nor its most, so that all shares add up to `gpus`.

    With such a level L a job holds min(max(L, least), most). `gpus` lies between the sums of `least` and of `most`.
    """
    steps = np.sort(np.concatenate((least, most)))
    used, low = least.sum(), steps[0]
    for high in steps[1:]:
        rising = 0
        for i in range(len(least)):
            if least[i] <= low and most[i] >= high and most[i] > least[i]:
                rising += 1
        if rising > 0 and used + rising * (high - low) >= gpus:
            return float(low + max(gpus - used, 0.0) / rising)
        used += rising * (high - low)
        low = high
    return float(low)


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
    needed, usable = 0.0, 0.0
    for i in range(view.count):
        job = view.active[i]
        if needed + view.jobs.least[job] <= total + tolerance.GPUS:
            jobs[admitted], least[admitted] = job, view.jobs.least[job]
            most[admitted] = max(view.most[job], view.jobs.least[job])
            needed, usable = needed + least[admitted], usable + most[admitted]
            admitted += 1
    if admitted == 0:
        return
    least, most = least[:admitted].copy(), most[:admitted].copy()
    height = np.inf if usable <= total else level(least, most, total)
    spare = 0.0
    if numbers[0] > 0.0 and height < np.inf:
        height = np.floor(height + tolerance.GPUS)
        spare = total - np.minimum(np.maximum(height, least), most).sum()
    for i in range(admitted):
        wanted = min(max(height, least[i]), most[i])
        if spare >= 1.0 - tolerance.GPUS and least[i] <= height and most[i] >= height + 1.0:
            wanted += 1.0
            spare -= 1.0
        grant(view, jobs[i], free, wanted, gpus)
