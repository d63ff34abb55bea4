"""The latest completion that PCS can promise, whatever arrives later. PCS, section 3.1; derived in docs/pcs-bound.md.

Nobody gets in before a job in its own queue, and other queues can take no more than their weights from it. So the jobs
ahead, and what they can hold of the queue's guaranteed share, bound it.
"""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.compiled import F1, njit, types
from jobcast.domain.elastic import ElasticView, Promises
from jobcast.domain.elastic_kernels import VIEW, speedup_at
from jobcast.schedulers.elastic.wfq import HEAD, demand_cap, joined, of_turn, queue_at, turn_at, turn_of

PROMISED, NO_SHARE, NARROW_SHARE, CAPPED, STALLED, BLOCKED, EARLIER = range(7)
REASONS = (
    "",
    "its queue's weight guarantees no GPU (with whole GPUs: not a whole one)",
    "its queue's weight guarantees fewer GPUs than it needs at least",
    "the cap on its demand may leave it fewer GPUs than it needs at least",
    "preempt_s: with several queues, caps or types of GPUs every arrival may stop it again",
    "jobs ahead of it in its queue may wait for ever, and hold what it needs",
    "jobs of an earlier configuration, which go first, may wait for ever",
)
"""Why there is no promise, by status."""
ROUNDING = 1e-6
"""Share by which a bound is raised, for what sums of floats and dust of GPUs leave."""
BOUND = types.int64(VIEW, F1, types.int64, types.float64, types.boolean, F1)


@njit(types.float64(F1, F1, types.int64), cache=True)
def guaranteed_gpus(numbers: Floats, capacity: Floats, queue: int) -> float:
    """GPUs of all types that a queue is given whenever it wants as many, whoever else is there."""
    queues, gpus = int(numbers[0]), 0.0
    for kind in range(len(capacity)):
        first = HEAD + queues * (1 + kind)
        part = capacity[kind] * numbers[first + queue] / numbers[first : first + queues].sum()
        # Largest remainders may go to the others.
        gpus += np.floor(part + tolerance.GPUS) if numbers[3] > 0.0 else part
    return float(gpus)


@njit(types.float64(VIEW, types.int64, types.boolean, types.float64), cache=True)
def _slowest(view: ElasticView, job: int, spread: bool, gpus: float) -> float:
    """Work a second on so many GPUs of the slowest type, wherever they lie."""
    speed, model = np.inf, view.jobs.model[job]
    for kind in range(len(view.capacity)):
        if view.capacity[kind] > 0.0:
            speed = min(speed, view.jobs.speed[model, kind])
    up = speedup_at(view.jobs.speedup, model, 0, gpus)
    if spread:
        up = min(up, speedup_at(view.jobs.speedup, model, 1, gpus))
    return float(up * speed)


@njit(types.float64(VIEW, types.int64, types.boolean, types.float64, types.float64), cache=True)
def _slowest_from(view: ElasticView, job: int, spread: bool, least: float, most: float) -> float:
    """Work a second on `least` GPUs or any number up to `most`: more may be slower."""
    slowest = min(_slowest(view, job, spread, least), _slowest(view, job, spread, most))
    for gpus in range(int(least) + 1, int(most) + 1):
        slowest = min(slowest, _slowest(view, job, spread, float(gpus)))
    return float(slowest)


@njit(types.float64(VIEW, types.int64, types.boolean, types.float64, types.float64, types.float64), cache=True)
def _price(view: ElasticView, job: int, spread: bool, most: float, full: float, share: float) -> float:
    """Seconds that a unit of work may cost those behind: the highest c(g) / speed(g), 0 < g <= `most`.

    c(g), how much of a second on g GPUs is lost to them, is 1 from `full` GPUs on, else min(g, share) / share. Both are
    linear between the numbers that are tried, so that their ratio is highest at one of these.
    """
    dearest = 0.0
    # Beside whole numbers, the three where c bends or the range ends.
    bends = np.array([min(share, most), min(full, most), most])
    for gpus in np.concatenate((np.arange(1.0, int(most) + 1.0), bends)):
        lost = 1.0 if gpus >= full - tolerance.GPUS else min(gpus, share) / share
        speed = _slowest(view, job, spread, gpus)
        dearest = max(dearest, lost / speed if speed > 0.0 else np.inf)
    return float(dearest)


