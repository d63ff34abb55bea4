"""Figures of runs, computed by hand."""

from math import inf, isnan

import numpy as np
import pytest

from jobcast.simulator.metrics import figures
from tests.simulator.energy.energy_cases import EnergyJob, cluster_of, jobs_of, replayed, workload_of
from tests.simulator.energy.energy_policies import Script


@pytest.fixture(scope="module")
def log():
    """On two GPUs at PUE 1.5 and 0.2 EUR/kWh: a 0-600 s on one, b 100-400 s late by 150 s, c 500-900 s in time.

    100 W for 100 s, 180 for 300, 100 for 100, 180 for 100, 100 for 300: 122 kJ, of which b takes 27, c 39.
    """
    cluster = cluster_of((1, (0.0, 100.0, 180.0)), pue=1.5, price=0.2)
    jobs = jobs_of(
        EnergyJob(epochs=10, epoch_s=((60.0,),)),
        EnergyJob(submit_s=50.0, due_s=250.0, weight=3.6, epochs=5, epoch_s=((60.0,),)),
        EnergyJob(submit_s=500.0, due_s=900.0, weight=9.0, epochs=4, epoch_s=((100.0,),)),
        cluster=cluster,
    )
    policy = Script({0.0: {0: (0, 1)}, 100.0: {1: (0, 1)}, 500.0: {2: (0, 1)}})
    return replayed(workload_of(jobs, cluster), policy, period_s=100.0)


def test_all_jobs(log):
    found = figures(log)
    calls = 9 + 1  # 0, 100, ..., 800 and the submission at 50; at 400, 500 and 600 events fall on the grid
    expected = {
        "jobs": 3,
        "makespan_s": 900.0,
        "mean_jct_s": (600.0 + 350.0 + 400.0) / 3,
        "p50_jct_s": 400.0,
        "p99_jct_s": 400.0 + 0.98 * 200.0,
        "mean_wait_s": 50.0 / 3,
        "utilization": 1300.0 / 1800.0,
        "events": 3 + 3 + 9,  # arrivals, ends, points of the grid
        "energy_kwh": 122e3 / 3.6e6,
        "energy_eur": 122e3 / 3.6e6 * 0.3,
        "tardiness_eur": 0.15,
        "total_eur": 0.15 + 122e3 / 3.6e6 * 0.3,
        "late_pct": 50.0,
        "tardiness_mean_s": 75.0,
        "preemptions": 0,
        "migrations": 0,
        "decision_ms_mean": 1e3 * log.totals["decision_s"] / calls,
        "decision_ms_max": 1e3 * log.totals["decision_max_s"],
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["deadline_ratio"] == 0.5


def test_after_a_warm_up(log):
    found = figures(log, warmup_until_s=50.0)
    assert found["jobs"] == 2
    assert found["makespan_s"] == 850.0
    assert found["utilization"] == pytest.approx((550.0 + 300.0 + 400.0) / 1700.0)
    assert found["energy_kwh"] == pytest.approx(66e3 / 3.6e6)
    assert found["energy_eur"] == pytest.approx(66e3 / 3.6e6 * 0.3)
    assert found["mean_wait_s"] == 25.0


def test_nobody_is_left_after_the_warm_up(log):
    found = figures(log, warmup_until_s=inf)
    assert found["jobs"] == 0
    assert found["total_eur"] == 0.0
    assert all(isnan(found[name]) for name in ("makespan_s", "mean_jct_s", "utilization", "late_pct"))


def test_jobs_without_due_dates_are_never_late():
    jobs = jobs_of(EnergyJob(epochs=10, epoch_s=((60.0,),)))
    log = replayed(workload_of(jobs, cluster_of((1, (0.0, 100.0)))), Script({0.0: {0: (0, 1)}}))
    found = figures(log)
    assert found["tardiness_eur"] == 0.0
    assert np.isnan([found["late_pct"], found["tardiness_mean_s"]]).all()
