"""Order within a pool's quota, with and without overtaking, and beside jobs that hold its GPUs on lease."""

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import Grant
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.cluster import ClusterState
from jobcast.simulator.forecast_sources import Conservative
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
