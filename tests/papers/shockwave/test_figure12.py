"""Shockwave, Figure 12: a round with many active jobs."""

from papers.shockwave.figure12 import MOST_DONE, planned, state_of
from papers.shockwave.workloads import drawn


def test_all_jobs_are_active_and_those_that_run_fit(traces):
    state = state_of(drawn(traces, 0, jobs=40, gpus=16, arrivals="batch"), 0)
    assert len(state.active) == 40
    assert 0 < sum(one.job.gpus for one in state.active if one.running) <= 16
    for one in state.active:
        assert 0 <= one.progress.epochs <= MOST_DONE * one.job.training.epochs
        assert one.run_s == one.progress.epochs * one.job.training.epoch_s[one.job.training.batch_size]


def test_a_window_is_planned_with_a_gap(traces):
    made = planned(traces, 20, 0)
    assert made.jobs == 20
    assert 0 <= made.gap_pct < 100
    assert made.gap_pct == planned(traces, 20, 0).gap_pct
