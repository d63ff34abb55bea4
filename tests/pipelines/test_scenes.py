import pytest

from jobcast.domain.errors import ConfigError, PoolsError, TraceError
from jobcast.domain.jobs import Pool
from jobcast.pipelines.scenes import build_scene, capacity
from jobcast.traces.readers import read_trace


@pytest.fixture
def trace(csv):
    """Five jobs of two pools, a second apart."""
    return read_trace(csv("1,a,0,10,1", "2,b,1,10,2", "3,a,2,10,4", "4,b,3,10,1", "5,a,4,10,1"))


AB = [Pool("a", 4), Pool("b", 2)]


def ids(scene):
    return [job.job_id for job in scene.workload.jobs]


def test_a_window_begins_at_from_and_ends_before_until(trace):
    scene = build_scene(trace, AB, from_s=1.0, until_s=4.0)
    assert ids(scene) == ["2", "3", "4"]
    assert [job.seq for job in scene.workload.jobs] == [0, 1, 2]
    assert (scene.from_s, scene.until_s) == (1.0, 4.0)
    assert scene.earlier.jobs["job_id"].to_list() == ["1"]


def test_without_a_window_all_jobs_are_replayed_and_none_is_earlier(trace):
    scene = build_scene(trace, AB)
    assert ids(scene) == ["1", "2", "3", "4", "5"]
    assert (scene.from_s, scene.until_s) == (0.0, 5.0)
    assert len(scene.earlier) == 0


def test_a_limit_takes_the_first_jobs_of_the_window(trace):
    assert ids(build_scene(trace, AB, from_s=1.0, limit=2)) == ["2", "3"]
    assert ids(build_scene(trace, AB, limit=99)) == ["1", "2", "3", "4", "5"]


def test_an_empty_window_is_refused(trace):
    with pytest.raises(TraceError, match=r"jobs\.csv: no job was submitted in \[1970-01-01T00:00:09Z, the end\)"):
        build_scene(trace, AB, from_s=9.0)


def test_a_wide_job_is_refused_with_its_file_or_dropped_and_counted(trace):
    narrow = [Pool("a", 3), Pool("b", 2)]
    with pytest.raises(TraceError, match=r"jobs\.csv: job 3 asks for 4 GPUs, its pool a has 3 \(1 such jobs\)"):
        build_scene(trace, narrow)
    scene = build_scene(trace, narrow, drop_wide=True)
    assert ids(scene) == ["1", "2", "4", "5"]
    assert scene.dropped == {"wider than their pool": 1}


def test_a_pool_without_capacity_is_refused_with_the_file_or_its_jobs_are_dropped_and_counted(trace):
    with pytest.raises(PoolsError, match=r"jobs\.csv: pool b has no GPUs but 2 jobs"):
        build_scene(trace, [Pool("a", 4)])
    scene = build_scene(trace, [Pool("a", 4)], only_pools=True)
    assert ids(scene) == ["1", "3", "5"]
    assert scene.dropped == {"of pools without capacity": 2}
    with pytest.raises(TraceError, match="no job of the window is left"):
        build_scene(trace, [Pool("c", 4)], only_pools=True)


def test_what_the_reader_dropped_is_told_too(csv):
    flat = csv("2017-10-02 00:00:00,5,1,a", "2017-10-02 00:00:01,,1,a", header="timestamp,duration,num_gpus,cluster")
    scene = build_scene(read_trace(flat), [Pool("a", 1)], drop_wide=True)
    assert scene.dropped == {"duration missing or <= 0": 1, "wider than their pool": 0}
    assert scene.notes == ("submit_time: times without an offset read as UTC",)


def test_a_flat_cluster_ignores_pools(trace):
    place = capacity(trace, pools=None, cluster=None, gpus=4, from_s=None)
    scene = build_scene(trace, place.pools, flat=place.flat)
    assert {job.pool for job in scene.workload.jobs} == {"all"}
    assert scene.workload.quotas() == {"all": 4}


