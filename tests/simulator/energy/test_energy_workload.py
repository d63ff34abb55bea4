"""Workloads that cannot be replayed are refused in one line."""

import re
from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from jobcast.domain.energy import Tariff
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.simulator.engine import Simulation
from tests import shared
from tests.simulator.energy.energy_cases import EnergyJob, Told, cluster_of, jobs_of, tariff_of, workload_of
from tests.simulator.energy.energy_policies import Greedy

CLUSTER = cluster_of((1, (0.0, 100.0, 180.0)), (2, (0.0, 70.0)))
BOTH = ((9.0, 5.0), (20.0,))


def begin(world):
    Simulation(world.workload, Told(Greedy()), law=world.law())


def refused(workload, error):
    return shared.refused(error, "", begin, workload)


def test_a_sound_workload_passes():
    jobs = jobs_of(EnergyJob(epoch_s=BOTH), EnergyJob(epoch_s=((), (20.0,))), cluster=CLUSTER)
    begin(workload_of(jobs, CLUSTER))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"epochs": 0.0}, "job j0 has no epochs"),
        ({"due_s": nan}, "job j0 has a due date that is no time"),
        ({"weight": -1.0}, "job j0 has a weight below 0"),
        ({"epoch_s": ((9.0, 0.0), (20.0,))}, "job j0 has an epoch of 0 s or less"),
        ({"epoch_s": ((9.0, nan), (20.0,))}, "job j0 has an epoch of 0 s or less, or no number"),
        ({"epoch_s": ((), ())}, "job j0 can run on no node of the cluster"),
    ],
)
def test_jobs_that_mean_nothing(changed, told):
    rows = EnergyJob(**({"epoch_s": BOTH} | changed)), EnergyJob(epoch_s=BOTH)
    assert told in refused(workload_of(jobs_of(*rows, cluster=CLUSTER), CLUSTER), TraceError)


def test_a_kind_without_nodes_is_nowhere():
    cluster = CLUSTER._replace(kind_of=np.array([1, 1]))
    jobs = jobs_of(EnergyJob(epoch_s=((9.0,), ())), cluster=cluster)
    assert "job j0 can run on no node" in refused(workload_of(jobs, cluster), TraceError)


def test_more_gpus_than_a_kind_has_are_nowhere():
    one, two = (CLUSTER._replace(kind_of=np.array(kinds)) for kinds in ([0, 1], [0, 1, 1]))
    jobs = jobs_of(EnergyJob(epoch_s=((), (inf, 9.0))), cluster=CLUSTER)
    assert "job j0 can run on no node" in refused(replace(workload_of(jobs, two), cluster=one), TraceError)
    begin(workload_of(jobs, two))  # side by side on two nodes


def test_a_belief_that_a_job_runs_where_it_cannot():
    jobs = jobs_of(EnergyJob(epoch_s=BOTH), cluster=CLUSTER)
    true_s = np.array([[[9.0, inf], [20.0, inf]]])
    assert "job j0 is said to run where it cannot" in refused(workload_of(jobs, CLUSTER, true_s), TraceError)


@pytest.mark.parametrize("lacking", [np.s_[:1], np.s_[:, :1]])
def test_shapes(lacking):
    world = workload_of(jobs_of(EnergyJob(epoch_s=BOTH), EnergyJob(epoch_s=BOTH), cluster=CLUSTER), CLUSTER)
    shape = "x".join(map(str, world.true_s[lacking].shape))
    assert f"{shape}" in refused(replace(world, true_s=world.true_s[lacking]), TraceError)


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
    with pytest.raises(ConfigError, match=re.escape(told)):
        CLUSTER._replace(**changed).check()
