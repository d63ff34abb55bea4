"""MLF-H: the heuristic scheduler of tasks by features of machine learning. MLFS, section 3.3.

Which tasks leave overloaded servers: those most like the ideal virtual task. Compiled. MLFS, section 3.3.3.

What the paper leaves open is read as follows.

- A task that alone overloads its GPU stays there: on any other it would do the same.
- Only tasks that use a GPU relieve an overloaded GPU.
- A chosen task keeps its GPU until another server takes it (see `packing.pack`), so that it never comes back to the
  server that it was to leave, and moves at most once a decision.

MLF-C: fewer iterations while the system is overloaded. MLFS, section 3.5.

Users say whether their jobs run all iterations (i), until accuracy grows no more (ii, OptStop), or until the target is
reached (iii), and how far an overloaded system may change that. The overload degree of a server is the length of its
vector of utilisations, which is up to 2 where all four resources are used up: h_s = 0.9 means 0.45 of each.
"""

from math import ceil

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.compiled import B1, F1, I1, njit, types
from jobcast.domain.optstop import OptStop, Standing, Stop
from jobcast.domain.policy import NOTHING, Decision
from jobcast.domain.rounding import rounded, rounded_all
from jobcast.domain.tasks import ALL_ITERATIONS, GPU, OPT_STOP, QUEUED, TaskRule, TaskView
from jobcast.schedulers.tasks.host_selection import EVEN, IDEAL, KINDS, LIMITS, ROOM, Limits, Room, overloaded
from jobcast.schedulers.tasks.mlfs_settings import ControlSettings, HeuristicSettings
from jobcast.schedulers.tasks.packing import (
    WANTS,
    Packing,
    Wants,
    limits_of,
    nearness,
    pack,
    placement,
    room_of,
    shift,
    wants_of,
)
from jobcast.schedulers.tasks.preemption import displace
from jobcast.schedulers.tasks.priorities import job_order, task_priorities


@njit(I1(ROOM, LIMITS, WANTS, types.float64, I1), cache=True)
def candidates(room: Room, limits: Limits, wants: Wants, share: float, here: Ints) -> Ints:
    """Tasks of a server that may leave: where GPUs are overloaded the lowest p_s of theirs, else all of them.

    `here` are the server's tasks that have not been chosen yet, by ascending rank.
    """
    users = np.zeros(len(room.gpu_load), dtype=np.int64)
    for task in here:
        if wants.use[task, GPU] > 0.0:
            users[room.place[task]] += 1
    found, count = np.empty(len(here), dtype=np.int64), 0
    for task in here:
        gpu = room.place[task]
        # A single user would overload any other GPU as well.
        if wants.use[task, GPU] > 0.0 and users[gpu] > 1 and room.gpu_load[gpu] > limits.gpu * (1.0 + tolerance.LOADS):
            found[count] = task
            count += 1
    if count:
        return found[: max(1, ceil(share * count - tolerance.LOADS))]
    return here


@njit(types.int64(ROOM, LIMITS, WANTS, types.int64, I1, I1, types.boolean, F1), cache=True)
def most_like_ideal(
    room: Room, limits: Limits, wants: Wants, server: int, here: Ints, among: Ints, bandwidth: bool, near: Floats
) -> int:
    """The task of `among` whose utilisations come closest to the ideal virtual task's.

    The ideal uses as much of each overloaded resource as any task of the server, as little of each other one, and
    exchanges nothing with tasks of the server; all terms are shares, as in `hosts.ideal_host`.
    """
    ideal = np.empty(KINDS)
    for kind in range(KINDS):
        whole = room.capacity[server, kind]
        over = room.load[server, kind] > limits.most[kind] * whole * (1.0 + tolerance.LOADS)
        ideal[kind] = 0.0 if over else np.inf
        for task in here:
            share = wants.use[task, kind] / whole
            ideal[kind] = max(ideal[kind], share) if over else min(ideal[kind], share)
    best, found = np.inf, -1
    for task in among:
        if bandwidth:  # else all of `near` stays 0
            nearness(room, wants, task, near)
        distance = near[server] ** 2
        for kind in range(KINDS):
            distance += (wants.use[task, kind] / room.capacity[server, kind] - ideal[kind]) ** 2
        if distance < best - tolerance.LOADS:
            best, found = distance, task
    return found


