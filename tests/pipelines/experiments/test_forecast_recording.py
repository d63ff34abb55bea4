"""What forecasts answered is passed on unchanged and kept where it was new."""

import numpy as np
import pytest

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.training import Progress, Regime, Training
from jobcast.pipelines.experiments.forecast_recording import (
    ARRIVES,
    DURATION,
    EPOCH_TIME,
    LEFT,
    LOAD,
    MOST_A_JOB,
    PROBABILITY,
    QUANTILE,
    Asked,
    JobAnswer,
    JobAnswers,
    Recording,
)
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Oracle, Random
from jobcast.simulator.workload import Workload

JOBS = [("a1", "a", 100.0, 2), ("a2", "a", 200.0, 1), ("b1", "b", 150.0, 1)]


def workload():
    return Workload(
        [Job(0, name, pool, at_s, gpus) for name, pool, at_s, gpus in JOBS],
        [Outcome(100.0), Outcome(1000.0), Outcome(5000.0)],
        [Pool("a", 2), Pool("b", 1)],
    )


class Uncertain(Oracle):
    """Answers with made-up chances."""

    def arrival_probability(self, pool, horizon_s):
        return 0.25

    def load_quantile(self, pool, horizon_s, level):
        return 10 * level

    def load_quantiles(self, pool, horizon_s, levels):
        return tuple(10 * level for level in levels)

    def duration_probabilities(self, job):
        return (0.1, 0.2, 0.6, 0.1)


def rows(recording):
    at_s, positions, answers = recording.answers()
    named = [recording.questions[position] for position in positions.tolist()]
    return list(zip(at_s.tolist(), named, answers.tolist(), strict=True))


def test_a_row_is_kept_whenever_an_answer_differs_from_the_last_one():
    recording = Recording(Oracle(workload()))
    told = []
    for now_s in (0.0, 50.0, 100.0, 200.0):
        recording.advance(now_s)
        told.append((recording.will_jobs_arrive("a", 150.0), recording.new_load("a", 150.0)))
    assert told == [(True, 2), (True, 3), (True, 1), (False, 0)]
    arrives, load = (ARRIVES, "a", 150.0, 0.0), (LOAD, "a", 150.0, 0.0)
    first, last = [(0.0, arrives, 1.0), (0.0, load, 2.0)], [(200.0, arrives, 0.0), (200.0, load, 0.0)]
    assert rows(recording) == [*first, (50.0, load, 3.0), (100.0, load, 1.0), *last]


def test_the_first_bin_of_each_job_is_kept():
    given = workload()
    recording = Recording(Oracle(given))
    assert [recording.duration_bin(job) for job in given.jobs[:2]] == [0, 2]
    assert recording.duration_s(given.jobs[2]) == 1000.0
    assert recording.bins() == {"a1": 0, "b1": 2}


def test_uncertain_answers_are_kept_by_level_and_bins_by_what_is_likeliest():
    given = workload()
    recording = Recording(Uncertain(given))
    recording.advance(1.0)
    assert recording.arrival_probability("a", 60.0) == 0.25
    assert [recording.load_quantile("a", 60.0, level) for level in (0.5, 0.9, 0.5)] == [5.0, 9.0, 5.0]
    assert recording.load_quantile(pool="a", horizon_s=60.0, level=0.9) == 9.0
    assert recording.load_quantiles("a", 60.0, (0.9, 0.2)) == (9.0, 2.0)
    assert recording.duration_probabilities(given.jobs[0]) == (0.1, 0.2, 0.6, 0.1)
    assert recording.bins() == {"a1": 2}
    assert rows(recording) == [
        (1.0, (PROBABILITY, "a", 60.0, 0.0), 0.25),
        (1.0, (QUANTILE, "a", 60.0, 0.5), 5.0),
        (1.0, (QUANTILE, "a", 60.0, 0.9), 9.0),
        (1.0, (QUANTILE, "a", 60.0, 0.2), 2.0),
    ]


