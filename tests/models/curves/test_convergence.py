"""Optimus' convergence model: exact on its own curves, against SciPy's non-negative least squares, and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from jobcast.models.curves.convergence import Convergence, _linear, fit_convergence, without_outliers


def one(slope: float, start: float, floor: float, scale: float = 1.0) -> Convergence:
    return Convergence(np.array([slope]), np.array([start]), np.array([floor]), np.array([scale]))


@settings(max_examples=30, deadline=None)
@given(st.floats(0.02, 0.5), st.floats(0.5, 2.0), st.floats(0.0, 0.5), st.floats(0.1, 50.0))
def test_recovers_its_own_curves(slope, start, floor, scale):
    epochs = np.arange(1, 41)
    loss = scale * (1 / (slope * epochs + start) + floor)
    fitted = fit_convergence(epochs, loss[None])
    later = np.array([60.0, 200.0])
    true = scale * (1 / (slope * later + start) + floor)
    assert fitted.loss(later) == pytest.approx(true, rel=0.01)


@pytest.mark.parametrize("losses", [[1.0, 0.6, 0.45, 0.4], [0.5, 0.6, 0.7, 0.9], [3.0, 0.6, 0.2, 0.19]])
@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_closed_form_is_the_non_negative_least_squares_of_scipy(losses, floor):
    place, loss = np.linspace(0.25, 1, 4), np.array(losses)
    above = loss - floor
    expected, _ = nnls(above[:, None] ** 2 * np.stack([place, np.ones(4)], axis=1), above)
    slope, start = _linear(place[None], loss[None], np.ones((1, 4)), np.array([[floor]]))
    assert [slope[0, 0], start[0, 0]] == pytest.approx(expected, abs=1e-9)


def test_jobs_are_fitted_each_on_its_own():
    epochs = np.arange(1, 11)
    short = 1 / (0.3 * epochs + 1)
    short[7:] = np.nan
    long = 5 / (0.1 * epochs + 2) + 1
    both = fit_convergence(epochs, np.stack([short, long]))
    alone = fit_convergence(epochs[:7], short[None, :7])
    assert both.loss(20.0)[0] == pytest.approx(alone.loss(20.0)[0])
    assert both.loss(20.0)[1] == pytest.approx(fit_convergence(epochs, long[None]).loss(20.0)[0])


def test_two_points_are_told_to_stay():
    fitted = fit_convergence([1, 2], [[0.8, 0.4]])
    assert fitted.loss([2.0, 50.0]).tolist() == pytest.approx([0.4, 0.4])
    assert fitted.converged_at(0.01, patience=3).tolist() == [3.0]


def test_a_rising_loss_is_told_to_be_level():
    fitted = fit_convergence(np.arange(1, 9), np.linspace(1, 2, 8)[None])
    assert fitted.reduction(8.0)[0] == pytest.approx(0.0, abs=1e-9)


def test_outliers_become_the_mean_of_their_neighbours():
    loss = np.array([[9.0, 8.0, 20.0, 6.0, 5.0, 1.0, 4.0, 3.0, np.nan]])
    mended = without_outliers(loss, neighbours=1)
    assert mended[0, 2] == pytest.approx((8 + 6) / 2)
    assert mended[0, 5] == pytest.approx((5 + 4) / 2)
    assert mended[0, [0, 7]].tolist() == [9.0, 3.0]
    assert np.isnan(mended[0, 8])


def test_falling_losses_have_no_outliers():
    loss = np.array([[5.0, 4.0, 3.5, 3.0, 2.9]])
    assert without_outliers(loss).tolist() == loss.tolist()


def test_one_outlier_hardly_matters():
    epochs = np.arange(1, 31)
    loss = 1 / (0.2 * epochs + 1) + 0.1
    wild = loss.copy()
    wild[20] = 3.0
    expected = fit_convergence(epochs, loss[None]).loss(100.0)[0]
    # the wild loss still sets the scale, as in the paper, but not the curve
    assert fit_convergence(epochs, wild[None]).loss(100.0)[0] == pytest.approx(expected, rel=0.05)


def test_reduction_by_hand():
    # l(k) = 1 / (k + 1): l(1) - l(2) = 1/2 - 1/3, l(1) - l(3) = 1/4
    assert one(1.0, 1.0, 0.2).reduction(1.0)[0] == pytest.approx(1 / 6)
    assert one(1.0, 1.0, 0.2).reduction(1.0, 2.0)[0] == pytest.approx(1 / 4)


def test_convergence_by_hand():
    # reductions of 1 / (k + 1): 1/2, 1/6, 1/12, 1/20, ...; the epoch from 3 to 4 is the first below 0.06
    assert one(1.0, 1.0, 0.0).converged_at(0.06).tolist() == [4.0]
    assert one(1.0, 1.0, 0.0).converged_at(0.06, patience=3).tolist() == [6.0]
    # 10 iterations an epoch, a tenth of the slope an iteration: as many epochs
    assert one(0.1, 1.0, 0.0).converged_at(0.06, epoch_iterations=10).tolist() == [40.0]


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 2.0), st.floats(0.5, 3.0), st.floats(1e-4, 0.2))
def test_converged_is_the_first_epoch_below_the_threshold(slope, start, threshold):
    fitted = one(slope, start, 0.0)
    first = fitted.converged_at(threshold)[0] - 1
    assert fitted.reduction(first)[0] <= threshold * (1 + 1e-9)
    assert first == 0 or fitted.reduction(first - 1)[0] >= threshold * (1 - 1e-9)
