"""Order within a pool's quota, with and without overtaking, and beside jobs that hold its GPUs on lease."""

from math import nan

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Grant
from jobcast.schedulers.pool_rules import (
    Fcfs,
    GlobalShortestServiceFirst,
    MaxMinFair,
    ShortestJobFirst,
    ShortestServiceFirst,
)
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.cluster import ClusterState
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Oracle
from jobcast.simulator.workload import Workload

QUEUE = [("a", "p", 0, 10, 3), ("wide", "p", 0, 10, 4), ("b", "p", 1, 2, 1), ("c", "p", 2, 20, 1), ("d", "q", 3, 1, 2)]


@pytest.mark.parametrize(
    ("backfill", "expected"),
    [
        ("false", {"a": 0, "wide": 10, "b": 20, "c": 20, "d": 3}),
        # One GPU is left by a: b takes it, then c, and wide waits for both.
        ("true", {"a": 0, "b": 1, "c": 3, "wide": 23, "d": 3}),
    ],
)
@pytest.mark.parametrize("policy", ["fcfs", "sia"])
def test_who_fits_the_quota_overtakes_who_does_not(workload, starts_of, policy, backfill, expected):
    made = workload(QUEUE, {"p": 4, "q": 2})
    # Nothing is lent by forecasts of jobs that fill all quotas.
    assert starts_of(made, policy, {"backfill": backfill}, Conservative(made, (5, 60, 720))) == expected


# Services 20, 9, 2 and 1.5 GPU-minutes.
SERVICES = [("a", "p", 0, 10, 2), ("long", "p", 1, 9, 1), ("short", "p", 1, 2, 1), ("wide", "p", 1, 0.5, 3)]


def test_the_least_service_blocks_others_unless_they_may_overtake(workload):
    made = workload(SERVICES, {"p": 3})
    oracle = Oracle(made)
    starts = [replay(made, ShortestServiceFirst(oracle, *given), oracle).start_s / 60 for given in ((), (True,))]
    assert [one.tolist() for one in starts] == [[0, 10.5, 10.5, 10], [0, 3, 1, 12]]
    # By run times alone, too, the wide one is first.
    assert (replay(made, ShortestJobFirst(oracle), oracle).start_s / 60).tolist() == [0, 10.5, 10.5, 10]


def test_the_least_service_of_all_pools_starts_on_anybodys_gpus(workload):
    """Of four GPUs two are idle at 1; at 10 the wide one leaves one, and the short one has it."""
    made = workload([(job, "pq"[job == "short"], *rest) for job, _, *rest in SERVICES], {"p": 3, "q": 1})
    oracle = Oracle(made)
    starts = [replay(made, GlobalShortestServiceFirst(oracle, *given), oracle).start_s / 60 for given in ((), (True,))]
    assert [one.tolist() for one in starts] == [[0, 10.5, 10, 10], [0, 1, 1, 10]]


def test_a_head_that_does_not_fit_blocks_other_pools_only_where_that_is_strict(workload):
    """q holds three of four GPUs; then p's head, of the smaller share, needs two."""
    rows = [("a", "q", 0, 10, 2), ("b", "q", 0, 10, 1), ("narrow", "q", 1, 2, 1), ("wide", "p", 1, 1, 2)]
    made = workload(rows, {"p": 2, "q": 2})
    starts = [replay(made, MaxMinFair(*given)).start_s / 60 for given in ((), (True,))]
    assert [one.tolist() for one in starts] == [[0, 0, 1, 10], [0, 0, 10, 10]]


@pytest.mark.parametrize("policy", ["fcfs", "sia"])
def test_nobody_starts_on_gpus_that_others_hold_on_lease(policy):
    """A job of p is lent what q does not use; q's own fit its quota, and one of them what is idle."""
    state = ClusterState([Pool("p", 2), Pool("q", 4)])
    lent = Job(0, "lent", "p", 0.0, 5)
    state.submit(lent, lane=0, key=0.0)
    state.start(lent, Grant(5, dedicated=False))
    for job in (Job(1, "wide", "q", 1.0, 3), Job(2, "narrow", "q", 1.0, 1), Job(3, "late", "q", 2.0, 1)):
        state.submit(job, lane=0, key=0.0)
    source = Conservative(Workload((), (), [Pool("p", 2), Pool("q", 4)]), (5, 60, 720))
    decision = make_policy(policy, source, {"backfill": "true"}).decide(state)
    assert decision.change == {2: Grant(1)}


def test_whether_later_arrivals_delay_anybody():
    assert (Fcfs().overtakes, Fcfs(backfill=True).overtakes) == (False, True)


def test_with_turns_nobody_overtakes():
    """In cells a job of sia starts when its turn comes in the schedule that its pool would have alone."""
    source = Conservative(Workload((), (), [Pool("p", 2)]), (5, 60, 720))
    make_policy("sia", source, {"backfill": "false"}, cells={})
    with pytest.raises(
        ConfigError, match="policy sia: setting backfill: with locality jobs start when their turn comes"
    ):
        make_policy("sia", source, {"backfill": "true"}, cells={})


def starts(rows, *pools):
    """Rows of pool, submission, GPUs, duration, recorded start."""
    jobs = [Job(0, f"{at:02}", pool, submit_s, gpus) for at, (pool, submit_s, gpus, _, _) in enumerate(rows)]
    workload = Workload(jobs, [Outcome(row[3], start_s=row[4]) for row in rows], pools)
    source = Oracle(workload)
    return replay(workload, make_policy("as_recorded", source), source).start_s.tolist()


def test_jobs_start_when_the_trace_says():
    rows = [("p", 0.0, 2, 100.0, 7.5), ("p", 0.0, 1, 5.0, 3.25), ("p", 1.0, 2, 10.0, 107.5), ("p", 50.0, 1, 1.0, 50.0)]
    assert starts(rows, Pool("p", 3)) == [7.5, 3.25, 107.5, 50.0]


def test_quotas_do_not_bind():
    rows = [("p", 0.0, 2, 10.0, 0.0), ("p", 0.0, 2, 10.0, 1.0), ("q", 0.0, 2, 10.0, 20.0)]
    assert starts(rows, Pool("p", 2), Pool("q", 2)) == [0.0, 1.0, 20.0]


def test_who_finds_no_room_starts_when_there_is_some_and_who_has_no_start_at_once():
    rows = [("p", 0.0, 2, 10.0, 0.0), ("p", 0.0, 2, 10.0, 5.0), ("p", 1.0, 1, 10.0, 6.0), ("p", 30.0, 1, 1.0, nan)]
    assert starts(rows, Pool("p", 2)) == [0.0, 10.0, 20.0, 30.0]
