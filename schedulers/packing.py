"""Gangs that fit on a cluster together: in an order, or of the greatest value."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.jobs import Job


def first_fit(ordered: Iterable[Job], free_gpus: int) -> list[Job]:
    """Jobs in order, those left out that do not fit beside the ones before.

    What is left out is wider than what stays free, so that no GPU idles that a job could use.

    >>> jobs = [Job(seq, str(seq), "p", 0.0, gpus) for seq, gpus in enumerate([4, 8, 2])]
    >>> [job.seq for job in first_fit(jobs, 8)]
    [0, 2]
    """
    chosen = []
    for job in ordered:
        # Widths are at least 1, so that nobody behind can fit either.
        if free_gpus <= 0:
            break
        if job.gpus <= free_gpus:
            chosen.append(job)
            free_gpus -= job.gpus
    return chosen


def most_valuable(values: Sequence[float], widths: Sequence[int], free_gpus: int) -> list[int]:
    """Indexes of the set of the greatest sum of values that fits, ascending: a 0/1 knapsack, solved exactly.

    Parameters
    ----------
    values : (n,) at least 0
    widths : (n,) GPUs, at least 1
    free_gpus : what fits

    Notes
    -----
    Dynamic programming over GPUs, n x free_gpus steps. Of equal sets one with earlier items is taken.

    >>> most_valuable([3.0, 2.0, 2.0], [3, 2, 2], 4)
    [1, 2]
    """
    best: NDArray[np.float64] = np.zeros(free_gpus + 1)
    taken = np.zeros((len(values), free_gpus + 1), dtype=np.bool_)
    for index, (value, width) in enumerate(zip(values, widths, strict=True)):
        if width > free_gpus:
            continue
        # From the row before: each item is taken once at most.
        with_it = best[:-width] + value
        # Strictly greater: of equal sets the one with earlier items stays.
        taken[index, width:] = with_it > best[width:]
        best[width:] = np.maximum(best[width:], with_it)
    return _trace_back(taken, widths, free_gpus)


def _trace_back(taken: NDArray[np.bool_], widths: Sequence[int], free_gpus: int) -> list[int]:
    chosen = []
    for index in range(len(widths) - 1, -1, -1):
        if taken[index, free_gpus]:
            chosen.append(index)
            free_gpus -= widths[index]
    return chosen[::-1]
