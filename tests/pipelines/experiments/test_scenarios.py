import json

import pytest

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.hardware import pools_cluster
from jobcast.domain.jobs import Pool
from jobcast.pipelines.experiments.clusters import cluster_of
from jobcast.pipelines.experiments.elastic.jobs import elastic_jobs
from jobcast.pipelines.experiments.rigid_jobs import rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.sources import earlier_jobs
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


def test_without_a_window_all_jobs_are_replayed_and_none_is_earlier(trace):
    scenario = pool_scenario(trace, AB)
    assert ids(scenario) == ["1", "2", "3", "4", "5"]
    assert (scenario.from_s, scenario.until_s) == (0.0, 5.0)
    assert len(scenario.earlier) == 0


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


def test_what_the_reader_dropped_is_told_too(csv):
    flat = csv("2017-10-02 00:00:00,5,1,a", "2017-10-02 00:00:01,,1,a", header="timestamp,duration,num_gpus,cluster")
    scenario = pool_scenario(read_trace(flat), [Pool("a", 1)], drop_wide=True)
    assert scenario.dropped == {"duration missing or <= 0": 1, "wider than their pool": 0}
    assert scenario.notes == ("submit_time: times without an offset read as UTC", "quotas: made by hand")


def test_a_flat_cluster_ignores_pools(trace):
    place = cluster_of(trace, gpus=4)
    scenario = rigid_jobs(cut_scenario(trace, place))
    assert scenario.listed["pool"].to_list() == ["all"] * 5
    assert {job.pool for job in scenario.workload.jobs} == {"all"}
    assert scenario.workload.quotas() == {"all": 4}


def test_provenance_names_the_inputs(trace):
    told = rigid_jobs(cut_scenario(trace, pools_cluster(AB, "by hand"), from_s=1.0, until_s=4.0)).provenance()
    assert told["trace"] == {"path": trace.source.path, "sha256": trace.source.sha256, "rows": 5}
    assert told["window"] == {"from": "1970-01-01T00:00:01Z", "until": "1970-01-01T00:00:04Z"}
    assert told["pools"] == {"a": 4, "b": 2}
    assert told["notes"] == ["quotas: by hand"]
    assert (told["cluster"], told["gpus"], told["gpu_types"], told["nodes"]) == ("by hand", 6, {"": 6}, 0)
    assert json.loads(json.dumps(told)) == told


def test_earlier_jobs_are_of_the_pool_that_a_flat_cluster_has(trace):
    scenario = rigid_jobs(cut_scenario(trace, pools_cluster(AB).shared, from_s=2.0))
    assert [job.pool for job in earlier_jobs(scenario).jobs] == ["all", "all"]
    assert scenario.place.origin == "6 GPUs in all, made by hand; quotas are ignored"
    told = rigid_jobs(cut_scenario(trace, pools_cluster(AB), from_s=2.0))
    assert [job.pool for job in earlier_jobs(told).jobs] == ["a", "b"]
