"""When jobs would have started without sharing: each pool's own first come, first served. SIA, section 4.1."""

from heapq import heappop, heappush

import numpy as np

from jobcast.domain import tolerance
from jobcast.simulator.log import Floats, Ints


def fcfs_starts_s(submit_s: Floats, gpus: Ints, duration_s: Floats, quota: int) -> Floats:
    """Starts of one pool's jobs on its quota alone, the head blocking the rest; infinite from one too wide on.

    Parameters
    ----------
    submit_s, gpus, duration_s : (n_jobs,) in order of submission
    quota : GPUs of the pool

    Examples
    --------
    >>> fcfs_starts_s(np.array([0.0, 0.0, 1.0]), np.array([2, 3, 1]), np.array([5.0, 5.0, 5.0]), 4).tolist()
    [0.0, 5.0, 5.0]
    """
    starts_s: Floats = np.full(len(submit_s), np.inf)
    ends: list[tuple[float, int]] = []
    free, now_s = float(quota), -np.inf
    for index, (at_s, width, run_s) in enumerate(
        zip(submit_s.tolist(), gpus.tolist(), duration_s.tolist(), strict=True)
    ):
        now_s = max(now_s, at_s)
        while ends and (ends[0][0] <= now_s or width > free + tolerance.GPUS):
            end_s, released = heappop(ends)
            now_s, free = max(now_s, end_s), free + released
        if width > free + tolerance.GPUS:
            break
        starts_s[index] = now_s
        free -= width
        heappush(ends, (now_s + run_s, width))
    return starts_s
