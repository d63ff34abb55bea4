"""A past that grows from look to look; that it is what all events at once make is seen in `test_state`."""

from jobcast.domain.jobs import Pool
from jobcast.live.event_log import CHANGE, END, START, SUBMIT, Event
from jobcast.live.growing_history import GrowingHistory
from jobcast.live.recorded_jobs import ClusterRecord

POOLS = [Pool("p", 8), Pool("q", 8)]


def test_what_is_told_in_order_leaves_the_history_as_it_is():
    record, grown = ClusterRecord(), GrowingHistory()
    record.take([Event(1.0, SUBMIT, "a", 1.0, {"pool": "p", "gpus": 1})])
    first = grown.at(record.past, POOLS, 2.0)
    record.take([Event(3.0, START, "a", 3.0), Event(3.0, CHANGE, "a", 3.0, {"held": False})])
    assert grown.at(record.past, POOLS, 4.0) is first
    record.take([Event(9.0, END, "a", 8.0), Event(9.0, SUBMIT, "b", 9.0, {"pool": "q", "gpus": 2})])
    assert grown.at(record.past, POOLS, 9.0) is first
    record.take([Event(10.0, CHANGE, "b", 10.0, {"gpus": 4})])
    assert grown.at(record.past, POOLS, 10.0) is not first
