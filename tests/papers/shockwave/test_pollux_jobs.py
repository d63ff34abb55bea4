"""Shockwave against Pollux, section 8.7: from a replay of goodput to jobs of fixed width, by hand."""

import pytest

from jobcast.domain.training import Phase, Regime
from jobcast.models.goodput import Limits, Throughput
from jobcast.pipelines.experiments.scaling_jobs import Application
from jobcast.simulator.laws.goodput import ScalableWork, Stretch
from papers.shockwave.pollux_jobs import SHARES, draw_jobs, scenario_of, training_of

PHASES = (Phase(1000.0, (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0), (10,) * 8),)
APP = Application(
    "a", Throughput(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), Limits(10, 80, 1, 80), ScalableWork(0.0, 1, PHASES)
)
"""A step takes a second whatever it holds: a batch size is the samples a second."""


def test_batch_sizes_become_doublings_of_the_smallest():
    assert [APP.rounded(size) for size in (10, 13, 15, 40, 60)] == [10, 10, 20, 40, 80]


def test_samples_and_batch_sizes_are_those_of_the_replay():
    ran = [Stretch(0.0, 50.0, 1, 10, 1.0), Stretch(80.0, 105.0, 2, 20, 1.0), Stretch(105.0, 130.0, 2, 40, 1.0)]
    training, regimes = training_of(APP, 1, ran)
    # 500, 500 and 1,000 of 2,000 samples: epochs of 10 samples
    assert regimes == (Regime(10, 50.0), Regime(20, 50.0), Regime(40, 100.0))
    assert training.epoch_s == pytest.approx({10: 1.0, 20: 0.5, 40: 0.25})
    assert (training.batch_size, training.epochs) == (10, 200)
    assert training.run_time_s(regimes) == pytest.approx(100.0)


def test_stretches_of_one_batch_size_are_one_regime():
    ran = [Stretch(0.0, 50.0, 1, 10, 1.0), Stretch(80.0, 130.0, 4, 11, 1.0)]
    assert training_of(APP, 1, ran)[1] == (Regime(10, 200.0),)


def test_jobs_arrive_as_crowded_as_asked():
    known = dict.fromkeys(SHARES, APP)
    names, works = draw_jobs(known, 4000, 8, 2.0, 0)
    assert (names, works) == draw_jobs(known, 4000, 8, 2.0, 0)
    held_s = sum(work.gpus * work.exclusive_s() for work in works)
    assert held_s / (works[-1].submit_s * 8) == pytest.approx(2.0, rel=0.05)


def test_the_scene_has_the_jobs_in_order():
    works = [ScalableWork(float(at), 2, PHASES) for at in range(12)]
    scenario = scenario_of(["a"] * 12, works, [[Stretch(0.0, 50.0, 1, 10, 1.0)]] * 12, {"a": APP}, 8)
    assert [job.submit_s for job in scenario.workload.jobs] == list(range(12))
    assert {outcome.duration_s for outcome in scenario.workload.outcomes} == {50.0}
    assert len(scenario.earlier) == 0
