"""Running jobs that make room for waiting ones: whole jobs leave, and only where a waiting one gets in. Compiled.

MLFS queues the tasks of an iteration when the one before is over, "newly submitted and preempted tasks" in one queue by
priority (section 3.3.2): so a job keeps its GPUs from one iteration to the next only while its priority lets it. Here
it keeps them until a waiting job has `hold` times its priority, for a change costs a restart, which the paper leaves
out.
"""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.compiled import F1, F2, I1, njit, types
from jobcast.domain.policy import Decision
from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import GPU, QUEUED, TaskView
from jobcast.schedulers.tasks.host_selection import DECISION_S, LIMITS, ROOM, Limits, Room
from jobcast.schedulers.tasks.packing import (
    PACKING,
    WANTS,
    Packing,
    Wants,
    limits_of,
    place_whole,
    placement,
    put,
    release,
    room_of,
    waiting,
    wants_of,
)

# Of a scheduler that deals out all resources: servers and GPUs are filled up to their capacity.
ALL_RESOURCES = limits_of()
# Of one that deals out GPUs alone: cores and bandwidth may be overloaded, memory cannot be passed in any case.
GPU_AND_MEMORY = limits_of((1.0, np.inf, 1.0, np.inf))


def running_jobs(view: TaskView) -> Ints:
    """Active jobs all of whose tasks are on GPUs, in order of submission."""
    return view.active[_placed(view)[view.active]]


def waiting_jobs(view: TaskView) -> Ints:
    """All other active jobs, in order of submission."""
    return view.active[~_placed(view)[view.active]]


def sorted_jobs(jobs: Ints, *keys: Floats) -> Ints:
    """Jobs by ascending keys (n_jobs,), the first key first; ties go by submission."""
    return jobs[np.lexsort([jobs, *(key[jobs] for key in reversed(keys))])]


def due(view: TaskView, interval_s: float) -> bool:
    """Whether the first decision after a multiple of an interval is being made; True for one of 0 seconds."""
    return not interval_s or view.now_s % interval_s < DECISION_S


def attained_gpu_s(view: TaskView) -> Floats:
    """(n_jobs,) GPU seconds that jobs have had: GPUs x time. Tiresias, NSDI 2019."""
    return rounded_all(view.jobs.gpus * view.ran_s)


def job_use(view: TaskView) -> Floats:
    """(n_jobs, 4) what the tasks of jobs use at rest."""
    return np.add.reduceat(view.jobs.demand, view.jobs.task_of[:-1], axis=0)


def measured_iteration_s(view: TaskView) -> Floats:
    """(n_jobs,) seconds an iteration as far as a job has run, before that its estimate."""
    ran = (view.done > 0.0) & (view.ran_s > 0.0)
    return np.divide(view.ran_s, view.done, out=view.jobs.iteration_s.copy(), where=ran)


def _placed(view: TaskView) -> Bools:
    return np.logical_and.reduceat(view.gpu_of != QUEUED, view.jobs.task_of[:-1])


@njit(types.boolean(ROOM, WANTS, I1, types.int64), cache=True)
def at_home(room: Room, wants: Wants, home: Ints, job: int) -> bool:
    """Whether a job runs where it ran when the decision began."""
    for task in range(wants.task_of[job], wants.task_of[job + 1]):
        if room.place[task] != home[task] or home[task] == QUEUED:
            return False
    return True


@njit(types.void(ROOM, WANTS, I1, types.int64), cache=True)
def go_home(room: Room, wants: Wants, home: Ints, job: int) -> None:
    """Put a job's tasks where they were when the decision began."""
    for task in range(wants.task_of[job], wants.task_of[job + 1]):
        put(room, wants, task, home[task])


@njit(types.boolean(ROOM, LIMITS, F2, F1), cache=True)
def no_worse(room: Room, limits: Limits, load: Floats, gpu_load: Floats) -> bool:
    """Whether every server and GPU keeps its limit, or at least what it had before: `load`, `gpu_load`."""
    for server in range(len(room.least)):
        for kind in range(load.shape[1]):
            most = max(limits.most[kind] * room.capacity[server, kind], load[server, kind])
            if room.load[server, kind] > most + tolerance.LOADS:
                return False
    return bool(np.all(room.gpu_load <= np.maximum(gpu_load, limits.gpu) + tolerance.LOADS))


@njit(types.float64(ROOM, LIMITS), cache=True)
def free_gpus(room: Room, limits: Limits) -> float:
    """GPU shares that are free at the most: once it is idle, a GPU takes a whole one whatever the limit."""
    return float(np.maximum(0.0, max(1.0, limits.gpu) - room.gpu_load).sum())


