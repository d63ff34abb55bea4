"""What is known: jobs by their ids, starts, ends and limits, GPUs beyond a quota."""

import numpy as np

from jobcast.live.event_log import END, LOOK, START, SUBMIT, Event
from jobcast.live.state import State

ROWS = [
    Event(10.0, SUBMIT, "a", 0.0, {"pool": "p", "gpus": 2, "time_limit_s": 60.0}),
    Event(20.0, START, "a", 15.0, {"dedicated": False}),
    Event(25.0, SUBMIT, "b", 25.0, {"pool": "p", "gpus": 1}),
    Event(90.0, END, "a", 75.0),
    Event(95.0, END, "b", 95.0),
]


def after(count):
    return State().after(list(enumerate(ROWS[:count], 1)))


def test_a_job_starts_and_ends_when_it_did_not_when_that_was_known():
    known = after(4).job("a")
    assert (known.start_s, known.end_s) == (15.0, 75.0)
    assert known.job.requirements.time_limit_s == 60.0
    assert np.isnan(after(3).job("b").start_s)
    assert after(3).job("c") is None
    assert [one.job.job_id for one in after(3).known()] == ["a", "b"]


def test_of_one_that_never_ran_only_the_end_is_known():
    known = after(5).job("b")
    assert np.isnan(known.start_s)
    assert known.end_s == 95.0


def test_the_last_start_tells_whose_gpus_they_are():
    assert after(2).spare == {"a"}
    again = after(2).after([(3, Event(30.0, START, "a", 30.0))])
    assert again.spare == set()
    assert (again.number, again.known_s) == (3, 30.0)


def test_events_one_by_one_and_together_tell_the_same():
    one_by_one = State()
    for number, event in enumerate(ROWS, 1):
        one_by_one = one_by_one.after([(number, event)])
    together = after(5)
    assert list(map(str, one_by_one.known())) == list(map(str, together.known()))
    assert (one_by_one.number, one_by_one.known_s, one_by_one.spare) == (5, 95.0, together.spare)


def test_a_look_at_which_nothing_happened_leaves_the_jobs_as_they_are():
    before = after(3)
    again = before.after([(4, Event(30.0, LOOK, "", 30.0))])
    assert again.jobs is before.jobs
    assert (again.number, again.known_s, again.events[-1].kind) == (4, 30.0, LOOK)
