"""Small workloads in minutes, and logs as rows."""

import pytest

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.workload import Workload

MINUTE_S = 60.0


def build(jobs, pools):
    """Workload from rows (job id, pool, submit min, duration min, gpus) and quotas by pool."""
    return Workload(
        [Job(0, name, pool, MINUTE_S * at, gpus) for name, pool, at, _, gpus in jobs],
        [Outcome(MINUTE_S * duration) for *_, duration, _ in jobs],
        [Pool(name, quota) for name, quota in pools.items()],
    )


def starts(workload, policy, settings=None, source=None):
    """Start minutes by job id, in order of submission."""
    source = source or Oracle(workload)
    log = replay(workload, make_policy(policy, source, settings or {}), source)
    return {job.job_id: at / MINUTE_S for job, at in zip(workload.jobs, log.start_s.tolist(), strict=True)}


@pytest.fixture(scope="session")
def workload():
    return build


@pytest.fixture(scope="session")
def starts_of():
    return starts
