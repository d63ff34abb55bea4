"""How long iterations take, by hand."""

import numpy as np
import pytest

from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, replay_tasks, workload_of
from tests.simulator.tasks.task_policies import Script

TWO_SERVERS = cluster_of(2, 2)  # GPUs 0, 1 and 2, 3; 32 cores, 1250 MB/s


def iteration_s(rows, gpus, *, cluster=TWO_SERVERS, job=0):
    """Seconds that an iteration of a job takes while all jobs run; tasks of all jobs on these GPUs."""
    log = replay(rows, gpus, cluster)
    return log.jct_s[job] / log.columns["iterations"][job]


def replay(rows, gpus, cluster=TWO_SERVERS):
    workload = workload_of(rows, cluster)
    return replay_tasks(workload, Script({0: {"put": list(enumerate(gpus))}}), fluctuation=0.0)


CHAIN = TaskJob(workers=2, chain=True, compute_s=(1.0, 2.0), volume_mb=50.0)  # at 100 MB/s: 0.5 s an edge
SIDES = TaskJob(workers=2, compute_s=(1.0, 2.0), volume_mb=50.0)


@pytest.mark.parametrize(
    ("row", "gpus", "seconds"),
    [
        (CHAIN, (0, 2), 1.0 + 0.5 + 2.0),
        (CHAIN, (0, 1), 1.0 + 2.0),
        (CHAIN, (3, 3), 1.0 + 2.0),
        (SIDES, (0, 2), 2.0),
    ],
)
def test_tasks_that_follow_one_another_or_stand_side_by_side(row, gpus, seconds):
    assert iteration_s([row], gpus) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("row", "gpus", "seconds", "crossing"),
    [
        (CHAIN, (0, 2, 2), 1.0 + 0.5 + 2.0 + 0.2 + 0.5, 2),  # the broadcast to the first worker comes at the end
        (CHAIN, (0, 2, 0), 1.0 + 0.5 + 2.0 + 0.5 + 0.2 + 0.5, 3),
        (CHAIN, (0, 0, 0), 1.0 + 2.0 + 0.2, 0),
        (CHAIN, (0, 0, 2), 1.0 + 2.0 + 0.5 + 0.2 + 0.5, 3),  # two broadcasts at once
        (SIDES, (0, 2, 2), 2.0 + 0.2 + 0.5, 2),
        (SIDES, (0, 2, 0), 2.0 + 0.5 + 0.2 + 0.5, 2),
    ],
)
def test_a_parameter_server_gathers_and_sends_at_the_end(row, gpus, seconds, crossing):
    row = TaskJob(**{name: getattr(row, name) for name in row.__dataclass_fields__} | SERVER)
    assert iteration_s([row], gpus) == pytest.approx(seconds)
    log = replay([row], gpus)
    assert log.columns["edge_mb"][0] == pytest.approx(50.0 * crossing * 100.0)


SERVER = {"server": True, "server_compute_s": 0.2}


def test_the_longest_of_several_paths_counts():
    """0 -> 1 -> 3 and 0 -> 2 -> 3, tasks of 1, 2, 4 and 1 s; only 1 is elsewhere, its edges take 1.5 s each."""
    row = TaskJob(workers=4, compute_s=(1.0, 2.0, 4.0, 1.0))
    jobs = jobs_of(row)
    edges = {"edge_from": [2, 0, 1, 0], "edge_to": [3, 1, 3, 2], "volume_mb": [150.0] * 4}  # in no order
    kinds = {"edge_from": np.int64, "edge_to": np.int64, "volume_mb": float}
    jobs = jobs._replace(
        edge_of=np.array([0, 4]), **{name: np.array(column, dtype=kinds[name]) for name, column in edges.items()}
    )
    for gpus, seconds in (((0, 2, 1, 0), 1.0 + 1.5 + 2.0 + 1.5 + 1.0), ((0, 0, 1, 1), 1.0 + 4.0 + 1.0)):
        script = Script({0: {"put": list(enumerate(gpus))}})
        log = replay_tasks(workload_of(jobs, TWO_SERVERS), script, fluctuation=0.0)
        assert log.end_s[0] == pytest.approx(100.0 * seconds)


@pytest.mark.parametrize(("gpus", "slowed"), [((0.75, 0.75), 1.5), ((0.5, 0.5), 1.0), ((1.0, 0.2), 1.2)])
def test_a_shared_gpu_slows_all_its_tasks_by_its_load(gpus, slowed):
    rows = [TaskJob(gpu=share, iterations=60.0) for share in gpus]
    for job in range(2):
        assert iteration_s(rows, (0, 0), job=job) == pytest.approx(slowed)
        assert iteration_s(rows, (0, 1), job=job) == 1.0


def test_cores_slow_a_server_and_the_worse_of_gpu_and_cores_counts():
    rows = [TaskJob(gpu=0.6, cpu=24.0, iterations=60.0), TaskJob(gpu=0.6, cpu=24.0, iterations=60.0)]
    assert iteration_s(rows, (0, 1)) == pytest.approx(1.5)  # 48 of 32 cores
    assert iteration_s(rows, (0, 0)) == pytest.approx(1.5)  # not 1.5 x 1.2
    assert iteration_s(rows, (0, 2)) == pytest.approx(1.0)


def test_a_crowded_gpu_does_not_slow_a_parameter_server_but_cores_do():
    rows = [TaskJob(compute_s=1.0, server=True, server_compute_s=1.0), TaskJob(gpu=1.0, iterations=400.0)]
    assert iteration_s(rows, (1, 0, 0)) == pytest.approx(2.0)
    rows = [TaskJob(compute_s=1.0, server=True, server_compute_s=1.0, cpu=40.0)]
    assert iteration_s(rows, (0, 2)) == pytest.approx(2.5)  # 40 of 32 cores on both servers
