"""Demand functions of measured step times: Pollux's model is found again, and its errors are told."""

import numpy as np
import pytest

from jobcast.domain.errors import TrainingError
from jobcast.models.demand import (
    FITS,
    ThroughputDemand,
    default_batch_size,
    fit_steps,
    left_out_errors,
    passes_of,
    points_of,
    speedup_curves,
)
from jobcast.models.goodput import Throughput
from jobcast.traces.goodput_tables import StepTimes, read_step_times
from tests.shared import refused

TRUE = Throughput(0.02, 0.001, 0.05, 0.004, 0.01, 0.001, 1.5)
PLACES = [(1, 1), (1, 2), (2, 2), (1, 4), (2, 4), (4, 4), (2, 6), (3, 6), (2, 8), (4, 8), (8, 8)]


def measured(places=PLACES, sizes=(16, 32, 64, 128)):
    nodes, gpus, local = np.array([(n, g, b) for n, g in places for b in sizes], dtype=np.float64).T
    step_s = TRUE.step_s(nodes, gpus, local)
    return StepTimes(nodes, gpus, local, step_s, step_s - (TRUE.grad_s + TRUE.grad_sample_s * local))


def test_points_are_interpolated_and_passes_wait_for_gradients_once():
    one = np.ones(4)
    times = StepTimes(one, np.array([1, 1, 2, 2.0]), np.array([10, 20, 10, 20.0]), np.array([1, 3, 2, 4.0]), 0.5 * one)
    points = points_of(times, 30)
    assert points.gpus.tolist() == [1, 2]
    assert points.seconds.tolist() == [2 * 2.0 - 0.5, 3.0]  # two passes of 15 on one GPU; 15 on each of two
    assert points_of(times, 15).gpus.tolist() == [1]  # 7.5 a GPU was not measured on two
    assert points_of(times, 40).seconds.tolist() == [2 * 3.0 - 0.5, 4.0]
    assert passes_of(41, 1, 20) == (3, 41 / 3)


def test_the_batch_size_fills_one_gpu_or_can_be_shared_by_all():
    assert default_batch_size(measured(), 4) == 128
    assert default_batch_size(measured(), 16) == 256


def test_a_known_model_is_found_again():
    times = measured()
    demand = ThroughputDemand(128).fit(times)
    gpus, nodes = np.array([1, 2, 4, 8, 6]), np.array([1, 1, 4, 2, 2])
    truth = TRUE.step_s(nodes, gpus, 128 / gpus)
    np.testing.assert_allclose(demand.predict(gpus, nodes), truth, rtol=0.02)
    np.testing.assert_allclose(demand.speedup(gpus, nodes), truth[0] / truth, rtol=0.03)
    packed, spread = speedup_curves(demand, 8)
    assert packed[:2].tolist() == [0, 1]
    assert packed[4] > 1.2 * spread[4]  # within a node synchronisation is faster
    assert packed.shape == (9,)


def test_tables_repeat_what_was_measured():
    times = measured()
    demand = fit_steps("table", times, 128, 8)
    packed, spread = speedup_curves(demand, 8)
    alone = float(TRUE.step_s(1, 1, 128))
    assert packed[4] == pytest.approx(alone / float(TRUE.step_s(1, 4, 32)))
    assert spread[4] == pytest.approx(alone / float(TRUE.step_s(2, 4, 32)))


def test_errors_on_what_was_left_out():
    errors = left_out_errors(measured(), 128, 8)
    assert tuple(errors) == FITS
    assert errors["throughput"]["n"] == len(PLACES) - 1
    assert errors["throughput"]["speedup_mean_pct"] < 3
    assert errors["throughput"]["speedup_mean_pct"] < errors["power"]["speedup_mean_pct"]
    for its in errors.values():
        assert its["seconds_worst_pct"] >= its["seconds_mean_pct"]


def test_configurations_beyond_the_most_do_not_count():
    here, wide = (left_out_errors(measured(places), 128, 4) for places in (PLACES[:6], PLACES))
    assert here == wide


def test_what_does_not_suffice_is_refused():
    with pytest.raises(TrainingError, match="batch size 8 was measured on 0 configurations of up to 8 GPUs"):
        left_out_errors(measured(), 8, 8)
    with pytest.raises(TrainingError, match="batch size 64 was measured on 1 configurations"):
        fit_steps("amdahl", measured([(1, 1)]), 64, 8)
    refused(TrainingError, "no step times on one GPU", fit_steps, "throughput", measured([(1, 2), (1, 4)]), 64, 8)
    assert left_out_errors(measured([(1, 1), (1, 2)]), 128, 8) == {}  # nothing would be left to learn from


@pytest.mark.slow
def test_the_published_step_times(published):
    for app, times in read_step_times(published / "curves" / "step_times.csv").items():
        size = default_batch_size(times, 16)
        errors = left_out_errors(times, size, 16)
        assert errors["table"]["speedup_mean_pct"] < 12, app
        assert errors["throughput"]["seconds_mean_pct"] < 15, app
