"""Demand: the GPUs that jobs would hold if each began as it is submitted."""

from heapq import heapify, heappop, heappush

import numpy as np

from jobcast.domain.arrays import Floats, Ints

RETRY_S = 900.0
"""Whoever found no room comes back after a quarter of an hour on average, and again."""


def peak_demand(submit_s: Floats, duration_s: Floats, gpus: Ints) -> int:
    """Most GPUs held at an instant; who ends as another begins has left.

    >>> peak_demand(np.array([0.0, 5.0, 10.0]), np.array([10.0, 10.0, 5.0]), np.array([2, 3, 1]))
    5
    """
    at_s, change = np.concatenate((submit_s, submit_s + duration_s)), np.concatenate((gpus, -gpus))
    return int(np.cumsum(change[np.lexsort((change, at_s))]).max(initial=0))


def put_off(submit_s: Floats, duration_s: Floats, gpus: Ints, room: int, rng: np.random.Generator) -> Floats:
    """Submissions, (n_jobs,) seconds, put off so that the demand stays within `room` GPUs, or the widest job.

    A queue with retrials: who fits comes, who does not tries again after exponential times of mean `RETRY_S`.

    >>> put_off(np.array([0.0, 1.0]), np.array([10.0, 5.0]), np.array([2, 1]), 3, np.random.default_rng(0))
    array([0., 1.])
    """
    free = max(room, int(gpus.max(initial=0)))
    moved_s = submit_s.copy()
    ends: list[tuple[float, int]] = []
    tries = [(at_s, job) for job, at_s in enumerate(submit_s.tolist())]
    heapify(tries)
    while tries:
        at_s, job = heappop(tries)
        while ends and ends[0][0] <= at_s:
            free += heappop(ends)[1]
        width = int(gpus[job])
        if width > free:
            heappush(tries, (at_s + rng.exponential(RETRY_S), job))
            continue
        free -= width
        moved_s[job] = at_s
        heappush(ends, (at_s + float(duration_s[job]), width))
    return moved_s
