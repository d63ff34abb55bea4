"""Explanations of many runs agree with the policy that made them, and those of broken logs say what is missing."""

import json
import random
import re
import shutil

import numpy as np
import polars as pl
import pytest

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Decision, Grant
from jobcast.pipelines.experiments.explain.cluster_history import ClusterPast, Sharing, fcfs_starts_s, sharing_of
from jobcast.pipelines.experiments.explain.explanation import explain
from jobcast.pipelines.experiments.explain.narration import tell
from jobcast.pipelines.experiments.explain.run_table import read_run_table
from jobcast.pipelines.experiments.run_record import record_folder
from jobcast.schedulers.pool_rules import HiveD
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.sia_vc import SiaVc
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle, Random
from jobcast.simulator.workload import Workload
from tests.shared import refused

POOLS = {"a": 4, "b": 6, "c": 3}


def any_workload(runs, seed, count=60):
    draw = random.Random(seed)
    jobs = []
    for index in range(count):
        pool = draw.choice("aabbbc")
        run_min = draw.choice((2, 4, 20, 50, 100, 400, 800)) + draw.random()
        jobs.append((f"{index:03d}", pool, draw.uniform(0, 900), run_min, draw.randint(1, POOLS[pool])))
    return runs.workload(jobs, POOLS)


@pytest.mark.parametrize("kind", ["oracle", "random"])
@pytest.mark.parametrize("seed", range(4))
def test_every_moment_of_every_wait_has_a_reason_that_sia_itself_had(runs, kind, seed):
    """At no instant could the job have started by the quotas and reservations that are told, and it did not."""
    workload = any_workload(runs, seed)
    source = Oracle(workload) if kind == "oracle" else Random(workload, seed)
    table = read_run_table(runs.log(workload, "sia", source))
    fcfs = replay(workload, make_policy("fcfs", None, {}))
    for place, job_id in enumerate(table.job_ids):
        told = explain(table, job_id)
        assert told["summary"]["fcfs_started_s"] == pytest.approx(fcfs.start_s[place], abs=1e-3)
        assert sum(row["seconds"] for row in told["wait_by_reason"]) == pytest.approx(told["summary"]["wait_s"])
        for stretch in told["waits"]:
            if stretch["quota_reason"] == "not_chosen":  # quotas are served first, spare GPUs then
                assert stretch["details"] is None or stretch["details"]["made_way"]["count"] > 0
            else:
                assert stretch["quota_reason"] in ("quota_full", "quota_lent", "behind_others")
            assert stretch["spare_reason"] in ("too_few_idle", "too_long", "reserved")
            if stretch["details"] is not None and "windows" in stretch["details"]:
                gpus = told["job"]["gpus"]
                assert all(
                    window["usable_gpus"] < gpus <= window["idle_gpus"] for window in stretch["details"]["windows"]
                )
        assert told["notes"] == []
        assert tell(told)


@pytest.mark.parametrize("seed", range(6))
def test_culprits_hold_what_is_missing_when_the_job_is_due_and_a_forecast_was_wrong(runs, seed):
    workload = any_workload(runs, seed)
    table = read_run_table(runs.log(workload, "sia", Random(workload, seed)))
    for job_id in table.job_ids:
        told = explain(table, job_id)
        if told["slowed"] is None:
            continue
        slowed = told["slowed"]
        assert slowed["idle_gpus"] < slowed["first_late"]["gpus"] <= slowed["unused_quota_gpus"]
        assert slowed["held_by"]["count"] > 0
        for culprit in slowed["held_by"]["jobs"]:
            assert not culprit["dedicated"]
            assert culprit["started_s"] <= slowed["at_s"] < culprit["ended_s"]
            assert culprit["overstayed_s"] > 0 or culprit["let_in"]["owner"]["missed"]


def test_some_jobs_are_slowed_by_random_forecasts_and_none_by_exact_ones(runs):
    """Else the test above would pass for want of slowed jobs."""
    workload = any_workload(runs, 0)
    slowed = {}
    for name, source in (("exact", Oracle(workload)), ("random", Random(workload, 0))):
        table = read_run_table(runs.log(workload, "sia", source))
        slowed[name] = sum(explain(table, job_id)["summary"]["verdict"] == "slowed" for job_id in table.job_ids)
    assert slowed["exact"] == 0
    assert slowed["random"] > 3


@pytest.mark.parametrize(
    ("policy", "rule", "sharing"),
    [
        ("fcfs", None, Sharing.PRIVATE),
        ("mmfs", None, Sharing.SHARED),
        ("sia", None, Sharing.WINDOWS),
        ("hived", lambda _: HiveD(), Sharing.SPARE),
        ("sia_vc", SiaVc, Sharing.CLOCK),
    ],
)
def test_an_installed_policy_of_another_name_is_explained_by_what_it_did(runs, policy, rule, sharing):
    """sia_vc counts as sharing all: nothing in a log tells of virtual starts."""
    workload = any_workload(runs, 1)
    for name, expected in ((policy, sharing), ("else", Sharing.SHARED if policy == "sia_vc" else sharing)):
        path = runs.log(workload, policy, rule=rule)
        place = record_folder(path) / "run.json"
        place.write_text(json.dumps(json.loads(place.read_text()) | {"policy": name}))
        table = read_run_table(path)
        assert sharing_of(ClusterPast(table), table.bins is not None) is expected


