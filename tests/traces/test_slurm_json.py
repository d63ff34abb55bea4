"""What sacct --json and squeue --json say: the same as sacct's table, which a recorded Slurm wrote beside them."""

import gzip
import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from jobcast.domain.errors import TraceError
from jobcast.traces.readers import read_sources
from jobcast.traces.table import Trace
from tests.shared import refused

RECORDED = Path(__file__).parents[1] / "live" / "recorded"
BY_HAND = Path(__file__).with_name("fixtures") / "sacct" / "json"
RUNS = ("fifo", "mixed")


@pytest.fixture
def recorded(tmp_path):
    """Reads recorded files of one run as one trace."""

    def read(run: str, *names: str) -> Trace:
        sources = []
        for name in names:
            sources.append(tmp_path / f"{run}.{name}")
            with gzip.open(RECORDED / run / f"{name}.gz") as packed, sources[-1].open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        return read_sources(sources, format="sacct").trace

    return read


@pytest.fixture
def read_document(written):
    return lambda text: read_sources([written("said.json", text)]).trace


def runs_of(trace: Trace) -> dict[tuple[str, float], dict[str, object]]:
    """Rows by job, without the number of its run, and submission."""
    rows = trace.jobs.to_dicts()
    return {(row["job_id"].partition("/")[0], row["submit_time"]): row for row in rows}


@pytest.mark.parametrize("run", RUNS)
def test_json_and_table_give_the_same_trace(recorded, run):
    table, document = recorded(run, "end.sacct.txt"), recorded(run, "end.sacct.json")
    assert len(table) >= 150
    assert document.jobs.equals(table.jobs)


@pytest.mark.parametrize("moment", ["early", "late"])
@pytest.mark.parametrize("run", RUNS)
def test_the_queue_of_a_moment_is_what_the_log_later_says_of_it(recorded, run, moment):
    now, end = recorded(run, f"{moment}.squeue.json"), runs_of(recorded(run, "end.sacct.txt"))
    told = pl.concat([now.jobs[name] for name in ("submit_time", "start_time", "end_time")]).max()
    running = now.jobs.filter(pl.col("start_time").is_not_null() & pl.col("end_time").is_null())
    waiting = now.jobs.filter(pl.col("start_time").is_null())
    assert len(running) >= 5
    assert len(waiting) >= 10
    for key, row in runs_of(now).items():
        later = end.get(key)
        if later is None:  # cancelled before it ran
            assert row["start_time"] is None
        elif row["end_time"] is not None:
            assert (row["start_time"], row["end_time"]) == (later["start_time"], later["end_time"])
        elif row["start_time"] is not None:
            assert (row["start_time"], row["gpus"], row["nodes"]) == tuple(
                later[k] for k in ("start_time", "gpus", "nodes")
            )
            assert later["end_time"] >= told
        else:
            assert later["start_time"] >= told
    there = {key for key, row in end.items() if row["submit_time"] < told <= row["end_time"]}
    assert there <= set(runs_of(now))


@pytest.mark.parametrize("run", RUNS)
def test_history_and_queue_are_one_trace(recorded, run):
    both, queue = recorded(run, "early.sacct.json", "late.squeue.json"), recorded(run, "late.squeue.json")
    assert set(queue.jobs["job_id"]) <= set(both.jobs["job_id"])
    assert both.jobs["job_id"].is_unique().all()
    # accounting keeps a priority of its own once a job has ended
    state = ("submit_time", "start_time", "end_time", "gpus", "time_limit_s", "account", "qos", "nodes")
    now, merged = runs_of(queue), runs_of(both)
    assert [[merged[key][name] for name in state] for key in now] == [
        [row[name] for name in state] for row in now.values()
    ]


def test_what_a_mixed_queue_holds(recorded):
    trace = recorded("mixed", "late.squeue.json")
    by_id = {row["job_id"]: row for row in trace.jobs.to_dicts()}
    named = {name: [job for job, row in by_id.items() if row["tag"] == name] for name in ("pair", "long_sweep", "held")}
    array = named["long_sweep"][0].partition("_")[0]
    assert named["long_sweep"] == [f"{array}_{task}" for task in (1, 3, 5, 7, 9)]
    assert [job.partition("+")[2] for job in named["pair"]] == ["0", "1"]
    assert [by_id[job]["gpus"] for job in named["pair"]] == [1, 2]
    assert [by_id[job]["priority"] for job in named["held"]] == [0.0]
    assert any(row["tag"] == "notes|and more" for row in by_id.values())
    (endless,) = (row for row in by_id.values() if row["tag"] == "endless")
    assert endless["time_limit_s"] is None
    (plain,) = (row for row in by_id.values() if row["tag"] == "cpu_only")
    assert (plain["gpus"], plain["cores"]) == (0, 4.0)


