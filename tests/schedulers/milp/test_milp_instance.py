"""Jobs on a grid, and their cut-offs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.milp.instance import make_instance, on_grid
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.workload import Workload
from tests.schedulers.milp.milp_cases import GRID_S, draw, known

POOL = [Pool("p", 2)]


def test_times_are_rounded_up_and_no_job_vanishes():
    jobs = [Job(0, "a", "p", 119.0, 1), Job(1, "b", "p", 120.0, 1), Job(2, "c", "p", 120.0 + 1e-9, 1)]
    rounded, outcomes = on_grid(jobs, [Outcome(1.0), Outcome(60.0), Outcome(61.0)], 60.0)
    assert [job.submit_s for job in rounded] == [120.0, 120.0, 120.0]
    assert [outcome.duration_s for outcome in outcomes] == [60.0, 60.0, 120.0]


@given(st.integers(0, 10**6))
def test_cut_offs_are_the_starts_under_fcfs(seed):
    workload, instance = draw(seed, jobs=20, quotas=(4, 3, 1), span=15, longest=9)
    log = replay(workload, make_policy("fcfs", None, {}))
    assert (instance.origin_s + GRID_S * instance.cutoff).tolist() == log.start_s.tolist()


def test_a_grid_far_from_the_epoch_holds_any_fraction_of_a_second():
    workload = Workload(
        [Job(0, "a", "p", 1.7e9 + 0.3, 1), Job(0, "b", "p", 1.7e9 + 0.9, 2)], [Outcome(0.6), Outcome(1.8)], POOL
    )
    instance = make_instance(*known(workload), 0.6)
    assert (instance.submit.tolist(), instance.duration.tolist(), instance.cutoff.tolist()) == ([0, 1], [1, 3], [0, 1])


@pytest.mark.parametrize(
    ("submit_s", "duration_s", "gpus", "what"),
    [
        (90.0, 60.0, 1, r"job b is submitted 90\.000000 s after the first job, .* --set grid_s="),
        (60.0, 30.0, 1, r"job b runs 30\.000000 s, which is no multiple of grid_s=60; round"),
        (60.0, 0.0, 1, r"job b runs 0\.000000 s"),
        (60.0, 60.0, 3, "job b is wider than pool p"),
    ],
)
def test_what_lies_off_the_grid_is_refused(submit_s, duration_s, gpus, what):
    jobs = [Job(0, "a", "p", 0.0, 1), Job(1, "b", "p", submit_s, gpus)]
    with pytest.raises(ConfigError, match=what):
        make_instance(jobs, [60.0, duration_s], POOL, 60.0)


def test_a_gridded_workload_is_accepted():
    rng = np.random.default_rng(0)
    jobs = [Job(0, f"{index:02d}", "p", float(rng.uniform(1e9, 1e9 + 1e4)), 1) for index in range(30)]
    workload = Workload(*on_grid(jobs, [Outcome(float(rng.uniform(1, 1e4))) for _ in jobs], 300.0), POOL)
    assert len(make_instance(*known(workload), 300.0)) == 30
