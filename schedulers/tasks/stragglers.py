"""Slow servers: how likely they are, learned from what is seen in a run, and copies and moves of tasks against them.

"We can duplicate a task and assign the replica task to another server [...] The number of replicas of a task depends on
the possibility of the straggler occurrence" (Wang, Liu, Shen: Job Scheduling for Large-Scale Machine Learning Clusters,
CoNEXT 2020, section 3.3.3, which leaves it as future work). Here a task has one copy or none.

A server is seen to be slow by the seconds that its tasks took for their parts of iterations, over what they take on
their GPUs' loads. It becomes slow and healthy again at rates that are counted, Gamma posteriors: before the first
server was seen to become slow none is expected to. Copies and moves take room that is left when another policy has
decided as if there were no copies, so that no job waits for them.
"""

from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import njit
from jobcast.domain.iteration_kernels import Places, iteration
from jobcast.domain.policy import Decision
from jobcast.domain.tasks import BANDWIDTH, CPU, GPU, QUEUED, TaskJobs, TaskRule, TaskView, by_sender
from jobcast.schedulers.tasks.host_selection import Limits, hosts
from jobcast.schedulers.tasks.packing import nearness, put, release, room_of, shift, wants_of

# Ours: times as long as expected from which on a server counts as slow; loads swing by less between two looks.
SLOW_AT = 1.3
# Ours, of the priors: time without any spell, and length of a spell, that are added to what was seen.
PRIOR_S = 3600.0
# Ours: what a copy or a move must gain where its job stands still for it, which takes ten seconds and the model's way.
WORTH_S = 30.0


class Spells:
    """What a run has shown so far of servers that become slow.

    Parameters
    ----------
    servers : how many there are
    now_s : when it is first looked at them

    Attributes
    ----------
    chance : (n_servers,) belief that each is slow now
    factor : how many times as long as on a healthy server tasks took on slow ones, in the mean
    seen_slow : how many of these there were, each look counted
    """

    def __init__(self, servers: int, now_s: float) -> None:
        self.chance, self.factor = np.zeros(servers), 1.0
        # As of the latest look: when that was, which were seen, and which were slow.
        self._at_s, self._seen, self._slow = now_s, np.zeros(servers, np.bool_), np.zeros(servers, np.bool_)
        self._begun, self._ended, self._healthy_s, self._slow_s, self.seen_slow = 0, 0, 0.0, 0.0, 0

    @property
    def rates(self) -> tuple[float, float]:
        """Spells that begin a second on a healthy server, and that end on a slow one; posterior means."""
        return self._begun / (self._healthy_s + PRIOR_S), (self._ended + 1.0) / (self._slow_s + PRIOR_S)

    @property
    def share(self) -> float:
        """Share of the time that a server is slow in the long run."""
        begins, ends = self.rates
        return begins / (begins + ends)

    def look(self, view: TaskView) -> None:
        """Count what a view shows."""
        slowness, passed_s = seen_slowness(view), view.now_s - self._at_s
        seen, slow = np.isfinite(slowness), slowness > SLOW_AT
        again = seen & self._seen
        before = self._slow[again]
        self._healthy_s += passed_s * int(np.sum(~before))
        self._slow_s += passed_s * int(np.sum(before))
        self._begun += int(np.sum(~before & slow[again]))
        self._ended += int(np.sum(before & ~slow[again]))
        if slow.any():
            count = int(np.sum(slow))
            self.seen_slow += count
            self.factor += (slowness[slow].sum() - count * self.factor) / self.seen_slow
        self.chance += (self.share - self.chance) * -np.expm1(-sum(self.rates) * passed_s)
        self.chance[seen] = slow[seen]
        self._at_s, self._seen, self._slow = view.now_s, seen, slow


def seen_slowness(view: TaskView) -> Floats:
    """(n_servers,) times as long as expected that tasks on each last took, the median; NaN where none has run."""
    found = np.full(len(view.cluster.capacity), np.nan)
    held_up = np.maximum(1.0, view.load[:, CPU] / view.cluster.capacity[:, CPU])
    servers, slowness = [], []
    for gpu_of, step_s in zip((view.gpu_of, view.copy_of), view.step_s.T, strict=True):
        tasks = np.flatnonzero((gpu_of != QUEUED) & np.isfinite(step_s) & (view.jobs.compute_s > 0.0))
        gpus = gpu_of[tasks]
        here = view.cluster.server_of[gpus]
        crowded = view.gpu_load[gpus] * (view.jobs.demand[tasks, GPU] > 0.0)
        servers.append(here)
        slowness.append(step_s[tasks] / (view.jobs.compute_s[tasks] * np.maximum(held_up[here], crowded)))
    where, much = np.concatenate(servers), np.concatenate(slowness)
    for server in np.unique(where):
        found[server] = np.median(much[where == server])
    return found


