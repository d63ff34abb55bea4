"""A trace that ends while jobs run and wait is worth what the whole one was at that instant, to the last bit."""

from dataclasses import replace

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.features.arrivals import arrival_features
from jobcast.features.durations import duration_rows
from jobcast.features.loads import window_loads
from jobcast.models.duration_data import DurationData
from jobcast.traces.history import pool_histories
from jobcast.traces.splits import finished_jobs
from jobcast.traces.table import Trace
from tests.scenarios import frame_of

HORIZONS_MIN = (5.0, 60.0, 720.0)
JOB = st.tuples(
    st.sampled_from("ab"), st.integers(0, 9000), st.integers(0, 900), st.integers(1, 30_000), st.integers(1, 8)
)
"""Pool, submission, wait, run time, GPUs."""


def whole_trace(jobs):
    pools, submit_s, wait_s, run_s, gpus = (np.array(column) for column in zip(*jobs, strict=True))
    times = {"start_time": submit_s + wait_s, "duration": 1.0 * run_s, "end_time": submit_s + wait_s + run_s}
    users = [f"u{number % 3}" for number in range(len(jobs))]
    return Trace.from_frame(frame_of(submit_s, pool=pools, gpus=gpus, user=users, **times), name="t")


def dumped(whole, at_s):
    """What the accounting shows at an instant: jobs that run have no end, jobs that wait no start."""
    known = whole.between(None, at_s)
    started, ended = (pl.Series(times < at_s) for times in (known.start_s, known.end_s))
    columns = {
        "duration": pl.when(ended).then("duration"),
        "start_time": pl.when(started).then("start_time"),
        "end_time": pl.when(ended).then("end_time"),
    }
    return replace(known, jobs=known.jobs.with_columns(**columns))


@settings(max_examples=30)
@given(st.lists(JOB, min_size=1, max_size=30), st.integers(1, 12_000))
def test_features_of_a_dump_are_those_of_that_instant(jobs, at_s):
    whole = whole_trace(jobs)
    dump = dumped(whole, at_s)
    ticks = np.array([at_s / 3, at_s / 2, np.nextafter(at_s, 0.0)])
    histories = pool_histories(whole)
    for pool, history in pool_histories(dump).items():
        assert np.isfinite(history.start_s).all()
        assert np.isfinite(history.completion_s).all()
        for features in (arrival_features, lambda one, at, _: window_loads(one, at, 300.0, 3)):
            now, then = (features(one, ticks, (300.0, 3600.0)) for one in (history, histories[pool]))
            assert np.array_equal(now, then)
    wanted = np.ones(len(dump), dtype=np.bool_)
    then = duration_rows(whole.between(None, at_s), HORIZONS_MIN, wanted)
    assert np.array_equal(duration_rows(dump, HORIZONS_MIN, wanted), then, equal_nan=True)


@settings(max_examples=30)
@given(st.lists(JOB, min_size=2, max_size=30), st.integers(1, 12_000))
def test_what_has_not_ended_is_no_lesson(jobs, at_s):
    whole = whole_trace(jobs)
    dump = dumped(whole, at_s)
    ended = int(dump.ended.sum())
    if not ended:
        return
    learnt, then = (DurationData.of(one, HORIZONS_MIN).known(at_s) for one in (dump, whole.between(None, at_s)))
    assert len(learnt) == ended
    for name in ("rows", "bins", "submit_s", "end_s", "duration_s"):
        assert np.array_equal(getattr(learnt, name), getattr(then, name), equal_nan=True)
    over, _, end_s = finished_jobs(dump, None, None)
    assert (len(over), end_s) == (ended, dump.end_s[dump.ended].max())
