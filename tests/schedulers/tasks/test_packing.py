"""Jobs packed whole or not at all."""

import numpy as np
import pytest

from jobcast.domain.tasks import BANDWIDTH, GPU, MEMORY, QUEUED
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.tasks import packing
from jobcast.schedulers.tasks.host_selection import BEST_FIT, CONSOLIDATE, IDEAL, SPREAD
from jobcast.schedulers.tasks.packing import limits_of
from tests.simulator.tasks.task_cases import (
    TaskJob,
    arrays_of,
    checked,
    cluster_of,
    jobs_of,
    loads_of,
    placed_at_random,
    view_of,
)


def place_jobs(view, order, *, limits=None, rule=IDEAL, moving=None, rank=None, **how):
    """Jobs placed in an order by the kernel that MLF-H uses; what changes, by arrays."""
    room, wants = packing.room_of(view), packing.wants_of(view, rank)
    moving = np.zeros(len(wants.job_of), dtype=np.bool_) if moving is None else moving
    packing.pack(room, limits_of() if limits is None else limits, wants, packing.Packing(rule, **how), order, moving)
    return arrays_of(packing.placement(view, room))


def test_whether_jobs_may_fit_is_told_by_slots_on_gpus_and_by_what_is_free_in_all():
    """GPUs up to 0.9: an idle one has slots for 3 x 0.3, or for one of any size, the others for 2 and none."""
    view = view_of(jobs_of(TaskJob(workers=3, gpu=0.5)), cluster_of(2, [2, 1]))
    room, wants, limits = packing.room_of(view), packing.wants_of(view), limits_of(0.9, 0.9)
    room.gpu_load[:] = 0.0, 0.3, 0.85
    slots = [packing.slots(room, 0.9, share, enough) for share, enough in ((0.3, 9), (0.3, 3), (1.0, 9))]
    assert slots == [5, 3, 1]
    assert not packing.may_fit(room, limits, wants, np.arange(3))
    assert packing.may_fit(room, limits, wants, np.arange(2))
    # The first server is full but for its 90 %, the second idle: 32 cores are free, and no bandwidth is.
    room.load[0], room.load[1, BANDWIDTH] = (1.0, 30.0, 0.0, 1250.0), 1250.0
    fits = [packing.fits_in_all(room, limits, np.array([0.0, cpu, 0.0, 0.0])) for cpu in (32.0, 32.5)]
    assert fits == [True, False]


RULES = [IDEAL, CONSOLIDATE, SPREAD, BEST_FIT]
DUST = 1e-9


def places(view, placed):
    gpu_of = view.gpu_of.copy()
    gpu_of[placed.tasks] = placed.gpus
    return gpu_of.tolist()


def test_a_job_that_does_not_fit_leaves_no_task_behind_and_the_next_one_is_tried():
    jobs = jobs_of(TaskJob(workers=3, gpu=1.0), TaskJob(workers=2, gpu=1.0), TaskJob(gpu=1.0))
    view = view_of(jobs, cluster_of(1, 3), gpu_of=[*[QUEUED] * 5, 2])
    assert places(view, place_jobs(view, np.array([0, 1]))) == [QUEUED] * 3 + [0, 1, 2]


def test_the_last_task_that_fits_nowhere_takes_back_those_before_it():
    jobs = jobs_of(TaskJob(workers=2, gpu=(0.4, 0.8)), TaskJob(gpu=0.5), TaskJob(gpu=0.6), TaskJob(gpu=0.1))
    view = view_of(jobs, cluster_of(1, 1), gpu_of=[*[QUEUED] * 4, 0])
    assert places(view, place_jobs(view, np.array([0, 1, 2]))) == [QUEUED, QUEUED, 0, QUEUED, 0]


def test_a_parameter_server_is_placed_first_and_uses_no_gpu():
    """CPU decides: the parameter server takes the first server's last cores, so that the worker goes elsewhere."""
    jobs = jobs_of(TaskJob(gpu=1.0, cpu=20.0, server=True))
    view = view_of(jobs, cluster_of(2, 1))
    assert places(view, place_jobs(view, np.array([0]), rule=SPREAD)) == [1, 0]


def test_tasks_within_a_job_come_by_rank():
    jobs = jobs_of(TaskJob(workers=2, gpu=1.0))
    view = view_of(jobs, cluster_of(1, 2))
    assert places(view, place_jobs(view, np.array([0]), rank=np.array([1.0, 2.0]))) == [1, 0]


def test_a_task_goes_to_the_least_loaded_gpu():
    jobs = jobs_of(TaskJob(workers=3, gpu=(0.5, 0.3, 0.4)))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 1, QUEUED])
    assert places(view, place_jobs(view, np.array([0]))) == [0, 1, 1]