@njit(types.boolean(ROOM, LIMITS, WANTS, types.int64, I1), cache=True)
def to_relieve(room: Room, limits: Limits, wants: Wants, server: int, here: Ints) -> bool:
    """Whether a server or a GPU of it is overloaded by more than one task."""
    if len(here) > 1 and overloaded(room, limits, server):
        return True
    for gpu in range(room.gpu_from[server], room.gpu_from[server + 1]):
        if room.gpu_load[gpu] > limits.gpu * (1.0 + tolerance.LOADS):
            users = 0
            for task in here:
                users += int(room.place[task] == gpu and wants.use[task, GPU] > 0.0)
            if users > 1:
                return True
    return False


@njit(types.void(ROOM, LIMITS, WANTS, types.float64, types.boolean, I1, B1), cache=True)
def choose(
    room: Room, limits: Limits, wants: Wants, share: float, bandwidth: bool, ranked: Ints, moving: Bools
) -> None:
    """Mark in `moving` (n_tasks,) the tasks that leave; loads in `room` become those without them.

    `ranked` are the tasks on GPUs, by ascending rank. A server gives up tasks until neither it nor its GPUs are
    overloaded, or until one task is left.
    """
    near = np.zeros(len(room.least))
    for server in range(len(room.least)):
        here = ranked[room.server_of[room.place[ranked]] == server]
        while to_relieve(room, limits, wants, server, here):
            among = candidates(room, limits, wants, share, here)
            task = most_like_ideal(room, limits, wants, server, here, among, bandwidth, near)
            moving[task] = True
            # Its load goes, its place stays: where it moves to is decided with the waiting jobs.
            shift(room, wants.use[task], room.place[task], -1.0)
            here = here[here != task]


def tasks_to_move(view: TaskView, rank: Floats, limits: Limits, *, share: float, bandwidth: bool = True) -> Bools:
    """Tasks that should leave their servers.

    Parameters
    ----------
    rank : (n_tasks,) priorities; tasks of low ones leave overloaded GPUs
    limits : beyond which servers and GPUs are overloaded
    share : p_s, of the tasks of overloaded GPUs, those of lowest priority, that may leave
    bandwidth : whether communication with tasks that remain counts. MLFS, Figure 7

    Returns
    -------
    (n_tasks,)
    """
    moving = np.zeros(len(rank), dtype=np.bool_)
    # Most decisions end here, before anything is copied.
    over = (view.load > limits.most * view.cluster.capacity).any()
    if not over and not (view.gpu_load > limits.gpu).any():
        return moving
    placed = np.flatnonzero(view.gpu_of != QUEUED)
    ranked = placed[np.argsort(rank[placed], kind="stable")]
    choose(room_of(view), limits, wants_of(view), share, bandwidth, ranked, moving)
    return moving


def overload_degree(view: TaskView) -> float:
    """O_c: the mean length of the servers' vectors of utilisations, 0 to 2, more where loads exceed capacities."""
    return float(np.linalg.norm(view.load / view.cluster.capacity, axis=1).mean())


def is_overloaded(view: TaskView, most: float) -> bool:
    """Whether tasks of active jobs are in the queue, or the overload degree exceeds `most`."""
    queued = np.logical_or.reduceat(view.gpu_of == QUEUED, view.jobs.task_of[:-1])[view.active]
    return bool(queued.any()) or rounded(overload_degree(view)) > rounded(most)


def options_now(view: TaskView, overloaded: bool) -> Ints:
    """(n_active,) options of active jobs: what users ask for, or the furthest allowed while overloaded."""
    asked = view.jobs.option[view.active]
    if not overloaded:
        return asked
    return np.maximum(asked, view.jobs.may_become[view.active])


