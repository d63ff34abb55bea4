"""A past that grew from look to look is the one that is made from all events at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Pool
from jobcast.live.event_log import CHANGE, END, REQUEUE, START, SUBMIT, Event
from jobcast.live.growing_history import GrowingHistory
from jobcast.live.recorded_jobs import ClusterRecord
from jobcast.simulator.history import RunHistory

COLUMNS = ("arrival_s", "arrival_gpus", "start_s", "end_s", "completion_s", "completion_duration_s")
POOLS = [Pool("p", 8), Pool("q", 8)]


def same(grown, record, now_s):
    whole = RunHistory(["p", "q"], record.recorded())
    whole.advance(now_s)
    for pool in "pq":
        for name in COLUMNS:
            assert np.array_equal(*(getattr(each.pool(pool), name) for each in (grown, whole)))


happenings = st.lists(
    st.tuples(
        st.sampled_from([SUBMIT, START, START, END, END, CHANGE, REQUEUE]),
        st.integers(0, 5),
        st.floats(0.1, 9.0),
        st.booleans(),
    ),
    max_size=40,
)


@given(rows=happenings, looks=st.sets(st.integers(0, 40)))
def test_whatever_happens_the_past_is_the_same(rows, looks):
    record, grown, now_s, at = ClusterRecord(), GrowingHistory(), 0.0, 0
    for number, (kind, who, after_s, late) in enumerate(rows):
        now_s += after_s
        facts = {SUBMIT: {"pool": "pq"[who % 2], "gpus": who + 1}, CHANGE: {"gpus": 3, "granted": True}}.get(kind, {})
        # Late ones happened before the last look.
        record.take([Event(now_s, kind, f"{who}", max(0.0, now_s - 20.0) if late else now_s, facts)])
        if number in looks:
            same(grown.at(record, POOLS, now_s), record, now_s)
            at += 1
    same(grown.at(record, POOLS, now_s), record, now_s)


def test_what_is_told_in_order_leaves_the_history_as_it_is():
    record, grown = ClusterRecord(), GrowingHistory()
    record.take([Event(1.0, SUBMIT, "a", 1.0, {"pool": "p", "gpus": 1})])
    first = grown.at(record, POOLS, 2.0)
    record.take([Event(3.0, START, "a", 3.0), Event(3.0, CHANGE, "a", 3.0, {"held": False})])
    assert grown.at(record, POOLS, 4.0) is first
    record.take([Event(9.0, END, "a", 8.0), Event(9.0, SUBMIT, "b", 9.0, {"pool": "q", "gpus": 2})])
    assert grown.at(record, POOLS, 9.0) is first
    record.take([Event(10.0, CHANGE, "b", 10.0, {"gpus": 4})])
    again = grown.at(record, POOLS, 10.0)
    assert again is not first
    same(again, record, 10.0)
