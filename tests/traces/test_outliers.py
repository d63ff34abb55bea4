"""Rows far from all others: which they are, how they are refused, what is left without them."""

from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.traces.generators import generate
from jobcast.traces.outliers import DROPPED, dropping_outliers, isolated
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace
from jobcast.traces.table_files import write_trace
from tests.scenarios import frame_of
from tests.shared import refused

SECOND = 1_000_000
DAY, YEAR = 86400 * SECOND, 365 * 86400 * SECOND
MONTH_OF_2017 = st.integers(1506816000 * SECOND, (1506816000 + 30 * 86400) * SECOND)
ANY = st.lists(st.integers(-(10**16), 10**16), min_size=1, max_size=60)


def burst(at_years, jobs, days=14):
    rng = np.random.default_rng(jobs)
    return (at_years * YEAR + rng.uniform(0, days * DAY, jobs)).astype(np.int64)


@cache
def generated(kind, seed):
    small = {"campus": {"weeks": "1", "jobs": "200", "pools": "2"}, "sia": {"days": "1"}}
    return generate(kind, seed, small.get(kind, {}))[0].jobs["submit_time"].dt.timestamp("us").to_numpy()


@given(instants=st.lists(MONTH_OF_2017, min_size=51, max_size=200), place=st.integers(0, 50))
def test_one_row_of_1970_in_a_month_of_2017_is_found(instants, place):
    instants.insert(place, 0)
    assert np.flatnonzero(isolated(np.array(instants))).tolist() == [place]


@given(instants=ANY, order=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(instants, order):
    places = list(range(len(instants)))
    order.shuffle(places)
    assert np.array_equal(isolated(np.array(instants))[places], isolated(np.array(instants)[places]))


@given(kind=st.sampled_from(["campus", "sia", "automl", "mlfs"]), seed=st.integers(0, 2), stretch=st.floats(1e-3, 2e3))
def test_generated_traces_of_any_span_are_kept(kind, seed, stretch):
    times = generated(kind, seed)
    assert not isolated((times[0] + (times - times[0]) * stretch).astype(np.int64)).any()


@pytest.mark.parametrize("odd", [[0], [0, 0, 0], [-70 * YEAR, 229 * YEAR], [0, 229 * YEAR, 229 * YEAR]])
def test_odd_rows_at_either_end(odd):
    instants = np.concatenate([burst(47, 895), np.array(odd, np.int64)])
    assert np.flatnonzero(isolated(instants)).tolist() == list(range(895, 895 + len(odd)))


def test_odd_rows_beside_two_clusters_years_apart():
    assert isolated(np.concatenate([burst(45, 300), burst(48, 300), [0]])).sum() == 1
    assert isolated(np.concatenate([burst(45, 4000), burst(40, 120), [-90 * YEAR]])).sum() == 1


def frame(count=40):
    times = [datetime(2017, 10, 1, tzinfo=UTC) + timedelta(hours=row) for row in range(count)]
    return frame_of(times, job_id=[f"j{row}" for row in range(count)], duration=60.0)


def with_odd(table, column, row, value):
    values = table[column].to_list()
    values[row] = value
    return table.with_columns(pl.Series(column, values))


def test_the_line_names_the_first_row_and_what_to_do(tmp_path):
    table = with_odd(with_odd(frame(), "submit_time", 7, datetime(1970, 1, 1, tzinfo=UTC)), "submit_time", 3, None)
    table = table.with_columns(
        pl.col("submit_time").dt.strftime("%Y-%m-%dT%H:%M:%SZ").fill_null("1970-01-02T00:00:00Z")
    )
    path = tmp_path / "jobs.csv"
    table.write_csv(path)
    assert refused(TraceError, "", read_trace, path) == (
        f"{path}, row 5, column submit_time: lies 48 years from all others (2017-10-01 to 2017-10-02), got 1970-01-02 "
        "00:00:00+00:00 (1 more row like it); correct the rows, or leave them out with --drop-outliers"
    )


@pytest.mark.parametrize("column", ["start_time", "end_time"])
def test_starts_and_ends_are_held_against_their_own(column):
    late = with_odd(
        frame().with_columns(pl.col("submit_time").alias(column)), column, 7, datetime(2199, 1, 1, tzinfo=UTC)
    )
    with pytest.raises(TraceError, match=f"row index 7, column {column}: lies 181 years from all others"):
        Trace.from_frame(late, name="t")
    with dropping_outliers():
        trace = Trace.from_frame(late, name="t")
    assert "j7" not in trace.jobs["job_id"].to_list()


def test_dropped_rows_are_counted_and_what_is_written_is_read_again(tmp_path):
    table = with_odd(frame(60), "submit_time", 7, datetime(1970, 1, 1, tzinfo=UTC))
    table = with_odd(table, "submit_time", 9, datetime(2199, 1, 1, tzinfo=UTC))
    table = with_odd(table, "submit_time", 11, datetime(2035, 1, 1, tzinfo=UTC))
    table.write_parquet(tmp_path / "odd.parquet")
    with dropping_outliers():
        trace = read_trace(tmp_path / "odd.parquet")
    assert trace.dropped == {DROPPED: 3}
    assert len(trace) + sum(trace.dropped.values()) == trace.source.rows == 60
    write_trace(trace, tmp_path / "kept.parquet")
    assert read_trace(tmp_path / "kept.parquet").jobs.equals(trace.jobs)
    refused(TraceError, "lies", read_trace, tmp_path / "odd.parquet")
