import json
from dataclasses import replace

import polars as pl
import pytest

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.hardware import Cluster, PoolsTable, Quota, pools_cluster
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.pipelines.experiments.clusters import cluster_of
from jobcast.pipelines.experiments.elastic.jobs import elastic_jobs
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.rigid_jobs import rigid_jobs, scenario_workload
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.simulation import simulate
from jobcast.pipelines.experiments.sources import earlier_jobs
from jobcast.schedulers.policies import split_settings
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.workload import Workload
from jobcast.traces.generators import generate
from jobcast.traces.readers import read_trace
from tests.scenarios import pool_scenario


@pytest.fixture
def trace(csv):
    """Five jobs of two pools, a second apart."""
    return read_trace(csv("1,a,0,10,1", "2,b,1,10,2", "3,a,2,10,4", "4,b,3,10,1", "5,a,4,10,1"))


AB = [Pool("a", 4), Pool("b", 2)]


def ids(scenario):
    return [job.job_id for job in scenario.workload.jobs]


def test_a_window_begins_at_from_and_ends_before_until(trace):
    scenario = pool_scenario(trace, AB, from_s=1.0, until_s=4.0)
    assert ids(scenario) == ["2", "3", "4"]
    assert [job.seq for job in scenario.workload.jobs] == [0, 1, 2]
    assert (scenario.from_s, scenario.until_s) == (1.0, 4.0)
    assert scenario.earlier.jobs["job_id"].to_list() == ["1"]


def test_a_pool_that_is_gone_within_the_window_is_served_and_told(trace):
    """b is gone from 2 s on: job 4 comes later; at 2 s it has no capacity."""
    table = PoolsTable((Quota("a", 4), Quota("b", 2), Quota("b", 0, 2.0)))
    told = {
        until_s: cut_scenario(trace, Cluster(quotas=table, at_s=0.0), until_s=until_s).notes for until_s in (3.0, 5.0)
    }
    (line,) = told[5.0]
    assert line.startswith("warning: pools that are gone within the window keep the GPUs of its beginning: ")
    assert "b from 1970-01-01T00:00:02Z on (1 job after that); --until ends a replay before" in line
    assert told[3.0] == ()
    late = cut_scenario(trace, Cluster(quotas=table, at_s=2.0), from_s=2.0)
    assert late.notes == ()
    with pytest.raises(PoolsError, match="pool b has no GPUs but 1 job lies in such pools"):
        rigid_jobs(late)
    assert ids(rigid_jobs(late, only_pools=True)) == ["3", "5"]


def test_a_limit_takes_the_first_jobs_of_the_window(trace):
    assert ids(pool_scenario(trace, AB, from_s=1.0, limit=2)) == ["2", "3"]
    assert ids(pool_scenario(trace, AB, limit=99)) == ["1", "2", "3", "4", "5"]


def test_an_empty_window_is_refused(trace):
    with pytest.raises(TraceError, match=r"jobs\.csv: no job was submitted in \[1970-01-01T00:00:09Z, the end\)"):
        pool_scenario(trace, AB, from_s=9.0)


MIXED = ("1,a,0,10,1", "2,b,1,10,0", "3,a,2,,4", "4,b,3,10,1", "5,a,4,,0", "6,a,9,10,2")


def test_jobs_without_gpus_or_a_run_time_are_left_out_and_counted(csv):
    trace = read_trace(csv(*MIXED))
    for scenario in (pool_scenario(trace, AB), elastic_jobs(cut_scenario(trace, cluster_of(trace, gpus=8)))):
        assert scenario.job_ids == ("1", "4", "6")
        assert scenario.dropped == {"no GPUs": 2, "no run time (running or waiting)": 1}
        assert [note.partition(":")[0] for note in scenario.notes[:2]] == ["duration", "gpus"]
        assert len(scenario.trace) == 3
    assert pool_scenario(trace, AB, limit=2).dropped == scenario.dropped
    cut = pool_scenario(trace, AB, from_s=3.0)
    assert (ids(cut), cut.dropped) == (["4", "6"], {"no GPUs": 1})
    earlier = earlier_jobs(cut)
    assert [job.job_id for job in earlier.jobs] == ["1", "3"]
    assert earlier.known_s.tolist() == [10.0, float("inf")]


def test_a_window_of_jobs_that_cannot_be_replayed_is_refused(csv):
    trace = read_trace(csv(*MIXED))
    why = r"no job of \[1970-01-01T00:00:04Z, 1970-01-01T00:00:05Z\) can be replayed: 1 have no GPUs; widen"
    with pytest.raises(TraceError, match=why):
        pool_scenario(trace, AB, from_s=4.0, until_s=5.0)


def test_a_wide_job_is_refused_with_its_file_or_dropped_and_counted(trace):
    narrow = [Pool("a", 3), Pool("b", 2)]
    with pytest.raises(TraceError, match=r"jobs\.csv: job 3 asks for 4 GPUs, its pool a has 3 \(1 such jobs\)"):
        pool_scenario(trace, narrow)
    scenario = pool_scenario(trace, narrow, drop_wide=True)
    assert ids(scenario) == ["1", "2", "4", "5"]
    assert scenario.dropped == {"wider than their pool": 1}


