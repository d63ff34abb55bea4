"""Random jobs of tasks: each policy on small servers, deadlines, parameter servers, jobs that run less than declared.

What each decision leaves on which GPU is kept from what the policy was shown and said. From that the memory of each
server is added up, and each job's iterations are held against what its tasks can do by the domain's own formula. GPUs
may be shared beyond their number, which slows tasks down: the GPU-time is bounded, and so are shares of GPUs in spans.
"""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from jobcast.domain.tasks import ALL_ITERATIONS, MEMORY, OPT_STOP, QUEUED, TARGET_ONLY, TaskView
from jobcast.schedulers.registry import find_policy, make_policy
from jobcast.schedulers.tasks.network import networks_of
from jobcast.simulator.metrics import queued_s
from tests.contract.drawn import drawn
from tests.contract.random_jobs import check_held, check_lives, check_same, dust_s, rng_of, rows_of
from tests.schedulers.tasks.test_task_network import arrays
from tests.simulator.tasks.task_cases import TaskJob, checked, cluster_of, jobs_of, loads_of, replay_tasks, workload_of
from tests.simulator.tasks.task_policies import COPIED
from tests.simulator.tasks.test_task_properties import last_seen, seconds_of

LEARNED = ("mlf_rl", "device_rl")
"""Policies of networks, here of random weights, which may leave jobs in the queue for ever."""
MOST_ROUNDS = 60


class Recorder:
    """Does what another policy says, and keeps what it saw and where that leaves tasks."""

    def __init__(self, policy):
        self.policy, self.name, self.seen = policy, policy.name, []

    def decide(self, view):
        seen, decided = view.facts(TaskView), self.policy.decide(view)
        gpu_of = checked(seen, decided)
        self.seen.append((seen._replace(**{name: getattr(seen, name).copy() for name in COPIED}), decided, gpu_of))
        return decided


def case_of(name, seed, draw=rows_of, gangs=False):
    """A workload and the settings of a run; `gangs` have no more workers than there are GPUs."""
    rng = rng_of(name, seed)
    servers = rng.randint(1, 4)
    gpus = [rng.randint(1, 4) for _ in range(servers)]
    widest = min(8, sum(gpus)) if gangs else 8
    found = [replace_late(row) for row in draw(rng, widest, most_jobs=8, least_s=1e-9)[:20]]
    found = [row for row in found if row.submit_s <= found[0].submit_s + 1e5]
    rows = [task_job(rng, row) for row in found]
    span_s = sum(row.work_s for row in found) + found[-1].submit_s - found[0].submit_s
    cluster = cluster_of(servers, gpus, cpu=rng.choice((8.0, 32.0)), memory=rng.choice((120.0, 244.0)))
    jobs = jobs_of(*rows)
    whole = np.add.reduceat(jobs.demand[:, MEMORY], jobs.task_of[:-1]).max()
    cluster.capacity[:, MEMORY] = np.maximum(cluster.capacity[:, MEMORY], 1.2 * whole)  # any job fits on any server
    really = jobs.iterations * np.array([rng.choice((1.0, 1.0, 0.6)) for _ in rows])
    times = {
        "round_s": max(rng.choice((1.0, 60.0)), span_s / MOST_ROUNDS),
        "fluctuation": rng.choice((0.0, 0.0, 0.2)),
        "restart_s": rng.choice((0.0, 10.0)),
        "seed": rng.randint(0, 99),
    }
    return workload_of(jobs, cluster, iterations=really), times


def replace_late(row):
    """Jobs of tasks take turns in rounds: hours are enough."""
    return replace(row, work_s=min(row.work_s, 3e4))