def test_limits_hold_but_an_idle_gpu_of_an_idle_server_takes_any_task():
    jobs = jobs_of(TaskJob(gpu=0.5, cpu=30.0), TaskJob(gpu=0.2, cpu=1.0))
    view = view_of(jobs, cluster_of(1, 1))
    limits = limits_of(0.9, 0.9)
    assert places(view, place_jobs(view, np.array([0, 1]), limits=limits)) == [0, QUEUED]
    assert places(view, place_jobs(view, np.array([1, 0]), limits=limits)) == [QUEUED, 0]


def test_memory_is_never_beyond_the_capacity_whatever_the_limits():
    jobs = jobs_of(TaskJob(memory=150.0, cpu=20.0), TaskJob(memory=100.0, cpu=20.0))
    view = view_of(jobs, cluster_of(1, 4))
    assert places(view, place_jobs(view, np.array([0, 1]), limits=limits_of(3.0, 3.0))) == [0, QUEUED]
    easy = view_of(jobs, cluster_of(1, 4, memory=250.0))
    assert places(easy, place_jobs(easy, np.array([0, 1]), limits=limits_of(3.0, 3.0))) == [0, 1]


def test_a_moving_task_stays_or_takes_its_job_along_where_no_server_takes_it():
    jobs = jobs_of(TaskJob(workers=2, gpu=0.5), TaskJob(gpu=1.0))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0, 1])
    moving, order = np.array([True, False, False]), np.array([0])
    decided = place_jobs(view, order, moving=moving)
    assert (decided.stop.size, decided.tasks.size) == (0, 0)
    assert place_jobs(view, order, moving=moving, evict=True).stop.tolist() == [0]
    free = view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0, QUEUED])
    assert places(free, place_jobs(free, order, moving=moving)) == [1, 0, QUEUED]


def test_read_only_arrays_are_taken():
    view = view_of(jobs_of(TaskJob()), cluster_of(1, 1))
    for column in (view.gpu_of, view.load, view.jobs.task_of, view.task_load):
        column.setflags(write=False)
    assert place_jobs(view, np.array([0])).gpus.tolist() == [0]


class Plainly:
    """Packing by plain steps: whatever is asked of the loads, they are added up anew."""

    def __init__(self, view, rule, limits, weights, rank):
        self.view, self.rule, self.limits, self.weights, self.rank = view, rule, limits, weights, rank
        self.gpu_of, self.capacity, self.server_of = view.gpu_of.copy(), view.cluster.capacity, view.cluster.server_of

    def loads(self):
        return loads_of(self.view.cluster, self.view.task_load, self.gpu_of)

    def server(self, task):
        return QUEUED if self.gpu_of[task] == QUEUED else self.server_of[self.gpu_of[task]]

    def tasks(self, job):
        return range(self.view.jobs.task_of[job], self.view.jobs.task_of[job + 1])

    def least(self, server):
        gpus = np.flatnonzero(self.server_of == server)
        return gpus[np.argmin(self.loads()[1][gpus].round(9))]

    def can_host(self, task, server):
        (load, gpu_load), use = self.loads(), self.view.task_load[task]
        on_gpu, most = gpu_load[self.least(server)], self.limits.most if load[server].max() > DUST else 1.0
        full = on_gpu > DUST and on_gpu + use[GPU] > self.limits.gpu + DUST
        return not (use[GPU] and full) and (load[server] + use <= most * self.capacity[server] + DUST).all()

    def near(self, task):
        jobs, near = self.view.jobs, np.zeros(len(self.capacity))
        edges = list(zip(jobs.edge_from, jobs.edge_to, jobs.volume_mb, strict=True))
        others = [(a + b - task, mb) for a, b, mb in edges if task in (a, b)]
        for other, mb in others:
            if self.server(other) != QUEUED:
                near[self.server(other)] += mb / max(sum(mb for _, mb in others), DUST)
        return near

    def moves(self, task, server):
        if self.server(task) in (QUEUED, server):
            return 0.0
        ends, capacity = [self.server(task), server], self.capacity[:, BANDWIDTH]
        free = np.maximum(capacity - self.loads()[0][:, BANDWIDTH], capacity / 10)[ends].min()
        return min(1.0, 1000 * self.view.task_load[task, MEMORY] / free / 60)

    def cost(self, task, server):
        used = self.loads()[0] / self.capacity
        if self.rule == CONSOLIDATE:
            mates = [self.server(one) for one in self.tasks(self.view.jobs.job_of[task]) if one != task]
            return -mates.count(server), -used[server, GPU]
        if self.rule == SPREAD:
            return (used[server, GPU],)
        if self.rule == BEST_FIT:
            return (-(used[server] + self.view.task_load[task] / self.capacity[server]).sum(),)
        fine, near = (used <= self.limits.most + DUST).all(axis=1), self.near(task)
        apart = self.moves(task, server), near[server] - near[fine].max(), *(used[server] - used[fine].min(axis=0))
        return (self.weights @ np.square(apart),)

    def put(self, task, part):
        able = [server for server in range(len(self.capacity)) if self.can_host(task, server)]
        costs = {server: (*np.round(self.cost(task, server), 9), server) for server in able}
        server, origin = min(able, key=costs.get, default=QUEUED), self.server(task)
        if server in (QUEUED, origin):
            return False
        if origin != QUEUED and not part and self.near(task)[server] < self.near(task)[origin] - DUST:
            return False
        self.gpu_of[task] = self.least(server)
        return True

    def put_alone(self, task):
        free = (self.capacity - self.loads()[0])[self.server_of, MEMORY]
        able = np.flatnonzero(free >= self.view.task_load[task, MEMORY])
        if len(able):
            self.gpu_of[task] = able[np.argmin(self.loads()[1][able].round(9))]
        return len(able) > 0

    def place(self, tasks):
        before, jobs = self.gpu_of.copy(), self.view.jobs
        tasks = sorted(tasks, key=lambda task: (not jobs.is_server[task], -self.rank[task]))
        if all(self.put(task, True) for task in tasks):
            return
        self.gpu_of = before.copy()
        largest_first = sorted(tasks, key=lambda task: -self.view.task_load[task, GPU])
        if (before == QUEUED).all() and not all(self.put_alone(task) for task in largest_first):
            self.gpu_of = before

    def pack(self, order, moving, evict, part):
        for job in order:
            own = list(self.tasks(job))
            waiting = [task for task in own if self.gpu_of[task] == QUEUED]
            leaving = [task for task in own if moving[task] and self.gpu_of[task] != QUEUED]
            if any(not self.put(task, part) and evict for task in leaving):
                self.gpu_of[own] = QUEUED
            elif waiting:
                self.place(waiting)
        return self.gpu_of


