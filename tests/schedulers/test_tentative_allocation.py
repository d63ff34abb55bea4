from itertools import permutations
from math import inf

import pytest

from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import Decision, Grant
from jobcast.schedulers.tentative_allocation import TentativeAllocation
from jobcast.simulator.cluster import ClusterState

A, B, C = Job(0, "a", "p", 0.0, 2), Job(1, "b", "p", 0.0, 1), Job(2, "c", "q", 0.0, 4)


def view():
    state = ClusterState([Pool("p", 4), Pool("q", 4), Pool("r", 2)])
    running = Job(3, "d", "p", 0.0, 1)
    for job in (A, B, C, running):
        state.submit(job, lane=job.gpus, key=0.0)
    state.start(running, Grant(1))
    return state


def figures(draft, pool):
    return (
        draft.free,
        draft.allocated(pool),
        draft.dedicated(pool),
        draft.unused_quota(pool),
        draft.pending_gpus(pool),
        draft.share(pool),
    )


def test_starts_show_in_the_draft_and_not_in_the_view():
    state = view()
    draft, p = TentativeAllocation(state), state.pools["p"]
    assert figures(draft, p) == (9, 1, 1, 3, 3, 0.25)
    draft.start(A, dedicated=False)
    assert figures(draft, p) == (7, 3, 1, 3, 1, 0.75)
    draft.start(B)
    assert figures(draft, p) == (6, 4, 2, 2, 0, 1.0)
    assert (state.free_gpus, p.allocated, p.dedicated, p.pending.gpus) == (9, 1, 1, 3)
    assert draft.decision() == Decision({0: Grant(2, dedicated=False), 1: Grant(1)})


def test_jobs_that_were_started_are_passed_over():
    state = view()
    draft, p = TentativeAllocation(state), state.pools["p"]
    assert draft.head(p) is A
    assert draft.first(p, 1, 9) is B
    assert draft.first(p, 9, 0) is None
    draft.start(A)
    assert (draft.head(p), draft.first(p, 9, 9)) == (B, B)
    draft.start(B)
    assert (draft.head(p), draft.first(p, 9, 9)) == (None, None)


def test_waiting_pools_are_those_with_jobs_left():
    for asked_before in (True, False):
        draft = TentativeAllocation(view())
        if asked_before:
            assert [pool.name for pool in draft.waiting()] == ["p", "q"]
        draft.start(C)
        assert [pool.name for pool in draft.waiting() if draft.head(pool)] == ["p"]
        draft.start(A)
        assert [pool.name for pool in draft.waiting() if draft.head(pool)] == ["p"]
        draft.start(B)
        assert [pool.name for pool in draft.waiting() if draft.head(pool)] == []


def test_a_draft_without_changes_is_an_empty_decision():
    assert TentativeAllocation(view()).decision() == Decision()
    assert TentativeAllocation(view()).decision(5.0) == Decision(wake_s=5.0)


def sums(draft):
    """What a draft tells of all pools, and the same from its figures pool by pool."""
    pools = [draft._view.pools[name] for name in "pqr"]
    heads = {pool.name: job for pool in pools if (job := draft.head(pool)) is not None}
    told = (
        {pool.name: job for pool, job in draft.ready()},
        draft.pledged(),
        {pool.name: room for pool, room in draft.roomy()},
        {pool.name: job for pool, job in draft.firsts(2, 2)},
        draft.anybody(2, 2),
    )
    eligible = {pool.name: job for pool in pools if (job := draft.first(pool, 2, 2)) is not None}
    rooms = {pool.name: draft.unused_quota(pool) - draft.pending_gpus(pool) for pool in pools}
    worked_out = (
        {pool.name: heads[pool.name] for pool in pools if pool.name in heads
         and heads[pool.name].gpus <= draft.unused_quota(pool)},
        sum(min(draft.pending_gpus(pool), draft.unused_quota(pool)) for pool in pools),
        {name: room for name, room in rooms.items() if room > 0},
        eligible,
        bool(eligible),
    )  # fmt: skip
    return told, worked_out


@pytest.mark.parametrize("dedicated", [True, False])
@pytest.mark.parametrize("order", list(permutations((A, B, C))))
def test_sums_over_all_pools_follow_the_starts(order, dedicated):
    draft = TentativeAllocation(view())
    told, worked_out = sums(draft)
    assert told == worked_out
    assert told[:3] == ({"p": A, "q": C}, 7.0, {"r": 2.0})
    for job in order:
        draft.start(job, dedicated)
        told, worked_out = sums(draft)
        assert told == worked_out
    assert told[:2] == ({}, 0.0)


def test_the_narrowest_width_is_a_bound():
    draft = TentativeAllocation(view())
    assert [draft.narrowest(lane) for lane in (0, 1, 9)] == [inf, 1, 1]
    draft.start(B)
    assert draft.narrowest(9) <= 2
