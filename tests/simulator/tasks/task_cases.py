"""Jobs of tasks from rows, servers, views of a cluster at some instant, and strategies that draw them."""

from dataclasses import dataclass
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from jobcast.domain.optstop import stall_epochs
from jobcast.domain.policy import Trigger
from jobcast.domain.tasks import (
    ALL_ITERATIONS,
    GPU,
    MEMORY,
    OPT_STOP,
    QUEUED,
    TARGET_ONLY,
    TaskCluster,
    TaskJobs,
    TaskView,
)
from jobcast.simulator.engine import Simulation, replay
from jobcast.simulator.laws.tasks import Tasks
from jobcast.simulator.task_workload import TaskTruth, TaskWorkload


@dataclass(frozen=True)
class TaskJob:
    """A job. Its tasks are its workers, then the parameter server where it has one.

    Workers follow one another where `chain`, else stand side by side; the last one (side by side: each) sends to the
    parameter server, which sends to all of them. `volume_mb` goes over each edge. The numbers of a worker may differ:
    a tuple instead of one number.
    """

    submit_s: float = 0.0
    iterations: float = 100.0
    epochs: int = 10
    workers: int = 1
    gpu: float | tuple[float, ...] = 0.5
    cpu: float = 1.0
    memory: float = 4.0
    bandwidth: float = 100.0
    compute_s: float | tuple[float, ...] = 1.0
    volume_mb: float = 0.0
    chain: bool = False
    server: bool = False
    server_compute_s: float = 0.0
    deadline_s: float = inf
    urgency: float = 5.0
    target: float = nan
    option: int = ALL_ITERATIONS
    may_become: int = ALL_ITERATIONS
    algorithm: int = 0
    iteration_s: float | None = None

    @property
    def tasks(self) -> int:
        return self.workers + self.server

    def by_worker(self, numbers):
        return list(numbers) if isinstance(numbers, tuple) else [numbers] * self.workers

    def edges(self):
        """(from, to) by number within the job."""
        workers, server = range(self.workers), self.workers
        chained = [(i, i + 1) for i in workers[:-1]] if self.chain else []
        sending = workers[-1:] if self.chain else workers
        return chained + ([(i, server) for i in sending] + [(server, i) for i in workers] if self.server else [])

    def demand(self):
        rows = [[gpu, self.cpu, self.memory, self.bandwidth] for gpu in self.by_worker(self.gpu)]
        return rows + [[0.0, self.cpu, self.memory, self.bandwidth]] * self.server

    def compute(self):
        return self.by_worker(self.compute_s) + [self.server_compute_s] * self.server


def jobs_of(*rows):
    """TaskJobs from TaskJob rows, in order of submission."""
    tasks = np.array([row.tasks for row in rows], dtype=np.int64)
    task_of = np.concatenate([[0], np.cumsum(tasks)]).astype(np.int64)
    edges = [[(a + begin, b + begin) for a, b in row.edges()] for row, begin in zip(rows, task_of, strict=False)]
    flat = np.array([pair for own in edges for pair in own], dtype=np.int64).reshape(-1, 2)
    longest = [max(sum(row.compute()) if row.chain else max(row.compute()), 1e-9) for row in rows]

    def column(name):
        return np.array([getattr(row, name) for row in rows], dtype=float)

    return TaskJobs(
        submit_s=column("submit_s"),
        deadline_s=column("deadline_s"),
        urgency=column("urgency"),
        target=column("target"),
        iterations=column("iterations"),
        epoch_iterations=column("iterations") / column("epochs"),
        iteration_s=np.array(
            [row.iteration_s or estimate for row, estimate in zip(rows, longest, strict=True)], dtype=float
        ),
        option=column("option").astype(np.int64),
        may_become=column("may_become").astype(np.int64),
        algorithm=column("algorithm").astype(np.int64),
        gpus=column("workers").astype(np.int64),
        task_of=task_of,
        edge_of=np.concatenate([[0], np.cumsum([len(own) for own in edges])]).astype(np.int64),
        job_of=np.repeat(np.arange(len(rows)), tasks).astype(np.int64),
        demand=np.array([demand for row in rows for demand in row.demand()], dtype=float).reshape(-1, 4),
        compute_s=np.array([seconds for row in rows for seconds in row.compute()], dtype=float),
        size_share=np.array([share for row in rows for share in [1 / row.workers] * row.workers + [0.0] * row.server]),
        is_server=np.array([i >= row.workers for row in rows for i in range(row.tasks)], dtype=np.bool_),
        edge_from=np.ascontiguousarray(flat[:, 0]),
        edge_to=np.ascontiguousarray(flat[:, 1]),
        volume_mb=np.array([row.volume_mb for row, own in zip(rows, edges, strict=True) for _ in own], dtype=float),
    )


