"""Random workloads on servers, and replays that keep what was started where."""

from random import Random as Draws

import pytest

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import RunningJob
from jobcast.schedulers.cells.buddy import sizes_of
from jobcast.schedulers.cells.quotas import default_cells, servers_for
from jobcast.simulator.engine import replay
from jobcast.simulator.workload import Workload

MINUTE_S = 60.0


def build(jobs, pools, servers=None, server_gpus=8):
    """Workload from rows (job id, pool, submit min, duration min, gpus) and quotas by pool."""
    owners = [Pool(name, quota) for name, quota in pools.items()]
    return Workload(
        [Job(0, name, pool, MINUTE_S * at, gpus) for name, pool, at, _, gpus in jobs],
        [Outcome(MINUTE_S * duration) for *_, duration, _ in jobs],
        owners,
        servers=servers or servers_for(owners, server_gpus),
    )


def draw(seed, widths=(1, 1, 2, 4, 8, 16), count=40, quotas=(1, 3, 4, 8, 8, 12, 16, 21)):
    """Jobs that fit, in pools of several quotas; many wait."""
    rng = Draws(seed)
    pools = {f"p{i}": rng.choice(quotas) for i in range(rng.randint(1, 4))}
    jobs = []
    while len(jobs) < count:
        pool = rng.choice(list(pools))
        row = (f"j{len(jobs):02}", pool, rng.randint(0, 60), rng.choice((1, 2, 3, 6, 12, 30)), rng.choice(widths))
        cells, needed = default_cells(pools[pool], 8), sizes_of(row[4], 8)
        if sum(gpus >= needed[0] for gpus in cells) >= len(needed):
            jobs.append(row)
    return build(jobs, pools)


class Watched:
    """A policy, with a record of its starts."""

    def __init__(self, policy):
        self._policy, self.starts = policy, []

    def __getattr__(self, name):
        return getattr(self._policy, name)

    def decide(self, view):
        decision = self._policy.decide(view)
        self.starts += [RunningJob(view.active[seq], view.now_s, grant) for seq, grant in decision.change.items()]
        return decision


def run(workload, policy, source=None):
    """(Start seconds by job id, starts)."""
    watched = Watched(policy)
    log = replay(workload, watched, source)
    return dict(zip((job.job_id for job in workload.jobs), log.start_s.tolist(), strict=True)), watched.starts


@pytest.fixture(scope="session")
def on_servers():
    return build


@pytest.fixture(scope="session")
def drawn():
    return draw


@pytest.fixture(scope="session")
def placed_run():
    return run
