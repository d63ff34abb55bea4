"""Accuracy by epoch of MLFS's jobs: shapes of several families, so that no one model of curves is right, with noise.

Every shape rises from 0 before training to 1 after the last epoch. Its one free parameter is solved for the share of
the gain that is there after a fifth of the epochs: that share was .57 to .90 in training curves of CIFAR-10,
DeepSpeech2 and NCF (Qiao et al., OSDI 2021), and is uniform in .5 to .95 here. The noise of those curves was .0004 to
.03 of the gain. All else is ours: final accuracies, a step in a quarter of the curves, where the learning rate is cut,
and a fifth of the curves that lose some of what they had gained.

Errors of estimates: a lognormal factor whose mean absolute error is set.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats, Ints

EARLY = 0.2
EARLY_GAIN = (0.5, 0.95)
FINAL = (0.5, 0.99)
BEGINNING = (0.02, 0.4)
"""Accuracy before training, as a share of the final one."""
NOISE = (0.0005, 0.02)
"""Standard deviation of an epoch's metric, as a share of the gain; log-uniform."""
STEPPED, STEP_AT, STEP = 0.25, (0.4, 0.8), (0.03, 0.15)
"""Share of curves with a step, where it lies as a share of the epochs, and its height as a share of the gain."""
FALLING, PEAK_AT, FALL = 0.2, (0.5, 0.9), (0.005, 0.04)
"""Share of curves that fall after a peak, where that is, and what they lose of the gain."""
LOG_LOW, LOG_HIGH, HALVINGS = -30.0, 60.0, 100
"""Bounds of the logarithm of a shape's parameter, and steps of the search in them."""
Shape = Callable[[Floats, Floats], Floats]


def exponential(u: Floats, log_k: Floats) -> Floats:
    """1 - exp(-k u)."""
    return -np.expm1(-np.exp(log_k) * u)


def power(u: Floats, log_k: Floats) -> Floats:
    """1 - (1 + k u)^-1/2 (pow3, moved to 0)."""
    return 1.0 - (1.0 + np.exp(log_k) * u) ** -0.5


def logarithm(u: Floats, log_k: Floats) -> Floats:
    """log(1 + k u)."""
    return np.log1p(np.exp(log_k) * u)


def hill(u: Floats, log_k: Floats) -> Floats:
    """u^1.5 / (1/k + u^1.5) (Hill3)."""
    risen = np.exp(log_k) * u**1.5
    return risen / (1.0 + risen)


def weibull(u: Floats, log_k: Floats) -> Floats:
    """1 - exp(-k u^0.6) (Weibull, Janoschek)."""
    return -np.expm1(-np.exp(log_k) * u**0.6)


SHAPES: dict[str, Shape] = {
    "exponential": exponential,
    "power": power,
    "logarithm": logarithm,
    "hill": hill,
    "weibull": weibull,
}
"""Each rises from 0 at u = 0, ever slower the larger its parameter."""


class DrawnCurves(NamedTuple):
    """Curves of all jobs.

    Attributes
    ----------
    family : (n_jobs,) index into `SHAPES`
    begin : (n_jobs + 1,) where a job's epochs begin in `metric`
    metric : by epoch from 0 on
    final : (n_jobs,) the last metric
    """

    family: Ints
    begin: Ints
    metric: Floats
    final: Floats


class CurveDraws(NamedTuple):
    """What curves are made of, (n_jobs,) each, but `normal`, which is by epoch from 0 on, one job after another.

    Attributes
    ----------
    family : index into `SHAPES`
    early, final, low : share of the gain after a fifth of the epochs, last accuracy, first one as a share of it
    step_at, step : where a step lies as a share of the epochs, and its height as a share of the gain; 0: none
    fall_at, fall : where a curve begins to fall, and what it loses of the gain; 0: nothing
    noise : standard deviation of an epoch's metric, as a share of the gain
    normal : standard normal
    """

    family: Ints
    early: Floats
    final: Floats
    low: Floats
    step_at: Floats
    step: Floats
    fall_at: Floats
    fall: Floats
    noise: Floats
    normal: Floats


