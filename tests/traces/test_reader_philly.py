"""Philly's own job log; expectations are by hand from the fixture."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.readers import read_sources, read_trace
from tests.shared import refused

HEADER = "timestamp,duration,num_gpus,cluster\n"


def test_rows_become_jobs_named_by_their_number(csv_file):
    rows = [f"2017-09-04 10:30:{59 - row},{row + 1}.0,{row + 1},vc{row % 2}" for row in range(11)]
    trace = read_trace(csv_file("\n".join(rows), header=HEADER))
    assert trace.jobs["job_id"].to_list() == [f"{row:02d}" for row in reversed(range(11))]
    assert trace.jobs.columns == ["job_id", "pool", "submit_time", "duration", "gpus"]
    assert trace.jobs.rows()[-1][1::2] == ("vc0", 1.0)
    assert trace.pools == ["vc0", "vc1"]
    assert trace.notes == ("submit_time: times without an offset read as UTC",)
    assert trace.dropped == {}


def test_rows_that_are_no_jobs_are_counted_by_reason_and_keep_their_numbers(csv_file):
    rows = ["0,1,a", ",1,a", "-5,0,a", "5,0,a", "5,,a", "5,2,a"]
    path = csv_file("\n".join(f"2017-09-04 10:30:41,{row}" for row in rows), header=HEADER)
    trace = read_trace(path)
    assert trace.jobs["job_id"].to_list() == ["5"]
    assert trace.dropped == {"duration missing or <= 0": 3, "no GPUs": 2}
    assert trace.source.rows == 6
    with pytest.raises(TraceError, match=r"row 2, column duration: must be > 0, got 0\.0 \(2 more rows like it\)"):
        read_trace(path, strict=True)


def test_columns_that_a_flat_file_has_beside_its_own_are_kept_whether_traces_know_them_or_not(csv_file):
    header = "job_id,user,gpus,timestamp,duration,num_gpus,cluster,rack\n"
    trace = read_trace(csv_file("j7,ann,99,2017-09-04 10:30:41,5,2,a,r1", header=header))
    assert trace.jobs.select("job_id", "user", "gpus", "pool", "rack").rows() == [("j7", "ann", 2, "a", "r1")]


def test_the_trace_itself(philly):
    trace = read_trace(philly / "philly_jobs.csv", strict=True)
    # Counts of the data's own README.
    assert len(trace) == 71_570
    assert len(trace.pools) == 14
    assert (trace.jobs["pool"].value_counts()["count"] >= 100).sum() == 11
    assert trace.jobs["job_id"][0] == "00000"
    assert trace.dropped == {}
    jobs, duration_s = trace.to_jobs()
    assert (len(jobs), len(duration_s)) == (71_570, 71_570)


FIXTURES = Path(__file__).with_name("fixtures") / "philly"
LOG = FIXTURES / "log" / "cluster_job_log"
PACIFIC = "America/Los_Angeles"


def job(**changes):
    """A job of one attempt of 10 s on one GPU."""
    plain = {
        "status": "Pass",
        "vc": "v",
        "jobid": "j",
        "user": "u",
        "submitted_time": "2017-10-02 08:00:00",
        "attempts": [attempt("08:00:00", "08:00:10")],
    }
    return plain | changes


def attempt(start, end, gpus=1, day="2017-10-02"):
    detail = [{"ip": "m", "gpus": [f"gpu{number}" for number in range(gpus)]}]
    return {"start_time": f"{day} {start}", "end_time": f"{day} {end}", "detail": detail}


@pytest.fixture
def log(written):
    return lambda *jobs: written("cluster_job_log", json.dumps(jobs))


def at(day, clock):
    return datetime.fromisoformat(f"2017-{day}T{clock}+00:00").astimezone(UTC)


def test_attempts_become_one_job():
    jobs = read_trace(LOG).jobs
    assert jobs.columns == [
        "job_id", "pool", "submit_time", "duration", "gpus", "user", "start_time", "end_time", "state", "attempts"
    ]  # fmt: skip
    assert jobs.rows() == [
        # 600 + 1800 + 1 s; attempts of 1, 3 and (no detail) 0 GPUs
        ("application_1_0008", "ee9e8c", at("10-01", "23:59:59"), 2401.0, 3, "dee",
         at("10-02", "00:00:00"), at("10-02", "01:00:01"), "Pass", 3),
        # 600 + 300 s, the gap of 49 min 50 s between them is no run time; 2 + 2 GPUs on two machines, then 4 on one
        ("application_1_0001", "6214e9", at("10-02", "08:00:00"), 900.0, 4, "ann",
         at("10-02", "08:00:10"), at("10-02", "09:05:00"), "Pass", 2),
        ("application_1_0010", "ee9e8c", at("11-05", "00:30:00"), 8400.0, 1, None,
         at("11-05", "00:40:00"), at("11-05", "03:00:00"), "Pass", 1),
    ]  # fmt: skip


def test_what_is_no_finished_job_is_counted_by_reason():
    trace = read_trace(LOG)
    assert trace.source.rows == 12
    assert trace.dropped == {
        "no submission time": 1,  # 0002: "None"
        "no attempts": 2,  # 0003: an empty list, 0011: none at all
        "last attempt has no end: running at the snapshot": 1,  # 0004
        "an attempt's start or end missing": 1,  # 0005
        "an attempt ends before it starts": 2,  # 0012, and 0009 where the clock of the coast is read as UTC
        "no GPUs": 1,  # 0006
        "duration missing or <= 0": 1,  # 0007
    }
    assert trace.notes == (
        "submit_time, start_time, end_time: times without an offset read as UTC",
        "times are wall-clock times of the US Pacific coast, summer and winter; "
        "--timezone America/Los_Angeles brings them to UTC",
        "gpus: attempts differ in 1 jobs, the widest counts",
    )


def test_the_hour_that_occurs_twice_is_read_in_the_order_of_the_jobs_life():
    trace = read_trace(LOG, timezone=PACIFIC)
    rows = {row[0]: row for row in trace.jobs.rows()}
    # Started 01:50 summer time, ended 01:10 winter time: 20 minutes.
    assert rows["application_1_0009"][2:4] == (at("11-05", "08:30:00"), 1200.0)
    assert rows["application_1_0009"][6:8] == (at("11-05", "08:50:00"), at("11-05", "09:10:00"))
    # From 00:40 summer time to 03:00 winter time: an hour more than the wall clock shows.
    assert rows["application_1_0010"][3] == 12000.0
    assert trace.dropped["an attempt ends before it starts"] == 1
    assert trace.notes[:3] == (
        f"submit_time, start_time, end_time: times without an offset read as {PACIFIC}",
        f"submit_time, start_time, end_time: 1 occur twice in {PACIFIC}, read as the earlier instant",
        "submit_time, start_time, end_time: 1 of those read as the later instant, as the job's own order tells",
    )


def test_a_retry_within_the_hour_that_occurs_twice(log):
    twice = [attempt("01:10:00", "01:40:00", day="2017-11-05"), attempt("01:20:00", "01:50:00", day="2017-11-05")]
    path = log(job(submitted_time="2017-11-05 01:00:00", attempts=twice))
    trace = read_trace(path, timezone=PACIFIC)
    assert trace.duration_s.tolist() == [3600.0]
    assert trace.jobs["end_time"][0] == at("11-05", "09:50:00")


def test_a_start_in_the_hour_that_never_was(log):
    path = log(job(submitted_time="2018-03-11 01:00:00", attempts=[attempt("02:30:00", "03:30:01", day="2018-03-11")]))
    trace = read_trace(path, timezone=PACIFIC)
    assert trace.duration_s.tolist() == [1.0]
    assert any("1 do not exist in America/Los_Angeles, shifted forward" in note for note in trace.notes)


def test_a_start_before_the_submission_is_emptied_and_told(log):
    trace = read_trace(log(job(submitted_time="2017-10-02 09:00:00")))
    assert trace.jobs.select("duration", "start_time", "end_time").rows() == [(10.0, None, None)]
    assert "start_time, end_time: emptied in 1 of 1 jobs, where they lie" in trace.notes[-1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jobid": None}, "job 1: has no jobid"),
        ({"jobid": 1.5}, r"job 1, jobid: must be text, got 1\.5"),
        ({"vc": ["v"]}, r"job 1, vc: must be text, got \['v'\]"),
        ({"submitted_time": 1506931200}, "job 1, submitted_time: must be a time as text, got 1506931200"),
        ({"attempts": {}}, "no error"),
        ({"attempts": {"a": 1}}, r"job 1, attempts: must be an array, got \{'a': 1\}"),
        ({"attempts": [{"start_time": "2017-10-02 08:00:00", "end_time": "later"}]}, r"job 1 \(j2\), column end_time"),
        ({"attempts": [{"detail": [{"gpus": 4}]}]}, "job 1, gpus: must be an array, got 4"),
    ],
)
def test_a_job_that_cannot_be_read_is_named(log, changes, message):
    path = log(job(), job(**{"jobid": "j2"} | changes))
    if message == "no error":
        assert read_trace(path).dropped == {"no attempts": 1}
        return
    assert refused(TraceError, message, read_trace, path, format="philly").startswith(f"{path}, job 1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[\n", "row 2: malformed JSON"),
        ('[\n{"jobid": "j"}\n{}]', r"row 3: malformed JSON \(expected ,\)"),
        ('[\n{"jobid": "j"', "row 2: malformed JSON"),
        ('[{"jobid": "j"}] x', "more after the array's end"),
        ("[" * 100_000, "nested too deeply"),
        ("[" + "9" * 5000 + "]", r"malformed JSON \(Exceeds the limit"),
        ('[{"jobid": "a\\n\xe9"}]', r"job 0, jobid: must be text"),
    ],
)
def test_a_log_that_is_broken_gets_one_line(written, text, message):
    refused(TraceError, message, read_trace, written("cluster_job_log", text), format="philly")


def test_the_list_of_machines_tells_the_gpus_in_all(written):
    sources = sorted((FIXTURES / "machines_first").iterdir())
    reading = read_sources(sources)
    assert reading.trace.notes[-1] == "3 machines with 18 GPUs in all; quotas of virtual clusters are not told"
    assert reading.pools is None
    assert reading.trace.name == "b_job_log"
    refused(ConfigError, r"philly takes one file of jobs, got 0 \(none\)", read_sources, sources[:1], format="philly")
    refused(ConfigError, "philly takes one file of jobs, got 2", read_sources, [sources[1], LOG], format="philly")
    machines = written("machines", "machineId, number of GPUs, single GPU mem\nm1,8, 24GB\nm2,eight, 24GB\n")
    with pytest.raises(TraceError, match="row 3, column number of GPUs: must be a whole number of GPUs, got 'eight'"):
        read_sources([LOG, machines])
