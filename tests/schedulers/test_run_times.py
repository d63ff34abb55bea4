"""Run times of active jobs from forecasts of regimes, by hand."""

import pytest

from jobcast.domain.jobs import Job
from jobcast.domain.rounds import ActiveJob
from jobcast.domain.training import Progress, Regime, Training
from jobcast.schedulers.run_times import LEAST_S, RunTimes

TRAINING = Training("LM", 10, 6, "gns", {10: 60.0, 20: 40.0})


class Said:
    """Answers what it was made with."""

    def __init__(self, regimes=(), duration_s=0.0):
        self._regimes, self._duration_s = regimes, duration_s

    def regimes(self, job, progress):
        return self._regimes

    def duration_s(self, job):
        return self._duration_s


def active(training=None, run_s=0.0, seq=0):
    progress = Progress(2.0, (Regime(10, 2.0),)) if training else None
    return ActiveJob(Job(seq, "a", "p", 0.0, 1, training=training), run_s, run_s, False, progress)


def test_regimes_become_seconds():
    times = RunTimes(Said((Regime(10, 1.0), Regime(20, 3.0))))
    job = active(TRAINING, run_s=120.0)
    assert times.left(job) == ((1.0, 60.0, 10), (3.0, 40.0, 20))
    assert times.remaining_s(job) == 180.0
    assert times.total_s(job) == 300.0


def test_a_regime_of_nothing_is_left_out_and_a_job_always_has_something_left():
    times = RunTimes(Said((Regime(10, 0.0), Regime(20, 2.0))))
    assert times.left(active(TRAINING)) == ((2.0, 40.0, 20),)
    assert RunTimes(Said((Regime(10, 0.0),))).remaining_s(active(TRAINING)) == pytest.approx(LEAST_S)


def test_a_job_that_reports_no_epochs_has_its_duration():
    times = RunTimes(Said(duration_s=100.0))
    assert times.remaining_s(active(run_s=30.0)) == 70.0
    assert times.remaining_s(active(run_s=130.0)) == LEAST_S


def test_noise_is_drawn_once_a_job_within_its_bounds_and_depends_on_the_seed():
    noisy = RunTimes(Said(duration_s=100.0), noise=0.4, seed=1)
    left = [noisy.remaining_s(active(seq=seq)) for seq in range(50)]
    assert min(left) >= 60.0
    assert max(left) <= 140.0
    assert len(set(left)) == 50
    assert left == [noisy.remaining_s(active(seq=seq)) for seq in range(50)]
    assert left != [RunTimes(Said(duration_s=100.0), 0.4, 2).remaining_s(active(seq=seq)) for seq in range(50)]


def test_even_the_worst_noise_leaves_something():
    noisy = RunTimes(Said(duration_s=100.0), noise=1.0)
    assert min(noisy.remaining_s(active(seq=seq)) for seq in range(200)) >= 1.0


@pytest.mark.parametrize(("hedge", "expected"), [(0.0, 180.0), (0.5, 210.0), (1.0, 240.0)])
def test_without_a_distribution_the_most_lies_towards_the_present_batch_size(hedge, expected):
    # 1 epoch of 60 s and 3 of 40 s are forecast; all 4 at 60 s take 240 s.
    times = RunTimes(Said((Regime(10, 1.0), Regime(20, 3.0))))
    assert times.at_most_s(active(TRAINING), hedge=hedge) == pytest.approx(expected)
    assert RunTimes(Said(duration_s=500.0)).at_most_s(active(run_s=100.0), hedge=hedge) == 400.0


@pytest.mark.parametrize(("told_s", "expected"), [(300.0, 300.0), (20.0, 180.0), (None, 240.0)])
def test_a_distribution_tells_the_most_which_is_no_less_than_the_forecast(told_s, expected):
    source = Said((Regime(10, 1.0), Regime(20, 3.0)))
    source.left_quantile_s = lambda job, progress, level: told_s
    assert RunTimes(source).at_most_s(active(TRAINING)) == pytest.approx(expected)
