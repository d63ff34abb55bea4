"""An end counts from when the accounting showed it: whatever it is until then, nothing changes."""

from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job
from jobcast.features.arrivals import feature_names
from jobcast.features.durations import duration_rows
from jobcast.features.finished import DurationTracker
from jobcast.features.load_features import load_features
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.traces.history import pool_histories
from jobcast.traces.table import Trace, ends_known_after

HORIZONS_S = (300.0, 3600.0, 43200.0)
HORIZONS_MIN = (5, 60, 720)


def trace_of(submit_s, run_s, known_after_s=0.0, known_s=None, waited_s=30.0):
    n = len(submit_s)
    frame = pl.DataFrame(
        {
            "job_id": [f"{i:04d}" for i in range(n)],
            "pool": ["ab"[i % 2] for i in range(n)],
            "submit_time": submit_s,
            "duration": run_s,
            "gpus": [1 + i % 4 for i in range(n)],
            "user": [f"u{i % 3}" for i in range(n)],
            "start_time": [at + waited_s for at in submit_s],
            "end_time": [at + waited_s + run for at, run in zip(submit_s, run_s, strict=True)],
        }
    )
    if known_s is not None:
        frame = frame.with_columns(known_time=pl.Series(known_s, dtype=pl.Float64))
    with ends_known_after(known_after_s):
        return Trace.from_frame(frame, name="made")


def test_known_time_of_the_row_else_so_much_later():
    trace = trace_of([0.0, 10.0], [60.0, 60.0], 600.0, [None, 200.0])
    assert trace.end_s.tolist() == [90.0, 100.0]
    assert trace.known_s.tolist() == [690.0, 200.0]
    assert any(note.startswith("known_after_s: an end counts from 600 s later on") for note in trace.notes)
    assert trace_of([0.0], [60.0]).known_s.tolist() == [90.0]


def test_what_has_not_ended_is_never_known():
    frame = pl.DataFrame(
        {
            "job_id": ["a"],
            "pool": ["p"],
            "submit_time": [datetime(2024, 1, 1, tzinfo=UTC)],
            "duration": pl.Series([None], dtype=pl.Float64),
            "gpus": [1],
            "known_time": [datetime(2024, 1, 2, tzinfo=UTC)],
        }
    )
    assert Trace.from_frame(frame, name="made").known_s.tolist() == [np.inf]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_no_time_before_the_end(seconds):
    with pytest.raises(ConfigError, match="known_after_s must be 0 or more seconds"), ends_known_after(seconds):
        pass


def test_until_it_is_known_the_job_runs():
    history = pool_histories(trace_of([0.0], [60.0], 600.0))["a"]
    names = feature_names()
    ended, later = names.index("completions_last_1k"), names.index("expected_completions_later")
    soon = names.index("expected_completions_within_k")
    for at_s, completions, running in ((89.0, 0.0, 1.0), (91.0, 0.0, 1.0), (689.0, 0.0, 1.0), (690.0, 1.0, 0.0)):
        row = load_features(history, [at_s], [3600.0])[0, 0]
        assert (row[ended], row[soon] + row[later]) == (completions, running), at_s


@given(seed=st.integers(0, 2**32 - 1), delay_s=st.sampled_from([0.0, 60.0, 3600.0, 40_000.0]), part=st.floats(0.1, 1))
def test_an_end_that_is_not_known_at_t_may_be_any(seed, delay_s, part):
    rng = np.random.default_rng(seed)
    submit_s = np.sort(np.floor(rng.uniform(0, 86_400, 60))).tolist()
    run_s = np.ceil(rng.lognormal(6, 2, 60))
    trace = trace_of(submit_s, run_s.tolist(), delay_s)
    t = part * submit_s[-1]
    unknown = trace.known_s > t
    # Shorter runs too: an end may lie before t as long as the accounting shows it later.
    shortest_s = np.maximum(1.0, t + 1.0 - delay_s - trace.start_s)
    other_s = np.where(unknown, np.ceil(shortest_s + rng.exponential(9000.0, 60)), run_s)
    other = trace_of(submit_s, other_s.tolist(), delay_s)
    assert (other.known_s > t)[unknown].all()
    for one, another in zip(pool_histories(trace).values(), pool_histories(other).values(), strict=True):
        assert np.array_equal(load_features(one, [t], HORIZONS_S), load_features(another, [t], HORIZONS_S))
    asked = trace.submit_s <= t
    rows, others = (duration_rows(made, HORIZONS_MIN, asked) for made in (trace, other))
    assert np.array_equal(rows, others, equal_nan=True)


