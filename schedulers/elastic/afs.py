"""AFS-L: GPUs dealt out one by one, each to the winner of a tournament of pairs. PCS, section 5.1; AFS, algorithm 1."""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.compiled import F1, njit, types
from jobcast.domain.elastic import ElasticView
from jobcast.domain.elastic_kernels import RULE, VIEW, grant, speed_on
from jobcast.domain.rounding_kernels import rounded


@njit(types.float64(VIEW, types.int64, types.float64), cache=True)
def _step(view: ElasticView, job: int, held: float) -> float:
    """GPUs that a job takes when it wins: one, its least when it holds none, and never more than it can use."""
    return float(min(max(1.0, view.jobs.least[job] - held), view.most[job] - held))


@njit(types.boolean(F1, F1, F1, F1, F1, types.int64, types.int64), cache=True)
def _beats(held: Floats, left_s: Floats, first: Floats, gain: Floats, loss: Floats, one: int, other: int) -> bool:
    """Whether `other`, submitted later, wins against `one`.

    Of the two, l would end sooner as they stand. If neither holds anything, the one with the larger rate on its first
    GPUs wins, at equal rates `other`. Else l wins if what it gains by one GPU more, over its speed now, exceeds what h
    would gain, over its speed then. Where both would end at once, l is `one`.
    """
    if left_s[other] < left_s[one]:
        return bool(gain[other] > loss[one])
    if held[one] <= 0.0:
        return bool(first[one] <= first[other])
    return not gain[one] > loss[other]


@njit(types.void(VIEW, types.int64, F1, F1, F1, F1), cache=True)
def _weigh(view: ElasticView, i: int, held: Floats, left_s: Floats, gain: Floats, loss: Floats) -> None:
    """What a comparison needs of the i-th active job as it stands; a job without GPUs never ends."""
    job = view.active[i]
    if held[i] <= 0.0:
        left_s[i], gain[i], loss[i] = np.inf, np.inf, 1.0
        return
    speed = speed_on(view, job, held[i])
    more = speed_on(view, job, held[i] + _step(view, job, held[i]))
    left_s[i] = rounded(view.left_s[job] / speed)
    gain[i] = rounded((more - speed) / speed)
    loss[i] = rounded((more - speed) / more)


@njit(types.float64(VIEW, F1, F1, types.float64), cache=True)
def _first_round(view: ElasticView, first: Floats, held: Floats, free: float) -> float:
    """Serve jobs without GPUs by their rates on their first ones, at equal rates the later one; GPUs left over.

    While such jobs are left, the tournament comes to the same if no second GPU doubles a job's speed: a job without
    GPUs then wins against every other, and among themselves the larger rate wins.
    """
    # Ascending and stable, gone through from the back: of equal rates the later job wins.
    order = np.argsort(first, kind="mergesort")
    for k in range(view.count - 1, -1, -1):
        i = order[k]
        step = _step(view, view.active[i], 0.0)
        if step <= free + tolerance.GPUS:
            held[i] = step
            free -= step
        if free <= tolerance.GPUS:
            break
    return free


@njit(types.void(VIEW, F1, F1, types.float64), cache=True)
def _tournaments(view: ElasticView, first: Floats, held: Floats, free: float) -> None:
    """Deal out the rest, one tournament for each step.

    Jobs meet in order of submission, the winner of each pair the next job. `winners` keeps how it stood after each of
    them: from one tournament to the next nothing changes before the position of the job that won.
    """
    count = 0
    members = np.empty(view.count, dtype=np.int64)
    left_s, gain, loss = np.empty(view.count), np.empty(view.count), np.empty(view.count)
    for i in range(view.count):
        if _step(view, view.active[i], held[i]) > tolerance.GPUS:
            _weigh(view, i, held, left_s, gain, loss)
            members[count] = i
            count += 1
    winners = np.empty(count, dtype=np.int64)
    # Each tournament goes on from where the last winner stood, which saves most comparisons.
    begin = 0
    while count > 0 and free > tolerance.GPUS:
        for place in range(begin, count):
            if place == 0 or _beats(held, left_s, first, gain, loss, members[winners[place - 1]], members[place]):
                winners[place] = place
            else:
                winners[place] = winners[place - 1]
        begin = winners[count - 1]
        i = members[begin]
        step = _step(view, view.active[i], held[i])
        # Its least does not fit any more, and free GPUs only shrink.
        leaves = step > free + tolerance.GPUS
        if not leaves:
            held[i] += step
            free -= step
            leaves = _step(view, view.active[i], held[i]) <= tolerance.GPUS
        if leaves:
            count -= 1
            members[begin:count] = members[begin + 1 : count + 1].copy()
        else:
            _weigh(view, i, held, left_s, gain, loss)


@njit(RULE, cache=True)
def afs(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """GPUs one by one from none, each to the winner among the jobs that can use more; see `_beats` for a pair.

    Jobs meet in order of submission, the winner of a pair the next one. The comparison is not transitive, so this
    order matters. A job whose least no longer fits takes no further part. Whole GPUs.
    """
    held, first, most, doubles = np.zeros(view.count), np.empty(view.count), np.empty(view.count), False
    for i in range(view.count):
        job = view.active[i]
        step = _step(view, job, 0.0)
        speed = speed_on(view, job, step)
        first[i] = rounded(speed / view.left_s[job])
        # A second GPU that more than doubles the speed may beat a first one: then no shortcut.
        doubles |= rounded(speed_on(view, job, step + _step(view, job, step))) > 2.0 * rounded(speed)
        most[i] = view.most[job]
    free = view.capacity.copy()
    total = free.sum()
    if most.sum() > total:
        left = total if doubles else _first_round(view, first, held, total)
        _tournaments(view, first, held, left)
    else:
        held = most
    for i in range(view.count):
        grant(view, view.active[i], free, held[i], gpus)
