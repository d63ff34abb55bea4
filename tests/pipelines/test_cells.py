from dataclasses import replace

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.jobs import Outcome, Pool
from jobcast.pipelines.cells import asks_for_locality, placed, without_locality
from jobcast.pipelines.scenes import build_scene
from jobcast.schedulers.cells.policies import make_cell_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.workload import Workload
from jobcast.traces.generators import generate


@pytest.fixture(scope="module")
def scene():
    trace, pools = generate("sia", 0, {"variant": "base"})
    return build_scene(trace, pools, limit=60)


def test_locality_is_asked_for_by_a_setting():
    assert asks_for_locality({"locality": "true", "tick_s": "60"})
    assert not asks_for_locality({"tick_s": "60"})
    assert without_locality({"locality": "true", "tick_s": "60"}) == {"tick_s": "60"}
    with pytest.raises(ConfigError, match="setting locality must be true or false, got perhaps"):
        asks_for_locality({"locality": "perhaps"})


def test_servers_of_eight_unless_a_cluster_file_tells(scene):
    assert placed(scene).workload.servers == (8,) * 4
    on_file = placed(replace(scene, nodes=((1, 16), (2, 16))))
    assert on_file.workload.servers == (16,) * 3
    assert on_file.cells == {pool.name: (8,) for pool in scene.workload.pools}
    assert on_file.notes[-1] == "locality: 3 servers of 16 GPUs"
    ready = placed(scene)
    log = replay(ready.workload, make_cell_policy("fcfs", None, {}, ready.cells))
    assert len(log) == 60


def test_a_job_that_fits_no_cell_is_refused(scene):
    wide = max(scene.workload.jobs, key=lambda job: job.gpus)
    assert wide.gpus == 8
    given = {pool.name: (4, 4) for pool in scene.workload.pools}
    with pytest.raises(TraceError, match=r"its 8 GPUs need 8 together, its pool \S+ has 4\+4"):
        placed(scene, given)


def test_odd_quotas_are_cells(scene):
    jobs = [job for job in scene.workload.jobs if job.gpus == 1]
    workload = Workload(jobs, [Outcome(1.0)] * len(jobs), [Pool(pool.name, 7) for pool in scene.workload.pools])
    ready = placed(replace(scene, workload=workload))
    assert ready.workload.servers == (8,) * 4
    assert set(ready.cells.values()) == {(4, 2, 1)}