def draw_curves(epochs: Ints, rng: np.random.Generator) -> DrawnCurves:
    """Draw a curve for each job.

    Parameters
    ----------
    epochs : (n_jobs,) at least 1
    rng : of all that is drawn
    """
    count = len(epochs)
    family = rng.integers(0, len(SHAPES), count)
    early, final, low = (rng.uniform(*bounds, count) for bounds in (EARLY_GAIN, FINAL, BEGINNING))
    stepped, step_at, step = rng.random(count) < STEPPED, rng.uniform(*STEP_AT, count), rng.uniform(*STEP, count)
    falls, fall_at, fall = rng.random(count) < FALLING, rng.uniform(*PEAK_AT, count), rng.uniform(*FALL, count)
    noise = np.exp(rng.uniform(math.log(NOISE[0]), math.log(NOISE[1]), count))
    normal = rng.standard_normal(int((epochs + 1).sum()))
    step, fall = np.where(stepped, step, 0.0), np.where(falls, fall, 0.0)
    return curves_of(epochs, CurveDraws(family, early, final, low, step_at, step, fall_at, fall, noise, normal))


def curves_of(epochs: Ints, draws: CurveDraws) -> DrawnCurves:
    """The curves of jobs that train for so many epochs."""
    log_k = _solved(draws.family, draws.early)
    begin = np.concatenate([[0], np.cumsum(epochs + 1)])
    job = np.repeat(np.arange(len(epochs)), epochs + 1)
    u = (np.arange(begin[-1]) - begin[job]) / epochs[job]
    shape = _shapes(draws.family[job], u, log_k[job]) / _shapes(draws.family, np.ones(len(epochs)), log_k)[job]
    step = draws.step[job]  # what comes before it is scaled down, so that the end stays 1
    shape = shape * (1.0 - step) + step * (u > draws.step_at[job])
    shape = shape - draws.fall[job] * np.maximum(0.0, u - draws.fall_at[job]) / (1.0 - draws.fall_at[job])
    gain = draws.final * (1.0 - draws.low)
    noisy = shape + draws.noise[job] * draws.normal * (u > 0)
    metric = np.clip((draws.final * draws.low)[job] + gain[job] * noisy, 0.0, 1.0)
    return DrawnCurves(draws.family, begin, metric, metric[begin[1:] - 1])


def _shapes(family: Ints, u: Floats, log_k: Floats) -> Floats:
    """Each entry by its own family."""
    values = np.empty(len(u))
    for number, shape in enumerate(SHAPES.values()):
        mine = family == number
        values[mine] = shape(u[mine], log_k[mine])
    return values


def _solved(family: Ints, early: Floats) -> Floats:
    """(n_jobs,) parameters at which `early` of the gain is there after a fifth of the epochs, by bisection."""
    low: Floats = np.full(len(early), LOG_LOW)
    high: Floats = np.full(len(early), LOG_HIGH)
    fifth, whole = np.full(len(early), EARLY), np.ones(len(early))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        less = _shapes(family, fifth, middle) < early * _shapes(family, whole, middle)
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return low


MOST_SPREAD = 3.0
ERROR_HALVINGS = 60


def spread_of_error(mean_error: float) -> float:
    """Standard deviation s of the logarithm at which E|exp(s z) - 1| is the mean error, z standard normal.

    E|exp(s z) - 1| = exp(s^2 / 2) (2 Phi(s) - 1). MLFS's estimates of run times are 89 % accurate (section 3.1).

    >>> round(spread_of_error(0.11), 4)
    0.137
    """
    low, high = 0.0, MOST_SPREAD
    for _ in range(ERROR_HALVINGS):
        middle = (low + high) / 2
        error = math.exp(middle**2 / 2) * math.erf(middle / math.sqrt(2))
        low, high = (middle, high) if error < mean_error else (low, middle)
    return low
