"""Compiled steps of `duration_calibration`."""

import math

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F2, READ_F1, READ_F2, READ_F3, READ_I1, njit, types
from jobcast.models.calibration_rates import (
    FORGOTTEN,
    HEAD_START,
    LEAST,
    LEAST_TEMPER,
    MOST_TEMPER,
    SHIFT_RATE,
    TEMPER_RATE,
    TRUST_RATE,
)


@njit([types.void(READ_F2, READ_F1, F1)], cache=True)  # type: ignore[untyped-decorator]
def calibrated(parts: Floats, known: Floats, out: Floats) -> None:
    """Mixed, tempered and shifted probabilities of one job, written to `out`, (B,).

    Parameters
    ----------
    parts : (K, B) probabilities, in the order of `FORECASTS`
    known : (K + 1 + B,) weights, power and shifts
    """
    n_parts, n_bins = parts.shape
    most = -np.inf
    for b in range(n_bins):
        mixed = 0.0
        for k in range(n_parts):
            mixed += known[k] * parts[k, b]
        # A power of the mixture: below 1 it is tempered, above 1 sharpened; then the shift in log odds.
        out[b] = known[n_parts] * math.log(max(mixed, LEAST)) + known[n_parts + 1 + b]
        # Taken off before the exponential, which cannot overflow then.
        most = max(most, out[b])
    total = 0.0
    for b in range(n_bins):
        out[b] = math.exp(out[b] - most)
        total += out[b]
    for b in range(n_bins):
        out[b] /= total


@njit([types.void(READ_F1, READ_F1, types.int64, F1)], cache=True)  # type: ignore[untyped-decorator]
def tell(state: Floats, shifts: Floats, n_parts: int, known: Floats) -> None:
    """Weights, power and shifts of a pool, written to `known`, from log weights and the shifts of the pool, (B,)."""
    # Log weights are only defined up to a constant: the largest becomes 1.
    most, total = state[:n_parts].max(), 0.0
    for k in range(n_parts):
        known[k] = math.exp(state[k] - most)
        total += known[k]
    for k in range(n_parts):
        known[k] /= total
    known[n_parts] = state[n_parts]
    for b in range(shifts.size):
        known[n_parts + 1 + b] = state[n_parts + 1 + b] + shifts[b]


@njit([types.void(READ_F2, types.int64, types.float64, F1, F1)], cache=True)  # type: ignore[untyped-decorator]
def learn(parts: Floats, which: int, step: float, state: Floats, shifts: Floats) -> None:
    """Move a state and the shifts of a pool by one job, of bin `which`: a step down the log loss, and some forgetting.

    Log weights are those of a Bayesian mixture whose evidence fades: of Herbster and Warmuth, Tracking the Best Expert,
    Machine Learning 32, 1998, with fading in the place of sharing.
    """
    n_parts, n_bins = parts.shape
    known, proba = np.empty(state.size), np.empty(n_bins)
    tell(state, shifts, n_parts, known)
    calibrated(parts, known, proba)
    slope = 0.0
    for b in range(n_bins):
        mixed = 0.0
        for k in range(n_parts):
            mixed += known[k] * parts[k, b]
        miss = proba[b] - (1.0 if b == which else 0.0)
        # Derivative of the log loss by the power.
        slope += miss * math.log(max(mixed, LEAST))
        place = n_parts + 1 + b
        state[place] -= step * (SHIFT_RATE * miss + FORGOTTEN * state[place])
        # The pool's own shift moves by the same miss as the shift of all pools.
        shifts[b] -= step * (SHIFT_RATE * miss + FORGOTTEN * shifts[b])
    # Forgetting pulls the power back to 1, as it was before anything was known.
    power = state[n_parts] - step * (TEMPER_RATE * slope + FORGOTTEN * (state[n_parts] - 1.0))
    state[n_parts] = min(max(float(power), LEAST_TEMPER), MOST_TEMPER)
    for k in range(n_parts):
        # The booster comes first in `FORECASTS` and forgets towards its head start, the rules towards 0.
        start = HEAD_START if k == 0 else 0.0
        gain = TRUST_RATE * math.log(max(parts[k, which], LEAST))
        state[k] += step * (gain - FORGOTTEN * (state[k] - start))


_REPLAY = types.void(READ_F3, READ_F1, READ_I1, READ_F1, READ_I1, READ_F1, READ_I1, F1, F2, F2)


@njit([_REPLAY], cache=True)  # type: ignore[untyped-decorator]
def replay(
    parts: Floats,
    submit_s: Floats,
    lessons: Ints,
    known_s: Floats,
    bins: Ints,
    steps: Floats,
    pools: Ints,
    state: Floats,
    shifts: Floats,
    known: Floats,
) -> None:
    """What had been learnt when each of many jobs was submitted, written to `known`, (n_jobs, K + 1 + B).

    Parameters
    ----------
    parts : (n_jobs, K, B) probabilities
    submit_s : (n_jobs,) ascending
    lessons : jobs to learn from, in the order of `known_s`, from when on their bins are known
    bins, steps, pools : (n_jobs,) bins, sizes of steps, and rows of `shifts`
    state, shifts : (K + 1 + B,) and (n_pools, B), moved on by all lessons
    """
    taught = 0
    for job in range(submit_s.size):
        # Whatever was known by this submission has taught before it is answered.
        while taught < lessons.size and known_s[lessons[taught]] <= submit_s[job]:
            one = lessons[taught]
            learn(parts[one], bins[one], steps[one], state, shifts[pools[one]])
            taught += 1
        tell(state, shifts[pools[job]], parts.shape[1], known[job])
    # The rest teaches too: the state is kept as of the end of the training.
    for one in lessons[taught:]:
        learn(parts[one], bins[one], steps[one], state, shifts[pools[one]])


@njit([types.void(READ_F3, READ_F2, F2)], cache=True)  # type: ignore[untyped-decorator]
def calibrated_rows(parts: Floats, known: Floats, out: Floats) -> None:
    """`calibrated` of each of many jobs."""
    for job in range(parts.shape[0]):
        calibrated(parts[job], known[job], out[job])
