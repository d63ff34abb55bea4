"""The oracle as a policy, in the engine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.milp.instance import on_grid
from jobcast.schedulers.milp.policy import Milp
from jobcast.schedulers.milp.solve import Settings, plan
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.metrics import against
from jobcast.simulator.workload import Workload
from tests.schedulers.milp.milp_cases import draw, known


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.booleans())
def test_the_plan_is_carried_out_and_nobody_is_slowed(seed, exact):
    workload, _ = draw(seed, jobs=14, quotas=(4, 3, 2), span=12, longest=8)
    source = Oracle(workload)
    policy = Milp(source, exact=exact, time_limit_s=1.0)
    log = replay(workload, policy, source)
    planned = plan(*known(workload), Settings(exact=exact, time_limit_s=1.0))
    assert policy.figures()["milp_wait_s"] == float(log.start_s.sum() - log.submit_s.sum())
    if planned.gap == 0.0:
        assert policy.figures()["milp_wait_s"] == planned.total_wait_s
    assert against(log, replay(workload, make_policy("fcfs", None, {})))["slowed_pct"] == 0


@settings(max_examples=12)
@given(st.integers(0, 10**6))
def test_dedicated_jobs_stay_within_their_quotas(seed):
    workload, instance = draw(seed, jobs=14, quotas=(4, 3, 2), span=12, longest=8)
    source = Oracle(workload)
    log = replay(workload, Milp(source, time_limit_s=1.0), source)
    for index, pool in enumerate(workload.pools):
        own = log.dedicated & (log.pool == index)
        for at in np.unique(log.start_s):
            running = own & (log.start_s <= at) & (at < log.end_s)
            assert log.gpus[running].sum() <= pool.quota
    waits = instance.cutoff > instance.submit
    if not waits.any():
        assert log.dedicated.all()


def test_fractions_of_a_second_are_carried_out_too():
    """Ends and planned starts differ by dust here; a start waits for the end that it needs."""
    rng = np.random.default_rng(2)
    jobs = [Job(0, f"{index:02d}", "pq"[index % 2], float(rng.uniform(1.7e9, 1.7e9 + 20)), 1) for index in range(30)]
    outcomes = [Outcome(float(rng.uniform(0.1, 9))) for _ in jobs]
    workload = Workload(*on_grid(jobs, outcomes, 0.7), [Pool("p", 2), Pool("q", 1)])
    source = Oracle(workload)
    policy = Milp(source, grid_s=0.7, time_limit_s=5.0)
    log = replay(workload, policy, source)
    assert log.start_s.sum() - log.submit_s.sum() == pytest.approx(policy.figures()["milp_wait_s"], abs=1e-3)


def test_a_workload_off_the_grid_is_refused():
    workload, _ = draw(0)
    source = Oracle(workload)
    with pytest.raises(ConfigError, match=r"policy milp: job \d+ .* no multiple of grid_s=25; round the trace's times"):
        replay(workload, Milp(source, grid_s=25.0), source)


def test_figures_come_with_the_plan():
    workload, _ = draw(4, jobs=14, quotas=(4, 3, 2), span=12, longest=8)
    source = Oracle(workload)
    policy = Milp(source, exact=True)
    assert policy.figures() == {}
    replay(workload, policy, source)
    assert policy.figures()["milp_gap"] == 0.0
    assert policy.figures()["milp_bound_s"] == policy.figures()["milp_wait_s"]