def _expected_s(
    jobs: TaskJobs, at: Places, job: int, left: float, belief: tuple[Floats, float, float, float], room: Any
) -> tuple[float, float, int]:
    """Seconds an iteration of a job on healthy servers, those to expect over what it has left, and its worst server.

    To first order: as if no two of its servers were slow at a time.

    Parameters
    ----------
    left : iterations
    belief : chances that servers are slow now (n_servers,), the share in the long run, how fast the one becomes the
        other, a second, and by how much tasks are slower
    room : two arrays (n_tasks, 2) to reckon in
    """
    chance, share, rate, factor = belief
    healthy_s = iteration(jobs, at, job, room[0], room[1])[0]
    span = rate * left * healthy_s
    present = -np.expm1(-span) / span if span > 0.0 else 1.0
    total_s, most_s, worst = healthy_s, 0.0, QUEUED
    looked_at = np.zeros(len(chance), dtype=np.bool_)
    for task in range(jobs.task_of[job], jobs.task_of[job + 1]):
        for gpu in (at.gpu_of[task], at.copy_of[task]):
            server = at.server_of[gpu]
            if gpu == QUEUED or looked_at[server]:
                continue
            looked_at[server] = True
            at.slow[server] = factor
            slower_s = iteration(jobs, at, job, room[0], room[1])[0] - healthy_s
            at.slow[server] = 1.0
            lost_s = (share + (chance[server] - share) * present) * slower_s
            total_s += lost_s
            if lost_s > most_s:
                most_s, worst = lost_s, server
    return healthy_s, total_s, worst


expected_s: Any = njit(cache=True)(_expected_s)


def _losses(
    jobs: TaskJobs, at: Places, active: Ints, left: Floats, belief: Any, room: Any, lost_s: Floats, worst: Ints
) -> None:
    """Fill for active jobs (n_active,) what slow servers are expected to cost each, seconds.

    And the worst server of those that are on GPUs.
    """
    for number in range(len(active)):
        job, lost_s[number], whole = active[number], 0.0, True
        for task in range(jobs.task_of[job], jobs.task_of[job + 1]):
            whole = whole and at.gpu_of[task] != QUEUED
        if whole:
            healthy_s, total_s, worst[number] = expected_s(jobs, at, job, left[number], belief, room)
            lost_s[number] = (total_s - healthy_s) * left[number]


losses: Any = njit(cache=True)(_losses)


def without_copies(view: TaskView) -> TaskView:
    """The cluster as it were without copies."""
    tasks = np.flatnonzero(view.copy_of != QUEUED)
    if not len(tasks):
        return view
    load, gpu_load, gpus = view.load.copy(), view.gpu_load.copy(), view.copy_of[tasks]
    np.subtract.at(load, view.cluster.server_of[gpus], view.task_load[tasks])
    np.subtract.at(gpu_load, gpus, view.task_load[tasks, GPU])
    # What is taken away again may leave dust below 0.
    return view._replace(load=np.maximum(load, 0.0), gpu_load=np.maximum(gpu_load, 0.0))


MOVE, COPY = "move", "replicate"


