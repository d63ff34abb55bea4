from datetime import UTC, datetime

import numpy as np
import polars as pl

from jobcast.domain.jobs import Job, Requirements
from jobcast.traces.table import Source, Trace


def frame(**columns):
    base = {
        "job_id": ["b", "a", "010"],
        "pool": ["y", "x", "x"],
        "submit_time": [20.0, 20.0, 10.5],
        "duration": [5.0, 6.0, 7.0],
        "gpus": [1, 2, 4],
    }
    return pl.DataFrame(base | columns)


def test_rows_are_sorted_by_submit_time_then_job_id_as_text():
    trace = Trace.from_frame(frame(submit_time=[20.0, 20.0, 20.0]), name="t")
    assert trace.jobs["job_id"].to_list() == ["010", "a", "b"]
    ten_and_nine = Trace.from_frame(frame(job_id=["9", "10", "x"], submit_time=[1, 1, 1]), name="t")
    assert ten_and_nine.jobs["job_id"].to_list() == ["10", "9", "x"]


def test_canonical_columns_come_first_and_unknown_ones_are_kept():
    trace = Trace.from_frame(frame(note=["p", "q", "r"], user=["u", None, ""]).select(pl.all().reverse()), name="t")
    assert trace.jobs.columns == ["job_id", "pool", "submit_time", "duration", "gpus", "user", "note"]
    assert dict(zip(trace.jobs["job_id"], trace.jobs["note"], strict=True)) == {"b": "p", "a": "q", "010": "r"}


def test_an_elastic_job_works_its_duration_on_one_gpu():
    trace = Trace.from_frame(frame(min_gpus=[None, None, 2]), name="t")
    assert trace.gpu_time_s.tolist() == [7.0, 12.0, 5.0]


def test_jobs_run_as_the_trace_says_and_else_from_submission():
    times = {
        "start_time": [datetime(1970, 1, 1, 0, 1, tzinfo=UTC), None, None],
        "end_time": [None, datetime(1970, 1, 1, 0, 2, tzinfo=UTC), None],
    }
    trace = Trace.from_frame(frame(**times), name="t")
    assert trace.jobs["job_id"].to_list() == ["010", "a", "b"]
    assert trace.start_s.tolist() == [10.5, 20.0, 60.0]
    assert trace.end_s.tolist() == [17.5, 120.0, 65.0]


def test_between_includes_from_and_leaves_until_out():
    trace = Trace.from_frame(frame(), name="t")
    assert trace.between(10.5, 20.0).jobs["job_id"].to_list() == ["010"]
    assert trace.between(10.6, None).jobs["job_id"].to_list() == ["a", "b"]
    assert len(trace.between(None, None)) == 3
    assert len(trace.between(15.0, 12.0)) == 0
    assert trace.between(20.0, None).source == trace.source


def test_to_jobs_numbers_jobs_in_order_and_keeps_durations_apart():
    columns = {"user": ["u", None, "w"], "tag": [None, "t", None], "preemptible": [True, None, False]}
    jobs, duration_s = Trace.from_frame(frame(**columns), name="t").to_jobs()
    assert jobs == [
        Job(0, "010", "x", 10.5, 4, "w", "", False),
        Job(1, "a", "x", 20.0, 2, "", "t", False),
        Job(2, "b", "y", 20.0, 1, "u", "", True),
    ]
    assert duration_s.tolist() == [7.0, 6.0, 5.0]
    assert type(jobs[0].gpus) is int
    assert type(jobs[0].submit_s) is float


def test_jobs_tell_what_they_ask_for_beside_gpus_and_share_it_where_they_ask_alike():
    asked = {
        "cores": [8.0, 8.0, None],
        "account": ["acc", "acc", None],
        "nodes": ["n[1-2]", "n[1-2]", None],
        "time_limit_s": [60.0, 60.0, None],
        "deadline": [None, None, 30.0],
        "min_gpus": [0, None, 2],
    }
    jobs, _ = Trace.from_frame(frame(**asked), name="t").to_jobs()
    nothing, first, second = (job.requirements for job in jobs)
    assert nothing is None
    assert first is second
    assert first == Requirements(cores=8.0, account="acc", nodes=("n1", "n2"), time_limit_s=60.0)
    assert [job.due_s for job in jobs] == [30.0, float("inf"), float("inf")]
    assert [job.min_gpus for job in jobs] == [2, 0, 1]
    plain, _ = Trace.from_frame(frame(), name="t").to_jobs()
    assert {(job.requirements, job.due_s, job.min_gpus) for job in plain} == {(None, float("inf"), 0)}


def test_nodes_of_a_job_that_started_are_no_request():
    told = frame(nodes=["n1", "n2", "n3"], start_time=[30.0, None, None], duration=[5.0, 6.0, None])
    jobs, _ = Trace.from_frame(told, name="t").to_jobs()
    assert {job.job_id: job.requirements for job in jobs} == {
        "010": Requirements(nodes=("n3",)),
        "a": Requirements(nodes=("n2",)),
        "b": None,
    }


def test_jobs_that_run_or_wait_have_no_end():
    trace = Trace.from_frame(frame(duration=[None, 6.0, None], start_time=[25.0, 21.0, None]), name="t")
    assert trace.jobs["job_id"].to_list() == ["010", "a", "b"]
    assert trace.ended.tolist() == [False, True, False]
    assert trace.start_s.tolist() == [np.inf, 21.0, 25.0]
    assert trace.end_s.tolist() == [np.inf, 27.0, np.inf]
    assert trace.gpu_time_s.tolist() == [0.0, 12.0, 0.0]
    bare = Trace.from_frame(frame(duration=[None, 6.0, 7.0]), name="t")
    assert bare.start_s.tolist() == bare.submit_s.tolist()
    assert bare.end_s.tolist() == [17.5, 26.0, np.inf]


def test_what_was_known_at_an_instant():
    trace = Trace.from_frame(frame(start_time=[27.0, 21.0, 11.0]), name="t")
    assert trace.end_s.tolist() == [18.0, 27.0, 32.0]
    seen = trace.as_of(25.0)
    assert seen.ended.tolist() == [True, False, False]
    assert seen.start_s.tolist() == [11.0, 21.0, np.inf]
    assert trace.as_of(12.0).jobs["job_id"].to_list() == ["010"]
    whole = trace.ends_known(12.0)  # jobs and starts stay, whenever they are
    assert whole.jobs["job_id"].to_list() == ["010", "a", "b"]
    assert whole.ended.tolist() == [False, False, False]
    assert whole.start_s.tolist() == [11.0, 21.0, 27.0]
    assert trace.ends_known(32.0).end_s.tolist() == trace.end_s.tolist()


def test_what_is_left_out_is_counted():
    trace = Trace.from_frame(frame(gpus=[0, 2, 0]), name="t", dropped={"no GPUs": 3})
    assert trace.on_gpus.jobs["job_id"].to_list() == ["a"]
    assert trace.on_gpus.dropped == {"no GPUs": 5}
    assert trace.on_gpus.on_gpus.dropped == {"no GPUs": 5}


def test_source_of_a_frame_is_its_content():
    one, same, other = (Trace.from_frame(frame(gpus=[1, 2, last]), name="t", source="made") for last in (4, 4, 5))
    assert one.source == same.source
    assert one.source.path == "made"
    assert one.source.rows == 3
    assert one.source.sha256 != other.source.sha256
    given = Source("f.csv", "0" * 64, 9)
    assert Trace.from_frame(frame(), name="t", source=given).source == given
