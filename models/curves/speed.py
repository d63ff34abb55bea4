"""Training speed against workers and parameter servers, fitted by non-negative least squares. Optimus, section 3.2.

Steps a second of w workers and p parameter servers, with coefficients of at least 0:

- synchronous: f(p, w) = 1 / (t0 M / w + t1 + t2 w / p + t3 w + t4 p), M the batch size over all workers
- asynchronous: f(p, w) = w / (t0 + t1 w / p + t2 w + t3 p)

Both are linear in the coefficients once inverted. Rows are divided by the measured time, so that relative errors count
alike, whatever the configuration.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.errors import TrainingError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SynchronousSpeed:
    """Seconds a step of all workers together.

    Attributes
    ----------
    sample_s : t0, forward pass of one sample
    fixed_s : t1, backward pass and everything that does not grow
    transfer_s : t2, for each worker that a parameter server serves
    worker_s, server_s : t3 and t4, overhead of connections, a worker and a server
    """

    sample_s: float
    fixed_s: float
    transfer_s: float
    worker_s: float
    server_s: float

    def speed(self, workers: ArrayLike, servers: ArrayLike, batch_size: ArrayLike) -> Floats:
        """Steps a second; `batch_size` over all workers; arguments broadcast against one another."""
        told: Floats = 1 / (synchronous_terms(workers, servers, batch_size) @ np.array(_values(self)))
        return told


@dataclass(frozen=True, slots=True)
class AsynchronousSpeed:
    """Seconds a step of one worker, whose batch size is its own.

    Attributes
    ----------
    fixed_s : t0, both passes
    transfer_s : t1, for each worker that a parameter server serves
    worker_s, server_s : t2 and t3, overhead of connections, a worker and a server
    """

    fixed_s: float
    transfer_s: float
    worker_s: float
    server_s: float

    def speed(self, workers: ArrayLike, servers: ArrayLike) -> Floats:
        """Steps a second of all workers; arguments broadcast against one another."""
        told: Floats = np.asarray(workers) / (asynchronous_terms(workers, servers) @ np.array(_values(self)))
        return told


def fit_synchronous(
    workers: ArrayLike, servers: ArrayLike, batch_size: ArrayLike, speed: ArrayLike
) -> SynchronousSpeed:
    """Fit measured (workers, servers, batch size over all workers, steps a second), each (n,), n at least 1.

    Raises
    ------
    TrainingError
        Nothing was measured, or a speed is not positive.
    """
    rates = _checked(speed)
    return SynchronousSpeed(*_fitted(synchronous_terms(workers, servers, batch_size), 1 / rates))


def fit_asynchronous(workers: ArrayLike, servers: ArrayLike, speed: ArrayLike) -> AsynchronousSpeed:
    """Fit measured (workers, servers, steps a second of all workers), each (n,), n at least 1.

    Raises
    ------
    TrainingError
        Nothing was measured, or a speed is not positive.
    """
    rates = _checked(speed)
    return AsynchronousSpeed(*_fitted(asynchronous_terms(workers, servers), np.asarray(workers) / rates))


def synchronous_terms(workers: ArrayLike, servers: ArrayLike, batch_size: ArrayLike) -> Floats:
    """What t0 to t4 are multiplied by, (..., 5)."""
    w, p, m = _floats(workers, servers, batch_size)
    return np.stack([m / w, np.ones_like(w), w / p, w, p], axis=-1)


def asynchronous_terms(workers: ArrayLike, servers: ArrayLike) -> Floats:
    """What t0 to t3 are multiplied by, (..., 4)."""
    w, p = _floats(workers, servers)
    return np.stack([np.ones_like(w), w / p, w, p], axis=-1)


def _fitted(terms: Floats, seconds: Floats) -> list[float]:
    from scipy.optimize import nnls

    coefficients, _ = nnls(terms / seconds[:, None], np.ones(len(seconds)))
    return [float(value) for value in coefficients]


def _checked(speed: ArrayLike) -> Floats:
    rates = np.atleast_1d(np.asarray(speed, np.float64))
    wrong = np.flatnonzero(~(np.isfinite(rates) & (rates > 0)))
    if not len(rates):
        raise TrainingError("speed model: nothing was measured; pass one configuration at least")
    if len(wrong):
        raise TrainingError(f"speed model, row {wrong[0]}: speed must be > 0, got {rates[wrong[0]]}; drop the row")
    return rates


def _floats(*values: ArrayLike) -> tuple[Floats, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(value, np.float64) for value in values)))


def _values(model: SynchronousSpeed | AsynchronousSpeed) -> list[float]:
    return [getattr(model, name) for name in model.__slots__]
