"""Workloads of Shockwave's evaluation."""

import numpy as np
import pytest

from jobcast.traces.table import Trace
from papers.shockwave.figure10 import mix
from papers.shockwave.workloads import LONGEST_S, SHORTEST_S, WISR, nearest_window, philly, published, resampled
from tests.scenarios import frame_of


def test_the_window_is_the_one_whose_demand_is_nearest_three():
    # windows of 2 jobs on one GPU, from the job after the first: GPU-time / time from the job before to its last
    submit = [0.0, 100.0, 200.0, 210.0, 220.0, 1000.0]
    duration = [10.0, 10.0, 150.0, 180.0, 10.0, 10.0]
    # (b, c): 160 / 200; (c, d): 330 / 110 = 3; (d, e): 190 / 20; (e, f): 20 / 790
    assert nearest_window(Trace.from_frame(frame_of(submit, duration=duration), name="t"), 2, 1) == 2


def test_the_published_trace_trains(traces):
    scenario = published(traces, 220, 64, WISR)
    assert len(scenario.workload.jobs) == 220
    assert scenario.workload.total_gpus == 64
    assert all(job.training is not None for job in scenario.workload.jobs)


def test_resampled_jobs_are_published_ones_as_crowded_on_any_cluster(traces):
    known = {outcome for count in (120, 220) for outcome in published(traces, count, 64, WISR).workload.outcomes}
    small, large = (resampled(traces, 3, WISR, jobs=300, gpus=gpus).workload for gpus in (64, 256))
    assert set(small.outcomes) <= known
    assert len(set(small.outcomes)) > 150  # of 340, 300 times with replacement: some 200
    assert (small.total_gpus, large.total_gpus) == (64, 256)
    # Submissions of 220 jobs span 5,956 s on 64 GPUs; on four times as many GPUs all gaps are a quarter.
    gaps_s = np.diff([job.submit_s for job in small.jobs])
    assert gaps_s.mean() == pytest.approx(5956 / 219, rel=0.2)
    assert np.diff([job.submit_s for job in large.jobs]) == pytest.approx(gaps_s / 4)
    assert small.jobs[0].submit_s == 0.0


def test_mixes_differ_in_nothing_but_the_modes(traces):
    none, all_ = (mix(traces, 1, static, jobs=30, gpus=16).workload for static in (1.0, 0.0))
    assert {job.training.mode for job in none.jobs} == {"static"}
    assert {job.training.mode for job in all_.jobs} == {"accordion", "gns"}
    alike = [[(job.submit_s, job.gpus, job.training.epochs) for job in one.jobs] for one in (none, all_)]
    assert alike[0] == alike[1]
    assert all(len(outcome.regimes) == 1 for outcome in none.outcomes)
    assert any(len(outcome.regimes) > 1 for outcome in all_.outcomes)


def test_philly_is_cut_to_jobs_like_shockwaves(traces):
    workload = philly(traces, 50, 32).workload
    assert len(workload.jobs) == 50
    assert max(job.gpus for job in workload.jobs) <= 8
    assert all(SHORTEST_S <= outcome.duration_s <= LONGEST_S for outcome in workload.outcomes)