def task_job(rng, row):
    """A job whose slowest task computes `work_s` in all, alone and undisturbed."""
    epochs = rng.choice((1, 1, 2, 5, 40))
    iterations = float(epochs * rng.choice((1, 10, 57)))
    slowest_s = max(row.work_s / iterations, 1e-12)
    asked = rng.choice((ALL_ITERATIONS, OPT_STOP, TARGET_ONLY))
    return TaskJob(
        submit_s=row.submit_s,
        iterations=iterations,
        epochs=epochs,
        workers=row.gpus,
        gpu=tuple(rng.choice((0.1, 0.5, 1.0)) for _ in range(row.gpus)),
        cpu=rng.choice((0.5, 6.0)),
        memory=rng.choice((1.0, 10.0, 61.0)),
        bandwidth=rng.choice((10.0, 600.0)),
        compute_s=(*(slowest_s * rng.choice((0.0, 0.5, 1.0)) for _ in range(row.gpus - 1)), slowest_s),
        volume_mb=rng.choice((0.0, 10.0)),
        chain=rng.random() < 0.5,
        server=rng.random() < 0.5,
        deadline_s=row.submit_s + rng.choice((1e-3, 500.0, 3600.0, inf)),
        urgency=float(rng.randint(1, 10)),
        target=rng.choice((nan, 0.3, 0.95)),
        option=asked,
        may_become=rng.randint(asked, TARGET_ONLY),
        algorithm=rng.randint(0, 4),
    )


def check_tasks(name, seed):
    workload, times = case_of(name, seed)
    learned, settings = networks_of(arrays()) if name in LEARNED else None, drawn(name, seed)
    policies = [Recorder(make_policy(name, learned, settings)) for _ in range(2)]
    log, again = (replay_tasks(workload, policy, last_seen, **times) for policy in policies)
    check_same(log, again)
    jobs, seen = workload.jobs, policies[0].seen
    dust = dust_s(log.end_s, jobs.submit_s)
    assert np.isfinite(log.end_s).all(), "a job never ended"
    assert (log.end_s >= jobs.submit_s - dust).all()
    started = ~np.isnan(log.start_s)
    assert (log.start_s >= jobs.submit_s - dust)[started].all()
    assert (log.columns["done"] > 0.0)[~started].sum() == 0, "work without a start"
    assert (queued_s(log) >= -dust * (1 + len(log.spans))).all()
    assert (queued_s(log) + log.columns["ran_s"] <= log.jct_s + dust).all()
    lasted_s = log.end_s.max() - jobs.submit_s.min() + dust
    assert log.columns["used_gpu_s"].sum() <= log.total_gpus * lasted_s * (1 + 1e-9)
    if not find_policy(name).preempts:
        assert not log.preemptions.any()
        assert not log.columns["migrations"].any()
    limit = np.minimum(workload.iterations, limits_of(seen, jobs))
    assert log.columns["done"] == pytest.approx(limit, rel=1e-9, abs=1e-9), "iterations done are not those owed"
    slowest = np.maximum.reduceat(jobs.compute_s, jobs.task_of[:-1])
    owed_s = log.columns["done"] * slowest
    assert (log.columns["ran_s"] + dust >= owed_s * (1 - 1e-9)).all(), "more iterations than its tasks can do"
    assert (np.diff([view.now_s for view, _, _ in seen]) > 0.0).all()
    check_held(log, nodes=np.bincount(workload.cluster.server_of, minlength=len(workload.cluster.capacity)))
    check_lives(log)
    if times["fluctuation"] == 0.0:
        check_rates(log, seen, times["round_s"])


def limits_of(seen, jobs):
    """(n_jobs,) the latest limits given."""
    limits = jobs.iterations.copy()
    for _, decided, _ in seen:
        for job, limit in decided.limit.items():
            limits[job] = limit
    return limits


def check_rates(log, seen, round_s):
    """Between two decisions a job gets done what its tasks can where they are, and nothing where one is queued."""
    ends = [(view.now_s, view.done) for view, _, _ in seen[1:]] + [(inf, log.columns["done"])]
    for (view, _, gpu_of), (_, done) in zip(seen, ends, strict=True):
        load, _ = loads_of(view.cluster, view.jobs.demand, gpu_of)
        assert (load[:, MEMORY] <= view.cluster.capacity[:, MEMORY] * (1 + 1e-9)).all()
        for job in view.active:
            here = gpu_of[view.jobs.task_of[job] : view.jobs.task_of[job + 1]]
            gained = done[job] - view.done[job]
            if (here == QUEUED).any():
                assert gained == 0.0, "a job of which a task waits gets on"
            else:
                most = (round_s + dust_s(log.end_s)) / seconds_of(view, gpu_of, job)
                assert gained <= most * (1 + 1e-9) + 1e-9