def test_a_recording_can_tell_what_its_source_can_and_no_more():
    given = workload()
    recording = Recording(Oracle(given))
    assert recording.jobs is given.jobs
    assert recording.horizons_min == (5, 60, 720)
    assert hasattr(Recording(Uncertain(given)), "load_quantile")
    assert not hasattr(Recording(Conservative(given)), "jobs")
    with pytest.raises(AttributeError):
        Recording.__new__(Recording).questions  # noqa: B018  an unfinished one does not look for itself for ever


@pytest.mark.parametrize("kind", [Oracle, Random])
def test_a_policy_decides_the_same_with_and_without_a_recording(kind):
    draw = np.random.default_rng(0)
    jobs = [Job(0, f"{i:03d}", "ab"[i % 2], float(s), 1 + i % 3) for i, s in enumerate(draw.uniform(0, 9e4, 200))]
    given = Workload(jobs, [Outcome(float(s)) for s in draw.exponential(900.0, 200)], [Pool("a", 3), Pool("b", 3)])
    plain = kind(given)
    recording = Recording(kind(given))
    logs = [replay(given, make_policy("sia", source, {}), source) for source in (plain, recording)]
    assert np.array_equal(logs[0].start_s, logs[1].start_s)
    assert np.array_equal(logs[0].dedicated, logs[1].dedicated)
    at_s, positions, _ = recording.answers()
    assert len(at_s) > 10
    assert (np.diff(at_s) >= 0).all()
    assert len(recording.questions) == len(set(positions.tolist()))
    assert recording.bins().keys() == {job.job_id for job in given.jobs}


def test_of_jobs_the_first_answer_is_kept_and_news_where_it_is_full():
    for full, kept in ((False, []), (True, [100.0, 102.0, 200.0])):
        told = JobAnswers(full)
        for answer in (100.0, 100.9, 102.0, 102.5, 200.0):
            told.keep(JobAnswer("a", DURATION, 0.0, "", answer))
        assert [one.answer for one in told.rows] == kept
        assert told.first(DURATION) == {"a": 100.0}
        assert told.first(LEFT) == {}


def test_of_one_job_no_more_than_so_many_answers_are_kept():
    told = JobAnswers(full=True)
    for gpus in range(MOST_A_JOB + 5):
        told.keep(JobAnswer("a", EPOCH_TIME, 0.0, f"v100 x {gpus}", 1.0))
    told.keep(JobAnswer("b", EPOCH_TIME, 0.0, "v100 x 1", 1.0))
    assert (len(told.rows), told.left_out) == (MOST_A_JOB + 1, 5)


class Script:
    """Regimes as they are written down; knows neither instants nor pools."""

    def __init__(self, *answers):
        self._answers = iter(answers)

    def regimes(self, job, progress):
        return next(self._answers)


def test_regimes_are_kept_as_run_times_that_are_left():
    """60 s an epoch at size 10, 40 s at 20: 4 epochs are 240 s, or 60 + 3 x 40; noise doubles what is left."""
    job = Job(0, "a", "p", 0.0, 1, training=Training("LM", 10, 4, "gns", {10: 60.0, 20: 40.0}))
    script = [(Regime(10, 4.0),), (Regime(10, 3.0),), (Regime(10, 0.0), Regime(20, 3.0))]
    recording = Recording(Script(*script))
    for now_s, done, answer in zip((0.0, 60.0, 70.0), (0.0, 1.0, 1.0), script, strict=True):
        recording.advance(now_s)
        assert recording.regimes(job, Progress(done, (Regime(10, done),))) == answer
    assert [(one.at_s, one.of, one.answer, one.done_s) for one in recording.of_jobs.rows] == [
        (0.0, "10 x 4", 240.0, 0.0),
        (70.0, "20 x 3", 120.0, 60.0),
    ]
    asked = Asked(Script(*script), lambda job: 2.0)
    assert asked.regimes(job, Progress(1.0, (Regime(10, 1.0),))) == script[0]
    assert asked.regimes(job, Progress(0.0, (Regime(10, 0.0),))) == script[1]
    assert asked.of_jobs.first(LEFT) == {"a": 60.0 + 2.0 * 240.0}
