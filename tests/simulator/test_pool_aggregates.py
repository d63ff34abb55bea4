"""What the cluster keeps up over all pools, against the same worked out from scratch."""

from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Job, Pool
from jobcast.domain.policy import Grant
from jobcast.schedulers.pool_aggregates import ReadAggregates, tally_of
from jobcast.simulator.cluster import ClusterState

QUOTAS = {"p": 3, "q": 5, "r": 8}
STEPS = st.lists(st.tuples(st.sampled_from("saxtlo"), st.integers(0, 30), st.integers(1, 4), st.integers(0, 3)))


def told(tally):
    """All that a tally tells."""
    edges = range(5)
    return (
        [pool.name for pool in tally.waiting],
        sorted(tally.ready),
        tally.pledged,
        {name: room for name, (_, room) in tally.roomy.items()},
        [tally.narrowest(lane) for lane in edges],
        [sorted(tally.holders(gpus, lane)) for gpus in edges for lane in edges],
    )


def change(state, kind, pick, gpus, lane, number):
    """Submit, start, finish or stop a job."""
    pools = sorted(QUOTAS)
    pending = [job for job in state.active.values() if job.seq not in state.running]
    running = [run.job for run in state.running.values()]
    if kind == "s":
        pool = pools[pick % len(pools)]
        width = min(gpus, QUOTAS[pool])
        state.submit(Job(number, f"{number}", pool, 0.0, width, preemptible=True), lane, float(pick % 3))
    elif kind in "ax" and pending:
        job = pending[pick % len(pending)]
        state.start(job, Grant(job.gpus, dedicated=kind == "a"))
    elif kind == "t" and running:
        state.finish(running[pick % len(running)])
    elif kind == "o" and running:
        state.stop(running[pick % len(running)])


@given(STEPS)
def test_the_kept_tally_is_the_one_read_from_scratch(steps):
    state = ClusterState([Pool(name, quota) for name, quota in QUOTAS.items()])
    assert tally_of(state) is state.tally
    assert told(state.tally) == told(ReadAggregates(state))
    for number, (kind, pick, gpus, lane) in enumerate(steps):
        change(state, kind, pick, gpus, lane, number)
        if kind == "l":  # several changes between two questions
            assert told(state.tally) == told(ReadAggregates(state))
    assert told(state.tally) == told(ReadAggregates(state))


def test_a_tally_by_hand():
    state = ClusterState([Pool(name, quota) for name, quota in QUOTAS.items()])
    for seq, (pool, gpus, lane) in enumerate([("p", 3, 1), ("p", 1, 0), ("q", 2, 2), ("q", 2, 3)]):
        state.submit(Job(seq, f"{seq}", pool, 0.0, gpus), lane, 0.0)
    state.start(state.active[2], Grant(2))
    # p: 4 pending of 3 unused; q: 2 pending of 3 unused; r: 8 unused
    assert told(state.tally)[:4] == (["p", "q"], ["p", "q"], 5.0, {"q": 1.0, "r": 8.0})
    assert [state.tally.narrowest(lane) for lane in (-1, 0, 3)] == [float("inf"), 1, 1]
    assert sorted(state.tally.holders(2, 0)) == ["p"]
    assert sorted(state.tally.holders(2, 3)) == ["p", "q"]
    assert sorted(state.tally.holders(0, 3)) == []
    state.start(state.active[1], Grant(1))
    state.start(state.active[3], Grant(2, dedicated=False))
    # p's head, 3 wide, no longer fits the 2 GPUs left; q has nothing pending
    assert told(state.tally)[:4] == (["p"], [], 2.0, {"q": 3.0, "r": 8.0})
