"""Optimus' speed models: forms by hand, coefficients recovered, bad measurements refused."""

import numpy as np
import pytest

from jobcast.domain.errors import TrainingError
from jobcast.models.curves.speed import AsynchronousSpeed, SynchronousSpeed, fit_asynchronous, fit_synchronous


def test_synchronous_speed_by_hand():
    # 0.01 x 256 / 4 + 0.2 + 0.1 x 4 / 2 + 0.02 x 4 + 0.03 x 2 = 1.18 seconds a step
    assert SynchronousSpeed(0.01, 0.2, 0.1, 0.02, 0.03).speed(4, 2, 256) == pytest.approx(1 / 1.18)


def test_asynchronous_speed_by_hand():
    # each of 4 workers takes 0.5 + 0.1 x 4 / 2 + 0.02 x 4 + 0.03 x 2 = 0.84 seconds
    assert AsynchronousSpeed(0.5, 0.1, 0.02, 0.03).speed(4, 2) == pytest.approx(4 / 0.84)


def grid() -> tuple[np.ndarray, np.ndarray]:
    workers, servers = np.meshgrid(np.arange(1, 9), np.arange(1, 5))
    return workers.ravel(), servers.ravel()


def test_synchronous_coefficients_are_recovered():
    workers, servers = grid()
    true = SynchronousSpeed(0.002, 0.3, 0.05, 0.01, 0.0)
    fitted = fit_synchronous(workers, servers, 128, true.speed(workers, servers, 128))
    assert fitted.speed(16, 6, 128) == pytest.approx(true.speed(16, 6, 128), rel=1e-6)
    assert [fitted.sample_s, fitted.transfer_s] == pytest.approx([0.002, 0.05], rel=1e-6)


def test_asynchronous_coefficients_are_recovered():
    workers, servers = grid()
    true = AsynchronousSpeed(0.4, 0.05, 0.0, 0.02)
    fitted = fit_asynchronous(workers, servers, true.speed(workers, servers))
    assert [fitted.fixed_s, fitted.transfer_s, fitted.worker_s, fitted.server_s] == pytest.approx(
        [0.4, 0.05, 0.0, 0.02], abs=1e-9
    )


def test_coefficients_are_never_negative():
    # more workers were faster than any of the terms allows
    workers = np.array([1, 2, 4, 8])
    fitted = fit_synchronous(workers, 1, 8 * workers, np.array([1.0, 4.0, 9.0, 30.0]))
    assert min(fitted.sample_s, fitted.fixed_s, fitted.transfer_s, fitted.worker_s, fitted.server_s) >= 0


@pytest.mark.parametrize(
    ("speed", "told"),
    [([], "nothing was measured"), ([1.0, 0.0], r"row 1: speed must be > 0, got 0"), ([np.nan], "row 0")],
)
def test_bad_measurements_are_refused(speed, told):
    with pytest.raises(TrainingError, match=told):
        fit_asynchronous(np.ones(len(speed)), 1, speed)