def test_a_log_without_its_record_is_explained_from_quotas_given(runs):
    path = runs.log(any_workload(runs, 3), "sia", Random(any_workload(runs, 3), 3))
    whole = read_run_table(path)
    shutil.rmtree(record_folder(path))
    pools = runs.folder / "pools.csv"
    pools.write_text("pool,gpus\na,4\nb,6\nc,3\n")
    table = read_run_table(path, pools)
    for job_id in table.job_ids[::7]:
        told = explain(table, job_id)
        assert told["summary"] == explain(whole, job_id)["summary"]
        assert told["run"]["policy"] is None
        assert "log.csv.run is not there" in told["notes"][0]
    pools.write_text("pool,gpus\na,4\nb,6\n")
    refused(PoolsError, r"pools\.csv: no quota for pool c", read_run_table, path, pools)


def test_a_log_without_quotas_tells_who_ran_and_what_is_missing(runs):
    path = runs.log(any_workload(runs, 3), "fcfs")
    shutil.rmtree(record_folder(path))
    table = read_run_table(path)
    told = [explain(table, job_id) for job_id in table.job_ids]
    assert {one["summary"]["verdict"] for one in told} == {"unknown"}
    reasons = {stretch["quota_reason"] for one in told for stretch in one["waits"]}
    assert reasons == {"behind_others", "unknown"}
    assert all("pass --pools FILE" in " ".join(one["notes"]) and tell(one) for one in told)
    json.dumps(told, allow_nan=False)


class StopOnce:
    """First come, first served; stops the running preemptible job once when the second job comes."""

    name = "stop_once"

    def lane(self, job):
        return 0

    def key(self, job):
        return -float(job.seq)

    def decide(self, view):
        stop = [run.job for run in view.running.values() if run.job.preemptible and view.now_s == 600.0]
        free = view.free_gpus + sum(job.gpus for job in stop)
        start = [job for pool in view.pools.values() if (job := pool.pending.head()) is not None and job.gpus <= free]
        stopped = {job.seq: None for job in stop}
        return Decision(stopped | {job.seq: Grant(job.gpus) for job in start})


def test_waits_of_a_job_that_was_stopped_are_told_from_its_record(runs):
    """p runs from 0 to 10 and, after the other job, from 15 to 65."""
    workload = Workload(
        [Job(0, "p", "a", 0.0, 1, preemptible=True), Job(0, "q", "a", 600.0, 1)],
        [Outcome(3600.0), Outcome(300.0)],
        [Pool("a", 1)],
    )
    path = runs.log(workload, "stop_once", rule=lambda _: StopOnce())
    table = read_run_table(path)
    told = explain(table, "p")
    (stretch,) = told["waits"]
    assert (stretch["from_s"], stretch["until_s"], stretch["quota_reason"]) == (600, 900, "quota_full")
    assert [job["job_id"] for job in stretch["details"]["held_by"]["jobs"]] == ["q"]
    assert told["job"]["preemptions"] == 1
    assert "stopped 1 time meanwhile" in tell(told)
    shutil.rmtree(record_folder(path))
    assert "taken to hold their GPUs from first start to end" in " ".join(read_run_table(path).notes)


def test_a_job_that_never_ran_is_said_to(runs):
    path = runs.log(any_workload(runs, 3), "fcfs")
    shutil.rmtree(record_folder(path))
    rows = pl.read_csv(path, infer_schema=False)
    last = pl.col("job_id") == rows["job_id"][-1]
    rows.with_columns(pl.when(~last).then(pl.col(name)).alias(name) for name in ("start_time", "end_time")).write_csv(
        path
    )
    told = explain(read_run_table(path), rows["job_id"][-1])
    assert (told["summary"]["verdict"], told["summary"]["started_s"]) == ("never_ran", None)
    assert "started never" in tell(told)


def test_the_private_schedule_blocks_behind_its_head():
    """By hand: 3 of 4 GPUs until 5, so that the second waits until then and the third behind it."""
    starts = fcfs_starts_s(np.array([0.0, 1.0, 2.0]), np.array([3, 2, 1]), np.array([5.0, 2.0, 1.0]), 4)
    assert starts.tolist() == [0.0, 5.0, 5.0]
    too_wide = fcfs_starts_s(np.array([0.0, 1.0]), np.array([5, 1]), np.array([5.0, 2.0]), 4)
    assert np.isinf(too_wide).all()


COLUMNS = "job_id,pool,submit_time,start_time,end_time,gpus,duration\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job_id,pool\n1,a\n", "is no log of a simulation (column submit_time, start_time"),
        ("", "the file is empty"),
        (COLUMNS, "(no jobs)"),
        (f"{COLUMNS}1,a,0,0,1,x,1\n", "row 1, column gpus: 'x'"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(tmp_path, text, said):
    path = tmp_path / "log.csv"
    path.write_text(text)
    refused(TraceError, re.escape(said), read_run_table, path)
    refused(TraceError, "no such file", read_run_table, tmp_path / "none.csv")
