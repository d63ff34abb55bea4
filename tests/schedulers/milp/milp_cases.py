"""Random gridded instances, the best schedule by trying all, and SIA_VC as plainly as can be."""

from itertools import product

import numpy as np

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.milp.instance import make_instance
from jobcast.simulator.workload import Workload

GRID_S = 60.0


def draw(seed, jobs=5, quotas=(3, 2), span=6, longest=5):
    """A workload on a grid of minutes, and its instance."""
    rng = np.random.default_rng(seed)
    pools = [Pool(f"p{index}", quota) for index, quota in enumerate(quotas)]
    rows = []
    for index in range(jobs):
        pool = pools[rng.integers(len(pools))]
        width = int(rng.integers(1, pool.quota + 1))
        rows.append(Job(0, f"{index:02d}", pool.name, GRID_S * int(rng.integers(0, span + 1)), width))
    outcomes = [Outcome(GRID_S * int(rng.integers(1, longest + 1))) for _ in range(jobs)]
    workload = Workload(rows, outcomes, pools)
    return workload, make_instance(*known(workload), GRID_S)


def known(workload):
    """Jobs, run times and pools, as a planner is given them."""
    return workload.jobs, [outcome.duration_s for outcome in workload.outcomes], workload.pools


def usage(instance, start):
    """GPUs in use by pool and step, (n_pools, steps)."""
    used = np.zeros((len(instance.quotas), instance.steps), dtype=int)
    for job, begin in enumerate(start):
        used[instance.pool[job], begin : begin + instance.duration[job]] += instance.width[job]
    return used


def cost(instance, start, beta):
    """SIA, Figure 19, line 8, with the least alphas that constraint 13 allows."""
    shares = usage(instance, start) / instance.quotas[:, None]
    return sum(start) - instance.submit.sum() + beta * shares.max(axis=0).sum()


def brute_force(instance, beta=0.0):
    """The least cost of all schedules, every start of every job tried."""
    windows = [range(s, m + 1) for s, m in zip(instance.submit.tolist(), instance.cutoff.tolist(), strict=True)]
    return min(
        cost(instance, start, beta)
        for start in product(*windows)
        if usage(instance, start).sum(axis=0).max() <= instance.gpus
    )


def virtual_clock(instance):
    """SIA, Figure 6, with virtual starts from FCFS over the whole trace; starts in steps."""
    jobs, start = range(len(instance)), {}
    for now in range(instance.steps):
        used = np.zeros(instance.steps + 1, dtype=int)
        for job, begin in start.items():
            used[begin : begin + instance.duration[job]] += instance.width[job]
        for job in sorted(jobs, key=lambda job: (instance.cutoff[job], job)):
            if job in start:
                continue
            begin = now
            until = now + instance.duration[job]
            if instance.submit[job] <= now and used[now:until].max() + instance.width[job] <= instance.gpus:
                start[job] = now
            else:
                begin = instance.cutoff[job]
            used[begin : begin + instance.duration[job]] += instance.width[job]
    return [start[job] for job in jobs]


def random_schedule(instance, rng):
    """A schedule that keeps capacity and cut-offs: jobs in any order, each to any start that the others leave."""
    start = instance.cutoff.tolist()
    for job in rng.permutation(len(instance)).tolist():
        fitting = []
        for begin in range(instance.submit[job], instance.cutoff[job] + 1):
            tried = [*start[:job], begin, *start[job + 1 :]]
            if usage(instance, tried).sum(axis=0).max() <= instance.gpus:
                fitting.append(begin)
        start[job] = int(rng.choice(fitting))
    return start
