from itertools import permutations
from math import inf

import pytest

from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import Decision, Grant
from jobcast.schedulers.tentative_allocation import Loads, TentativeAllocation
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
        for job, left in ((C, ["p"]), (A, ["p"]), (B, [])):
            draft.start(job)
            assert [pool.name for pool in draft.waiting()] == left
    draft = TentativeAllocation(view())
    for job in (A, B):
        draft.start(job)
    assert [pool.name for pool in draft.waiting()] == ["q"]


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
    assert [draft.anybody(gpus, 9) for gpus in (0, 1)] == [False, True]
    draft.start(B)
    assert draft.narrowest(9) <= 2


def spare(jobs, quotas, **running):
    """A draft of a cluster where jobs are pending, and so many GPUs of pools held by one job each."""
    state = ClusterState([Pool(name, quota) for name, quota in quotas.items()])
    held = [Job(90 + at, pool, pool, 0.0, gpus) for at, (pool, gpus) in enumerate(running.items())]
    for job in (*jobs, *held):
        state.submit(job, lane=0, key=0.0)
    for job in held:
        state.start(job, Grant(job.gpus))
    return TentativeAllocation(state), state.pools


def test_a_share_of_quotas_is_kept_as_far_as_there_is_room():
    # Unused and not claimed: 1 of p's 4, 6 of q's 8; half of the quotas are 2 and 4.
    draft, _ = spare([Job(0, "a", "p", 0.0, 3), Job(1, "b", "q", 0.0, 2)], {"p": 4, "q": 8})
    assert draft.pledged() == 3 + 2
    assert draft.pledged(0.5) == 3 + 2 + 1 + 4
    read = draft._view.tally
    assert (read.pledged, [room for _, room in read.roomy.values()]) == (3 + 2, [1, 6])


def test_what_is_usable_is_what_forecasts_leave_up_to_the_rooms_of_pools():
    jobs, quotas, asked = [Job(0, "a", "p", 0.0, 3)], {"p": 4, "q": 8, "r": 5}, []
    draft, _ = spare(jobs, quotas, r=5)
    forecast = {"p": 9.0, "q": 2.5}

    def ask(pool, horizon_s):
        asked.append((pool, horizon_s))
        return forecast[pool]

    # 3 are claimed, p has room for one more of the 9 to come, q for all that it asks for; r has none.
    assert draft.usable(Loads(60.0, ask)) == 12 - 3 - 1 - 2.5
    assert sorted(asked) == [("p", 60.0), ("q", 60.0)]
    assert draft.usable(Loads(60.0, ask), most=2.0) == 12 - 3  # more than that is claimed already: nobody is asked
    assert len(asked) == 2
    assert draft.usable(Loads(60.0, ask), most=3.0) < 12 - 3
    assert len(asked) == 3
    assert draft.left() == (12, range(13))


def test_other_pools_hold_what_they_held():
    draft, pools = spare([Job(0, "a", "p", 0.0, 3), Job(1, "b", "q", 0.0, 2)], {"p": 4, "q": 8, "r": 2}, r=1)
    draft.start(Job(0, "a", "p", 0.0, 3))
    told = [(draft.allocated(pool), draft.dedicated(pool), draft.pending_gpus(pool)) for pool in pools.values()]
    assert told == [(3, 3, 0), (0, 0, 2), (1, 1, 0)]


def test_the_last_gpu_is_given_away_too():
    a, b = Job(0, "a", "p", 0.0, 1), Job(1, "b", "q", 0.0, 1)
    draft, _ = spare([a, b], {"p": 1, "q": 1})
    assert not draft.start(Job(2, "c", "p", 0.0, 3))
    assert draft.lend(a)
    assert draft.decision().change == {0: Grant(1, dedicated=False)}
    assert [job for _, job in draft.due()] == [b]
    draft.start_heads(draft.start)
    assert draft.decision().change == {0: Grant(1, dedicated=False), 1: Grant(1)}
    assert draft.due() == ()
    draft, _ = spare([a, b], {"p": 1, "q": 1})
    draft.start_heads(draft.dedicate)
    assert draft.decision().change == {0: Grant(1), 1: Grant(1)}


def test_the_first_jobs_of_a_pool_start_while_its_quota_has_room():
    jobs = [Job(seq, str(seq), "p", 0.0, gpus) for seq, gpus in enumerate((1, 2, 2, 1))]
    for quota, started in ((5, [0, 1, 2]), (4, [0, 1]), (3, [0, 1]), (9, [0, 1, 2, 3])):
        draft, pools = spare(jobs, {"p": quota, "q": 9})
        draft.dedicate_heads(pools["p"])
        assert list(draft.decision().change) == started


def test_heads_that_cannot_start_let_others_pass_unless_order_is_strict():
    # By shares all are level, and go by name; p's head is too wide for what is idle, s has nobody.
    rows = [("p", 3), ("q", 1), ("q", 1), ("r", 1)]
    jobs = [Job(seq, str(seq), pool, 0.0, gpus) for seq, (pool, gpus) in enumerate(rows)]
    quotas = {"p": 3, "q": 3, "r": 3, "s": 7}
    for strict, started in (({}, [1, 3]), ({"strict": True}, [])):
        draft, _ = spare(jobs, quotas, s=14)
        draft.start_heads(draft.start, **strict)
        assert list(draft.decision().change) == started
    # With more room p's head goes first, then those of smaller shares; by another rank r is first.
    for rank, started in ((None, [0, 1, 3, 2]), (lambda pool: -ord(pool.name), [3, 1, 2, 0])):
        draft, _ = spare(jobs, quotas, s=9)
        draft.start_heads(draft.start, strict=True, rank=rank)
        assert list(draft.decision().change) == started