def replayed(trace, until_s, known_after_s):
    """The trace's jobs as a run's own, event by event, and what the run knows of them at an instant."""
    jobs, run_s = trace.to_jobs()
    history = RunHistory(trace.pools, known_after_s=known_after_s)
    starts = zip(trace.start_s, [1] * len(jobs), jobs, run_s, strict=True)
    ends = zip(trace.end_s, [2] * len(jobs), jobs, run_s, strict=True)
    events = [*((job.submit_s, 0, job, 0.0) for job in jobs), *starts, *ends]
    for at_s, kind, job, ran_s in sorted(events, key=lambda event: (event[0], event[1] != 2, event[2].seq)):
        if at_s > until_s:
            break
        history.advance(at_s)
        (history.arrived, history.started, lambda job, ran_s=ran_s: history.completed(job, ran_s))[kind](job)
    history.advance(until_s)
    return history


@pytest.mark.parametrize("delay_s", [0.0, 1800.0])
def test_a_run_knows_its_own_ends_as_late_as_the_trace_tells_them(delay_s):
    rng = np.random.default_rng(3)
    submit_s = np.sort(rng.uniform(0, 86_400, 80)).tolist()
    trace = trace_of(submit_s, rng.lognormal(6, 2, 80).tolist(), delay_s)
    jobs, run_s = trace.to_jobs()
    until_s = 60_000.0
    told = RunHistory(trace.pools, EarlierJobs(jobs, trace.start_s, trace.known_s, run_s))
    told.advance(until_s)
    own = replayed(trace, until_s, delay_s)
    for pool in trace.pools:
        one, another = told.pool(pool), own.pool(pool)
        for name in ("arrival_s", "start_s", "end_s", "completion_s", "completion_duration_s"):
            assert getattr(one, name).tolist() == getattr(another, name).tolist(), (pool, name)
    assert [job.end_s for job in told.finished_since(0)] == [job.end_s for job in own.finished_since(0)]


@pytest.mark.parametrize(("ran_s", "found"), [(3600.0, 1), (3601.0, 2), (43_200.0, 2), (43_201.0, 3), (None, 3)])
def test_the_bin_of_a_job_is_settled_when_the_last_one_begins(ran_s, found):
    job, tracker = Job(0, "0", "a", 100.0, 1), DurationTracker(HORIZONS_MIN)
    tracker.begin([SimpleNamespace(job=job, start_s=1000.0)])
    if ran_s is not None:
        tracker.add([SimpleNamespace(job=job, end_s=1000.0 + ran_s, duration_s=ran_s)])
    assert tracker.settled(0) == (1000.0 + 43_200.0, found)


def test_batch_and_live_duration_rows_agree_on_what_is_known():
    rng = np.random.default_rng(4)
    submit_s = np.sort(rng.uniform(0, 86_400, 60)).tolist()
    trace = trace_of(submit_s, rng.lognormal(6, 2, 60).tolist(), 3600.0)
    jobs, run_s = trace.to_jobs()
    history = RunHistory(trace.pools, EarlierJobs(jobs, trace.start_s, trace.known_s, run_s))
    tracker, batch = DurationTracker(HORIZONS_MIN), duration_rows(trace, HORIZONS_MIN)
    for job in jobs:
        history.advance(job.submit_s)
        tracker.catch_up(history)
        assert np.array_equal(tracker.row(job), batch[job.seq], equal_nan=True)