class Plan:
    """A decision that is being completed: the room that another policy leaves, and copies and moves that go into it."""

    def __init__(self, view: TaskView, decided: Decision, spells: Spells, limits: Limits) -> None:
        self._view, self._decided, self._limits, self._hosts = view, decided, limits, view.cluster.server_of
        self._room, self._wants = room_of(without_copies(view)), wants_of(view)
        stopped = np.array(list(decided.change), dtype=np.int64)
        release(self._room, self._wants, stopped)
        for task, gpu in decided.tasks.items():
            put(self._room, self._wants, task, gpu)
        # The engine itself ends copies of tasks that leave their GPUs.
        gone = np.isin(view.jobs.job_of, stopped) | (self._room.place == QUEUED)
        self._copies = np.where(gone, QUEUED, view.copy_of)
        self._were, self._home = self._copies.copy(), self._room.place.copy()
        ran = np.logical_and.reduceat(view.gpu_of != QUEUED, view.jobs.task_of[:-1])
        ran[stopped] = False
        self._worth_s = np.where(ran, WORTH_S, 0.0)
        limit = view.limit.copy()
        limit[list(decided.limit)] = list(decided.limit.values())
        self._left = limit - view.done
        self._keep()
        held = np.maximum(1.0, self._room.load / np.maximum(self._room.capacity, tolerance.LOADS))
        where = (by_sender(view.jobs.edge_from), self._hosts, self._room.place, self._copies)
        held_up = (np.ascontiguousarray(held[:, CPU]), np.ascontiguousarray(held[:, BANDWIDTH]))
        self._at = Places(*where, view.task_load, self._room.gpu_load, *held_up, np.ones(len(held)))
        self._belief = (spells.chance, spells.share, sum(spells.rates), spells.factor)
        self._scratch = np.empty((2, len(view.gpu_of), 2))

    def _keep(self) -> None:
        """Copies stay where there is room, up to all that servers have, and not beside what they are copies of."""
        room = self._room
        for task in np.flatnonzero(self._copies != QUEUED).tolist():
            gpu, use = self._copies[task], self._wants.use[task]
            server = self._hosts[gpu]
            most = room.capacity[server] * (1.0 + tolerance.LOADS)
            fits = (room.load[server] + use <= most).all() and room.gpu_load[gpu] + use[GPU] <= 1.0 + tolerance.LOADS
            if fits and server != self._hosts[room.place[task]]:
                shift(room, use, gpu, 1.0)
            else:
                self._copies[task] = QUEUED

    def _set(self, way: str, task: int, gpu: int) -> None:
        """Put a task elsewhere, or its copy."""
        if way == MOVE:
            put(self._room, self._wants, task, gpu)
            return
        for where, sign in ((self._copies[task], -1.0), (gpu, 1.0)):
            if where != QUEUED:
                shift(self._room, self._wants.use[task], where, sign)
        self._copies[task] = gpu

    def _expected_s(self, job: int) -> float:
        """Seconds that a job is expected to take for all that it has left, as tasks and copies are now."""
        left = float(self._left[job])
        return left * float(expected_s(self._view.jobs, self._at, job, left, self._belief, self._scratch)[1])

    def drop(self) -> None:
        """Copies end of jobs that would be as quick without them."""
        job_of = self._view.jobs.job_of
        for job in np.unique(job_of[self._copies != QUEUED]).tolist():
            tasks = np.flatnonzero((job_of == job) & (self._copies != QUEUED)).tolist()
            had, with_s = self._copies[tasks].tolist(), self._expected_s(job)
            for task in tasks:
                self._set(COPY, task, QUEUED)
            if with_s < self._expected_s(job):
                for task, gpu in zip(tasks, had, strict=True):
                    self._set(COPY, task, gpu)

    def add(self, ways: tuple[str, ...]) -> None:
        """The jobs that slow servers threaten most first, each the best way from its worst server, where worth it."""
        active = self._view.active
        lost_s, worst = np.empty(len(active)), np.empty(len(active), dtype=np.int64)
        losses(self._view.jobs, self._at, active, self._left[active], self._belief, self._scratch, lost_s, worst)
        for number in np.argsort(-lost_s, kind="stable").tolist():
            if lost_s[number] > self._worth_s[active[number]]:
                self._evade(int(active[number]), int(worst[number]), ways)

    def _evade(self, job: int, worst: int, ways: tuple[str, ...]) -> None:
        begin, end = self._view.jobs.task_of[job], self._view.jobs.task_of[job + 1]
        here = [task for task in range(begin, end) if self._hosts[self._room.place[task]] == worst]
        before_s, most_s = self._expected_s(job), float(self._worth_s[job])
        best: list[tuple[str, int, int]] = []
        for way in ways:
            spots, tried = (self._room.place, self._copies)[way == COPY], []
            for task in here:
                gpu = self._elsewhere(task, worst) if way == MOVE or spots[task] == QUEUED else QUEUED
                if gpu != QUEUED:
                    tried.append((way, task, int(spots[task]), gpu))
                    self._set(way, task, gpu)
            gained_s = before_s - self._expected_s(job)
            for _, task, was, _ in reversed(tried):
                self._set(way, task, was)
            if gained_s > most_s:
                most_s, best = gained_s, [(way, task, gpu) for _, task, _, gpu in tried]
        for one in best:
            self._set(*one)

    def _elsewhere(self, task: int, worst: int) -> int:
        """A GPU of another server with room for a task: the likeliest to be healthy, then the nearest; else QUEUED."""
        room, near = self._room, np.zeros(len(self._at.slow))
        nearness(room, self._wants, task, near)
        use, chance = self._wants.use[task], np.round(self._belief[0], 2)
        for server in np.lexsort((room.load[:, GPU], -near, chance)).tolist():
            if server != worst and chance[server] <= chance[worst] and hosts(room, self._limits, use, server):
                return int(room.least[server])
        return QUEUED

    def decision(self) -> Decision:
        """The other policy's decision with copies and moves."""
        changes = ((self._room.place, self._home), (self._copies, self._were))
        moved, copied = (np.flatnonzero(now != was).tolist() for now, was in changes)
        tasks = {**self._decided.tasks, **{task: int(self._room.place[task]) for task in moved}}
        return self._decided._replace(tasks=tasks, copies={task: int(self._copies[task]) for task in copied})


class AgainstStragglers(TaskRule):
    """A policy's decisions, and what room they leave used against slow servers.

    Parameters
    ----------
    policy : decides as if there were no copies
    ways : what is done: `MOVE`, `COPY`
    limits : up to which copies and moves fill servers and GPUs
    """

    def __init__(self, policy: TaskRule, ways: tuple[str, ...], limits: Limits) -> None:
        self.policy, self.name = policy, policy.name
        self._ways, self._limits = ways, limits
        self._spells: Spells | None = None

    def place(self, view: TaskView) -> Decision:
        """The policy's decision with copies and moves; alone while no server has been seen to be slow."""
        if self._spells is None:
            self._spells = Spells(len(view.cluster.capacity), view.now_s)
        self._spells.look(view)
        decided = self.policy.place(without_copies(view))
        if not self._spells.seen_slow:
            return decided
        plan = Plan(view, decided, self._spells, self._limits)
        plan.drop()
        plan.add(self._ways)
        return plan.decision()
