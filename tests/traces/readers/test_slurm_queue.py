"""Jobs as `squeue --json` tells them: recorded ones, and documents that nobody should send."""

import gzip
import json
from collections import Counter
from math import inf, isnan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.traces.files import FileBytes
from jobcast.traces.readers.slurm_queue import queued_jobs
from tests.shared import refused

RECORDED = Path(__file__).parents[2] / "live" / "recorded"
JOB = {
    "job_id": 7, "job_state": "PENDING", "state_reason": "QOSGrpGRES", "account": "vision", "qos": "vision",
    "partition": "gpu", "name": "train", "user_name": "ada", "node_count": 2, "submit_time": 100, "start_time": 900,
    "end_time": 960, "time_limit": 5, "tres_req_str": "cpu=1,gres/gpu=16", "tres_alloc_str": "", "comment": "",
    "admin_comment": "jobcast lease=x", "array_job_id": 0, "het_job_id": 0,
}  # fmt: skip


def queue(*jobs):
    return queued_jobs(FileBytes("squeue --json", json.dumps({"jobs": jobs}).encode()))


def test_a_recorded_queue():
    data = gzip.decompress((RECORDED / "mixed" / "late.squeue.json.gz").read_bytes())
    jobs = queued_jobs(FileBytes("squeue --json", data))
    assert Counter((job.waits, job.runs) for job in jobs) == {(False, False): 84, (True, False): 43, (False, True): 16}
    # Held by its user, by its time, by its array's limit.
    assert Counter(job.reason for job in jobs if job.held) == {"JobHeldUser": 1, "BeginTime": 1, "JobArrayTaskLimit": 3}
    assert len({job.job_id for job in jobs}) == len(jobs)
    # Submitted with --array=0-5%2 and 1-9:2%1.
    assert {(job.array, job.at_once) for job in jobs} == {("", 0), ("28", 2), ("64", 1)}


def test_why_jobs_may_not_start_yet():
    """The words of the early queue: one was requeued, and Slurm has it wait for two minutes."""
    data = gzip.decompress((RECORDED / "mixed" / "early.squeue.json.gz").read_bytes())
    jobs = {job.job_id: job for job in queued_jobs(FileBytes("squeue --json", data))}
    again = jobs["1"]
    assert (again.reason, again.eligible_s - again.submit_s) == ("BeginTime", 121.0)
    assert all(isnan(job.eligible_s) for job in jobs.values() if job.reason != "BeginTime")
    (chained,) = queue(JOB | {"state_reason": "Dependency", "dependency": "afterok:2_*(unfulfilled)"})
    assert chained.after == "afterok:2_*(unfulfilled)"


@pytest.mark.parametrize("form", [int, lambda number: {"set": True, "infinite": False, "number": number}])
def test_who_was_suspended(form):
    """As Slurm 22.05 told of one that ran for 4 s, stood still for 9, and was suspended again after 2 more."""
    told = {"job_state": "RUNNING", "start_time": 148, "suspend_time": form(161), "pre_sus_time": form(4)}
    resumed, again, never = queue(
        JOB | told,
        JOB | told | {"job_state": ["SUSPENDED"], "suspend_time": form(163), "pre_sus_time": form(6)},
        JOB | told | {"suspend_time": form(0), "pre_sus_time": form(0)},
    )
    assert (resumed.suspended, resumed.pause_s, resumed.paused_s) == (False, 161.0, 9.0)
    assert (again.suspended, again.runs, again.pause_s, again.paused_s) == (True, True, 163.0, 9.0)
    assert (never.paused_s, isnan(never.pause_s)) == (0.0, True)


def test_of_a_job_that_waits_slurms_own_forecast_is_no_start():
    (job,) = queue(JOB)
    assert (job.gpus, job.nodes, job.limit_s, job.mark, job.held) == (16, 2, 300.0, "jobcast lease=x", False)
    assert isnan(job.start_s)
    assert isnan(job.end_s)


def test_what_runs_and_what_has_ended():
    running, ended = queue(
        JOB | {"job_state": "RUNNING", "tres_alloc_str": "gres/gpu=8", "time_limit": 2**32 - 1},
        JOB | {"job_id": 8, "job_state": ["TIMEOUT"]},
    )
    assert (running.gpus, running.start_s, running.limit_s, running.runs) == (8, 900.0, inf, True)
    assert isnan(running.end_s)
    assert (ended.end_s, ended.runs, ended.waits) == (960.0, False, False)


def test_who_is_cancelled_while_it_waits_has_not_started():
    """Slurm 22.05 tells as its start when it was cancelled, and nothing that was allocated."""
    cancelled = JOB | {"job_state": "CANCELLED", "start_time": 960}
    waited, failed = queue(cancelled, cancelled | {"job_id": 8, "tres_alloc_str": "gres/gpu=8"})
    assert (isnan(waited.start_s), waited.end_s, failed.start_s) == (True, 960.0, 960.0)


def test_tasks_that_wait_are_jobs():
    waiting = JOB | {"array_job_id": 7, "array_task_string": "4-6%2", "array_task_id": 2**32 - 2}
    assert [job.job_id for job in queue(waiting)] == ["7_4", "7_5", "7_6"]


@pytest.mark.parametrize(
    ("document", "match"),
    [
        (b"{", "no whole JSON"),
        (json.dumps({"jobs": [JOB | {"submit_time": "noon"}]}).encode(), "must be a number"),
        (json.dumps({"jobs": [JOB | {"tres_req_str": "gres/gpu=many"}]}).encode(), "counts of GPUs"),
    ],
)
def test_what_cannot_be_read_is_one_line(document, match):
    refused(TraceError, match, queued_jobs, FileBytes("squeue --json", document))


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from(sorted(JOB)), anything, max_size=5), max_size=3))
def test_whatever_slurm_says_is_read_or_refused(changes):
    document = json.dumps({"jobs": [JOB | change for change in changes]}).encode()
    try:
        jobs = queued_jobs(FileBytes("squeue --json", document))
    except TraceError:
        return
    assert all(job.submit_s > 0 and (job.gpus is None or job.gpus >= 0) for job in jobs)
