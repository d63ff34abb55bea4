"""Demand functions: known curves are found again, and what was not measured is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TrainingError
from jobcast.models.demand import DEMANDS, AmdahlDemand, PowerDemand, TableDemand
from tests.shared import refused

GPUS = np.array([1, 2, 4, 8, 16])


def amdahl(gpus, serial):
    return 1 / (serial + (1 - serial) / np.asarray(gpus))


@given(st.floats(0, 1), st.floats(0.01, 1e4))
def test_amdahls_share_is_found_again(serial, alone_s):
    demand = AmdahlDemand().fit(GPUS, alone_s / amdahl(GPUS, serial))
    assert demand.one_gpu_s_ == pytest.approx(alone_s, rel=1e-4)
    np.testing.assert_allclose(demand.parameter_, serial, atol=1e-4)
    np.testing.assert_allclose(demand.predict([3, 32]), alone_s / amdahl([3, 32], serial), rtol=2e-3)


@given(st.floats(-1.5, 1.2), st.floats(0.01, 1e4))
def test_a_power_laws_exponent_is_found_again_even_where_more_gpus_are_slower(exponent, alone_s):
    demand = PowerDemand().fit(GPUS, alone_s / GPUS**exponent)
    np.testing.assert_allclose(demand.parameter_, exponent, atol=1e-4)
    np.testing.assert_allclose(demand.speedup([1, 32]), [1, 32.0**exponent], rtol=1e-3)


def test_one_gpu_need_not_be_measured_for_a_curve_but_for_a_table():
    demand = PowerDemand().fit([2, 4], [50.0, 25.0])
    assert demand.one_gpu_s_ == pytest.approx(100.0, rel=1e-5)
    refused(TrainingError, "no time on one GPU; measure it or fit a curve", TableDemand().fit, [2, 4], [50.0, 25.0])


def test_a_table_is_linear_between_points_flat_beyond_and_means_are_geometric():
    demand = TableDemand().fit([1, 2, 2, 6], [100.0, 50.0, 200.0, 25.0])  # two GPUs: 100 s in the geometric mean
    np.testing.assert_allclose(demand.speedup([1, 2, 4, 6, 9]), [1, 1, 2.5, 4, 4])
    np.testing.assert_allclose(demand.predict([4, 9]), [40.0, 25.0])


def test_weights_count():
    points = ([1, 2, 2], [100.0, 50.0, 100.0])
    assert TableDemand().fit(*points, sample_weight=[1, 1, 0]).speedup(2) == pytest.approx(2.0)
    assert TableDemand().fit(*points, sample_weight=[1, 3, 1]).speedup(2) == pytest.approx(2**0.75)
    fitted = PowerDemand().fit(*points, sample_weight=[1e6, 3, 1])
    assert fitted.parameter_[0] == pytest.approx(0.75, abs=1e-3)  # squared errors of logarithms: the weighted mean


@pytest.mark.parametrize("name", sorted(DEMANDS))
def test_localities_have_curves_of_their_own(name):
    gpus, nodes = [1, 2, 4, 2, 4], [1, 1, 1, 2, 2]
    seconds = [100.0, 50.0, 25.0, 100 / 2**0.5, 50.0]
    demand = DEMANDS[name]().fit(gpus, seconds, nodes)
    packed, spread = demand.speedup([4, 4], [1, 3])
    assert packed > 1.3 * spread
    if name != "amdahl":
        assert (packed, spread) == (pytest.approx(4, rel=1e-4), pytest.approx(2, rel=1e-4))
    np.testing.assert_allclose(demand.predict([4, 4], [1, 3]), demand.one_gpu_s_ / np.array([packed, spread]))


@pytest.mark.parametrize("name", sorted(DEMANDS))
def test_without_spread_points_both_localities_are_one(name):
    demand = DEMANDS[name]().fit(GPUS, 10.0 / GPUS**0.7)
    np.testing.assert_array_equal(demand.speedup(GPUS, GPUS), demand.speedup(GPUS, np.ones(5)))


@pytest.mark.parametrize("name", sorted(DEMANDS))
def test_types_differ_by_a_factor(name):
    kinds = ["v100"] * 3 + ["k80"] * 3
    gpus = [1, 2, 4] * 2
    seconds = np.array([100.0, 50, 25, 400, 200, 100])
    demand = DEMANDS[name]().fit(gpus, seconds, gpu_types=kinds)
    assert demand.types_ == ("v100", "k80")
    np.testing.assert_allclose(demand.speed_, [1, 0.25], rtol=1e-4)
    np.testing.assert_allclose(demand.predict(gpus, gpu_types=kinds), seconds, rtol=1e-3)
    with pytest.raises(TrainingError, match="GPU type 't4' was not measured; known types are v100, k80"):
        demand.predict([1], gpu_types=["t4"])


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (([1, 2], [1.0, 0.0]), "point 1: seconds must be > 0, got 0"),
        (([0, 2], [1.0, 1.0]), "point 0: GPUs must be >= 1, got 0"),
        (([1, 2], [1.0, math.nan]), "point 1: seconds must be > 0, got nan"),
        (([1, 2], [1.0, 1.0], [1, 0]), "point 1: nodes must be >= 1, got 0"),
        (([2, 2], [1.0, 1.0]), "at least two numbers of GPUs"),
        (([1, 2], [1.0]), "must be of one length"),
    ],
)
@pytest.mark.parametrize("name", sorted(DEMANDS))
def test_points_that_cannot_be_used_are_named(name, points, said):
    refused(TrainingError, said, DEMANDS[name]().fit, *points)
    with pytest.raises(TrainingError, match="weights must be >= 0 and not all 0"):
        DEMANDS[name]().fit([1, 2], [2.0, 1.0], sample_weight=[0, 0])
