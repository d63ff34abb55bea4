"""Jobs from events, by hand."""

from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.live.event_log import END, START, SUBMIT, Event
from jobcast.live.recorded_jobs import ClusterRecord, in_order

EVENTS = [
    Event(10.0, SUBMIT, "a", 10.0, {"pool": "p", "gpus": 2}),
    Event(5.0, SUBMIT, "b", 5.0, {"pool": "p", "gpus": 1}),
    Event(12.0, START, "a", 12.0),
    Event(25.0, END, "a", 20.0),
    Event(30.0, END, "a", 21.0),
    Event(9.0, END, "unknown", 9.0),
]


def recorded_jobs(events, now_s=inf):
    return ClusterRecord().take(in_order(events, now_s)).recorded()


@given(st.permutations(EVENTS))
def test_the_order_of_events_does_not_matter_and_corrections_count(events):
    jobs = recorded_jobs(events)
    assert [(job.seq, job.job_id, job.gpus) for job in jobs.jobs] == [(0, "b", 1), (1, "a", 2)]
    np.testing.assert_array_equal(jobs.start_s, [np.nan, 12.0])
    np.testing.assert_array_equal(jobs.known_s, [np.nan, 30.0])
    np.testing.assert_array_equal(jobs.duration_s, [np.nan, 9.0])


def test_what_is_known_later_is_not_there():
    assert recorded_jobs(EVENTS, now_s=25.0).duration_s.tolist()[1] == 8.0
    assert np.isnan(recorded_jobs(EVENTS, now_s=24.0).known_s).all()


def test_an_end_before_the_start_is_left_out():
    jobs = recorded_jobs([*EVENTS[:3], Event(40.0, END, "a", 11.0)])
    assert np.isnan(jobs.known_s).all()
