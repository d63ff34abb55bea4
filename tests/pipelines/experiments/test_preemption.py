"""What settings change in the jobs that are replayed."""

from dataclasses import replace

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.preemption import scenario_workload
from jobcast.pipelines.experiments.simulation import simulate
from jobcast.schedulers.policies import split_settings
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.workload import Workload
from jobcast.traces.generators import generate
from tests.scenarios import pool_scenario

COUNT = 2000


@pytest.fixture(scope="module")
def made():
    """Every third job may be stopped."""
    jobs = [Job(0, f"{i:04d}", "a", float(i), 1, preemptible=i % 3 == 0) for i in range(COUNT)]
    return Workload(jobs, [Outcome(1.0)] * COUNT, [Pool("a", 1)], restart_s=5.0, resume_s=2.0)


def stoppable(workload):
    return {job.job_id for job in workload.jobs if job.preemptible}


def of(made, seed=0, **settings):
    return scenario_workload(made, own("sia_preempt", settings), seed)


def own(policy, settings):
    return split_settings(find_policy(policy), settings).own


def test_shares_of_none_and_all(made):
    assert stoppable(of(made, preemptible_share="0")) == set()
    assert len(stoppable(of(made, preemptible_share="1"))) == COUNT
    # a quarter of 2,000: 500, the standard deviation is 19
    assert 420 < len(stoppable(of(made, preemptible_share="0.25"))) < 580


def test_a_job_is_drawn_by_its_id_and_the_seed_alone(made):
    drawn = stoppable(of(made, preemptible_share="0.5"))
    assert stoppable(of(made, preemptible_share="0.5")) == drawn
    assert stoppable(of(made, seed=1, preemptible_share="0.5")) != drawn
    half = replace(made, jobs=made.jobs[::2], outcomes=made.outcomes[::2])
    assert stoppable(of(half, preemptible_share="0.5")) == drawn & {job.job_id for job in half.jobs}


def test_a_larger_share_takes_the_smaller_ones_jobs_too(made):
    some, more = (stoppable(of(made, preemptible_share=share)) for share in ("0.25", "0.5"))
    assert some < more


def test_nothing_else_changes(made):
    told = of(made, preemptible_share="0.5")
    assert [replace(job, preemptible=False) for job in told.jobs] == [
        replace(job, preemptible=False) for job in made.jobs
    ]
    assert (told.outcomes, told.pools, told.restart_s, told.resume_s) == (made.outcomes, made.pools, 5.0, 2.0)


def test_what_the_trace_says_holds_where_no_share_is_set(made):
    told = of(made, resume_s="60")
    assert told.resume_s == 60.0
    assert stoppable(told) == stoppable(made)
    assert of(made) is made


def test_policies_that_know_no_scenario_leave_it_alone(made):
    assert scenario_workload(made, own("fcfs", {}), 0) is made
    with pytest.raises(ConfigError, match="policy fcfs: setting resume_s: not known"):
        own("fcfs", {"resume_s": "9"})


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"preemptible_share": "1.5"}, "preemptible_share"), ({"resume_s": "-1"}, "resume_s")],
)
def test_values_that_cannot_be_read_are_refused(made, settings, told):
    with pytest.raises(ConfigError, match=f"policy sia_preempt: setting {told} must be "):
        of(made, **settings)


def test_a_simulation_replays_the_scenario(tmp_path):
    trace, pools = generate("sia", 2, {"variant": "higher_load"})
    scenario = pool_scenario(trace, pools)

    def stops(**settings):
        run = simulate(scenario, "sia_preempt", parse_forecasts("oracle"), home=tmp_path, seed=1, settings=settings)
        return int(run.log.preemptions.sum())

    assert stops(preemptible_share="0") == 0
    assert stops(preemptible_share="1", resume_s="60") > 0