def cluster_of(servers, gpus, *, cpu=32.0, memory=244.0, bandwidth=1250.0):
    """Servers alike, with so many GPUs each; a list of `gpus` has one number a server."""
    each = np.broadcast_to(np.asarray(gpus, dtype=np.int64), servers)
    other = [np.full(servers, number, dtype=float) for number in (cpu, memory, bandwidth)]
    return TaskCluster(
        np.ascontiguousarray(np.column_stack([each.astype(float), *other])),
        np.repeat(np.arange(servers), each).astype(np.int64),
    )


def mixed(number):
    """SplitMix64's next number after a state: Steele, Lea, Flood, OOPSLA 2014."""
    number = (number + 0x9E3779B97F4A7C15) % 2**64
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB % 2**64
    return number ^ (number >> 31)


def loads_of(cluster, task_load, gpu_of):
    """(n_servers, 4) and (n_gpus,) what tasks that are on GPUs use."""
    placed = gpu_of != QUEUED
    load = np.zeros_like(cluster.capacity)
    np.add.at(load, cluster.server_of[gpu_of[placed]], task_load[placed])
    gpu_load = np.zeros(len(cluster.server_of))
    np.add.at(gpu_load, gpu_of[placed], task_load[placed, GPU])
    return load, gpu_load


def curve_at(epoch, epochs):
    """A metric that saturates, by epoch."""
    return 0.9 * (1.0 - np.exp(-3.0 * np.asarray(epoch, dtype=float) / np.asarray(epochs, dtype=float)))


def view_of(jobs, cluster, *, gpu_of=None, done=None, now_s=None, factor=1.0, **given):
    """A view in which loads, accuracies and accounts fit where tasks are and how far jobs are.

    gpu_of : (n_tasks,) default: all queued; done : (n_jobs,) iterations, default 0; now_s : default: the last
    submission; factor : by which tasks on GPUs use more than at rest, memory apart; `given` replaces any field.
    """
    count, epochs = len(jobs.submit_s), np.round(jobs.iterations / jobs.epoch_iterations)
    gpu_of = np.full(len(jobs.job_of), QUEUED, dtype=np.int64) if gpu_of is None else np.array(gpu_of, dtype=np.int64)
    done = np.zeros(count) if done is None else np.array(done, dtype=float)
    now_s = float(jobs.submit_s.max() if now_s is None else now_s)
    task_load = jobs.demand.copy()
    busier = np.broadcast_to(np.asarray(factor, dtype=float), len(gpu_of))[gpu_of != QUEUED, None]
    task_load[gpu_of != QUEUED] *= np.where(np.arange(4) == MEMORY, 1.0, busier)
    load, gpu_load = loads_of(cluster, task_load, gpu_of)
    held = np.add.reduceat(gpu_of != QUEUED, jobs.task_of[:-1]) if count else np.zeros(0)
    since_s = np.maximum(0.0, now_s - jobs.submit_s)
    seen = np.floor(done / jobs.epoch_iterations + 1e-9)
    accuracy, stall = np.where(seen > 0, curve_at(seen, epochs), nan), stall_epochs(epochs)
    fields = {
        "now_s": now_s,
        "jobs": jobs,
        "cluster": cluster,
        "active": np.flatnonzero((jobs.submit_s <= now_s) & (done < jobs.iterations)).astype(np.int64),
        "gpu_of": gpu_of,
        "load": load,
        "gpu_load": gpu_load,
        "task_load": task_load,
        "done": done,
        "limit": jobs.iterations.copy(),
        "waited_s": np.where(held > 0, 0.0, since_s),
        "ran_s": np.where(held == np.diff(jobs.task_of), since_s, 0.0),
        "accuracy": accuracy,
        "last_gain": np.where(seen > 0, accuracy - curve_at(np.maximum(seen - 1, 0), epochs), nan),
        "all_gain": accuracy.copy(),
        "earlier": np.where(seen > stall, curve_at(np.maximum(seen - stall, 0), epochs), nan),
        "final_mean": np.full(count, nan),
        "final_sd": np.full(count, nan),
        "copy_of": np.full(len(jobs.job_of), QUEUED, dtype=np.int64),
        "step_s": np.full((len(jobs.job_of), 2), nan),
    }
    return TaskView(**(fields | given))


