"""Figures of a run, by hand."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from jobcast.domain.law import TASKS
from jobcast.simulator.log import Spans
from jobcast.simulator.metrics import figures
from tests.scenarios import log_of

LOG = log_of(
    [1000.0, 1000.0, 1100.0, 1300.0],
    [1000.0, 1060.0, 1120.0, nan],
    [1200.0, 1400.0, 1200.0, 1500.0],
    preemptions=np.array([1, 0, 0, 0]),
    spans=Spans(  # a on two servers, b beside itself for a while, d never
        np.array([0, 0, 2, 1, 1]),
        np.array([1000.0, 1050.0, 1120.0, 1060.0, 1200.0]),
        np.array([1100.0, 1200.0, 1200.0, 1300.0, 1400.0]),
        np.array([1.0, 0.5, 1.0, 1.0, 1.0]),
        np.array([0, 1, 1, 0, 1]),
    ),
    law=TASKS,
    columns={
        "due_s": np.array([1200.0, 1300.0, inf, 1500.0]),
        "weight": np.array([9.0, 10.0, 9.0, 8.0]),
        "target": np.array([0.5, 0.8, nan, 0.2]),
        "iterations": np.array([100.0, 100.0, 200.0, 100.0]),
        "done": np.array([100.0, 60.0, 200.0, 0.0]),
        "used_gpu_s": np.array([200.0, 100.0, 100.0, 0.0]),
        "accuracy": np.array([0.6, 0.9, 0.7, 0.1]),
        "deadline_accuracy": np.array([0.5, 0.7, 0.7, 0.1]),
        "edge_mb": np.array([1e6, 0.0, 5e5, 0.0]),
        "moved_mb": np.array([0.0, 5e5, 0.0, 0.0]),
        "migrations": np.array([0.0, 3.0, 1.0, 0.0]),
    },
    totals={"overloads": 7, "decisions": 10, "decision_s": 0.02},
)


def test_figures_of_all_jobs():
    expected = {
        "jobs": 4,
        "makespan_s": 500.0,
        "mean_jct_s": 225.0,
        "p50_jct_s": 200.0,
        "p99_jct_s": 394.0,  # 200 and 400, 0.97 of the way
        "mean_start_wait_s": 80 / 3,  # d never started
        "mean_wait_s": 70.0,
        "utilization": (100 + 75 + 440 + 80) / 2000,
        "used_share": 0.2,
        "deadline_ratio": 2 / 3,  # c has none
        "urgent_deadline_ratio": 0.5,  # d's urgency is not above 8
        "accuracy_mean": 0.5,
        "accuracy_ratio": 1 / 3,  # c requires none
        "bandwidth_tb": 2.0,
        "migrations": 4,
        "preemptions": 1,
        "stopped_early": 2,
        "iterations_saved": 0.28,
        "overloads": 7,
        "decisions": 10,
        "decision_ms_mean": 2.0,
    }
    found = figures(LOG)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-9)


def test_figures_after_a_warm_up_are_of_fewer_jobs_but_one_run():
    whole, later = figures(LOG), figures(LOG, 1100.0)
    assert (later["jobs"], later["mean_jct_s"], later["migrations"], later["preemptions"]) == (2, 150.0, 1, 0)
    assert (later["deadline_ratio"], later["accuracy_ratio"]) == (1.0, 0.0)
    assert np.isnan(later["urgent_deadline_ratio"])
    assert later["makespan_s"] == 400.0  # of the jobs that count, as of every run
    for name in ("overloads", "decisions", "decision_ms_mean"):
        assert later[name] == whole[name]


def test_figures_of_no_job_are_no_numbers():
    none = figures(LOG, 2000.0)
    assert none["jobs"] == none["stopped_early"] == 0
    for name in ("mean_jct_s", "p99_jct_s", "deadline_ratio", "accuracy_mean", "iterations_saved"):
        assert np.isnan(none[name])


def test_dust_misses_neither_deadline_nor_accuracy():
    accuracy = LOG.columns["deadline_accuracy"] - 1e-12
    log = replace(LOG, end_s=LOG.end_s + 1e-5, columns={**LOG.columns, "deadline_accuracy": accuracy})
    for name in ("deadline_ratio", "accuracy_ratio"):
        assert figures(log)[name] == figures(LOG)[name]
    assert figures(replace(LOG, end_s=LOG.end_s + 0.1))["deadline_ratio"] == 0.0
