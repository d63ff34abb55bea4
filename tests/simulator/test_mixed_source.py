import pytest

from jobcast.domain.jobs import Job
from jobcast.simulator.mixed_source import Mixed

JOB = Job(0, "a", "p", 0.0, 1)


class Told:
    """Answers with its own number, and counts how often it is moved."""

    def __init__(self, number, horizons_min=(5, 60)):
        self.number, self.horizons_min, self.moved_to = number, horizons_min, []

    def advance(self, now_s):
        self.moved_to.append(now_s)

    def will_jobs_arrive(self, pool, horizon_s):
        return bool(self.number)

    def new_load(self, pool, horizon_s):
        return 10.0 * self.number

    def duration_bin(self, job):
        return self.number

    def duration_s(self, job):
        return 100.0 * self.number


class Unsure(Told):
    def duration_probabilities(self, job):
        return [0.0] * self.number + [1.0]

    def arrival_probability(self, pool, horizon_s):
        return self.number / 10

    def load_quantile(self, pool, horizon_s, level):
        return self.number * level

    def load_quantiles(self, pool, horizon_s, levels):
        return tuple(self.number * level for level in levels)


def test_each_question_goes_to_its_part():
    mixed = Mixed(Told(0), Told(1), Told(2))
    assert mixed.will_jobs_arrive("p", 300.0) is False
    assert mixed.new_load("p", 300.0) == 10.0
    assert (mixed.duration_bin(JOB), mixed.duration_s(JOB)) == (2, 200.0)
    assert tuple(mixed.horizons_min) == (5, 60)


def test_uncertainty_is_that_of_the_part_that_answers():
    mixed = Mixed(Unsure(1), Unsure(2), Unsure(3))
    assert mixed.arrival_probability("p", 300.0) == 0.1
    assert mixed.load_quantile("p", 300.0, 0.5) == 1.0
    assert mixed.load_quantiles("p", 300.0, (0.5, 1.0)) == (1.0, 2.0)
    assert mixed.duration_probabilities(JOB) == [0.0, 0.0, 0.0, 1.0]


def test_a_part_that_tells_no_uncertainty_is_no_reason_for_others_not_to():
    mixed = Mixed(Told(1), Told(1), Unsure(0))
    assert mixed.duration_probabilities(JOB) == [1.0]
    with pytest.raises(AttributeError, match="arrival_probability"):
        mixed.arrival_probability("p", 300.0)


def test_a_source_of_several_parts_is_moved_once_an_instant():
    shared, other = Told(1), Told(2)
    mixed = Mixed(shared, other, shared)
    mixed.advance(5.0)
    mixed.advance(7.0)
    assert shared.moved_to == other.moved_to == [5.0, 7.0]


def test_parts_must_answer_about_the_same_horizons():
    with pytest.raises(ValueError, match="different horizons"):
        Mixed(Told(0), Told(1, (5, 60, 720)), Told(2))
