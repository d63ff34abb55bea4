"""Goodput: throughput x statistical efficiency, with a throughput model fitted on step times.

Pollux (OSDI 2021).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jobcast.domain.arrays import Floats
from jobcast.domain.training import Phase
from jobcast.traces.goodput_tables import NoiseCurve, StepTimes

GPUS_PER_NODE = 4  # of the cluster that Pollux was measured on
LEAST, MOST = 1e-8, 1e3  # seconds; keep times positive where nothing was measured, and the search within reason
GAMMA = (1.0, 10.0)  # Pollux: 10 is close to a full overlap
BATCHES = 50  # candidates between the smallest and the largest batch size, evenly on a logarithmic scale
START = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.5)


@dataclass(frozen=True, slots=True)
class Throughput:
    """Seconds a step: gradients, synchronisation, and how far they overlap. Pollux.

    Attributes
    ----------
    grad_s, grad_sample_s : of gradients, fixed and a sample on each GPU
    far_s, far_gpu_s : of synchronisation over several nodes, fixed and for each GPU beyond two
    near_s, near_gpu_s : the same within a node
    gamma : 1 adds both times up, large ones let the longer hide the other
    """

    grad_s: float
    grad_sample_s: float
    far_s: float
    far_gpu_s: float
    near_s: float
    near_gpu_s: float
    gamma: float

    def step_s(self, nodes: ArrayLike, gpus: ArrayLike, local_batch_size: ArrayLike) -> Floats:
        """Seconds a step takes; arguments broadcast against one another."""
        grad = self.grad_s + self.grad_sample_s * np.asarray(local_batch_size, np.float64)
        gpus, beyond = np.asarray(gpus), np.maximum(0, np.asarray(gpus) - 2)
        # One GPU has nobody to wait for.
        near = np.where(gpus > 1, self.near_s + self.near_gpu_s * beyond, 0.0)
        sync = np.where(np.asarray(nodes) > 1, self.far_s + self.far_gpu_s * beyond, near)
        return (grad**self.gamma + sync**self.gamma) ** (1.0 / self.gamma)


def fit_throughput(times: StepTimes, weights: Floats | None = None) -> Throughput:
    """The throughput model of the least root mean square error of log step times. Pollux.

    Deterministic: non-negative times, gamma within `GAMMA`, by L-BFGS-B from a fixed start on logarithms.

    Parameters
    ----------
    times : measured steps; at least one on one GPU, and some within and across nodes where those are to be predicted
    weights : (n,) of the measurements; None weighs all alike

    Notes
    -----
    The search is in seconds and ends where steps of a fixed size gain no more: a table of twice the times has twice the
    step times but for less than a thousandth, not to the last digit, and with it what `pollux` does.
    """
    from scipy.optimize import minimize

    def loss(free: Floats) -> float:
        # On logarithms, so that the times stay positive.
        predicted = Throughput(*np.exp(free)).step_s(times.nodes, times.gpus, times.local_batch_size)
        return float(np.sqrt(np.average((np.log(predicted) - np.log(times.step_s)) ** 2, weights=weights)))

    bounds = [(np.log(LEAST), np.log(MOST))] * 6 + [tuple(np.log(GAMMA))]
    # In units of the median step, so that the search begins near; gamma has no unit.
    start = np.log(np.array(START) * np.array([float(np.median(times.step_s))] * 6 + [1.0]))
    answer: Any = minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 2_000, "maxfun": 50_000})
    return Throughput(*np.exp(answer.x).tolist())


def noise_scale(curve: NoiseCurve, smallest_batch_size: int) -> Floats:
    """Gradient noise scale in samples at each epoch, (n_epochs,); infinite where the gradient vanishes."""
    with np.errstate(divide="ignore"):
        scale: Floats = smallest_batch_size * curve.grad_var / curve.grad_sqr
    return scale


def efficiency(batch_size: ArrayLike, initial_batch_size: float, noise: float) -> Floats:
    """Progress of a sample relative to one at the initial batch size. Pollux.

    >>> efficiency([128, 256, 512], 128, 128.0).round(3).tolist()
    [1.0, 0.667, 0.4]
    """
    sizes = np.asarray(batch_size, np.float64)
    return np.ones_like(sizes) if np.isinf(noise) else (noise + initial_batch_size) / (noise + sizes)


@dataclass(frozen=True, slots=True)
class Limits:
    """Batch sizes that a job may run at: the initial and the largest in all, and the smallest and largest a GPU.

    `unit` is the batch size whose samples work is counted in, and at which noise was measured; None = the initial one.
    """

    initial: int
    largest: int
    least_local: int
    most_local: int
    unit: int | None = None

    @property
    def unit_size(self) -> int:
        """The batch size whose samples work is counted in."""
        return self.initial if self.unit is None else self.unit


def _candidates(throughput: Throughput, limits: Limits, most_gpus: int, gpus_per_node: int) -> tuple[Floats, Floats]:
    """(n_gpus, BATCHES) batch sizes by GPUs from one on, and samples a second at them, 0 where there are fewer."""
    reach = min(most_gpus, limits.largest // limits.least_local)
    sizes, samples_s = np.ones((reach, BATCHES)), np.zeros((reach, BATCHES))
    for gpus in range(1, reach + 1):
        local = _local_sizes(limits, gpus)
        step_s = throughput.step_s(-(-gpus // gpus_per_node), gpus, local)
        sizes[gpus - 1, : len(local)] = gpus * local
        samples_s[gpus - 1, : len(local)] = gpus * local / step_s
    return sizes, samples_s


def _best(candidates: tuple[Floats, Floats], limits: Limits, noise: float) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """The best of candidates by GPUs; the smallest of equals."""
    sizes, samples_s = candidates
    # A batch below the unit is not worth more than its samples.
    rates = samples_s * np.minimum(1.0, efficiency(sizes, limits.unit_size, noise))
    # Sizes ascend and argmax takes the first of equals: the smallest.
    best = np.argmax(rates, axis=1)[:, None]
    goodput = np.take_along_axis(rates, best, axis=1)[:, 0]
    return tuple(goodput.tolist()), tuple(np.take_along_axis(sizes, best, axis=1)[:, 0].astype(np.int64).tolist())


def _local_sizes(limits: Limits, gpus: int) -> Floats:
    """Candidates for the batch size a GPU, ascending whole numbers; at least the smallest allowed one."""
    # Rounded up: the GPUs together must hold the initial batch.
    low = max(-(-limits.initial // gpus), limits.least_local)
    high = max(low, min(limits.largest // gpus, limits.most_local))
    return np.unique(np.round(np.geomspace(low, high, BATCHES)))


def phases(
    throughput: Throughput, limits: Limits, curve: NoiseCurve, most_gpus: int, gpus_per_node: int = GPUS_PER_NODE
) -> tuple[Phase, ...]:
    """A training as phases, one an epoch of a curve at the initial batch size: what a replay of goodput runs.

    `until` is in samples of the batch size that work is counted in.
    """
    made = []
    candidates = _candidates(throughput, limits, most_gpus, gpus_per_node)
    for progress, noise in zip(curve.progress, noise_scale(curve, limits.unit_size), strict=True):
        goodput, sizes = _best(candidates, limits, float(noise))
        made.append(Phase(float(progress) * limits.unit_size, goodput, sizes))
    return tuple(made)
