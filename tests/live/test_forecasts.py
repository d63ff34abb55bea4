"""Forecasts that stand still: each question is asked once, whatever number a job has."""

import pytest

from jobcast.domain.jobs import Job
from jobcast.live.forecasts import Remembered


class Counting:
    horizons_min = (5.0, 60.0)

    def __init__(self):
        self.asked = []

    def duration_s(self, job):
        self.asked.append(job)
        return 10.0 * job.gpus

    def new_load(self, pool, horizon_s):
        self.asked.append((pool, horizon_s))
        return horizon_s


def test_each_question_is_asked_once():
    source = Counting()
    known = Remembered(source)
    known.advance(5.0)
    assert [known.new_load("p", horizon_s) for horizon_s in (300.0, 300.0, 3600.0)] == [300.0, 300.0, 3600.0]
    assert source.asked == [("p", 300.0), ("p", 3600.0)]
    assert known.horizons_min == (5.0, 60.0)


def test_a_job_is_known_by_what_it_says_of_itself():
    source = Counting()
    known = Remembered(source)
    rows = [Job(0, "a", "p", 0.0, 1), Job(7, "a", "p", 0.0, 1), Job(0, "b", "p", 0.0, 1), Job(0, "a", "p", 0.0, 4)]
    assert [known.duration_s(job) for job in rows] == [10.0, 10.0, 10.0, 40.0]
    # The source sees another number each time it is asked.
    assert [(job.job_id, job.gpus) for job in source.asked] == [("a", 1), ("b", 1), ("a", 4)]
    assert len({job.seq for job in source.asked}) == 3


def test_nothing_else_is_passed_on():
    with pytest.raises(AttributeError):
        Remembered(Counting()).asked  # noqa: B018
