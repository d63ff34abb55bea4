"""Rounds for jobs: from how many to which ones, in few pieces."""

import numpy as np

from jobcast.schedulers.shockwave.programme import Programme
from jobcast.schedulers.shockwave.work import Bools, Floats, Ints


def timetable(programme: Programme, counts: Ints, urgency: Floats, fillers: Floats, hold: float) -> Bools:
    """Which job runs in which round, (n, rounds), if each is to run so many.

    In each round, first those without which the rounds owed would not fit into the rest of the window, then those that
    run on, then the most urgent; each as far as it fits. GPUs that stay idle go to jobs beyond their counts, those that
    run on first, then the best filler.

    Parameters
    ----------
    programme : jobs, widths, capacity
    counts : (n,) rounds that each job is to run
    urgency : (n,) who starts first
    fillers : (n, rounds) what each further round is worth, a GPU
    hold : how many times as urgent as a job that runs another must be to be served before it where not all can wait
    """
    rounds = programme.rounds
    runs = np.zeros((programme.jobs, rounds), dtype=np.bool_)
    owed, running = counts.astype(np.int64), programme.running
    useful = np.minimum(rounds, np.ceil(programme.cautious_s / programme.round_s).astype(np.int64) + 1)
    for column in range(rounds):
        order = _by_urgency(urgency, running, hold)
        order = order[owed[order] > 0]
        must = _must(order, owed, programme.widths, programme.gpus, rounds - column - 1)
        order = order[np.lexsort((-programme.widths[order] * (must > 0), ~running[order], -must))]
        chosen, free = _first_fit(order, programme.widths, programme.gpus)
        if free > 0:
            given = runs.sum(axis=1)
            given[chosen] = useful[chosen]
            spare = np.flatnonzero(given < useful)
            worth = fillers[spare, given[spare]]
            chosen += _first_fit(spare[np.lexsort((-worth, ~running[spare]))], programme.widths, free)[0]
        runs[chosen, column] = True
        owed[chosen] = np.maximum(0, owed[chosen] - 1)
        running = runs[:, column]
    return runs


def _by_urgency(urgency: Floats, running: Bools, hold: float) -> Ints:
    """Indexes, most urgent first; those that run count `hold` times, all before the others if it is infinite."""
    if hold == np.inf:
        return np.lexsort((-urgency, ~running))
    return np.argsort(-urgency * np.where(running, hold, 1.0), kind="stable")


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


def _must(order: Ints, owed: Ints, widths: Ints, gpus: int, later: int) -> Ints:
    """Which jobs, of those in order, run now lest rounds owed do not fit into those that come later, (m,).

    Later rounds hold all that is owed only if for each k the rounds owed beyond the k-th of each job fit into all but k
    of them (Gale and Ryser): what does not must run now, first the jobs that are owed the most.
    """
    owes, wide = owed[order], widths[order]
    must = np.zeros(len(order), dtype=np.int64)
    for level in range(later, -1, -1):
        deep = owes > level
        lacking = int((wide * np.maximum(0, owes - level)).sum()) - gpus * (later - level)
        lacking -= int(wide[must > 0].sum())
        if lacking <= 0:
            continue
        rest = np.flatnonzero(deep & (must == 0))
        before = np.cumsum(wide[rest]) - wide[rest]
        must[rest[before < lacking]] = level + 1
    return must