def test_without_capacity_the_trace_gives_its_own(trace):
    # GPU time 60 of a and 30 of b in 4 s: 60 / 4 / 0.8 = 18.75, 30 / 4 / 0.8 = 9.375.
    place = capacity(trace, pools=None, cluster=None, gpus=None, from_s=None)
    assert place.pools == [Pool("a", 19), Pool("b", 10)]
    assert "max(widest job, ceil(GPU-time / span / 0.8))" in place.origin


def test_a_pools_file_counts_as_of_the_windows_beginning(trace, csv):
    pools = csv("a,4,", "a,8,3", name="pools.csv", header="pool,gpus,from")
    where = {"pools": pools, "cluster": None, "gpus": None}
    assert capacity(trace, **where, from_s=None).pools == [Pool("a", 4)]
    assert capacity(trace, **where, from_s=3.0).pools == [Pool("a", 8)]


def test_sources_of_capacity_exclude_each_other(trace, tmp_path):
    with pytest.raises(ConfigError, match="--pools and --gpus exclude each other"):
        capacity(trace, pools=tmp_path, cluster=None, gpus=3, from_s=None)


def cluster(trace, tmp_path, text):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return capacity(trace, pools=None, cluster=path, gpus=None, from_s=None)


def test_a_cluster_file_gives_quotas_or_one_flat_pool(trace, tmp_path):
    nodes = "nodes: [{count: 2, gpus: 4, gpu_type: v100}, {count: 1, gpus: 8}]"
    flat = cluster(trace, tmp_path, nodes)
    assert (flat.pools, flat.flat) == ([Pool("all", 16)], True)
    named = cluster(trace, tmp_path, f"{nodes}\npools: {{b: 2, a: 14}}")
    assert (named.pools, named.flat) == ([Pool("a", 14), Pool("b", 2)], False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nodes: .* are expected"),
        ("[1, 2]", "are expected"),
        ("just text", "are expected"),
        ("nodes: []", "are expected"),
        ("nodes: {count: 1, gpus: 4}", "are expected"),
        ("nodes: [{count: 1}]", "are expected"),
        ("pools: {a: 1}", "are expected"),
        ("nodes: [{count: 1, gpus: 4}]\npools: [a]", "are expected"),
        ("nodes: [", "not valid YAML"),
        ("nodes: [{count: 3, gpus: 4}, {count: -1, gpus: 4}]", r"node group 2, count: .* >= 1, got -1"),
        ("nodes: [{count: 1, gpus: 0}]", r"node group 1, gpus: .* >= 1, got 0"),
        ("nodes: [{count: 1.7, gpus: 4}]", r"count: must be a whole number >= 1, got 1\.7"),
        ("nodes: [{count: .inf, gpus: 4}]", "got inf"),
        ("nodes: [{count: .nan, gpus: 4}]", "got nan"),
        ("nodes: [{count: yes, gpus: 4}]", "got True"),
        ("nodes: [{count: many, gpus: 4}]", "got 'many'"),
        ("nodes: [{count: 1, gpus: 4}]\npools: {a: 0}", "pool a: must be a whole number >= 1, got 0"),
        ("nodes: [{count: 1, gpus: 4}]\npools: {a: 2.5}", r"pool a: .* got 2\.5"),
        ("nodes: [{count: 1, gpus: 4}]\npools: {1: 2, '1': 2}", "a pool is given twice"),
        ("nodes: [{count: 1, gpus: 4}]\npools: {a: 5}", r"quotas \(5\) exceed the cluster's 4 GPUs"),
    ],
)
def test_a_wrong_cluster_file_is_one_line(trace, tmp_path, text, message):
    with pytest.raises(PoolsError, match=message) as error:
        cluster(trace, tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'cluster.yaml'}")
    assert "\n" not in str(error.value)


def test_provenance_names_the_inputs(trace):
    told = build_scene(trace, AB, origin="by hand", from_s=1.0, until_s=4.0).provenance(trace)
    assert told["trace"] == {"path": trace.source.path, "sha256": trace.source.sha256, "rows": 5}
    assert told["window"] == {"from": "1970-01-01T00:00:01Z", "until": "1970-01-01T00:00:04Z"}
    assert told["pools"] == {"a": 4, "b": 2}
    assert told["notes"] == ["quotas: by hand"]
