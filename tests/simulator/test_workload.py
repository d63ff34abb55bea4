import itertools
from dataclasses import replace

import pytest

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.simulator.workload import Beginning, Workload, drop_too_wide, pools_only
from tests.shared import refused

ROWS = [("b", "p", 5, 1, 2), ("a", "q", 5, 2, 1), ("c", "p", 0, 3, 1)]


def test_jobs_are_sorted_by_submission_then_id_and_numbered(workload):
    for rows in itertools.permutations(ROWS):
        made = workload(rows, {"q": 1, "p": 2})
        assert [(job.seq, job.job_id) for job in made.jobs] == [(0, "c"), (1, "a"), (2, "b")]
        assert [outcome.duration_s for outcome in made.outcomes] == [3, 2, 1]
        assert [pool.name for pool in made.pools] == ["p", "q"]
        assert made.total_gpus == 3


def test_the_given_order_breaks_the_last_tie(workload):
    made = workload([("a", "p", 0, 7, 1), ("a", "p", 0, 3, 1)], {"p": 1})
    assert [outcome.duration_s for outcome in made.outcomes] == [7, 3]


def test_jobs_that_are_in_order_are_kept_as_they_are():
    jobs = [Job(0, "a", "p", 0.0, 1), Job(1, "b", "p", 1.0, 1)]
    made = Workload(jobs, [Outcome(1.0), Outcome(1.0)], [Pool("p", 1)])
    assert all(kept is given for kept, given in zip(made.jobs, jobs, strict=True))


def test_a_job_wider_than_its_pool_is_refused_with_the_remedy(workload):
    made = workload([("a", "p", 0, 1, 1), ("w", "p", 1, 1, 3)], {"p": 2, "q": 5})
    refused(TraceError, r"job w asks for 3 GPUs, its pool p has 2 .*--drop-too-wide", made.check)


@pytest.mark.parametrize("pools", [{"p": 2}, {"p": 2, "x": 0}])
def test_a_job_of_a_pool_without_capacity_is_refused_with_the_remedy(workload, pools):
    made = workload([("a", "p", 0, 1, 1), ("h", "x", 1, 1, 1)], pools)
    refused(PoolsError, r"pool x has no GPUs.*job h.*--pools-only", made.check)


@pytest.mark.parametrize("duration", [0, -1, float("nan")])
def test_a_job_must_run_for_a_positive_time(workload, duration):
    with pytest.raises(TraceError, match="job a: its duration must be more than 0"):
        workload([("a", "p", 0, duration, 1)], {"p": 1}).check()
    workload([("a", "p", 0, 0.5, 1)], {"p": 1}).check()


def test_no_more_is_held_at_the_beginning_than_a_pool_has(workload):
    made = workload([(name, "p", 0, 9, 1) for name in "abc"], {"p": 2})
    full = replace(made, begin=Beginning(5.0, {"a": (2.0, 3.0), "c": (1.0, 4.0)}))
    full.check()
    assert [job.job_id for job in full.running] == ["c", "a"]  # as they started
    with pytest.raises(TraceError, match="jobs of pool p hold 3 GPUs when the run begins, its quota is 2"):
        replace(made, begin=Beginning(5.0, dict.fromkeys("abc", (0.0, 5.0)))).check()


def test_numbers_of_jobs_and_outcomes_must_agree():
    refused(TraceError, "1 jobs but 0 outcomes", Workload, [Job(0, "a", "p", 0.0, 1)], [], [Pool("p", 1)])


def test_a_pool_must_not_be_given_twice():
    refused(PoolsError, "pool p is given 2 times", Workload, [], [], [Pool("p", 1), Pool("p", 2)])


def test_dropping_counts_and_renumbers(workload):
    rows = [("w", "p", 0, 1, 3), ("x", "nowhere", 1, 2, 9), ("a", "p", 2, 4, 2)]
    kept, wide = drop_too_wide(workload(rows, {"p": 2}))
    assert wide == 1
    kept, homeless = pools_only(kept)
    assert homeless == 1
    assert [(job.seq, job.job_id) for job in kept.jobs] == [(0, "a")]
    assert [outcome.duration_s for outcome in kept.outcomes] == [4]
    kept.check()