def crowded_view(rng):
    """Eight jobs on four servers, some of them on GPUs, of these some in part; in half of the views as busy as at rest.

    There loads are exactly at limits, else little is simple.
    """
    rows = [
        TaskJob(
            workers=int(workers),
            gpu=tuple(rng.choice([0.1, 0.3, 0.5, 0.8, 1.0], workers)),
            volume_mb=rng.choice([0.0, 10.0, 300.0]),
            chain=rng.random() < 0.5,
            server=rng.random() < 0.5,
            cpu=rng.choice([0.5, 2.0, 6.0]),
            memory=rng.choice([1.0, 10.0, 40.0]),
            bandwidth=rng.choice([10.0, 100.0, 300.0]),
        )
        for workers in rng.integers(1, 5, 8)
    ]
    jobs, cluster = jobs_of(*rows), cluster_of(4, rng.integers(1, 5, 4))
    gpu_of = placed_at_random(jobs, cluster, rng.permutation(8)[: rng.integers(0, 7)], rng, partial=True)
    return view_of(jobs, cluster, gpu_of=gpu_of, factor=rng.uniform(0.6, 1.4, len(gpu_of)) ** rng.integers(0, 2))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(12))
def test_jobs_are_packed_as_by_plain_steps(rule, seed):
    rng, most = np.random.default_rng(seed), (0.7, 0.9, 1.0)[seed % 3]
    view = crowded_view(rng)
    gpu_of = view.gpu_of.copy()
    limits, weights, evict, part = limits_of(most, most), rng.integers(0, 3, 6) / 2.0, rng.random() < 0.5, seed % 2 == 0
    rank, order = rng.integers(0, 3, len(gpu_of)) / 2.0, rng.permutation(view.active)
    moving = rng.random(len(gpu_of)) < (0.3 if rule == IDEAL else 0.0)
    how = {"moving": moving, "rank": rank, "evict": evict, "part": part, "weights": weights}
    placed = place_jobs(view, order, rule=rule, limits=limits, **how)
    plain = Plainly(view, rule, limits, weights, rank)
    assert checked(view, placed).tolist() == plain.pack(order, moving, evict, part).tolist()
    assert (view.gpu_of == gpu_of).all()


@pytest.mark.parametrize("name", ["mlf_h", "slaq", "tiresias", "gandiva", "graphene", "borg_fair", "hypersched"])
def test_a_job_that_passes_all_limits_runs_alone_on_an_idle_cluster(name):
    """Five workers of 0.6 on four GPUs: two must share one, beyond any limit; else the job would wait for ever.

    Each needs a fifth of the memory, which is all of it; without that none is placed.
    """
    jobs = jobs_of(TaskJob(workers=5, gpu=0.6, memory=4.0))
    for memory, shared in ((20.0, [2, 1, 1, 1]), (19.0, [0] * 4)):
        decided = arrays_of(make_policy(name, None, {}).place(view_of(jobs, cluster_of(1, 4, memory=memory))))
        assert np.bincount(decided.gpus, minlength=4).tolist() == shared


def test_a_job_that_passes_all_limits_waits_while_another_runs():
    jobs = jobs_of(TaskJob(gpu=0.3), TaskJob(workers=5, gpu=0.6))
    view = view_of(jobs, cluster_of(1, 4), gpu_of=[0, *[QUEUED] * 5])
    assert not len(make_policy("tiresias", None, {}).place(view).tasks)
