"""What cannot be replayed is refused in one line, with the job's name."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from jobcast.domain.errors import TraceError
from jobcast.domain.tasks import TaskCluster
from tests import shared
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, workload_of

ROWS = [TaskJob(), TaskJob(submit_s=5.0, workers=2, server=True, chain=True, volume_mb=3.0)]
"""Tasks 0; 1, 2 and parameter server 3. Edges 1 -> 2, 2 -> 3, 3 -> 1, 3 -> 2."""


def sound():
    return workload_of(ROWS, cluster_of(2, 2))


def changed(name, value, row=-1):
    """The workload with one number of a column of the jobs changed."""
    workload = sound()
    column = getattr(workload.jobs, name).copy()
    column[row] = value
    return replace(workload, jobs=workload.jobs._replace(**{name: column}))


def refused(workload):
    return shared.refused(TraceError, "", workload.check)


def test_a_sound_workload_is_taken():
    sound().check()


def test_the_least_and_the_most_that_is_taken():
    """Jobs at once, of half an iteration, an epoch and no model; all memory of a server that has no GPU, or of all."""
    row = TaskJob(iterations=0.5, epochs=1, gpu=1.0, memory=0.5, cpu=0.0, bandwidth=0.5, server=True, volume_mb=0.5)
    cluster = cluster_of(2, [0, 1], cpu=0.5, memory=0.5, bandwidth=0.5)
    workload = workload_of([row, row], cluster, model_mb=0.0)
    workload.check()
    assert workload.truth.metric.shape == (2, 2)
    assert workload.epochs.tolist() == [1, 1]


def test_whole_jobs_arrive_in_one_pool_of_gpus_that_their_tasks_share():
    """Five workers and three on four GPUs; 100 iterations of 2 and 1 s, of which the trace knows better."""
    rows = [TaskJob(workers=5, compute_s=2.0), TaskJob(5.0, workers=3, urgency=7.0, deadline_s=900.0)]
    workload = replace(workload_of(rows, cluster_of(2, 2)), duration_s=np.array([100.0, 60.0]))
    whole = workload.whole()
    whole.check()
    assert [pool.quota for pool in whole.pools] == [4]
    told = [(job.job_id, job.submit_s, job.gpus, job.weight, job.due_s, job.preemptible) for job in whole.jobs]
    assert told == [("job-0", 0.0, 5, 5.0, inf, True), ("job-1", 5.0, 3, 7.0, 900.0, True)]
    assert [one.duration_s for one in whole.outcomes] == [100.0, 60.0]
    assert replace(workload, duration_s=None).alone_s.tolist() == [200.0, 100.0]


@pytest.mark.parametrize(
    ("name", "value", "row", "told"),
    [
        ("submit_s", -1.0, 1, "job job-1 is submitted before the job above it, or never; sort by submission"),
        ("submit_s", nan, 1, "job job-1 is submitted before"),
        ("iterations", 0.0, 0, "job job-0 has no iterations, or none an epoch"),
        ("iterations", inf, 0, "job job-0 has no iterations, or none an epoch"),
        ("epoch_iterations", 0.0, 1, "job job-1 has no iterations, or none an epoch"),
        ("epoch_iterations", 9.0, 1, "job job-1 lacks a metric for each epoch from 0 on"),  # 12 epochs, not 10
        ("deadline_s", nan, 1, "job job-1 has a deadline that is no number"),
        ("compute_s", 0.0, 0, "job job-0 has no task that computes anything"),
        ("compute_s", -1.0, 1, "task 0 of job job-1 computes less than 0 s"),
        ("compute_s", inf, 2, "task 1 of job job-1 computes less than 0 s"),
        ("demand", [1.1, 1.0, 1.0, 1.0], 2, "task 1 of job job-1 demands more than one GPU"),
        ("demand", [0.1, -1.0, 1.0, 1.0], 2, "task 1 of job job-1 demands less than nothing"),
        ("demand", [0.1, 1.0, nan, 1.0], 0, "task 0 of job job-0 demands less than nothing"),
        ("demand", [0.1, 1.0, 1.0, 1.0], 3, "task 2 of job job-1 is a parameter server and demands a GPU"),
        ("demand", [0.0, 1.0, 245.0, 1.0], 3, "task 2 of job job-1 demands more memory than any server has (244 GB)"),
        ("demand", [0.1, 1.0, 1.0, 0.0], 1, "job job-1 sends from a task that demands no MB/s"),
        ("size_share", 1.5, 1, "task 0 of job job-1 holds a share of the model beyond 0 to 1"),
        ("edge_to", 0, 0, "job job-1 has an edge to a task that is not its own"),
        ("edge_to", 4, 3, "job job-1 has an edge to a task that is not its own"),
        ("edge_from", 9, 0, "job job-1 has an edge to a task that is not its own"),
        ("edge_to", 1, 0, "job job-1 has a task with an edge to itself"),
        ("volume_mb", -1.0, 0, "job job-1 has an edge of less than 0 MB"),
        ("task_of", 5, 2, "column task_of does not tell where each job's tasks begin; count from 0 to 4"),
        ("edge_of", 1, 0, "column edge_of does not tell where each job's edges begin; count from 0 to 4"),
        ("job_of", 0, 2, "column job_of does not agree with task_of"),
    ],
)
def test_numbers_that_mean_nothing(name, value, row, told):
    assert refused(changed(name, value, row)).startswith(told)


def test_an_edge_of_nothing_asks_for_no_bandwidth():
    workload = changed("demand", [0.1, 1.0, 1.0, 0.0], 1)
    little = replace(workload, jobs=workload.jobs._replace(volume_mb=np.full(4, 0.5)))
    assert refused(little).startswith("job job-1 sends from a task that demands no MB/s")
    replace(workload, jobs=workload.jobs._replace(volume_mb=np.zeros(4))).check()


def test_more_memory_than_all_servers_have():
    rows = [TaskJob(workers=5, memory=100.0)]
    assert refused(workload_of(rows, cluster_of(2, 2))).startswith(
        "task 0 of job job-0 and the job's others demand more memory than all servers have"
    )


def test_columns_of_other_lengths():
    workload = sound()
    for name in set(workload.jobs._fields) - {"submit_s", "job_of", "edge_from"}:  # these tell how many there are
        column = getattr(workload.jobs, name)
        longer = workload.jobs._replace(**{name: np.concatenate([column, column[-1:]])})
        told = f"column {name} of the jobs of tasks has {len(column) + 1} rows, not {len(column)}"
        assert refused(replace(workload, jobs=longer)) == told
    assert "duration" in refused(replace(workload, duration_s=np.ones(3)))
    longer = replace(workload.truth, iterations=np.ones(3))
    assert "true iterations" in refused(replace(workload, truth=longer))
    assert "job_ids" in refused(replace(workload, job_ids=["a"]))
    short = replace(workload, truth=replace(workload.truth, metric=workload.truth.metric[:1]))
    assert refused(short) == "column metric of the jobs of tasks has 1 rows, not 2"


def test_truth_that_means_nothing():
    workload = sound()
    for epoch in (0, 4, 10):
        metric = workload.truth.metric.copy()
        metric[1, epoch] = nan
        told = refused(replace(workload, truth=replace(workload.truth, metric=metric)))
        assert told.startswith("job job-1 lacks a metric")
    short = replace(workload.truth, metric=workload.truth.metric[:, :10])
    assert refused(replace(workload, truth=short)).startswith("job job-0 lacks a metric")
    for iterations in (0.0, 101.0, nan):
        truth = replace(workload.truth, iterations=np.array([100.0, iterations]))
        assert refused(replace(workload, truth=truth)).startswith("job job-1 really runs 0 iterations, or more")
    heavy = replace(workload.truth, model_mb=np.array([-1.0, 0.0]))
    assert refused(replace(workload, truth=heavy)) == "job job-0 has a model of less than 0 MB"


def test_servers_that_mean_nothing():
    workload, server = sound(), [2.0, 32.0, 244.0, 1250.0]
    for capacity, hosts, told in (
        ([], [], "the cluster has no servers or no GPUs"),
        ([server], [], "the cluster has no servers or no GPUs"),
        ([server], [0, 1], "GPUs of the cluster name servers out of order, or beyond the 1 that there are"),
        ([server, server], [1, 0], "GPUs of the cluster name servers out of order"),
        ([[2.0, 0.0, 244.0, 1.0]], [0], "server 0 lacks cores, GB or MB/s"),
        ([[2.0, 32.0, 0.0, 1.0]], [0], "server 0 lacks cores, GB or MB/s"),
        ([[2.0, 32.0, 244.0, 0.0]], [0], "server 0 lacks cores, GB or MB/s: [2.0, 32.0, 244.0, 0.0]"),
        ([[2.0, nan, 244.0, 1.0]], [0], "server 0 lacks cores, GB or MB/s"),
    ):
        cluster = TaskCluster(np.array(capacity, dtype=float).reshape(-1, 4), np.array(hosts, dtype=np.int64))
        assert refused(replace(workload, cluster=cluster)).startswith(told)


def test_no_jobs():
    workload = sound()
    none = replace(
        workload,
        jobs=jobs_of(),
        truth=replace(workload.truth, metric=np.empty((0, 1)), model_mb=np.empty(0)),
        job_ids=[],
    )
    assert refused(none) == "there are no jobs; give at least one"
