"""The eight jobs of Table V: what calls expect, what is real, who is together, lanes of the chart."""

from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.energy import Deployment
from jobcast.simulator.log import Spans
from papers.andreas.armida import (
    PERIOD_S,
    armida_scenario,
    energy_eur,
    expected_eur,
    power_over_time,
    real_eur,
    session,
)
from papers.andreas.figure4 import shared
from papers.andreas.instances import small
from papers.andreas.table3 import Compared, compare
from tests.simulator.energy.energy_cases import cluster_of


@pytest.fixture(scope="module")
def scenario():
    return armida_scenario()


@pytest.fixture(scope="module")
def plan(scenario):
    return session(scenario, "edf")


def test_eight_jobs_on_three_nodes_of_four_gpus(scenario):
    # ANDREAS, Table V and section V.C
    assert scenario.job_ids == ("J6", "J9", "J10", "J7", "J8", "J1", "J2", "J3")
    assert scenario.place.names == ("armida-05", "armida-06", "armida-07")
    assert scenario.place.gpus == 4


def test_where_times_are_right_calls_expect_what_happens(scenario, plan):
    cluster = scenario.facts.cluster
    for now_s, eur in plan.calls:
        assert eur == pytest.approx(real_eur(plan.log, cluster, now_s, now_s + PERIOD_S), abs=1e-9)
    assert sum(eur for _, eur in plan.calls) == pytest.approx(energy_eur(plan.log), rel=1e-9)


def test_a_call_expects_less_of_a_job_that_ends_before_the_next():
    view = small(0)
    node = int(view.cluster.kind_of[0])
    active, left = view.active[:1], np.full_like(view.left, 1.0)
    epoch_s = np.full_like(view.jobs.epoch_s, 60.0)
    waits = view.node_of * 0 - 1
    view = view._replace(
        active=active, jobs=view.jobs._replace(epoch_s=epoch_s), left_saved=left, left=left, node_of=waits
    )
    found = expected_eur(view, Deployment(np.array([0]), np.array([1])))
    watts = view.cluster.power_w[node, 1]
    assert found == pytest.approx(watts * 60.0 / 3.6e6 * 0.172 * 1.33)


def test_without_noise_and_restarts_nothing_deviates(scenario, plan):
    found = compare(plan, scenario.facts.cluster, energy_eur(plan.log), (0.0, 0.0), 0)
    assert (found.plan_pct, found.calls_pct, found.per_call_pct) == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)


def test_deviations_are_shares_of_the_prediction():
    # ANDREAS, Table III: 12.29 % of the predicted cost
    found = Compared(0.1, 60.0, 0, 1.08438, 0.95111, 1.08438, 10.81, 0.0)
    assert found.plan_pct == pytest.approx(12.29, abs=0.005)


def spans_of(*rows):
    job, node, gpus, from_s, until_s = (np.array(column) for column in zip(*rows, strict=True))
    return Spans(job, from_s, until_s, gpus.astype(float), node)


def test_who_is_together_on_a_node(scenario, plan):
    held = {"J7": (0.0, 600.0), "J6": (300.0, 900.0), "J9": (600.0, 700.0)}
    jobs = [scenario.job_ids.index(name) for name in held]
    told = spans_of(*((job, 1, 1, *held[name]) for job, name in zip(jobs, held, strict=True)))
    log = replace(plan.log, spans=told)
    assert shared(scenario, log, "armida-06") == [("J6", "J7", 300.0), ("J6", "J9", 100.0)]
    assert shared(scenario, log, "armida-05") == []


def test_power_over_time():
    cluster = cluster_of((1, (0.0, 100.0, 180.0)), (1, (5.0, 70.0)))
    spans = spans_of((0, 0, 1, 0.0, 600.0), (1, 0, 1, 100.0, 400.0), (2, 1, 1, 400.0, 500.0))
    instants, watts = power_over_time(spans, cluster)
    assert instants.tolist() == [0.0, 100.0, 400.0, 500.0, 600.0]
    assert watts.tolist() == [[100.0, 5.0], [180.0, 5.0], [100.0, 70.0], [100.0, 5.0], [0.0, 5.0]]