@njit(types.void(ROOM, LIMITS, WANTS, PACKING, I1, I1, I1, types.int64, F1, I1), cache=True)
def swap(
    room: Room,
    limits: Limits,
    wants: Wants,
    packing: Packing,
    home: Ints,
    tasks: Ints,
    victims: Ints,
    several: int,
    near: Floats,
    together: Ints,
) -> None:
    """Let the first `several` victims leave, one after another, until the tasks get in; nothing changes if they do not.

    Those that left without need come back, the last one first.
    """
    load, gpu_load = room.load.copy(), room.gpu_load.copy()
    left, count = np.empty(several, dtype=np.int64), 0
    for victim in victims[:several]:
        # It has left or moved in this decision already.
        if not at_home(room, wants, home, victim):
            continue
        release(room, wants, np.array([victim]))
        left[count] = victim
        count += 1
        place_whole(room, limits, wants, packing, tasks, near, together)
        if room.place[tasks[0]] != QUEUED:
            break
    inside = room.place[tasks[0]] != QUEUED
    # Who left last was needed most: the others try to come back in reverse.
    for victim in left[:count][::-1]:
        go_home(room, wants, home, victim)
        # It may come back beside the newcomer, if no server is worse off than before.
        if inside and not no_worse(room, limits, load, gpu_load):
            release(room, wants, np.array([victim]))


@njit(types.void(ROOM, LIMITS, WANTS, PACKING, I1, I1, I1, F1, F1), cache=True)
def pack_over(
    room: Room,
    limits: Limits,
    wants: Wants,
    packing: Packing,
    home: Ints,
    order: Ints,
    victims: Ints,
    claim: Floats,
    hold: Floats,
) -> None:
    """Place jobs in an order; where one finds no place, victims leave whose hold (n_jobs,) is below its claim.

    `victims` are the jobs that ran when the decision began, by ascending hold.
    """
    near, together = np.zeros(len(room.least)), np.zeros(len(room.least), dtype=np.int64)
    gain = np.zeros(len(victims) + 1)
    for number, victim in enumerate(victims):
        gain[number + 1] = gain[number] + wants.use[wants.task_of[victim] : wants.task_of[victim + 1], GPU].sum()
    for job in order:
        tasks = waiting(room, wants, job)
        if not len(tasks):
            continue
        place_whole(room, limits, wants, packing, tasks, near, together)
        if room.place[tasks[0]] != QUEUED:
            continue
        several = 0
        while several < len(victims) and hold[victims[several]] < claim[job]:
            several += 1
        # Even all victims together would not make room enough: not tried.
        if several and free_gpus(room, limits) + gain[several] + tolerance.LOADS >= wants.use[:, GPU][tasks].sum():
            swap(room, limits, wants, packing, home, tasks, victims, several, near, together)


def place_or_swap(
    view: TaskView, order: Ints, *, limits: Limits, rule: int, claim: Floats | None = None, hold: Floats | None = None
) -> Decision:
    """Place jobs in an order, each whole or not at all, if need be instead of running ones.

    Parameters
    ----------
    order : jobs, first served first; those that run stay unless they are displaced
    limits, rule : as of `packing.place_jobs`
    claim, hold : (n_jobs,) a job displaces those running ones whose hold is below its claim, the lowest first, of
        equals the one submitted last; without them none is displaced
    """
    room, wants = room_of(view), wants_of(view)
    none = np.zeros(len(view.jobs.submit_s))
    claims, holds = (none if given is None else given for given in (claim, hold))
    running = running_jobs(view)
    # The lowest hold first; of equals the one submitted last.
    victims = running[np.lexsort([-running, holds[running]])]
    home = view.gpu_of.copy()
    pack_over(room, limits, wants, Packing(rule), home, order, victims, claims, holds)
    return placement(view, room)


def displace(
    view: TaskView, room: Room, wants: Wants, limits: Limits, packing: Packing, order: Ints, rank: Floats, hold: float
) -> None:
    """Let waiting jobs in for whom running ones must leave; changes the room.

    Parameters
    ----------
    order : waiting jobs, first served first; those that have been placed by now are passed over
    rank : (n_tasks,) priorities; a job has that of its highest task
    hold : how many times the priority of a running job a waiting one must have; infinite: nobody leaves
    """
    claim = np.maximum.reduceat(rank, view.jobs.task_of[:-1])
    # Infinite times a claim of 0 would be no number.
    kept = hold * claim if np.isfinite(hold) else np.full(len(claim), np.inf)
    running = running_jobs(view)
    victims = running[np.lexsort([-running, kept[running]])]
    pack_over(room, limits, wants, packing, view.gpu_of.copy(), order, victims, claim, kept)