def test_a_pool_without_capacity_is_refused_with_the_file_or_its_jobs_are_dropped_and_counted(trace):
    with pytest.raises(PoolsError, match=r"jobs\.csv: pool b has no GPUs but 2 jobs"):
        pool_scenario(trace, [Pool("a", 4)])
    scenario = pool_scenario(trace, [Pool("a", 4)], only_pools=True)
    assert ids(scenario) == ["1", "3", "5"]
    assert scenario.dropped == {"of pools without capacity": 2}
    with pytest.raises(TraceError, match="no job of the window is left"):
        pool_scenario(trace, [Pool("c", 4)], only_pools=True)


def test_a_flat_cluster_ignores_pools(trace):
    place = cluster_of(trace, gpus=4)
    scenario = rigid_jobs(cut_scenario(trace, place))
    assert scenario.listed["pool"].to_list() == ["all"] * 5
    assert {job.pool for job in scenario.workload.jobs} == {"all"}
    assert scenario.workload.quotas() == {"all": 4}


def test_pools_of_different_gpus_are_told_apart(trace):
    """Who lends from one to the other would start jobs on GPUs that they did not ask for."""
    typed = replace(trace, jobs=trace.jobs.with_columns(gpu_type=pl.Series(["v100", "a100", "v100", None, "v100"])))
    (note,) = (one for one in pool_scenario(typed, AB).notes if one.startswith("gpu_type"))
    assert "(a100: b; v100: a)" in note
    assert not any(one.startswith("gpu_type") for one in pool_scenario(typed, [Pool("a", 4)], only_pools=True).notes)


def test_provenance_names_the_inputs(trace):
    told = rigid_jobs(cut_scenario(trace, pools_cluster(AB, "by hand"), from_s=1.0, until_s=4.0)).provenance()
    assert told["trace"] == {"path": trace.source.path, "sha256": trace.source.sha256, "rows": 5}
    assert told["window"] == {"from": "1970-01-01T00:00:01Z", "until": "1970-01-01T00:00:04Z"}
    assert told["pools"] == {"a": 4, "b": 2}
    assert told["notes"] == ["quotas: by hand"]
    assert (told["cluster"], told["gpus"], told["gpu_types"], told["nodes"]) == ("by hand", 6, {"": 6}, 0)
    assert json.loads(json.dumps(told)) == told


COUNT = 2000


@pytest.fixture(scope="module")
def made():
    """Every third job may be stopped."""
    jobs = [Job(0, f"{i:04d}", "a", float(i), 1, preemptible=i % 3 == 0) for i in range(COUNT)]
    return Workload(jobs, [Outcome(1.0)] * COUNT, [Pool("a", 1)], restart_s=5.0, resume_s=2.0)


def stoppable(workload):
    return {job.job_id for job in workload.jobs if job.preemptible}


def of(made, seed=0, **settings):
    return scenario_workload(made, own("sia_preempt", settings), seed)


def own(policy, settings):
    return split_settings(find_policy(policy), settings).own


def test_a_job_is_drawn_by_its_id_and_the_seed_alone(made):
    drawn = stoppable(of(made, preemptible_share="0.5"))
    assert stoppable(of(made, preemptible_share="0.5")) == drawn
    assert stoppable(of(made, seed=1, preemptible_share="0.5")) != drawn
    half = replace(made, jobs=made.jobs[::2], outcomes=made.outcomes[::2])
    assert stoppable(of(half, preemptible_share="0.5")) == drawn & {job.job_id for job in half.jobs}


def test_a_larger_share_takes_the_smaller_ones_jobs_too(made):
    some, more = (stoppable(of(made, preemptible_share=share)) for share in ("0.25", "0.5"))
    assert some < more


def test_nothing_else_changes(made):
    told = of(made, preemptible_share="0.5")
    assert [replace(job, preemptible=False) for job in told.jobs] == [
        replace(job, preemptible=False) for job in made.jobs
    ]
    assert (told.outcomes, told.pools, told.restart_s, told.resume_s) == (made.outcomes, made.pools, 5.0, 2.0)


def test_what_the_trace_says_holds_where_no_share_is_set(made):
    told = of(made, resume_s="60")
    assert told.resume_s == 60.0
    assert stoppable(told) == stoppable(made)
    assert of(made) is made


def test_a_simulation_replays_the_scenario(tmp_path):
    trace, pools = generate("sia", 2, {"variant": "higher_load"})
    scenario = pool_scenario(trace, pools)

    def stops(**settings):
        run = simulate(scenario, "sia_preempt", parse_forecasts("oracle"), home=tmp_path, seed=1, settings=settings)
        return int(run.log.preemptions.sum())

    assert stops(preemptible_share="0") == 0
    assert stops(preemptible_share="1", resume_s="60") > 0
