"""Rounds for jobs: from how many to which ones, in few pieces."""

import numpy as np

from jobcast.schedulers.shockwave.programme import Programme
from jobcast.schedulers.shockwave.work import Bools, Floats, Ints


def timetable(programme: Programme, counts: Ints, urgency: Floats, fillers: Floats, boost: float = 1e9) -> Bools:
    """Which job runs in which round, (n, rounds), if each is to run so many.

    In each round, first those that would miss one of their rounds by waiting, then those that run on, then the most
    urgent; each as far as it fits. GPUs that stay idle go to jobs beyond their counts, best filler first.

    Parameters
    ----------
    programme : jobs, widths, capacity
    counts : (n,) rounds that each job is to run
    urgency : (n,) who starts first
    fillers : (n, rounds) what each further round is worth, a GPU
    """
    rounds = programme.rounds
    runs = np.zeros((programme.jobs, rounds), dtype=np.bool_)
    owed, running = counts.astype(np.int64).copy(), programme.running
    needed = np.ceil(programme.work.left_s / programme.round_s).astype(np.int64)
    for column in range(rounds):
        due = owed >= rounds - column
        wanted = np.flatnonzero(owed > 0)
        order = wanted[np.lexsort((-(urgency * np.where(running, boost, 1.0))[wanted], ~due[wanted]))]
        chosen, free = _first_fit(order, programme.widths, programme.gpus)
        if free > 0:
            given = runs.sum(axis=1)
            spare = np.flatnonzero((owed == 0) & (given < np.minimum(needed + 1, rounds)))
            worth = fillers[spare, given[spare]]
            extra, free = _first_fit(spare[np.lexsort((-worth, ~running[spare]))], programme.widths, free)
            chosen += extra
        runs[chosen, column] = True
        owed[chosen] = np.maximum(0, owed[chosen] - 1)
        running = runs[:, column]
    return runs


def _first_fit(order: Ints, widths: Ints, free: int) -> tuple[list[int], int]:
    """Those that fit in order, some passed over, and the GPUs that stay free."""
    chosen = []
    for index, width in zip(order.tolist(), widths[order].tolist(), strict=True):
        if free == 0:
            break
        if width <= free:
            chosen.append(index)
            free -= width
    return chosen, free
