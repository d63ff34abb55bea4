"""Order within a pool's quota, with and without overtaking, and beside jobs that hold its GPUs on lease."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Grant
from jobcast.schedulers.pool_rules import (
    Fcfs,
    GlobalShortestServiceFirst,
    Karma,
    MaxMinFair,
    ShortestJobFirst,
    ShortestServiceFirst,
    earned_s,
)
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.cluster import ClusterState
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Oracle
from jobcast.simulator.workload import Workload
from tests.schedulers.events_driver import reference, starts, workloads

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


def recorded_starts(rows, *pools):
    """Rows of pool, submission, GPUs, duration, recorded start."""
    jobs = [Job(0, f"{at:02}", pool, submit_s, gpus) for at, (pool, submit_s, gpus, _, _) in enumerate(rows)]
    workload = Workload(jobs, [Outcome(row[3], start_s=row[4]) for row in rows], pools)
    source = Oracle(workload)
    return replay(workload, make_policy("as_recorded", source), source).start_s.tolist()


def test_jobs_start_when_the_trace_says():
    rows = [("p", 0.0, 2, 100.0, 7.5), ("p", 0.0, 1, 5.0, 3.25), ("p", 1.0, 2, 10.0, 107.5), ("p", 50.0, 1, 1.0, 50.0)]
    assert recorded_starts(rows, Pool("p", 3)) == [7.5, 3.25, 107.5, 50.0]


def test_quotas_do_not_bind():
    rows = [("p", 0.0, 2, 10.0, 0.0), ("p", 0.0, 2, 10.0, 1.0), ("q", 0.0, 2, 10.0, 20.0)]
    assert recorded_starts(rows, Pool("p", 2), Pool("q", 2)) == [0.0, 1.0, 20.0]


def test_who_finds_no_room_starts_when_there_is_some_and_who_has_no_start_at_once():
    rows = [("p", 0.0, 2, 10.0, 0.0), ("p", 0.0, 2, 10.0, 5.0), ("p", 1.0, 1, 10.0, 6.0), ("p", 30.0, 1, 1.0, nan)]
    assert recorded_starts(rows, Pool("p", 2)) == [0.0, 10.0, 20.0, 30.0]


MINUTE_S = 60.0


class Kept(Karma):
    """Keeps the credits at each decision."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.kept = []

    def decide(self, view):
        decision = super().decide(view)
        self.kept.append((view.now_s / MINUTE_S, {pool: round(of, 6) for pool, of in self.credits_s.items()}))
        return decision


def run(made, **settings):
    policy = Kept(**settings)
    log = replay(made, policy)
    begins = zip(made.jobs, log.start_s.tolist(), strict=True)
    return {job.job_id: at / MINUTE_S for job, at in begins}, dict(policy.kept)


def test_credits_by_hand(workload):
    # Half of each quota of 4 is guaranteed. From 0 to 10 a borrows 2 GPUs and pays half a quota a second, which is what
    # everybody is given; b could donate 1 and c 2, as poor as b: each earns for 1, a quarter of a quota.
    # From 10 to 20 a holds 3 and borrows 1; of b and c, whom it left alike, c alone donates 1: b asks for 2.
    jobs = [("a0", "a", 0, 10, 4), ("b0", "b", 0, 25, 1), ("a1", "a", 10, 10, 3), ("b1", "b", 10, 10, 1)]
    made = workload([*jobs, ("c0", "c", 10, 10, 1)], {"a": 4, "b": 4, "c": 4})
    begins, credits = run(made)
    assert begins == {"a0": 0, "b0": 0, "a1": 10, "b1": 10, "c0": 10}
    assert credits == {
        0: {"a": 0, "b": 0, "c": 0},
        10: {"a": 300 - 300, "b": 300 + 150, "c": 300 + 150},
        20: {"a": 300 - 150, "b": 450 + 300, "c": 450 + 300 + 150},
        25: {"a": 150 + 150, "b": 750 + 150, "c": 900 + 150},
    }


def test_who_ends_last_pays_for_nothing_after_that(workload):
    # Nobody is there from 5 to 20: a, whose job ended last, borrows nothing then and earns as b does for its guarantee.
    made = workload([("a0", "a", 0, 5, 2), ("b0", "b", 20, 1, 1)], {"a": 2, "b": 2})
    credits = run(made)[1]
    assert credits[5] == {"a": 150 - 150, "b": 150 + 150}
    assert credits[20] == {"a": 0 + 450, "b": 300 + 450}


