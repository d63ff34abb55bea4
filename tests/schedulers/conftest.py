"""Small workloads in minutes, and when jobs of them start."""

from functools import partial

import pytest

from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle
from tests.simulator.pool_cases import workload_of

MINUTE_S = 60.0


def starts(workload, policy, settings=None, source=None):
    """Start minutes by job id, in order of submission."""
    source = source or Oracle(workload)
    log = replay(workload, make_policy(policy, source, settings or {}), source)
    return {job.job_id: at / MINUTE_S for job, at in zip(workload.jobs, log.start_s.tolist(), strict=True)}


@pytest.fixture(scope="session")
def workload():
    return partial(workload_of, unit_s=MINUTE_S)


@pytest.fixture(scope="session")
def starts_of():
    return starts
