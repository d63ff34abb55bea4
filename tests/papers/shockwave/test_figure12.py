"""Shockwave, Figure 12: a round with many active jobs."""

import os
from pathlib import Path

import pytest

from papers.shockwave.figure12 import MOST_DONE, planned, state_of
from papers.shockwave.workloads import drawn


@pytest.fixture(scope="module")
def data():
    if "JOBCAST_DATA" not in os.environ:
        pytest.skip("JOBCAST_DATA is not set: throughputs are needed")
    return Path(os.environ["JOBCAST_DATA"])


def test_all_jobs_are_active_and_those_that_run_fit(data):
    state = state_of(drawn(data, 0, jobs=40, gpus=16, arrivals="batch"), 0)
    assert len(state.active) == 40
    assert 0 < sum(one.job.gpus for one in state.active if one.running) <= 16
    for one in state.active:
        assert 0 <= one.progress.epochs <= MOST_DONE * one.job.training.epochs
        assert one.run_s == one.progress.epochs * one.job.training.epoch_s[one.job.training.batch_size]


def test_a_window_is_planned_with_a_gap(data):
    made = planned(data, 20, 0)
    assert made.jobs == 20
    assert 0 <= made.gap_pct < 100
    assert made.gap_pct == planned(data, 20, 0).gap_pct
