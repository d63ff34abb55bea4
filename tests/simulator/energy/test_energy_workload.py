"""Workloads that cannot be replayed are refused in one line."""

from math import inf, nan

import numpy as np
import pytest

from jobcast.domain.energy import Tariff
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.simulator.energy.workload import EnergyWorkload
from tests.simulator.energy.energy_cases import EnergyJob, cluster_of, jobs_of, tariff_of, workload_of

CLUSTER = cluster_of((1, (0.0, 100.0, 180.0)), (2, (0.0, 70.0)))
BOTH = ((9.0, 5.0), (20.0,))


def refused(workload, error):
    with pytest.raises(error) as told:
        workload.check()
    assert "\n" not in str(told.value)
    return str(told.value)


def test_a_sound_workload_passes():
    jobs = jobs_of(EnergyJob(epoch_s=BOTH), EnergyJob(epoch_s=((), (20.0,))), cluster=CLUSTER)
    workload_of(jobs, CLUSTER).check()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"submit_s": 5.0}, "job j1 is submitted before the job above it"),
        ({"submit_s": nan}, "job j0 is submitted before the job above it, or never"),
        ({"epochs": 0.0}, "job j0 has no epochs"),
        ({"due_s": nan}, "job j0 has a due date that is no time"),
        ({"weight": -1.0}, "job j0 has a weight below 0"),
        ({"epoch_s": ((9.0, 0.0), (20.0,))}, "job j0 has an epoch of 0 s or less"),
        ({"epoch_s": ((9.0, nan), (20.0,))}, "job j0 has an epoch of 0 s or less, or no number"),
        ({"epoch_s": ((), ())}, "job j0 can run on no node of the cluster"),
        ({"epoch_s": ((), (inf, 9.0))}, "job j0 can run on no node of the cluster"),
    ],
)
def test_jobs_that_mean_nothing(changed, told):
    rows = EnergyJob(**({"epoch_s": BOTH} | changed)), EnergyJob(epoch_s=BOTH)
    assert told in refused(workload_of(jobs_of(*rows, cluster=CLUSTER), CLUSTER), TraceError)


def test_a_kind_without_nodes_is_nowhere():
    cluster = CLUSTER._replace(kind_of=np.array([1, 1]))
    jobs = jobs_of(EnergyJob(epoch_s=((9.0,), ())), cluster=cluster)
    assert "job j0 can run on no node" in refused(workload_of(jobs, cluster), TraceError)


def test_a_belief_that_a_job_runs_where_it_cannot():
    jobs = jobs_of(EnergyJob(epoch_s=BOTH), cluster=CLUSTER)
    true_s = np.array([[[9.0, inf], [20.0, inf]]])
    assert "job j0 is said to run where it cannot" in refused(workload_of(jobs, CLUSTER, true_s), TraceError)


def test_shapes():
    jobs = jobs_of(EnergyJob(epoch_s=BOTH), EnergyJob(epoch_s=BOTH), cluster=CLUSTER)
    assert "column weight has shape (1,)" in refused(workload_of(jobs._replace(weight=np.ones(1)), CLUSTER), TraceError)
    one = jobs._replace(epoch_s=jobs.epoch_s[:, :1])
    assert "column epoch_s has shape (2, 1, 2)" in refused(workload_of(one, CLUSTER, jobs.epoch_s), TraceError)
    assert "the truth's epoch_s has shape" in refused(workload_of(jobs, CLUSTER, jobs.epoch_s[:1]), TraceError)
    unnamed = EnergyWorkload(jobs, workload_of(jobs, CLUSTER).truth, CLUSTER, ["a"])
    assert "1 names for 2 jobs" in refused(unnamed, TraceError)
    none = type(jobs)(*(column[:0] for column in jobs))
    assert "there are no jobs" in refused(workload_of(none, CLUSTER), TraceError)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"kind_of": np.zeros(0, dtype=np.int64)}, "the cluster has no nodes"),
        ({"kind_of": np.array([0, 2])}, "node 1 is of kind 2; there are kinds 0 to 1"),
        ({"power_w": np.zeros((1, 3))}, "power_w has shape (1, 3)"),
        ({"kind_gpus": np.array([3, 1])}, "nodes of kind 0 have 3 GPUs; power_w is given for 1 to 2"),
        ({"kind_gpus": np.array([2, 0])}, "nodes of kind 1 have 0 GPUs"),
        ({"power_w": np.array([[0.0, 1.0, 2.0], [0.0, -1.0, 1.0]])}, "nodes of kind 1 draw less than 0 W"),
        ({"pue": 0.9}, "pue is 0.9; it must be at least 1"),
        ({"tariff": tariff_of((1, 0.1))}, "begin at hours 1; begin at 0"),
        ({"tariff": tariff_of((0, 0.1), (9, 0.1), (8, 0.2))}, "begin at hours 0, 9, 8"),
        ({"tariff": tariff_of((0, 0.1), (24, 0.1))}, "stay below 24"),
        ({"tariff": tariff_of((0, -0.1))}, "the tariff has a price below 0"),
        ({"tariff": Tariff(np.zeros(1), np.zeros(2))}, "the tariff has 2 prices for 1 times"),
    ],
)
def test_clusters_that_mean_nothing(changed, told):
    jobs = jobs_of(EnergyJob(epoch_s=BOTH), cluster=CLUSTER)
    assert told in refused(workload_of(jobs, CLUSTER._replace(**changed)), ConfigError)