@njit(types.float64(VIEW, types.int64, types.int64), cache=True)
def _left_in(view: ElasticView, job: int, stage: int) -> float:
    """Work left of a stage, as declared: 0 where it is over."""
    jobs = view.jobs
    whole_s = max(jobs.size_s[job], view.left_s[job])
    done_s = whole_s - view.left_s[job]
    begin = jobs.stage_end[stage - 1] if stage > jobs.stage_of[job] else 0.0
    return float(max(jobs.stage_end[stage] * whole_s - max(done_s, begin * whole_s), 0.0))


@njit(types.float64(VIEW, types.int64, types.int64, F1), cache=True)
def _cap(view: ElasticView, job: int, stage: int, numbers: Floats) -> float:
    """GPUs that a job in a stage asks its queue for, before any relaxation."""
    cap = demand_cap(view.jobs, view.jobs.model[job], numbers[1], numbers[4] > 0.0) if numbers[1] > 0.0 else np.inf
    return float(min(view.jobs.stage_most[stage], cap))


@njit(types.float64(VIEW, types.int64, types.boolean, F1, types.float64, F1, F1), cache=True)
def _by_ends(
    view: ElasticView, job: int, spread: bool, numbers: Floats, share: float, ends_s: Floats, widths: Floats
) -> float:
    """A bound by when those ahead have ended, and left what they can hold at most: seconds from now, or infinite.

    ends_s, widths : (n_ahead,) bounds of theirs, and most GPUs
    """
    jobs, order = view.jobs, np.argsort(ends_s, kind="mergesort")
    now_s, blocked, over = 0.0, widths.sum(), 0
    for stage in range(jobs.stage_of[job], jobs.stage_of[job + 1]):
        left_s = _left_in(view, job, stage)
        while left_s > 0.0:
            gpus = min(_cap(view, job, stage, numbers), share - blocked)
            rate = 0.0
            if gpus > tolerance.QUEUE_GPUS and gpus >= jobs.least[job] - tolerance.GPUS:
                rate = _slowest_from(view, job, spread, gpus, jobs.stage_most[stage])
            until_s = ends_s[order[over]] if over < len(order) else np.inf
            if rate > 0.0 and now_s + left_s / rate <= until_s:
                now_s, left_s = now_s + left_s / rate, 0.0
            elif until_s == np.inf:
                return float(np.inf)
            else:
                left_s -= rate * (until_s - now_s)
                now_s, blocked, over = until_s, blocked - widths[order[over]], over + 1
    return float(now_s)


@njit(types.float64(VIEW, types.int64, types.boolean, F1, types.float64, types.boolean), cache=True)
def _by_work(view: ElasticView, job: int, spread: bool, numbers: Floats, share: float, own: bool) -> float:
    """Seconds that a job may cost those behind it; where `own`, itself, which loses all of those on its cap or more."""
    jobs, seconds = view.jobs, 0.0
    for stage in range(jobs.stage_of[job], jobs.stage_of[job + 1]):
        full = _cap(view, job, stage, numbers) if own else np.inf
        left_s = _left_in(view, job, stage)
        if left_s > 0.0:
            seconds += left_s * _price(view, job, spread, jobs.stage_most[stage], full, share)
    return float(seconds)


@njit(types.int64(VIEW, F1, types.int64, types.float64, types.float64), cache=True)
def _refusal(view: ElasticView, numbers: Floats, job: int, preempt_s: float, share: float) -> int:
    """Why a job cannot be promised anything, whoever is ahead of it; `PROMISED` where it can."""
    least = view.jobs.least[job]
    if preempt_s > 0.0 and (numbers[0] > 1.0 or numbers[1] > 0.0 or len(view.capacity) > 1):
        return STALLED
    if share <= tolerance.QUEUE_GPUS:
        return NO_SHARE
    if share < least - tolerance.GPUS:
        return NARROW_SHARE
    for stage in range(view.jobs.stage_of[job], view.jobs.stage_of[job + 1]):
        cap = _cap(view, job, stage, numbers)
        if _left_in(view, job, stage) > 0.0 and (cap <= 0.0 or cap < least - tolerance.GPUS):
            return CAPPED
    return PROMISED


