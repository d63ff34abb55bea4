"""What a trace without starts would have shown in queues."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.features.durations import duration_columns, duration_rows
from jobcast.features.queueing import in_queues, queued, shows_queues
from jobcast.traces.table import Trace
from tests.scenarios import frame_of

HORIZONS = (5, 60)


def trace_of(submit_s, gpus, duration_s, pools="a"):
    return Trace.from_frame(frame_of(submit_s, gpus=gpus, duration=duration_s, pool=pools), name="made")


def test_jobs_start_in_order_of_submission():
    # The pool has 2 GPUs throughout: its widest job asks for 2, and fewer are used in the mean. Jobs 1 and 2 wait for
    # job 0 until 100 s; job 3 needs both GPUs, and waits for job 2 until 150 s; job 4 would fit, and waits behind it.
    trace = trace_of([0.0, 5.0, 10.0, 20.0, 30.0], [2, 1, 1, 2, 1], [100.0, 40.0, 50.0, 10.0, 5.0])
    waited = queued(trace, load=10.0)
    assert (waited.start_s - trace.submit_s).tolist() == [0.0, 95.0, 90.0, 130.0, 130.0]
    assert waited.start_s.tolist() == [0.0, 100.0, 100.0, 150.0, 160.0]
    assert waited.end_s.tolist() == [100.0, 140.0, 150.0, 160.0, 165.0]


TWICE = ([0.0, 0.0, 100.0, 100.0], [1] * 4, [60.0, 40.0, 10.0, 10.0])
"""By 100 s one GPU was used all the time."""
LATER = ([1000.0, 1000.0, 1100.0, 1100.0], *TWICE[1:])


@pytest.mark.parametrize(
    ("jobs", "load", "starts_s"),
    [
        (TWICE, {"load": 0.5}, [0.0, 60.0, 100.0, 100.0]),  # the pool has two GPUs
        (TWICE, {"load": 1.0}, [0.0, 60.0, 100.0, 110.0]),
        (TWICE, {"load": 1.9}, [0.0, 60.0, 100.0, 110.0]),
        # Pools have a ninth more than they use where no load is named: 1 / .9 are two whole GPUs.
        (TWICE, {}, [0.0, 60.0, 100.0, 100.0]),
        # Time counts from the first submission.
        (LATER, {"load": 0.5}, [1000.0, 1060.0, 1100.0, 1100.0]),
        (LATER, {"load": 1.0}, [1000.0, 1060.0, 1100.0, 1110.0]),
        # What has not ended runs to the last one.
        (([20.0, 50.0, 100.0], [1] * 3, [None, 10.0, 1.0]), {"load": 1.0}, [20.0, 100.0, 100.0]),
        # Two GPUs were asked for in the first second, from which on a mean counts: the third starts with the second.
        (([0.0, 0.0, 1.0], [1] * 3, [60.0, 60.0, 10.0]), {"load": 1.0}, [0.0, 60.0, 60.0]),
        # Pools do not wait for one another.
        (([0.0, 1.0, 2.0], [1] * 3, [50.0] * 3, ["a", "b", "a"]), {"load": 1.0}, [0.0, 1.0, 50.0]),
    ],
)
def test_a_pool_has_as_many_gpus_as_its_load_until_then_asks_for(jobs, load, starts_s):
    assert queued(trace_of(*jobs), **load).start_s.tolist() == starts_s


def test_who_like_the_last_one_started_later_than_it_came_is_in_a_queue():
    start = np.array([1.0, 1.0, 1.0, 2.0, np.nan, np.nan])
    arrival = np.array([1.0, 1.0 + 1e-7, 1.0 + 1e-5, 1.5, np.nan, 1.0])
    columns = duration_columns(HORIZONS)
    rows = np.zeros((6, len(columns)))
    rows[:, columns.index("pool_width log since start s")] = start
    rows[:, columns.index("pool log since like s")] = arrival
    assert in_queues(rows, HORIZONS).tolist() == [False, False, True, True, False, True]


def test_later_ends_are_known_later():
    trace = trace_of([0.0, 1.0], [1, 1], [50.0, 60.0])
    told = pl.from_epoch(pl.Series("known_time", [50, 71]), "s").dt.replace_time_zone("UTC")
    late = Trace(trace.jobs.with_columns(told), trace.name, trace.source)
    assert late.known_s.tolist() == [50.0, 71.0]
    assert queued(late, load=1.0).known_s.tolist() == [50.0, 120.0]


def test_starts_on_record_show_queues():
    trace = trace_of([0.0], [1], [50.0])
    assert not shows_queues(trace)
    assert shows_queues(queued(trace))


@given(st.data())
def test_nothing_later_changes_what_a_job_would_have_seen(data):
    jobs = data.draw(st.integers(2, 30))
    submit_s = np.cumsum(data.draw(st.lists(st.integers(0, 900), min_size=jobs, max_size=jobs))).astype(float)
    gpus = data.draw(st.lists(st.integers(1, 8), min_size=jobs, max_size=jobs))
    lasts_s = data.draw(st.lists(st.integers(1, 9000), min_size=jobs, max_size=jobs))
    whole = trace_of(submit_s.tolist(), gpus, [float(one) for one in lasts_s])
    cut = data.draw(st.integers(1, jobs - 1))
    at_s = float(submit_s[cut])
    seen = whole.as_of(at_s)
    rows = [duration_rows(queued(one), HORIZONS)[: cut + 1] for one in (whole, seen)]
    np.testing.assert_array_equal(*rows)


def test_no_pool_runs_more_than_it_has():
    rng = np.random.default_rng(0)
    trace = trace_of(np.sort(rng.uniform(0, 9e4, 200)).tolist(), rng.integers(1, 5, 200).tolist(), [600.0] * 200)
    waited = queued(trace, load=2.0)  # the widest job, of 4 GPUs, decides: fewer than 8 are used in the mean
    running = [trace.gpus[(waited.start_s <= at_s) & (at_s < waited.end_s)].sum() for at_s in waited.start_s]
    assert max(running) == 4
    assert (np.diff(waited.start_s) >= 0.0).all()
    np.testing.assert_allclose(waited.duration_s, trace.duration_s)
