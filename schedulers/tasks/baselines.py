"""Five baselines of MLFS, section 2: SLAQ, Tiresias, Borg's fair shares, HyperSched, Gandiva.

Zhang, Stafman, Or, Freedman: SLAQ, SoCC 2017. Gu et al.: Tiresias, NSDI 2019. Verma et al.: Borg, EuroSys 2015. Liaw et
al.: HyperSched, SoCC 2019. Xiao et al.: Gandiva, OSDI 2018. What training will still gain follows from what it gained
last, the metric as c - a / (k + 1) after k epochs: errors of first-order methods fall like 1 / k (SLAQ).

Graphene: troublesome tasks first, jobs by a weighted score. Grandl et al.: Graphene, OSDI 2016; MLFS, section 2.
"""

import numpy as np
from numpy.typing import NDArray

from jobcast.domain import tolerance
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.compiled import B1, F1, I1, I2, njit, types
from jobcast.domain.policy import NOTHING, Decision
from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import GPU, MEMORY, QUEUED, TaskCluster, TaskJobs, TaskRule, TaskView
from jobcast.schedulers.tasks.host_selection import (
    BEST_FIT,
    CONSOLIDATE,
    LIMITS,
    ROOM,
    SPREAD,
    Limits,
    Room,
    hosts,
    plain,
)
from jobcast.schedulers.tasks.packing import (
    WANTS,
    Wants,
    may_fit,
    place_alone,
    placement,
    put,
    room_of,
    waiting,
    wants_of,
)
from jobcast.schedulers.tasks.policies import (
    BorgFairSettings,
    GandivaSettings,
    GrapheneSettings,
    HyperSchedSettings,
    SlaqSettings,
    TiresiasSettings,
)
from jobcast.schedulers.tasks.preemption import (
    ALL_RESOURCES,
    GPU_AND_MEMORY,
    attained_gpu_s,
    due,
    job_use,
    measured_iteration_s,
    place_or_swap,
    sorted_jobs,
    waiting_jobs,
)

Words = NDArray[np.uint64]
# Tasks in a word of a set of bits.
WORD = 64
WORDS = types.Array(types.uint64, 2, "C")


@njit(types.float64(types.uint64), cache=True)
def bits(word: np.uint64) -> float:
    """How many bits of a word are set."""
    count = 0.0
    while word:
        word &= word - np.uint64(1)
        count += 1.0
    return count


