"""Remaining iterations and run time in Optimus' manner."""

import numpy as np
import pytest

from jobcast.models.curves.convergence import Convergence
from jobcast.models.curves.optimus import Stopping, as_loss, remaining_iterations, remaining_run_time_s

TWO = Convergence(np.array([1.0, 1.0]), np.array([1.0, 1.0]), np.array([0.0, 0.0]), np.array([1.0, 9.0]))


def test_remaining_iterations_by_hand():
    # both converge after epoch 4: see test_convergence.py; thresholds are shares of the largest loss
    rule = Stopping(threshold=0.06, patience=1)
    assert remaining_iterations(TWO, [1, 6], rule=rule).tolist() == [3.0, 0.0]
    assert remaining_iterations(TWO, [1, 1], most=[2, 9], rule=rule).tolist() == [1.0, 3.0]


def test_remaining_run_time_is_iterations_over_speed():
    assert remaining_run_time_s([100, 0, 5], [4.0, 0.0, 0.0]).tolist() == [25.0, 0.0, np.inf]


def test_metrics_become_losses():
    assert as_loss([0.9, 0.6], 1.0, True).tolist() == pytest.approx([0.1, 0.4])
    assert as_loss([30.0, 20.0], 100.0, [True, False]).tolist() == [70.0, 20.0]