def jobs_to_end(view: TaskView, settings: ControlSettings) -> Ints:
    """Active jobs that should run no further iteration, in order of submission.

    Those with OptStop end by its rule. Those that want no more than their targets end when they are reached too.
    """
    jobs, here = view.jobs, view.active
    overloaded = is_overloaded(view, settings.h_s)
    option = options_now(view, overloaded)
    achieved, sd = view.accuracy[here], view.final_sd[here]
    standing = Standing(
        achieved, view.earlier[here], np.isfinite(achieved), view.final_mean[here], sd, sd, np.ones(len(here))
    )
    rule = OptStop(confidence=settings.confidence, tolerance=settings.tolerance, give_up=settings.give_up)
    ends = rule.decide(standing, jobs.target[here], option == OPT_STOP) != Stop.GO_ON
    # Jobs of all iterations never end early, however busy the cluster.
    ended: Ints = here[ends & (option != ALL_ITERATIONS) & (view.done[here] < view.limit[here])]
    return ended


class LoadControl(TaskRule):
    """A policy whose jobs end by MLF-C; it sees those that end now no more."""

    settings = ControlSettings()

    def __init__(self, policy: TaskRule, name: str, settings: ControlSettings | None = None) -> None:
        super().__init__(settings)
        self.policy = policy
        self.name = name

    def place(self, view: TaskView) -> Decision:
        """The policy's decision on the jobs that are left, with limits for those that end."""
        ended = jobs_to_end(view, self.settings)
        active = np.setdiff1d(view.active, ended, assume_unique=True)
        # Who ends gives its GPUs back at once, so that the policy does not see it.
        left = self.policy.place(view._replace(active=active)) if len(active) else NOTHING
        return left._replace(limit=dict(zip(ended.tolist(), view.done[ended].tolist(), strict=True)) | dict(left.limit))


def packing_of(settings: HeuristicSettings, hosts: Floats = EVEN) -> Packing:
    """How jobs are packed; `hosts` as `weights` of `host_selection.ideal_host`.

    MLFS, section 3.3.3, sends a task that no server takes back to the queue. Its job could not go on, and would hold
    the GPUs of its other tasks meanwhile: with `evict` it gives them back, otherwise the task stays.
    """
    return Packing(IDEAL, settings.bandwidth, settings.evict == "queue", settings.part, hosts)


class MlfH(TaskRule):
    """Jobs by the highest priority of their tasks, tasks to the server most like the ideal virtual host.

    Attributes
    ----------
    hosts : weights of the distance from the ideal virtual host; see `host_selection.ideal_host`
    """

    settings = HeuristicSettings()
    hosts = EVEN

    def __init__(self, settings: HeuristicSettings | None = None, name: str = "mlf_h") -> None:
        super().__init__(settings)
        self.name = name

    def place(self, view: TaskView) -> Decision:
        """Place waiting jobs, perhaps instead of running ones, and move tasks from overloaded servers, by priority."""
        rank = self.ranks(view)
        moving = self.leaving(view, rank)
        waits = np.logical_or.reduceat((view.gpu_of == QUEUED) | moving, view.jobs.task_of[:-1])
        # One queue of waiting jobs and leaving tasks, section 3.3.2.
        order = job_order(view, rank)
        chosen, order = self.settings, order[waits[order]]
        room, wants = room_of(view), wants_of(view, rank)
        limits, packing = limits_of(chosen.h_r, chosen.h_r), packing_of(chosen, self.hosts)
        pack(room, limits, wants, packing, order, moving)
        if chosen.preempt:
            displace(view, room, wants, limits, packing, order, rank, chosen.hold)
        return placement(view, room)

    def ranks(self, view: TaskView) -> Floats:
        """(n_tasks,) priorities of tasks, of active jobs."""
        return rounded_all(task_priorities(view, self.settings))

    def leaving(self, view: TaskView, rank: Floats) -> Bools:
        """(n_tasks,) tasks that should leave overloaded servers, with their priorities `rank` (n_tasks,)."""
        chosen = self.settings
        if not chosen.migration:
            return np.zeros(len(rank), dtype=np.bool_)
        limits = limits_of(chosen.leave_at, chosen.leave_at)
        return tasks_to_move(view, rank, limits, share=chosen.p_s, bandwidth=chosen.bandwidth)
