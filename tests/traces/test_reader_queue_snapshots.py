"""Tables of snapshots become traces: every row a job or counted, columns under their names, mistakes told in a line."""

from datetime import timedelta

import polars as pl
import pytest

from jobcast.domain.errors import TraceError
from jobcast.traces.readers import read_sources, read_trace
from jobcast.traces.readers.queue_snapshots import AGAIN, NEEDS, NEVER_STARTED, NOT_PENDING
from jobcast.traces.table_files import write_trace
from tests.queue_cases import snapshot_frame
from tests.shared import refused


def read(frame: pl.DataFrame, tmp_path, suffix=".parquet"):
    path = tmp_path / f"table{suffix}"
    frame.write_parquet(path) if suffix == ".parquet" else frame.write_csv(path)
    return read_sources([path], format="queue-snapshots").trace


def test_jobs_under_canonical_names_and_the_snapshot_beside_them(tmp_path):
    frame = snapshot_frame(2, 5).with_columns(foreign=pl.lit("x"))
    trace = read(frame, tmp_path)
    row = frame.filter(pl.col("job_id") == "0003").row(0, named=True)
    told = trace.jobs.filter(pl.col("job_id") == "0003").row(0, named=True)
    assert (told["cores"], told["mem_gb"], told["duration"]) == (row["req_cpus"], row["req_mem_total"] / 1024, 3600.0)
    assert (told["snapshot_time"], told["q_jobs_above"]) == (row["snapshot_time"], row["q_jobs_above"])
    assert told["foreign"] == "x"
    assert any("are kept and not read: foreign" in note for note in trace.notes)
    assert trace.is_snapshots


def test_csv_tells_the_same_and_what_is_written_is_read_again(tmp_path):
    frame = snapshot_frame(2, 5)
    one = read(frame, tmp_path)
    two = read(frame.with_columns(pl.col(pl.Datetime).dt.strftime("%Y-%m-%dT%H:%M:%SZ")), tmp_path, ".csv")
    assert one.jobs.equals(two.jobs)
    for suffix in (".csv", ".parquet"):
        write_trace(one, tmp_path / f"again{suffix}")
        again = read_trace(tmp_path / f"again{suffix}")
        assert again.seen_s.tolist() == one.seen_s.tolist()
        assert again.numbers("q_jobs_above", -1.0).tolist() == one.numbers("q_jobs_above", -1.0).tolist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_under_its_own_names_is_recognised(suffix, tmp_path):
    """As a trace its cores and memory would be left aside: `req_cpus` and `req_mem_total` are no columns of one."""
    frame = snapshot_frame(2, 5).with_columns(duration=pl.lit(3600.0))
    named = read(frame, tmp_path, suffix)
    file = next(tmp_path.glob(f"*{suffix}"))
    assert read_trace(file).jobs.equals(named.jobs)
    assert named.jobs["cores"].null_count() == 0


@pytest.mark.parametrize("column", ["priority", "snapshot_time", "r_p_a_gpus_above"])
def test_a_missing_column_is_refused_in_one_line(column, tmp_path):
    refused(TraceError, f"column {column} missing", read, snapshot_frame(1, 5).drop(column), tmp_path)


@pytest.mark.parametrize("column", ["q_jobs_above", "q_p_a_gpu_hours_above", "r_a_mem_above"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_fewer_than_no_jobs_are_ahead_of_nobody(column, suffix, tmp_path):
    frame = snapshot_frame(1, 5).with_columns(pl.lit(-3).alias(column))
    refused(TraceError, rf"row .*{column}.*must be >= 0, got '?-3", read, frame, tmp_path, suffix)


def test_running_jobs_may_have_outlived_their_limits(tmp_path):
    trace = read(snapshot_frame(1, 5).with_columns(r_p_core_hours_above=pl.lit(-1.5)), tmp_path)
    assert set(trace.numbers("r_p_core_hours_above", 0.0)) == {-1.5}


def test_later_snapshots_and_jobs_that_did_not_wait_are_counted(tmp_path):
    frame = snapshot_frame(1, 4)
    again = frame[:1].with_columns(snapshot_time=pl.col("snapshot_time") + timedelta(seconds=1))
    late = frame[1:2].with_columns(job_id=pl.lit("late"), start_time=pl.col("snapshot_time"))
    trace = read(pl.concat([again, frame, late]), tmp_path)
    assert trace.dropped == {NOT_PENDING: 1, AGAIN: 1}
    assert len(trace) + 2 == trace.source.rows == 6
    kept = trace.jobs.filter(pl.col("job_id") == "0000")["snapshot_time"].to_list()
    assert kept == frame["snapshot_time"][:1].to_list()


def test_a_job_may_still_wait_or_run_where_the_table_ends(tmp_path):
    empty = pl.lit(None, pl.Datetime("us", "UTC"))
    frame = snapshot_frame(1, 3)
    waits, runs = pl.col("job_id") == "0000", pl.col("job_id") == "0001"
    frame = frame.with_columns(
        start_time=pl.when(waits).then(empty).otherwise("start_time"),
        end_time=pl.when(waits | runs).then(empty).otherwise("end_time"),
    )
    trace = read(frame, tmp_path)
    by_id = dict(zip(trace.jobs["job_id"], zip(trace.start_s, trace.ended, strict=True), strict=True))
    assert by_id["0000"] == (float("inf"), False)
    assert (by_id["0001"][0] < float("inf"), by_id["0001"][1], by_id["0002"][1]) == (True, False, True)


def test_jobs_that_were_cancelled_while_they_waited_wait_no_longer(tmp_path):
    """Slurm tells no start of them, or as their start when they were cancelled."""
    frame = snapshot_frame(1, 5)
    starts, ends = frame["start_time"].to_list(), frame["end_time"].to_list()
    ends[2] = starts[2]
    starts[0] = starts[1] = starts[3] = ends[1] = ends[3] = None
    states = ["COMPLETED", "CANCELLED+", "Cancelled by 7", "PENDING", "COMPLETED"]
    told = {"start_time": starts, "end_time": ends, "state": states}
    frame = frame.with_columns(pl.Series(name, values) for name, values in told.items())
    trace = read(frame, tmp_path)
    assert trace.dropped == {NEVER_STARTED: 3}
    assert sorted(trace.jobs["job_id"]) == ["0003", "0004"]
    named = {"format": "queue-snapshots", "strict": True}
    refused(TraceError, "start_time: must be told", read_sources, [tmp_path / "table.parquet"], **named)


def test_a_job_that_failed_in_its_first_second_did_start(tmp_path):
    frame = snapshot_frame(1, 3).with_columns(end_time=pl.col("start_time"), state=pl.lit("FAILED"))
    assert read(frame, tmp_path).duration_s.tolist() == [1.0] * 3
    assert not read(frame.drop("state", "end_time"), tmp_path).dropped
    assert not read(frame.with_columns(state=pl.lit(None)), tmp_path).dropped


def test_a_table_tells_of_its_last_snapshot_even_where_nothing_started_since(tmp_path):
    frame = snapshot_frame(2, 3)
    last = frame["snapshot_time"].max()
    empty = [pl.when(pl.col(name) <= last).then(name).alias(name) for name in ("start_time", "end_time")]
    trace = read(frame.with_columns(empty), tmp_path)
    assert trace.last_known_s == last.timestamp()


def test_no_outcome_is_needed_but_the_start():
    assert not {"wait_s", "end_time", "duration", "state", "submit_wait_s"} & set(NEEDS)