@njit(BOUND, cache=True)
def within_one(
    view: ElasticView, numbers: Floats, position: int, preempt_s: float, spread: bool, told_s: Floats
) -> int:
    """`worst_case` under a single configuration. `told_s`: (2,), the second for the latest of those up to the one asked

    Two bounds are taken together, for each job of the queue in order of submission up to the one asked: by the work
    ahead of it, and by the ends of those ahead. See docs/pcs-bound.md for both, and for what they take for granted.
    """
    told_s[:] = np.inf
    asked, jobs = view.active[position], view.jobs
    queue, unit = queue_at(numbers, jobs.size_s[asked]), 1.0 if numbers[3] > 0.0 else 0.0
    share = guaranteed_gpus(numbers, view.capacity, queue)
    status: int = _refusal(view, numbers, asked, preempt_s, share)
    if status != PROMISED:
        return status
    ends_s, widths = np.zeros(position + 1), np.zeros(position + 1)
    count, ahead_s, changes = 0, 0.0, 0
    for i in range(position + 1):
        job = view.active[i]
        if queue_at(numbers, jobs.size_s[job]) != queue:
            continue
        end_s, widths[count] = np.inf, view.most[job]
        changes += 1
        for stage in range(jobs.stage_of[job], jobs.stage_of[job + 1]):
            if _left_in(view, job, stage) > 0.0:
                widths[count] = max(widths[count], jobs.stage_most[stage])
                changes += 1
        if _refusal(view, numbers, job, preempt_s, share) == PROMISED:
            end_s = _by_ends(view, job, spread, numbers, share, ends_s[:count], widths[:count])
            # What those ahead hold at least while they leave it less than its least.
            taken = share - max(jobs.least[job] - unit, 0.0)
            if taken > tolerance.QUEUE_GPUS:
                own_s = _by_work(view, job, spread, numbers, taken, True)
                end_s = min(end_s, ahead_s * share / taken + own_s)
            end_s = end_s * (1.0 + ROUNDING) + changes * (preempt_s + tolerance.EVENT_S)
        ends_s[count] = end_s
        count += 1
        ahead_s += _by_work(view, job, spread, numbers, share, False)
    told_s[0], told_s[1] = ends_s[count - 1], ends_s[:count].max()
    return PROMISED if told_s[0] < np.inf else BLOCKED


@njit(types.float64(VIEW, F1, types.float64, types.boolean), cache=True)
def _all_over(view: ElasticView, numbers: Floats, preempt_s: float, spread: bool) -> float:
    """Seconds until all jobs of a configuration have ended at the latest, if nobody joins them."""
    latest_s, seen, told_s = 0.0, np.zeros(int(numbers[0])), np.zeros(2)
    # Of each queue the last one asks for all.
    for i in range(view.count - 1, -1, -1):
        queue = queue_at(numbers, view.jobs.size_s[view.active[i]])
        if seen[queue] == 0.0:
            seen[queue] = 1.0
            within_one(view, numbers, i, preempt_s, spread, told_s)
            latest_s = max(latest_s, told_s[1])
    return float(latest_s)


@njit(BOUND, cache=True)
def worst_case(
    view: ElasticView, numbers: Floats, position: int, preempt_s: float, spread: bool, told_s: Floats
) -> int:
    """The latest completion of a job whatever arrives from now on, if sizes and speedups are as declared; a status.

    Parameters
    ----------
    view : the cluster as it is now
    numbers : of the configurations, as `wfq.pcs` reads them
    position : of the job in `view.active`
    preempt_s : seconds without progress after a change of what a started job holds
    spread : whether jobs may lie on more nodes than they need
    told_s : (2,) filled, the first with seconds from now, infinite where the status is not `PROMISED`
    """
    if numbers[0] > 0.0:
        return int(within_one(view, numbers, position, preempt_s, spread, told_s))
    mine, before_s = turn_of(numbers, view.jobs.submit_s[view.active[position]]), 0.0
    for turn in range(mine):
        begin, end = turn_at(numbers, turn)
        before_s += _all_over(of_turn(view, numbers, turn, view.capacity)[0], numbers[begin:end], preempt_s, spread)
    begin, end = turn_at(numbers, mine)
    seen, positions = of_turn(view, numbers, mine, view.capacity)
    own = int(np.searchsorted(positions, position))
    status: int = within_one(seen, numbers[begin:end], own, preempt_s, spread, told_s)
    told_s[0] += before_s
    return EARLIER if status == PROMISED and before_s == np.inf else status


PROMISES = Promises(worst_case, REASONS, joined)