def test_who_waits_donates_nothing_and_a_lent_guarantee_earns_nothing(workload):
    # b's jobs wait from 5 on: until then b earns for the GPU of its guarantee that a holds, then what all are given.
    made = workload([("a0", "a", 0, 10, 2), ("a1", "a", 0, 10, 2), ("b0", "b", 5, 1, 1)], {"a": 2, "b": 2})
    begins, credits = run(made)
    assert begins == {"a0": 0, "a1": 0, "b0": 10}
    assert credits[5] == {"a": 150 - 3 * 150, "b": 150 + 150}
    assert credits[10] == {"a": 300 - 3 * 300, "b": 300 + 150}


def test_who_lent_borrows_first(workload):
    # By shares a2, first of equals, would start beside b0; b has credits for both of its jobs.
    rows = [("a0", "a", 0, 10, 2), ("a1", "a", 0, 10, 2), ("a2", "a", 9, 5, 2), ("b0", "b", 9, 5, 2)]
    made = workload([*rows, ("b1", "b", 9, 5, 2)], {"a": 2, "b": 2})
    assert run(made)[0] == {"a0": 0, "a1": 0, "b0": 10, "b1": 10, "a2": 15}


def test_guarantees_come_before_loans_whatever_the_credits(workload):
    # At 10 a owes and b has credits for both of its jobs, which would take all 8 GPUs; 2 are within a's guarantee.
    rows = [("a0", "a", 0, 10, 4), ("a1", "a", 0, 10, 4), ("a2", "a", 9, 5, 2), ("b0", "b", 9, 5, 4)]
    made = workload([*rows, ("b1", "b", 9, 5, 4)], {"a": 4, "b": 4})
    begins, credits = run(made)
    assert credits[10]["a"] < 0 < credits[10]["b"]
    assert begins == {"a0": 0, "a1": 0, "a2": 10, "b0": 10, "b1": 15}
    # A guarantee of less than 2 does not cover it.
    assert run(made, alpha=0.49)[0] == {"a0": 0, "a1": 0, "a2": 15, "b0": 10, "b1": 10}


def test_equal_credits_go_by_what_is_held_for_a_quantum(workload):
    # All have 0: after each start its pool pays a quantum, so that pools take turns, names first.
    rows = [(f"{pool}{i}", pool, 0, 5, 1) for pool in "ab" for i in range(3)]
    made = workload(rows, {"a": 2, "b": 1})
    # a's turns count half: its quota is twice as large.
    assert run(made, alpha=0.0)[0] == {"a0": 0, "b0": 0, "a1": 0, "a2": 5, "b1": 5, "b2": 5}


def test_what_is_left_of_a_guarantee_makes_nobody_richer(workload):
    # 6 GPUs are idle at 5, either head asks for 4, beyond its guarantee of 2: equal credits, so that names decide.
    rows = [("a0", "a", 0, 10, 2), ("a1", "a", 5, 10, 4), ("b1", "b", 5, 10, 4)]
    assert run(workload(rows, {"a": 4, "b": 4}))[0] == {"a0": 0, "a1": 5, "b1": 10}


@pytest.mark.parametrize("quantum_s", [10.0, 60.0, 90.0, 600.0])
def test_without_credits_a_pool_waits_whole_quanta_until_it_can_pay_one(workload, quantum_s):
    # 3 of 4 are held, nine tenths are guaranteed: .1 of the quota is earned a second. 4 GPUs more would cost .85 of it:
    # a quantum of them, less what is earned in it, is .75 quanta, earned in 7.5. Or until a0 ends.
    made = workload([("a0", "a", 7, 60, 3), ("a1", "a", 7, 5, 4)], {"a": 4, "b": 3})
    begins, _ = run(made, alpha=0.9, credits_h=0.0, quantum_s=quantum_s)
    assert begins == {"a0": 7, "a1": pytest.approx(7 + min(8 * quantum_s / MINUTE_S, 60))}


def test_a_pool_that_lacks_less_than_a_quantum_earns_waits_for_one(workload):
    # As above; of 45 s of the quota that a quantum of 60 s would take, 41 are there, and 4 are earned in 40 s.
    made = workload([("a0", "a", 7, 60, 3), ("a1", "a", 7, 5, 4)], {"a": 4, "b": 3})
    assert run(made, alpha=0.9, credits_h=41.0 / 3600.0)[0] == {"a0": 7, "a1": 8}