@st.composite
def task_jobs(draw, *, most=8, biggest_memory=100.0):
    """One job, and a drawn shape of its tasks."""
    workers = draw(st.integers(1, most))
    asked = draw(st.sampled_from([ALL_ITERATIONS, OPT_STOP, TARGET_ONLY]))
    submit_s = float(draw(st.sampled_from([0, 0, 1, 30, 60, 61, 400])))
    epochs = draw(st.sampled_from([1, 2, 5, 10, 40]))
    return TaskJob(
        submit_s=submit_s,
        iterations=float(epochs * draw(st.sampled_from([1, 10, 57]))),
        epochs=epochs,
        workers=workers,
        gpu=tuple(draw(st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0])) for _ in range(workers)),
        cpu=draw(st.sampled_from([0.5, 2.0, 6.0])),
        memory=draw(st.sampled_from([1.0, 10.0, 61.0, biggest_memory])),
        bandwidth=draw(st.sampled_from([10.0, 100.0, 600.0])),
        compute_s=(*(draw(st.sampled_from([0.0, 0.2, 1.0, 4.0])) for _ in range(workers - 1)), 0.5),
        volume_mb=draw(st.sampled_from([0.0, 10.0, 300.0])),
        chain=draw(st.booleans()),
        server=draw(st.booleans()),
        deadline_s=submit_s + draw(st.sampled_from([30.0, 500.0, 3600.0, inf])),
        urgency=float(draw(st.integers(1, 10))),
        target=draw(st.sampled_from([nan, 0.3, 0.7, 0.95])),
        option=asked,
        may_become=draw(st.integers(asked, TARGET_ONLY)),
        algorithm=draw(st.integers(0, 4)),
    )


@st.composite
def task_clusters(draw):
    """One to four servers of one to four GPUs, not all with enough memory for everything."""
    servers = draw(st.integers(1, 4))
    gpus = [draw(st.integers(1, 4)) for _ in range(servers)]
    return cluster_of(
        servers, gpus, cpu=draw(st.sampled_from([8.0, 32.0])), memory=draw(st.sampled_from([120.0, 244.0]))
    )


@st.composite
def workloads(draw, *, most_jobs=8, roomy=False):
    """TaskJobs and a TaskCluster; where `roomy`, any server has the memory for all jobs.

    With less, jobs that are on GPUs in part, as `Chaos` leaves them, may keep each other out for ever.
    """
    rows = draw(st.lists(task_jobs(), min_size=1, max_size=most_jobs))
    jobs, cluster = jobs_of(*sorted(rows, key=lambda row: row.submit_s)), draw(task_clusters())
    if roomy:
        cluster.capacity[:, MEMORY] = np.maximum(cluster.capacity[:, MEMORY], jobs.demand[:, MEMORY].sum())
    return jobs, cluster


def placed_at_random(jobs, cluster, chosen, rng, *, partial=False):
    """(n_tasks,) GPUs at random for the tasks of the chosen jobs, whole jobs or none, never beyond the memory."""
    gpu_of = np.full(len(jobs.job_of), QUEUED, dtype=np.int64)
    free = cluster.capacity[:, MEMORY].copy()
    for job in chosen:
        before, here = free.copy(), range(jobs.task_of[job], jobs.task_of[job + 1])
        for task in here:
            fits = np.flatnonzero(free[cluster.server_of] >= jobs.demand[task, MEMORY])
            if len(fits) and not (partial and rng.random() < 0.2):
                gpu_of[task] = rng.choice(fits)
                free[cluster.server_of[gpu_of[task]]] -= jobs.demand[task, MEMORY]
        if not partial and (gpu_of[here] == QUEUED).any():
            gpu_of[here], free = QUEUED, before
    return gpu_of


