"""CPU seconds of the engine of jobs of tasks over a week of decisions, one a minute, and of the policies' decisions.

    python benchmarks/bench_tasks.py [--jobs 1860] [--days 7] [--servers 20] [--busy 1.1]

Jobs are drawn: 2 to 20 workers, half of them with a parameter server, half as chains, about 11 tasks each. The policy
is first come, first served, onto the GPUs that are used least. Everything runs once before it is measured, so that
compiling is not.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.policy import Decision
from jobcast.domain.tasks import (
    ALL_ITERATIONS,
    GPU,
    MEMORY,
    QUEUED,
    TaskCluster,
    TaskJobs,
    TaskRule,
    TaskView,
    decision,
)
from jobcast.simulator.engine import replay
from jobcast.simulator.laws.tasks import Tasks
from jobcast.simulator.task_workload import TaskTruth, TaskWorkload

GPUS_PER_SERVER = 4
SERVER = (float(GPUS_PER_SERVER), 32.0, 244.0, 1250.0)
EPOCHS = 50
DAY_S = 86_400.0


class LeastUsed(TaskRule):
    """First come, first served; each task goes to the GPU used least of those with room for it."""

    name = "least_used"

    def place(self, view: TaskView) -> Decision:
        """Whole jobs in order of submission, up to the first that finds no room."""
        jobs, hosts = view.jobs, view.cluster.server_of
        free = view.cluster.capacity[:, MEMORY] - view.load[:, MEMORY]
        used = view.gpu_load.copy()
        tasks: list[int] = []
        gpus: list[int] = []
        for job in view.active[view.gpu_of[jobs.task_of[view.active]] == QUEUED]:
            put = fit(jobs, range(jobs.task_of[job], jobs.task_of[job + 1]), hosts, free, used)
            if put is None:
                break
            tasks += range(jobs.task_of[job], jobs.task_of[job + 1])
            gpus += put
        return decision(tasks=np.array(tasks, dtype=np.int64), gpus=np.array(gpus, dtype=np.int64))


def fit(jobs: TaskJobs, tasks: Sequence[int], hosts: Ints, free: Floats, used: Floats) -> list[int] | None:
    """GPUs for the tasks of a job, or None where one finds no room; room is taken only by whole jobs."""
    was_free, was_used, put = free.copy(), used.copy(), []
    for task in tasks:
        load = used + jobs.demand[task, GPU]
        load[(load > 1.0) | (free[hosts] < jobs.demand[task, MEMORY])] = np.inf
        gpu = int(np.argmin(load))
        if np.isinf(load[gpu]):
            free[:], used[:] = was_free, was_used
            return None
        used[gpu] = load[gpu]
        free[hosts[gpu]] -= jobs.demand[task, MEMORY]
        put.append(gpu)
    return put


def draw_workload(count: int, servers: int, days: float, busy: float, seed: int = 0) -> TaskWorkload:
    """Jobs that would keep all GPUs `busy` times over for so many days."""
    rng = np.random.default_rng(seed)
    workers, server = rng.integers(2, 21, count), rng.random(count) < 0.5
    sizes = workers + server
    task_of = np.concatenate([[0], np.cumsum(sizes)])
    job_of = np.repeat(np.arange(count), sizes)
    is_server = np.zeros(task_of[-1], dtype=np.bool_)
    is_server[task_of[1:][server] - 1] = True
    gpu = np.where(is_server, 0.0, rng.uniform(0.2, 0.8, len(job_of)))
    pairs = [edges_of(int(task_of[job]), int(workers[job]), bool(server[job]), job % 2 == 0) for job in range(count)]
    ends = np.array([pair for own in pairs for pair in own], dtype=np.int64).reshape(-1, 2)
    seconds = rng.lognormal(0.0, 1.0, count)
    scale = busy * days * DAY_S * servers * GPUS_PER_SERVER / (seconds * np.bincount(job_of, gpu)).sum()
    compute_s = rng.uniform(0.5, 1.5, len(job_of)) / workers[job_of]
    path_s = np.where(np.arange(count) % 2 == 0, np.bincount(job_of, compute_s), 1.5 / workers)
    iterations = np.ceil(seconds * scale / path_s / EPOCHS) * EPOCHS
    submit_s = np.sort(rng.uniform(0.0, days * DAY_S, count))
    jobs = TaskJobs(
        submit_s=submit_s,
        deadline_s=submit_s + DAY_S,
        urgency=rng.integers(1, 11, count).astype(float),
        target=np.full(count, 0.8),
        iterations=iterations,
        epoch_iterations=iterations / EPOCHS,
        iteration_s=path_s,
        option=np.full(count, ALL_ITERATIONS),
        may_become=np.full(count, ALL_ITERATIONS),
        algorithm=np.zeros(count, dtype=np.int64),
        gpus=workers,
        task_of=task_of,
        edge_of=np.concatenate([[0], np.cumsum([len(own) for own in pairs])]),
        job_of=job_of,
        demand=np.column_stack([gpu, np.full(len(gpu), 1.5), np.full(len(gpu), 8.0), np.full(len(gpu), 60.0)]),
        compute_s=compute_s,
        size_share=np.where(is_server, 0.0, 1.0 / workers[job_of]),
        is_server=is_server,
        edge_from=ends[:, 0],
        edge_to=ends[:, 1],
        volume_mb=np.full(len(ends), 5.0),
    )
    metric = 0.9 * (1.0 - np.exp(-3.0 * np.linspace(0.0, 1.0, EPOCHS + 1)))
    cluster = TaskCluster(np.tile(np.array(SERVER), (servers, 1)), np.repeat(np.arange(servers), GPUS_PER_SERVER))
    names = [f"job-{job:05d}" for job in range(count)]
    return TaskWorkload(jobs, TaskTruth(np.tile(metric, (count, 1)), np.full(count, 500.0)), cluster, names)


def edges_of(begin: int, workers: int, server: bool, chain: bool) -> list[tuple[int, int]]:
    """Edges of a job whose tasks begin there: of its chain, to its parameter server, and from that."""
    own = range(begin, begin + workers)
    edges = [(task, task + 1) for task in own[:-1]] if chain else []
    if server:
        edges += [(task, begin + workers) for task in (own[-1:] if chain else own)]
        edges += [(begin + workers, task) for task in own]
    return edges


def measure(workload: TaskWorkload, policy: TaskRule) -> None:
    """Print one row about a run."""
    began_s = time.process_time()
    log = replay(workload.whole(), policy, law=Tasks(workload))
    cpu_s = time.process_time() - began_s
    decisions, decision_s = int(log.totals["decisions"]), log.totals["decision_s"]
    print(
        f"{len(log):6d} {len(workload.jobs.job_of):7d} {policy.name:12} {decisions:9d} {cpu_s:8.2f} "
        f"{cpu_s - decision_s:8.2f} {1e3 * decision_s / decisions:12.3f}",
        flush=True,
    )


def main() -> None:
    """Print one row a policy."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--jobs", type=int, default=1860)
    asked.add_argument("--days", type=float, default=7.0)
    asked.add_argument("--servers", type=int, default=20)
    asked.add_argument("--busy", type=float, default=1.1, help="GPU time demanded / GPU time there is")
    given = asked.parse_args()
    few = draw_workload(5, given.servers, 0.01, 0.5)
    replay(few.whole(), LeastUsed(), law=Tasks(few))
    workload = draw_workload(given.jobs, given.servers, given.days, given.busy)
    print(f"{'jobs':>6} {'tasks':>7} {'policy':12} {'decisions':>9} {'CPU s':>8} {'engine s':>8} {'ms a decision':>12}")
    measure(workload, LeastUsed())


if __name__ == "__main__":
    main()