def test_credits_at_first_are_spent(workload):
    rows = [(f"a{i}", "a", 30 * (i // 2), 30, 8) for i in range(6)]
    made = workload(rows, {"a": 8, "b": 8})
    begins, credits = run(made, credits_h=0.5)
    # Half an hour of the quota. One job pays what is given, two at once a whole quota a second more: at 30 nothing is
    # left, and from then on they run one by one.
    assert credits[30]["a"] == 1800 - 1800
    assert begins == {"a0": 0, "a1": 0, "a2": 30, "a3": 60, "a4": 90, "a5": 120}
    # Without a number of credits nobody runs out.
    assert run(made)[0] == {"a0": 0, "a1": 0, "a2": 30, "a3": 30, "a4": 60, "a5": 60}


def plain(alpha, quantum_s, initial_s=0.0, least_s=-inf):
    """The rule over lists, credits settled by filling up the poorest donors step by step."""
    state = {}

    def rule(cluster):
        quotas = cluster.quotas
        credits = state.setdefault("credits", dict.fromkeys(quotas, initial_s))
        if "held" in state:
            settle(credits, quotas, state["held"], state["asked"], alpha, cluster.now - state["now"])

        def balance(pool, more=0):
            held = cluster.held(pool) + more
            return round(credits[pool] + quantum_s * (1 - alpha - max(0, held / quotas[pool] - alpha)), 3)

        for guaranteed in (True, False):
            while True:
                heads = [(-balance(pool), pool, cluster.queue(pool)[0]) for pool in quotas if cluster.queue(pool)]
                fits = [
                    (rank, pool, job)
                    for rank, pool, job in heads
                    if job.gpus <= cluster.idle()
                    and (
                        cluster.held(pool) + job.gpus <= alpha * quotas[pool]
                        if guaranteed
                        else balance(pool, job.gpus) >= least_s
                    )
                ]
                if not fits:
                    break
                cluster.start(min(fits, key=lambda row: row[:2])[2])
        state["now"], state["held"] = cluster.now, {pool: cluster.held(pool) for pool in quotas}
        state["asked"] = {pool: cluster.held(pool) + sum(job.gpus for job in cluster.queue(pool)) for pool in quotas}

    return rule


def settle(credits, quotas, held, asked, alpha, passed_s):
    borrowed = {pool: max(0, held[pool] - alpha * quota) for pool, quota in quotas.items()}
    left = {pool: max(0, alpha * quota - asked[pool]) * passed_s for pool, quota in quotas.items()}
    to_pour = min(sum(borrowed.values()) * passed_s, sum(left.values()))
    while to_pour > 1e-9:
        open_ = [pool for pool in quotas if left[pool] > 1e-9]
        lowest = min(credits[pool] for pool in open_)
        poorest = [pool for pool in open_ if credits[pool] < lowest + 1e-9]
        above = min((credits[pool] for pool in open_ if pool not in poorest), default=inf)
        width = sum(quotas[pool] for pool in poorest)
        rise = min(above - lowest, to_pour / width, *(left[pool] / quotas[pool] for pool in poorest))
        for pool in poorest:
            credits[pool] += rise
            left[pool] -= rise * quotas[pool]
        to_pour -= rise * width
    for pool, quota in quotas.items():
        credits[pool] += (1 - alpha) * passed_s - borrowed[pool] * passed_s / quota


@given(workloads(max_jobs=20), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([0.5, 60.0, 3600.0]))
def test_decisions_are_those_of_the_plain_rule(workload, alpha, quantum_s):
    found = starts(workload, lambda source: Karma(alpha, quantum_s=quantum_s))
    assert found == reference(workload, plain(alpha, quantum_s))


POOLS = st.lists(
    st.tuples(st.integers(-9, 9), st.integers(1, 8), st.integers(0, 12), st.integers(0, 9)), min_size=1, max_size=5
)


@given(POOLS, st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 7.0]))
def test_donors_are_filled_up_from_the_poorest(rows, alpha, passed_s):
    credits, quotas, held, more = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    names = range(len(rows))
    plainly = dict(enumerate(credits.tolist()))
    of = [dict(zip(names, column.tolist(), strict=True)) for column in (quotas, held, held + more)]
    settle(plainly, *of, alpha, passed_s)
    found = credits + earned_s(credits, quotas, held, held + more, alpha, passed_s)
    assert found == pytest.approx([plainly[name] for name in names], abs=1e-6)


def test_richer_donors_earn_once_the_poorest_has_caught_up():
    # 2 GPUs are borrowed for 8 s. b is 2 s of its quota behind c, 8 GPU-seconds that it earns alone; then both earn.
    credits, quotas, held = np.array([[0.0, 1.0, 3.0], [4.0, 4.0, 4.0], [4.0, 0.0, 0.0]])
    earned = earned_s(credits, quotas, held, asked=held, alpha=0.5, passed_s=8.0)
    assert earned.tolist() == [4 - 4, 4 + 2 + 1, 4 + 1]
    # A quota twice as large takes two thirds of what both are given.
    quotas = np.array([4.0, 8.0, 4.0])
    earned = earned_s(np.array([0.0, 3.0, 3.0]), quotas, held, asked=held, alpha=0.5, passed_s=6.0)
    assert earned.tolist() == [3 - 3, 3 + 1, 3 + 1]