@st.composite
def task_views(draw, *, most_jobs=8, partial=False):
    """What a policy may be asked: not all jobs have come, some are over, some on GPUs; servers may be overloaded.

    Jobs are on GPUs whole or not at all, in part as well where `partial`.
    """
    jobs, cluster = draw(workloads(most_jobs=most_jobs))
    count = len(jobs.submit_s)
    now_s = float(jobs.submit_s[0] + draw(st.sampled_from([0.0, 60.0, 3600.0])))
    come = jobs.submit_s <= now_s
    share = np.array([draw(st.sampled_from([0.0, 0.0, 0.15, 0.5, 0.99, 1.0])) for _ in range(count)])
    done = np.where(come, share, 0.0) * jobs.iterations
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    active = np.flatnonzero(come & (done < jobs.iterations)).astype(np.int64)
    chosen = [job for job in active if draw(st.booleans())]
    gpu_of = placed_at_random(jobs, cluster, chosen, rng, partial=partial)
    final = draw(st.booleans())
    seen = (done >= jobs.epoch_iterations) & final
    return view_of(
        jobs,
        cluster,
        gpu_of=gpu_of,
        done=done,
        now_s=now_s,
        factor=np.clip(1.0 + 0.2 * rng.standard_normal(len(gpu_of)), 0.6, 1.4),
        final_mean=np.where(seen, rng.uniform(0.2, 0.95, count), nan),
        final_sd=np.where(seen, rng.uniform(0.001, 0.2, count), nan),
    )


def one_job_alone(view, gpu_of):
    """Whether all tasks that are on GPUs are of one job."""
    return len(np.unique(view.jobs.job_of[gpu_of != QUEUED])) == 1


class Seen:
    """A view of a cluster of which nothing but its tasks is known."""

    def __init__(self, view):
        self.facts = {TaskView: view}.__getitem__


class Answer(NamedTuple):
    """A decision by arrays, as `domain.tasks.decision` takes them."""

    stop: Any
    tasks: Any
    gpus: Any
    limited: Any
    limits: Any


def arrays_of(decided):
    """A decision that stops jobs, puts tasks and limits jobs, and gives no job GPUs."""
    assert set(decided.change.values()) <= {None}
    columns = (decided.change, decided.tasks, decided.tasks.values(), decided.limit)
    return Answer(
        *(np.array(list(column), dtype=np.int64) for column in columns), np.array(list(decided.limit.values()))
    )


def checked(view, decided):
    """(n_tasks,) where tasks are after a decision, all that the engine demands of it asserted."""
    jobs, cluster, decided = view.jobs, view.cluster, decided if isinstance(decided, Answer) else arrays_of(decided)
    active = set(view.active.tolist())
    assert set(decided.stop.tolist()) <= active
    assert set(jobs.job_of[decided.tasks].tolist()) <= active
    assert set(decided.limited.tolist()) <= active
    assert ((decided.gpus >= QUEUED) & (decided.gpus < len(cluster.server_of))).all()
    assert (decided.limits >= view.done[decided.limited] - 1e-9).all()
    assert (decided.limits <= jobs.iterations[decided.limited]).all()
    gpu_of = view.gpu_of.copy()
    gpu_of[np.isin(jobs.job_of, decided.stop)] = QUEUED
    gpu_of[decided.tasks] = decided.gpus
    load, _ = loads_of(cluster, jobs.demand, gpu_of)
    assert (load[:, MEMORY] <= cluster.capacity[:, MEMORY] * (1 + 1e-9)).all()
    return gpu_of


def after(view, policy):
    """Where tasks are after a policy's decision, checked."""
    return checked(view, policy.place(view)).tolist()


def workload_of(rows, cluster, *, metric=None, model_mb=500.0, iterations=None):
    """A workload that the engine replays: TaskJob rows or TaskJobs; curves as of `curve_at` where none are given."""
    jobs = rows if isinstance(rows, TaskJobs) else jobs_of(*rows)
    count, epochs = len(jobs.submit_s), np.round(jobs.iterations / jobs.epoch_iterations).astype(int)
    if metric is None:
        every = np.arange(epochs.max() + 1)
        metric = np.where(every <= epochs[:, None], curve_at(every, epochs[:, None]), nan)
    truth = TaskTruth(np.array(metric, dtype=float), np.full(count, model_mb), iterations)
    return TaskWorkload(jobs, truth, cluster, [f"job-{job:0{len(str(count - 1))}d}" for job in range(count)])


def replay_tasks(workload, policy, forecast=None, *, round_s=60.0, progress=None, **how):
    """The log of a run by a policy that is asked every round."""
    policy.trigger = Trigger(on_events=False, period_s=round_s)
    return replay(workload.whole(), policy, progress=progress, law=Tasks(workload, forecast, **how))


def simulation_of(workload, policy, forecast=None, *, round_s=60.0, **how):
    """The same run, to be driven step by step, and its law."""
    policy.trigger = Trigger(on_events=False, period_s=round_s)
    law = Tasks(workload, forecast, **how)
    return Simulation(workload.whole(), policy, law=law), law
