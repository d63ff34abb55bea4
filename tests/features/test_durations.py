"""Finished jobs of a job's groups: by hand, batch against live, and no look ahead."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.jobs import Job
from jobcast.features.durations import GROUPS, duration_history
from jobcast.features.finished import FinishedTracker

HORIZONS_MIN = (1, 10)


@dataclass(frozen=True)
class Finished:
    job: Job
    end_s: float
    duration_s: float


def batch(jobs, ends, durations, last_n=20):
    return duration_history(
        [job.submit_s for job in jobs],
        ends,
        durations,
        [job.gpus for job in jobs],
        [job.pool for job in jobs],
        [job.tag for job in jobs],
        HORIZONS_MIN,
        last_n,
    )


def job(seq, submit_s, pool="a", gpus=1, tag=""):
    return Job(seq, str(seq), pool, submit_s, gpus, tag=tag)


def test_groups_by_hand():
    jobs = [
        job(0, 0, tag="x"),
        job(1, 0, gpus=2, tag="x"),
        job(2, 0, pool="b", tag="x"),
        job(3, 0),
        job(4, 1000, tag="x"),
        job(5, 1000),
    ]
    history = batch(jobs, [60, 700, 61, 5000, 9000, 9000], [60, 700, 61, 5000, 8000, 8000])
    assert GROUPS == ("tag", "pool_width", "pool", "all")
    tag, width, pool, everywhere = [1, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 1]
    assert history.counts[4].tolist() == [tag, width, pool, everywhere]
    assert history.counts[5].tolist() == [[0, 0, 0], width, pool, everywhere]
    assert history.counts[:4].sum() == 0
    assert history.log_mean_s[4, 1] == pytest.approx(np.log(60))
    assert history.log_mean_s[4, 2] == pytest.approx((np.log(60) + np.log(700)) / 2)
    assert np.isnan(history.log_mean_s[5, 0])


def test_a_job_that_ends_at_the_submission_has_finished():
    jobs = [job(0, 0), job(1, 60), job(2, 59.5)]
    counts = batch(jobs, [60, 100, 100], [60, 40, 40]).counts[:, 3]
    assert counts.tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_a_job_never_sees_itself():
    """A run of less than the clock's grain ends at its own submission."""
    counts = batch([job(0, 1.5e9), job(1, 1.5e9 + 1)], [1.5e9, 2e9], [1e-9, 1]).counts[:, 3]
    assert counts.tolist() == [[0, 0, 0], [1, 0, 0]]


def test_only_the_last_n_count():
    jobs = [job(i, 0) for i in range(5)] + [job(5, 1e6)]
    durations = [30, 6000, 6000, 40, 500, 1]
    history = batch(jobs, [1, 2, 3, 4, 5, np.inf], durations, last_n=3)
    assert history.counts[5, 3].tolist() == [1, 1, 1]
    assert history.log_mean_s[5, 3] == pytest.approx(np.mean(np.log([6000, 40, 500])))


def test_a_job_that_has_not_ended_is_not_known():
    jobs = [job(0, 0), job(1, 1e9)]
    for duration in (np.inf, np.nan, 5.0):
        assert batch(jobs, [np.inf, np.inf], [duration, 1.0]).counts.sum() == 0


def test_refuses_no_jobs_to_count():
    with pytest.raises(ValueError, match="last_n"):
        batch([job(0, 0)], [1], [1], last_n=0)


@st.composite
def runs(draw):
    """Jobs with ends, in the trace's order; many ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 60))
    grain = draw(st.sampled_from([1.0, 60.0, 1e-3]))
    submit = np.sort(np.ceil(rng.uniform(0, 4000, n) / grain) * grain)
    ran = rng.random(n) < 0.9
    duration = np.ceil(rng.lognormal(4.5, 1.5, n) / grain) * grain
    end = np.where(ran, submit + duration + rng.integers(0, 2, n) * grain, np.inf)
    jobs = [
        job(i, float(submit[i]), str(rng.choice(["a", "b"])), int(rng.choice([1, 2])), str(rng.choice(["", "x", "y"])))
        for i in range(n)
    ]
    return jobs, end, duration, draw(st.sampled_from([1, 3, 50]))


@settings(max_examples=150, deadline=None)
@given(runs())
def test_live_rows_are_batch_rows(run):
    jobs, ends, durations, last_n = run
    history = batch(jobs, ends, durations, last_n)
    tracker = FinishedTracker(HORIZONS_MIN, last_n)
    waiting = [i for i in np.lexsort((np.arange(len(jobs)), ends)) if np.isfinite(ends[i])]
    for submitted in jobs:
        while waiting and ends[waiting[0]] <= submitted.submit_s:
            i = waiting.pop(0)
            tracker.add(Finished(jobs[i], float(ends[i]), float(durations[i])))
        assert np.array_equal(tracker.row(submitted), history.counts[submitted.seq])
        assert np.array_equal(tracker.log_means_s(submitted), history.log_mean_s[submitted.seq], equal_nan=True)


@settings(max_examples=100, deadline=None)
@given(runs(), st.integers(0, 2**32 - 1))
def test_another_future_leaves_the_rows_as_they_are(run, seed):
    jobs, ends, durations, last_n = run
    rng = np.random.default_rng(seed)
    now = jobs[rng.integers(len(jobs))].submit_s
    known = sum(job.submit_s <= now for job in jobs)
    later = ends > now
    other_ends = np.where(later, now + 1e-3 + rng.exponential(500, ends.size), ends)
    other_durations = np.where(later, 1 + rng.exponential(500, ends.size), durations)
    one, two = batch(jobs, ends, durations, last_n), batch(jobs, other_ends, other_durations, last_n)
    assert np.array_equal(one.counts[:known], two.counts[:known])
    assert np.array_equal(one.log_mean_s[:known], two.log_mean_s[:known], equal_nan=True)


def test_catches_up_with_a_run():
    class Run:
        now_s, pools = 0.0, ("a",)
        ended = tuple(Finished(job(i, 0.0), float(i), 30.0) for i in range(5))

        def finished_since(self, count):
            return self.ended[count:]

    run, tracker = Run(), FinishedTracker(HORIZONS_MIN)
    tracker.catch_up(run)
    tracker.catch_up(run)
    run.ended += (Finished(job(9, 0.0), 9.0, 700.0),)
    tracker.catch_up(run)
    assert tracker.count == 6
    assert tracker.row(job(10, 10.0))[3].tolist() == [5, 0, 1]
