"""Spare jobs that may be stopped, in counts: what a draft takes back, promotes and starts, by hand."""

import pytest

from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import Grant
from jobcast.schedulers.recall import RecallAllocation
from jobcast.simulator.cluster import ClusterState

SPARE = False
DEDICATED = True


def scene(quotas, running, pending=()):
    """A cluster, and its jobs by name: rows of name, pool, GPUs, and of what runs when it started and on whose GPUs."""
    state, jobs = ClusterState([Pool(name, quota) for name, quota in quotas.items()]), {}
    for seq, (name, pool, gpus, *_) in enumerate([*running, *pending]):
        jobs[name] = Job(seq, name, pool, 0.0, gpus, preemptible=not name.startswith("rigid"))
        state.submit(jobs[name], lane=0, key=0.0)
    for name, _, gpus, start_s, dedicated in sorted(running, key=lambda row: row[3]):
        state.advance(start_s)
        state.start(jobs[name], Grant(gpus, (), dedicated))
    return state, jobs


def changes(draft, jobs):
    names = {job.seq: name for name, job in jobs.items()}
    return {names[seq]: grant for seq, grant in draft.decision().change.items()}


def begun():
    """Of 8 GPUs one is free; 4 can be had back: two jobs of p, one of q, which started at the same time as p's last."""
    running = [
        ("early", "p", 2, 10.0, SPARE),
        ("late", "q", 1, 20.0, SPARE),
        ("last", "p", 1, 20.0, SPARE),
        ("own", "q", 2, 5.0, DEDICATED),
        ("rigid", "p", 1, 30.0, SPARE),
    ]
    return scene({"p": 4, "q": 4}, running, [("waits", "q", 2)])


def test_those_that_started_last_are_stopped_until_there_is_room():
    for gpus, stopped, free, held in [
        (1, [], 1, 4),
        (2, ["last"], 2, 3),
        (3, ["last", "late"], 3, 3),
        (4, ["last", "late", "early"], 5, 1),
        (9, ["last", "late", "early"], 5, 1),
    ]:
        state, jobs = begun()
        draft = RecallAllocation(state)
        assert (draft.free, draft.recallable_gpus, draft.allocated(state.pools["p"])) == (1, 4, 4)
        draft.recall(gpus)
        assert changes(draft, jobs) == dict.fromkeys(stopped)
        assert (draft.free, draft.recallable_gpus, draft.allocated(state.pools["p"])) == (free, 5 - free, held)


def test_what_was_stopped_in_the_same_decision_may_go_on_in_its_quota():
    state, jobs = begun()
    draft, p = RecallAllocation(state), state.pools["p"]
    draft.recall(2)
    draft.promote(state.running[jobs["last"].seq])
    draft.promote(state.running[jobs["early"].seq])
    assert changes(draft, jobs) == {"last": Grant(1), "early": Grant(2)}
    assert (draft.free, draft.recallable_gpus) == (1, 1)
    assert (draft.allocated(p), draft.dedicated(p), draft.unused_quota(p)) == (4, 3, 1)


def test_rooms_are_what_reserved_gpus_leave_once_others_are_had_back():
    draft = RecallAllocation(begun()[0])
    # p: 3 GPUs of its spare jobs and half a one to come, of 4; of the half that is left errors ask for half. q: 1 of a
    # spare job and 2 pending, of the 2 that are unused.
    expected = {"p": (0.5, 0.5)}
    # 5.75 are kept, 1.75 more than can be had back; what can be stopped loses two fifths of them, 2.3.
    assert draft.rooms(300.0, lambda pool: expected[pool.name], 0.4) == (1 - 1.75, 1 - 2)
    draft = RecallAllocation(begun()[0])
    # Beyond its quota nothing is kept for a pool; now all that is kept, 6, but 2 can be had back.
    assert draft.rooms(300.0, lambda _: (9.0, 0.0), 0.0) == (1 - 2, 1)


def test_no_forecast_is_asked_for_where_jobs_claim_the_whole_quota():
    state, _ = scene({"p": 3, "q": 2}, [("s", "p", 1, 0.0, SPARE)], [("a", "p", 2), ("b", "q", 2)])
    assert RecallAllocation(state).rooms(300.0, None, 0.0) == (4 - 4, 4)
    # 2 are kept, and 4 can be had back: rooms are no more than what is free.
    running = [("own", "q", 2, 0.0, DEDICATED), ("s", "q", 4, 0.0, SPARE)]
    state, _ = scene({"p": 6, "q": 2}, running, [("a", "p", 2)])
    assert RecallAllocation(state).rooms(300.0, lambda _: (0.0, 0.0), 0.0) == (2, 2)


@pytest.mark.parametrize(
    ("running", "asked", "due", "promoted"),
    [
        # s, submitted before a, just fits its quota: it is its turn, and then a's.
        ([("own", "p", 1, 0.0, DEDICATED), ("s", "p", 1, 0.0, SPARE)], 1, ["a"], ["s"]),
        # s does not fit its quota: nobody of its pool overtakes it.
        ([("own", "p", 2, 0.0, DEDICATED), ("s", "p", 2, 0.0, SPARE)], 1, [], []),
        # Nothing is idle; s of the other pool can be stopped for a, which has all of its quota then.
        ([("own", "q", 3, 0.0, DEDICATED), ("s", "q", 3, 0.0, SPARE)], 3, ["a"], []),
        # What cannot be stopped gives nothing back, and a has no more than its quota.
        ([("own", "q", 3, 0.0, DEDICATED), ("rigid", "q", 3, 0.0, SPARE)], 3, [], []),
        ([("own", "p", 1, 0.0, DEDICATED)], 3, [], []),
    ],
)
def test_whose_turn_it_is(running, asked, due, promoted):
    state, jobs = scene({"p": 3, "q": 3}, running, [("a", "p", asked)])
    draft = RecallAllocation(state)
    assert [job.job_id for _, job in draft.due()] == due
    assert changes(draft, jobs) == dict.fromkeys(promoted, Grant(1))


@pytest.mark.parametrize("width", [1, 2])
def test_who_was_stopped_needs_room_to_go_on_in_its_turn(width):
    # s is stopped for b; as b has come into its quota, t, which cannot, gives s its GPUs back, if it has as many.
    running = [("t", "q", 1, 10.0, SPARE), ("s", "p", width, 20.0, SPARE)]
    state, jobs = scene({"p": width, "q": 1}, running, [("b", "q", width)])
    draft = RecallAllocation(state)
    draft.recall(width)
    draft.start(jobs["b"])
    list(draft.due())
    after = {"b": Grant(width), "s": Grant(1), "t": None} if width == 1 else {"b": Grant(width), "s": None}
    assert changes(draft, jobs) == after


def test_all_whose_turn_it_is_are_promoted():
    state, jobs = scene({"p": 2, "q": 2}, [("s", "p", 1, 0.0, SPARE), ("t", "q", 1, 0.0, SPARE)])
    draft = RecallAllocation(state)
    assert list(draft.due()) == []
    assert changes(draft, jobs) == {"s": Grant(1), "t": Grant(1)}


def test_who_was_stopped_goes_on_at_once_where_nobody_took_its_gpus():
    state, jobs = scene({"p": 2}, [("s", "p", 2, 0.0, SPARE)])
    draft = RecallAllocation(state)
    draft.recall(2)
    list(draft.due())
    assert changes(draft, jobs) == {"s": Grant(2)}
