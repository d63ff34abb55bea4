from dataclasses import replace

import numpy as np
import pytest

from jobcast.models.goodput import Limits, efficiency, fit_throughput, noise_scale, phases
from jobcast.traces.goodput_tables import NoiseCurve, read_noise_curves, read_step_times
from tests.models.test_fitted_goodput import KNOWN, steps

MEASURED = steps((1, 2, 3, 4, 8, 12, 16), (16, 32, 64, 128, 256))
LIMITS = Limits(initial=64, largest=1024, least_local=16, most_local=256)


def best_goodput(throughput, limits, noise, most_gpus):
    """Goodput and batch sizes at one gradient noise scale: of a curve with a single phase."""
    variance, square = (1.0, 0.0) if np.isinf(noise) else (noise / limits.unit_size, 1.0)
    (phase,) = phases(throughput, limits, NoiseCurve(*np.array([[1], [10], [0.5], [square], [variance]])), most_gpus)
    return phase.goodput, phase.batch_size


def test_step_times_by_hand():
    # one GPU does not synchronise; 4 on one node: 0.03 + 2 x 0.002; 8 on two nodes: 0.1 + 6 x 0.004
    assert KNOWN.step_s(1, 1, 64) == pytest.approx(0.084)
    assert KNOWN.step_s(1, 4, 16) == pytest.approx((0.036**2 + 0.034**2) ** 0.5)
    assert KNOWN.step_s(2, 8, 16) == pytest.approx((0.036**2 + 0.124**2) ** 0.5)


def test_a_fit_finds_the_times_that_it_was_made_from():
    fitted = fit_throughput(MEASURED)
    told_s = fitted.step_s(MEASURED.nodes, MEASURED.gpus, MEASURED.local_batch_size)
    assert told_s == pytest.approx(MEASURED.step_s, rel=0.03)
    assert fitted == fit_throughput(MEASURED)


@pytest.mark.parametrize("factor", [2.0, 60.0])
def test_a_fit_hardly_depends_on_how_long_steps_are(factor):
    slow = fit_throughput(replace(MEASURED, step_s=factor * MEASURED.step_s, sync_s=factor * MEASURED.sync_s))
    fast = fit_throughput(MEASURED)
    fast_s, slow_s = (one.step_s(MEASURED.nodes, MEASURED.gpus, MEASURED.local_batch_size) for one in (fast, slow))
    assert slow_s == pytest.approx(factor * fast_s, rel=1e-3)


def test_efficiency_falls_from_one_towards_the_inverse_of_the_batch():
    # Pollux: without noise only steps count, with much of it all samples do
    assert efficiency([64, 128, 256], 64, 0.0).tolist() == [1.0, 0.5, 0.25]
    assert efficiency([64, 128, 256], 64, np.inf).tolist() == [1.0, 1.0, 1.0]
    assert efficiency(192, 64, 64.0) == pytest.approx(0.5)


def test_noise_is_in_samples_and_infinite_without_a_gradient():
    curve = NoiseCurve(*np.array([[1, 2], [10, 20], [0.5, 0.6], [2.0, 0.0], [6.0, 1.0]]))
    assert noise_scale(curve, 64).tolist() == [192.0, np.inf]


@pytest.mark.parametrize("noise", [0.0, 300.0, np.inf])
def test_the_best_batch_size_is_the_best_of_all(noise):
    goodput, sizes = best_goodput(KNOWN, LIMITS, noise, 16)
    assert len(goodput) == len(sizes) == 16
    for gpus, (best, size) in enumerate(zip(goodput, sizes, strict=True), start=1):
        local = np.arange(max(-(-64 // gpus), 16), min(1024 // gpus, 256) + 1)
        rate = gpus * local / KNOWN.step_s(-(-gpus // 4), gpus, local)
        every = rate * np.minimum(1.0, efficiency(gpus * local, 64, noise))
        assert every.max() * 0.99 <= best <= every.max() * (1 + 1e-9)
        assert size % gpus == 0
        assert size <= 1024


def test_more_noise_never_means_a_smaller_batch():
    low, high = (best_goodput(KNOWN, LIMITS, noise, 8)[1] for noise in (50.0, 5_000.0))
    assert all(few <= many for few, many in zip(low, high, strict=True))
    assert low != high


def test_phases_follow_the_curve():
    curve = NoiseCurve(*np.array([[1, 2], [10, 20], [0.5, 0.6], [2.0, 1.0], [6.0, 90.0]]))
    made = phases(KNOWN, LIMITS, curve, 4)
    assert [phase.until for phase in made] == [640.0, 1280.0]
    assert all(first < second for first, second in zip(made[0].goodput, made[1].goodput, strict=True))


def test_a_larger_first_batch_is_counted_in_the_samples_of_the_unit():
    # at the smallest batch size as the unit, 128 samples are worth (64 + 64) / (64 + 128) of it each
    small, large = LIMITS, Limits(initial=128, largest=1024, least_local=16, most_local=256, unit=64)
    (one, *_), (size, *_) = best_goodput(KNOWN, large, 64.0, 1)
    assert size >= 128
    assert one <= best_goodput(KNOWN, small, 64.0, 1)[0][0] * (1 + 1e-9)
    fixed = Limits(initial=128, largest=128, least_local=128, most_local=128, unit=64)
    assert best_goodput(KNOWN, fixed, 64.0, 1)[0][0] == pytest.approx(128 / (0.02 + 0.128) * 2 / 3)
    curve = NoiseCurve(*np.array([[1], [10], [0.5], [2.0], [2.0]]))
    assert phases(KNOWN, fixed, curve, 1)[0].until == 640.0
    assert phases(KNOWN, fixed, curve, 1)[0].goodput[0] == pytest.approx(128 / 0.148 * 2 / 3)


@pytest.mark.parametrize("app", ["cifar10", "deepspeech2", "ncf", "bert"])
def test_the_fit_on_the_measurements_of_pollux(published, app):
    times = read_step_times(published / "curves" / "step_times.csv")[app]
    predicted = fit_throughput(times).step_s(times.nodes, times.gpus, times.local_batch_size)
    assert np.median(np.abs(predicted / times.step_s - 1)) < 0.08


def test_the_noise_scale_explains_the_progress_that_was_measured(published):
    # cifar10: steps of 128 samples that a step of a larger batch is worth, over the whole training
    curves = read_noise_curves(published / "curves" / "training_curves.csv")
    for size, curve in curves["cifar10"].items():
        worth = size / 128 * efficiency_over(curve, size)
        steps = np.diff(curve.progress, prepend=0.0) / worth
        taken = {128: 39062, 256: 20377, 512: 10615, 1024: 5722, 2048: 3178, 4096: 2011}[size]  # the file's iterations
        assert steps.sum() == pytest.approx(taken, rel=0.1)


def efficiency_over(curve, size):
    return np.array([float(efficiency(size, 128, noise)) for noise in noise_scale(curve, 128)])
