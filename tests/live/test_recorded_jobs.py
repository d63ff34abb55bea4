"""Jobs from events, by hand."""

from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.live.event_log import CHANGE, END, QUOTA, START, SUBMIT, Event
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


def test_what_comes_late_has_that_job_alone_told_anew():
    record = ClusterRecord().take(EVENTS)
    other, places = record.jobs["b"], record.places
    # Known before its last end was: the name was used again by then.
    record.after([Event(26.0, SUBMIT, "a", 25.0, {"pool": "p", "gpus": 4})])
    assert record.jobs["b"] is other
    assert (record.jobs["a"].facts["gpus"], record.jobs["a until 20"].facts["gpus"]) == (4, 2)
    assert record.places == places + 1
    # The first job of that name turns out to have ended later, which gives it another name.
    record.after([Event(25.5, END, "a", 23.0)])
    assert record.jobs["a until 23"].ended_s == 23.0
    assert "a until 20" not in record.jobs
    assert [job.job_id for job in record.recorded().jobs] == ["b", "a until 23", "a"]


def test_a_quota_that_is_told_late_is_one_of_before():
    told = ClusterRecord().after([Event(9.0, QUOTA, "p", 9.0, {"gpus": 8})])
    assert told.after([Event(5.0, QUOTA, "p", 5.0, {"gpus": 4})]).quotas == {"p": 8}


def test_a_later_submission_corrects_the_one_before():
    told = ClusterRecord().take([*EVENTS[:1], Event(11.0, SUBMIT, "a", 10.5, {"pool": "q", "gpus": 3})])
    assert (told.jobs["a"].submit_s, told.jobs["a"].facts) == (10.5, {"pool": "q", "gpus": 3})


def test_a_change_that_is_told_before_the_submission_holds():
    told = ClusterRecord().take([Event(9.0, CHANGE, "a", 9.0, {"gpus": 4}), EVENTS[0]])
    assert told.jobs["a"].facts == {"pool": "p", "gpus": 4}