def test_numbers_states_and_limits_of_later_parsers():
    trace = read_sources(sorted(BY_HAND.iterdir())).trace
    columns = ("job_id", "pool", "gpus", "gpu_type", "cores", "mem_gb", "time_limit_s", "state", "duration", "nodes")
    assert trace.jobs.select(columns).rows() == [
        ("5_2", "gpu", 1, None, 4.0, 8.0, 90000.0, "CANCELLED", 3600.0, "gpu01"),
        ("11", "gpu", 8, "a100", 16.0, 64.0, 7200.0, "RUNNING", None, "gpu[01-02]"),
        *((f"20_{task}", "gpu", 1, None, 2.0, 4.0, None, "PENDING", None, None) for task in (1, 3, 4)),
        ("30+1", "gpu", 2, None, 2.0, 4.0, 60.0, "TIMEOUT", 60.0, "gpu03"),
    ]
    assert trace.jobs["start_time"].is_null().to_list() == [False, False, True, True, True, False]
    assert trace.jobs["eligible_time"].is_null().to_list() == [False, False, True, True, True, False]
    assert trace.jobs["priority"].to_list() == [9.0, 4294901759.0, 7.0, 7.0, 7.0, 5.0]
    assert trace.dropped == {"the same run at an earlier stage": 2}
    assert not any("offset" in note for note in trace.notes)


def test_a_history_by_the_wall_clock_goes_with_a_queue_in_epochs(tmp_path):
    table = tmp_path / "sacct.txt"
    header = "JobID|Partition|State|Submit|Start|End|ElapsedRaw|AllocTRES\n"
    table.write_text(
        f"{header}3|gpu|COMPLETED|2023-11-14T14:00:00|2023-11-14T14:00:00|2023-11-14T14:01:00|60|gres/gpu=1\n"
    )
    trace = read_sources([table, BY_HAND / "squeue.json"], timezone="America/Los_Angeles").trace
    assert trace.submit_s[:2].tolist() == [1699999200.0, 1700000000.0]  # 14:00 PST is 22:00 UTC
    assert "submit_time, start_time, end_time: times without an offset read as America/Los_Angeles" in trace.notes


ROW = '"job_id": 1, "job_state": "RUNNING", "submit_time": 1700000000'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"jobs": [{"job_id": 1', "is no whole JSON document"),
        (
            '{"meta": {}, "errors": [{"description": "no slurmdbd", "error_number": 5}], "jobs": []}',
            "Slurm says: no slurmdbd",
        ),
        ('{"errors": [{"error": "down"}]}', "holds no list of jobs, Slurm says: down"),
        ('{"errors": 7, "jobs": {}}', "holds no list of jobs;"),
        ('{"jobs": []}', "holds no jobs"),
        ('{"jobs": [[]]}', r"job 1: must be an object, got \[\]"),
        ('{"jobs": [{"job_state": "RUNNING", "submit_time": 1}]}', "job 1, column job_id: must be a job of Slurm"),
        (f'{{"jobs": [{{{ROW.replace("1700000000", "true")}}}]}}', "column submit_time: must be a number, got True"),
        (f'{{"jobs": [{{{ROW.replace("1700000000", "1" * 400)}}}]}}', "column submit_time: must be a number"),
        (f'{{"jobs": [{{{ROW.replace("1700000000", "1e17")}}}]}}', "column submit_time: must lie in the years"),
        (f'{{"jobs": [{{{ROW}, "tres_alloc_str": "gres/gpu=x"}}]}}', "column tres_alloc_str: counts of GPUs"),
        (f'{{"jobs": [{{{ROW}, "nodes": "\\ud800["}}]}}', "none of its 1 rows is a job"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(read_document, text, line):
    refused(TraceError, line, read_document, text)


def test_numbers_that_stand_for_none_and_for_no_limit(read_document):
    told = {"job_id": 7, "job_state": ["PENDING"], "submit_time": 1700000000, "tres_req_str": "gres/gpu=4"}
    told |= {"partition": "gpu", "priority": 2**32 - 2, "eligible_time": {"set": False, "number": 5}}
    rows = [{**told, "time_limit": limit} for limit in (5, 2**32 - 1, {"infinite": True}, None, "10")]
    rows = [{**row, "job_id": number} for number, row in enumerate(rows)]
    jobs = read_document(json.dumps({"jobs": rows})).jobs
    assert jobs["time_limit_s"].to_list() == [300.0, None, None, None, 600.0]
    assert "priority" not in jobs.columns
    assert "eligible_time" not in jobs.columns


def test_a_range_beyond_all_measure_stays_one_row(read_document):
    told = {"job_id": 7, "array_job_id": 7, "job_state": "PENDING", "submit_time": 1700000000, "partition": "gpu"}
    rows = [{**told, "tres_req_str": "gres/gpu=1", "array_task_string": tasks} for tasks in ("0-99999999", "3,9,...")]
    trace = read_document(json.dumps({"jobs": rows}))
    assert trace.jobs["job_id"].to_list() == ["7_3", "7_9"]
    assert trace.dropped == {"array tasks that wait, cut off by Slurm": 2}