@njit(types.void(I1, I1, B1, types.int64, WORDS), cache=True)
def follow(edge_from: Ints, edge_to: Ints, is_server: Bools, begin: int, after: Words) -> None:
    """Fill `after` (n_tasks of the job, n_words) with the tasks that come after each, the last task first."""
    # From the last task on, so that those of a successor are complete.
    for edge in np.argsort(-edge_from, kind="mergesort"):
        # Edges back are the exchange at the end of an iteration, on which none of it waits.
        if is_server[edge_from[edge]] or edge_to[edge] < edge_from[edge]:
            continue
        one, other = edge_from[edge] - begin, edge_to[edge] - begin
        after[one, other // WORD] |= np.uint64(1) << np.uint64(other % WORD)
        for word in range(after.shape[1]):
            after[one, word] |= after[other, word]


@njit(types.void(I1, I1, I1, I1, B1, F1), cache=True)
def count_descendants(
    task_of: Ints, edge_of: Ints, edge_from: Ints, edge_to: Ints, is_server: Bools, count: Floats
) -> None:
    """Fill `count` (n_tasks,)."""
    for job in range(len(task_of) - 1):
        begin, end = task_of[job], task_of[job + 1]
        after = np.zeros((end - begin, (end - begin + WORD - 1) // WORD), dtype=np.uint64)
        first, last = edge_of[job], edge_of[job + 1]
        follow(edge_from[first:last], edge_to[first:last], is_server, begin, after)
        for task in range(end - begin):
            count[begin + task] = 0.0
            for word in range(after.shape[1]):
                count[begin + task] += bits(after[task, word])


def descendants(jobs: TaskJobs) -> Floats:
    """(n_tasks,) how many tasks wait for each task.

    What is exchanged at an iteration's end, sent to earlier tasks, is waited for by none within the same one.
    """
    count = np.zeros(len(jobs.job_of))
    edges = (jobs.task_of, jobs.edge_of, jobs.edge_from, jobs.edge_to, jobs.is_server)
    count_descendants(*(plain(column) for column in edges), count)
    return count


TINY = 1e-12
# Scores that count as equal: their terms cancel out.
SAME_SCORE = 1e-7


class Graphene(TaskRule):
    """Jobs by remaining work, packing and fairness; a job's tasks by dependants and demand; all resources count."""

    name = "graphene"
    settings = GrapheneSettings()
    _of: TaskJobs | None = None
    _trouble: Floats

    def place(self, view: TaskView) -> Decision:
        """Place waiting jobs by score, each task where its demand is best aligned with what is free."""
        waiting = waiting_jobs(view)
        if not len(waiting):
            return NOTHING
        order = sorted_jobs(waiting, -np.rint(scores(view, waiting, self.settings) / SAME_SCORE))
        # Told apart by identity: jobs are one tuple for a whole run.
        if self._of is not view.jobs:  # the same at all decisions of a run
            self._of, self._trouble = view.jobs, trouble(view.jobs, view.cluster)
        room, wants = room_of(view), wants_of(view, self._trouble)
        pack_by(ALIGNMENT, room, ALL_RESOURCES, wants, order, *groups_of(view, room))
        return placement(view, room)


def scores(view: TaskView, waiting: Ints, weights: GrapheneSettings) -> Floats:
    """(n_jobs,) the weighted score of waiting jobs, the highest first; 0 for others.

    Remaining work is GPU seconds by the estimate of an iteration. What a job lacks is an equal part of the cluster's
    GPU time since it came, less what it had; a job that lacks nothing has 0.
    """
    jobs, score = view.jobs, np.zeros(len(view.jobs.submit_s))
    use, capacity = job_use(view), view.cluster.capacity.sum(axis=0)
    work = np.maximum(0.0, view.limit - view.done) * jobs.iteration_s * use[:, GPU]
    free = np.maximum(0.0, 1.0 - view.load.sum(axis=0) / capacity)
    dot = (use / capacity) @ free / np.diff(jobs.task_of)
    fair = len(view.cluster.server_of) / len(view.active)
    lack = np.maximum(0.0, fair * (view.now_s - jobs.submit_s) - attained_gpu_s(view))
    terms = ((weights.srpt, -work), (weights.packing, dot), (weights.fairness, lack))
    for weight, term in terms:
        score[waiting] += weight * term[waiting] / max(float(np.abs(term[waiting]).max()), TINY)
    return score


def trouble(jobs: TaskJobs, cluster: TaskCluster) -> Floats:
    """(n_tasks,) how troublesome tasks are: the share of the job that waits for them, and their largest demand.

    A demand is a share of the roomiest server's capacity.
    """
    others = np.maximum(1, np.diff(jobs.task_of) - 1)[jobs.job_of]
    dominant: Floats = (jobs.demand / cluster.capacity.max(axis=0)).max(axis=1)
    return rounded_all(descendants(jobs) / others + dominant)


# Rules: servers of jobs with as many GPUs, then empty ones, then any, of each the least used; the largest dot product
# of what a task uses with what is free. Ties go to the server with the lowest number.
AFFINITY, ALIGNMENT = range(2)


@njit(types.float64(types.int64, ROOM, F1, I1, types.int64, types.int64), cache=True)
def cost(rule: int, room: Room, use: Floats, here: Ints, group: int, server: int) -> float:
    """What a rule has against a server, on which `here` (n_groups,) tasks are by their jobs' number of GPUs."""
    if rule == ALIGNMENT:
        whole = room.capacity[server]
        return float(-(use / whole * np.maximum(0.0, whole - room.load[server]) / whole).sum())
    # Overloaded servers are alike: the costs of the three groups must not overlap.
    used = min(1.0, float(room.load[server, GPU] / room.capacity[server, GPU]))
    tasks = here.sum()
    if tasks == 0:
        return 2.0
    return used if here[group] == tasks else 4.0 + used


@njit(types.int64(types.int64, ROOM, LIMITS, F1, I2, types.int64), cache=True)
def find_host(rule: int, room: Room, limits: Limits, use: Floats, counts: Ints, group: int) -> int:
    """The server that a rule chooses for a task, or -1."""
    best, found = np.inf, -1
    for server in range(len(room.least)):
        if hosts(room, limits, use, server):
            against = cost(rule, room, use, counts[server], group, server)
            if against < best - tolerance.LOADS:
                best, found = against, server
    return found


@njit(types.void(types.int64, ROOM, LIMITS, WANTS, I1, I1, I2), cache=True)
def pack_by(rule: int, room: Room, limits: Limits, wants: Wants, order: Ints, group: Ints, counts: Ints) -> None:
    """Place jobs in an order, each whole or not at all, the first on a cluster left idle; `counts` follow.

    `counts` : (n_servers, n_groups)
    """
    for job in order:
        tasks = waiting(room, wants, job)
        # A cheap test first: most waiting jobs of a full cluster fail it.
        if not may_fit(room, limits, wants, tasks):
            continue
        for number in range(len(tasks)):
            server = find_host(rule, room, limits, wants.use[tasks[number]], counts, group[job])
            if server < 0:
                for task in tasks[:number]:
                    counts[room.server_of[room.place[task]], group[job]] -= 1
                    put(room, wants, task, QUEUED)
                break
            put(room, wants, tasks[number], room.least[server])
            counts[server, group[job]] += 1
    # Nobody runs and the first does not fit: without this it never would.
    if len(order) and room.load.max() <= tolerance.LOADS:
        place_alone(room, wants, waiting(room, wants, order[0]))


def groups_of(view: TaskView, room: Room) -> tuple[Ints, Ints]:
    """(n_jobs,) group of each job by its number of GPUs, (n_servers, n_groups) tasks of each on each server."""
    numbers, group = np.unique(view.jobs.gpus, return_inverse=True)
    counts = np.zeros((len(room.least), len(numbers)), dtype=np.int64)
    on = np.flatnonzero(room.place != QUEUED)
    np.add.at(counts, (room.server_of[room.place[on]], group[view.jobs.job_of[on]]), 1)
    return group.astype(np.int64), counts


# a of a job that has not ended an epoch: the whole range of an accuracy.
UNSEEN = 1.0


def epochs_seen(view: TaskView) -> Floats:
    """(n_jobs,) epochs that jobs have ended."""
    return np.floor(view.done / view.jobs.epoch_iterations + 1e-9)


def amplitude(view: TaskView) -> Floats:
    """(n_jobs,) a of each job's curve: the last gain x k (k + 1)."""
    epochs = epochs_seen(view)
    return np.where(np.isnan(view.last_gain), UNSEEN, np.maximum(view.last_gain, 0.0) * epochs * (epochs + 1.0))


def gain_until(view: TaskView, epoch: Floats) -> Floats:
    """(n_jobs,) what the metric will gain until some epochs (n_jobs,) are over; 0 where they are already."""
    epochs = np.where(np.isnan(view.last_gain), 0.0, epochs_seen(view))
    return amplitude(view) * np.maximum(0.0, 1.0 / (epochs + 1.0) - 1.0 / (np.maximum(epoch, 0.0) + 1.0))


class Slaq(TaskRule):
    """Greatest loss reduction per second of run time first, normalised by what each job has gained in all.

    A job takes all its GPUs or none, so that the choice is of jobs, not of cores. Looks at GPUs and memory only.
    """

    name = "slaq"
    settings = SlaqSettings()

    def place(self, view: TaskView) -> Decision:
        """Place by speed of gain; at the end of an interval instead of slower running jobs."""
        speed = gain_speed(view)
        order = sorted_jobs(view.active, -speed)
        over = speed if due(view, self.settings.interval_s) else None
        return place_or_swap(view, order, limits=GPU_AND_MEMORY, rule=SPREAD, claim=over, hold=over)


def gain_speed(view: TaskView) -> Floats:
    """(n_jobs,) the share of all gained so far that the next epoch will add, per second.

    That of a job before the end of its first epoch is 1: all that it will have gained then.
    """
    share = np.where(np.isnan(view.all_gain), 1.0, 0.0)
    np.divide(gain_until(view, epochs_seen(view) + 1.0), view.all_gain, out=share, where=view.all_gain > 0.0)
    return rounded_all(share / (measured_iteration_s(view) * view.jobs.epoch_iterations))


class Tiresias(TaskRule):
    """Jobs of the first queue before those of the second, which make room for them; GPUs and memory count only."""

    name = "tiresias"
    settings = TiresiasSettings()

    def place(self, view: TaskView) -> Decision:
        """Place by queue, then by submission (LAS) or by index (Gittins); only another queue displaces a job."""
        attained = attained_gpu_s(view)
        low = second_queue(view, attained, self.settings).astype(np.float64)
        index = np.zeros(len(attained))
        if self.settings.index == "gittins":
            index[view.active] = gittins_index(finished_gpu_s(view), attained[view.active])
        order = sorted_jobs(view.active, low, -index)
        return place_or_swap(view, order, limits=GPU_AND_MEMORY, rule=CONSOLIDATE, claim=-low, hold=-low)


def second_queue(view: TaskView, attained: Floats, settings: TiresiasSettings) -> Bools:
    """(n_jobs,) jobs whose service has passed the threshold, raised by as much each time they waited long enough.

    So that one that rose keeps its GPUs for a while, and does not fall as soon as it runs.
    """
    risen = np.zeros(len(attained))
    if settings.promote > 0.0:
        # One step up for each `promote` times the threshold that it waited.
        risen = np.floor(rounded_all(view.waited_s * view.jobs.gpus / (settings.promote * settings.queue_gpu_s)))
    return attained >= settings.queue_gpu_s * (1.0 + risen)


def finished_gpu_s(view: TaskView) -> Floats:
    """GPU seconds that each job took which is over by now, in order of submission."""
    over = view.jobs.submit_s <= view.now_s
    # Submitted and no longer active: it has ended.
    over[view.active] = False
    return attained_gpu_s(view)[over]


def gittins_index(finished: Floats, attained: Floats) -> Floats:
    """(n,) for jobs of some attained service, the highest chance of an end per second of service spent on it.

    The most over d of P(S - a <= d | S > a) / E[min(S - a, d) | S > a], where S is the service of a finished job and a
    what has been attained. Tiresias, NSDI 2019. A job that has had more than any finished one has 0.

    >>> gittins_index(np.array([1.0, 1.0, 10.0]), np.array([0.0, 2.0, 10.0])).round(4).tolist()
    [0.6667, 0.125, 0.0]
    """
    services = np.sort(finished)
    index = np.zeros(len(attained))
    for service in np.unique(attained):
        rest = services[np.searchsorted(services, service, side="right") :] - service
        if len(rest):
            ended = np.arange(1, len(rest) + 1)
            spent = np.cumsum(rest) + (len(rest) - ended) * rest
            # Ratios change only where somebody ends, so that ends alone are tried.
            index[attained == service] = (ended / spent).max()
    return rounded_all(index)


class BorgFair(TaskRule):
    """The job with the least received share first, each task where the least is left over; all resources count."""

    name = "borg_fair"
    settings = BorgFairSettings()

    def place(self, view: TaskView) -> Decision:
        """Place by received share."""
        share = received_share(view)
        every_s = self.settings.interval_s
        over = -share if every_s > 0.0 and due(view, every_s) else None
        order = sorted_jobs(view.active, share)
        return place_or_swap(view, order, limits=ALL_RESOURCES, rule=BEST_FIT, claim=over, hold=over)


def received_share(view: TaskView) -> Floats:
    """(n_jobs,) GPU seconds that jobs had of all that the cluster had since they came."""
    age_s = np.maximum(view.now_s - view.jobs.submit_s, 1.0)
    return rounded_all(attained_gpu_s(view) / (age_s * max(1, len(view.cluster.server_of))))


class HyperSched(TaskRule):
    """Most accuracy still to gain before the deadline first; those that gain nothing more give way.

    Jobs that still gain are never displaced, and jobs that do not never displace others: they run on what is left.
    Looks at GPUs and memory only.
    """

    name = "hypersched"
    settings = HyperSchedSettings()

    def place(self, view: TaskView) -> Decision:
        """Place by gain before the deadline, instead of those that gain nothing where there is no room."""
        gain = deadline_gain(view)
        claim = (gain >= self.settings.least_gain).astype(np.float64)
        order = sorted_jobs(view.active, -np.where(claim > 0.0, gain, 0.0))
        return place_or_swap(view, order, limits=GPU_AND_MEMORY, rule=CONSOLIDATE, claim=claim, hold=claim)


def deadline_gain(view: TaskView) -> Floats:
    """(n_jobs,) the accuracy that a job would gain in the epochs that it could end before its deadline from now on."""
    jobs = view.jobs
    left_s = np.maximum(0.0, jobs.deadline_s - view.now_s)
    could = np.minimum(view.limit, view.done + left_s / measured_iteration_s(view))
    return rounded_all(gain_until(view, np.floor(could / jobs.epoch_iterations + 1e-9)))


class Gandiva(TaskRule):
    """First in, first out; jobs with as many GPUs share servers; overloaded GPUs give tasks away.

    Time slicing is left out: the GPUs that tasks share are shared all the time. Looks at GPUs and memory only.
    """

    name = "gandiva"
    settings = GandivaSettings()

    def place(self, view: TaskView) -> Decision:
        """Move tasks from overloaded GPUs, then place waiting jobs in order of submission."""
        room, wants = room_of(view), wants_of(view)
        for gpu in np.argsort(-rounded_all(view.gpu_load), kind="stable"):
            if view.gpu_load[gpu] <= self.settings.overload + tolerance.LOADS:
                break
            relieve(room, wants, view, int(gpu), self.settings.overload)
        group, counts = groups_of(view, room)
        pack_by(AFFINITY, room, GPU_AND_MEMORY, wants, waiting_jobs(view), group, counts)
        return placement(view, room)


def relieve(room: Room, wants: Wants, view: TaskView, gpu: int, most: float) -> None:
    """Move the task with the lowest use of an overloaded GPU to the least used GPU that it does not overload."""
    here = np.flatnonzero((view.gpu_of == gpu) & (wants.use[:, GPU] > 0.0))
    if len(here) < 2:
        return
    task = int(here[np.argmin(rounded_all(wants.use[here, GPU]))])
    memory = room.capacity[:, MEMORY] - room.load[:, MEMORY]
    # It is on this server already, and needs no memory more to change GPUs.
    memory[room.server_of[gpu]] = np.inf
    use = wants.use[task]
    fits = (room.gpu_load + use[GPU] <= most + tolerance.LOADS) & (memory[room.server_of] >= use[MEMORY])
    if fits.any():
        put(room, wants, task, int(np.argmin(np.where(fits, rounded_all(room.gpu_load), np.inf))))
