"""Rounds for jobs: from how many to which ones, in few pieces. Compiled.

Importing numba takes a second, so only what computes imports this file.
"""

from typing import Any

import numba
import numpy as np
from numba import types

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.schedulers.shockwave.programme import Programme

njit: Any = numba.njit
_BOOLS, _BOOLS_2D = types.Array(types.bool_, 1, "C"), types.Array(types.bool_, 2, "C")
_INTS = types.Array(types.int64, 1, "C")
_FLOATS, _FLOATS_2D = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")


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
    useful = np.minimum(rounds, np.ceil(programme.cautious_s / programme.round_s - 1e-9).astype(np.int64) + 1)
    owed, fillers = counts.astype(np.int64), np.ascontiguousarray(fillers)
    runs: Bools = _filled(owed, urgency, fillers, hold, programme.running, useful, programme.widths, programme.gpus)
    return runs


@njit(_INTS(_INTS, _FLOATS), cache=True)
def _sorted_by(order: Ints, keys: Floats) -> Ints:
    """The same indexes by their keys, the smallest first; equal ones keep their order."""
    return order[np.argsort(keys[order], kind="mergesort")]


@njit(_INTS(_INTS, _INTS, _INTS, types.int64, types.int64), cache=True)
def _must(order: Ints, owed: Ints, widths: Ints, gpus: int, later: int) -> Ints:
    """Which jobs, of those in order, run now lest rounds owed do not fit into those that come later, (n,).

    Later rounds hold all that is owed only if for each k the rounds owed beyond the k-th of each job fit into all but k
    of them (Gale and Ryser): what does not must run now, first the jobs that are owed the most.
    """
    must = np.zeros(len(owed), dtype=np.int64)
    bound = 0  # GPUs of those that must run
    for level in range(later, -1, -1):
        # GPU-rounds that later rounds offer at this level, and what was forced already.
        lacking = -gpus * (later - level) - bound
        for job in order:
            lacking += widths[job] * max(0, owed[job] - level)
        for job in order:
            if lacking <= 0:
                break
            if owed[job] > level and must[job] == 0:
                must[job] = level + 1
                lacking -= widths[job]
                bound += widths[job]
    return must


@njit(types.int64(_INTS, _INTS, types.int64, _BOOLS), cache=True)
def _first_fit(order: Ints, widths: Ints, free: int, chosen: Bools) -> int:
    """Choose those that fit in order, some passed over; the GPUs that stay free."""
    for job in order:
        if widths[job] <= free:
            chosen[job] = True
            free -= widths[job]
    return free


@njit(_INTS(_FLOATS, _BOOLS, types.float64), cache=True)
def _by_urgency(urgency: Floats, running: Bools, hold: float) -> Ints:
    """Indexes, most urgent first; those that run count `hold` times, all before the others if it is infinite."""
    everybody = np.arange(len(urgency))
    if hold == np.inf:
        order: Ints = _sorted_by(_sorted_by(everybody, -urgency), (~running).astype(np.float64))
    else:
        order = _sorted_by(everybody, -urgency * np.where(running, hold, 1.0))
    return order


@njit(types.void(_FLOATS_2D, _INTS, _INTS, _INTS, types.int64, _BOOLS, _BOOLS), cache=True)
def _fill_up(
    fillers: Floats, given: Ints, useful: Ints, widths: Ints, free: int, running: Bools, chosen: Bools
) -> None:
    """Choose jobs beyond their counts for GPUs that stay idle, of those that have had `given` rounds."""
    spare = np.flatnonzero(~chosen & (given < useful))
    worth = np.zeros(len(given))
    for job in spare:
        worth[job] = fillers[job, given[job]]
    spare = _sorted_by(_sorted_by(spare, -worth), (~running).astype(np.float64))
    _first_fit(spare, widths, free, chosen)


@njit(_BOOLS_2D(_INTS, _FLOATS, _FLOATS_2D, types.float64, _BOOLS, _INTS, _INTS, types.int64), cache=True)
def _filled(
    owed: Ints, urgency: Floats, fillers: Floats, hold: float, running: Bools, useful: Ints, widths: Ints, gpus: int
) -> Bools:
    """A timetable; `owed`, rounds that each job is still to run, changes."""
    jobs, rounds = fillers.shape
    runs, given = np.zeros((jobs, rounds), dtype=np.bool_), np.zeros(jobs, dtype=np.int64)
    for column in range(rounds):
        order = _by_urgency(urgency, running, hold)
        # Who has had its rounds comes last, as a filler.
        order = order[owed[order] > 0]
        must = _must(order, owed, widths, gpus, rounds - column - 1)
        # Stable sorts, the least important key first: must, running, width, urgency.
        order = _sorted_by(order, (-widths * (must > 0)).astype(np.float64))
        order = _sorted_by(order, (~running).astype(np.float64))
        order = _sorted_by(order, -must.astype(np.float64))
        chosen = np.zeros(jobs, dtype=np.bool_)
        free = _first_fit(order, widths, gpus, chosen)
        if free:
            _fill_up(fillers, given, useful, widths, free, running, chosen)
        runs[:, column] = chosen
        given += chosen
        owed = np.maximum(0, owed - chosen)
        running = chosen
    return runs
