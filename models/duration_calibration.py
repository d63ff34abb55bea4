"""How forecasts of duration bins keep up with a cluster that changes, or is another one than they were learnt on.

Several forecasts (a booster's, and rules that count finished jobs) are mixed by what each has been worth lately; the
mixture is tempered and shifted, pool by pool, to what jobs have turned out to be. Each job teaches once, at one age:
when the last bin begins, its bin is known. Learning from jobs as they end would learn from short ones first, and from a
burst of them that the next forecasts are all short. Jobs that reach that age before the training ends teach as folds
forecast them, later ones as they reach it; of a cluster that the training knew nothing of, all do.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.models.calibration_rates import FORECASTS, HEAD_START
from jobcast.models.duration_data import DurationData


def steps_of(lessons: Ints, burst: Ints) -> Floats:
    """Sizes of steps, (n_jobs,): the n-th lesson of a burst weighs 1 / sqrt(n), since its jobs resemble each other.

    Parameters
    ----------
    lessons : jobs in the order of learning
    burst : (n_jobs,) numbers of their bursts

    >>> steps_of(np.array([0, 2, 1]), np.array([5, 5, 7])).round(3).tolist()
    [1.0, 0.707, 1.0]
    """
    steps, seen = np.ones(len(burst)), dict[int, int]()
    for one in lessons.tolist():
        number = seen[burst[one]] = seen.get(burst[one], 0) + 1
        # n jobs of a burst so weigh about 2 sqrt(n) together, between one job's worth and n jobs'.
        steps[one] = 1.0 / math.sqrt(number)
    return steps


@dataclass(slots=True, eq=False)
class Calibration:
    """What has been learnt of forecasts from how jobs turned out.

    Attributes
    ----------
    state : (K + 1 + B,) log weights of `FORECASTS`, power, shifts of the bins
    shifts : pool -> (B,) shifts of its bins, beside those of all
    """

    state: Floats
    shifts: dict[str, Floats]

    @classmethod
    def untaught(cls, n_bins: int) -> Self:
        """Nothing has been learnt."""
        state = np.zeros(len(FORECASTS) + 1 + n_bins)
        state[0], state[len(FORECASTS)] = HEAD_START, 1.0
        return cls(state, {})

    def copy(self) -> "Calibration":
        """Another one that learns for itself."""
        return Calibration(self.state.copy(), {pool: shifts.copy() for pool, shifts in self.shifts.items()})

    def of_pool(self, pool: str) -> Floats:
        """The shifts of a pool, to be changed in place."""
        n_bins = len(self.state) - len(FORECASTS) - 1
        # Created where it is first taught or replayed; `known` asks without creating.
        return self.shifts.setdefault(pool, np.zeros(n_bins))

    def known(self, pool: str) -> Floats:
        """Weights, power and shifts of a pool's forecasts, (K + 1 + B,)."""
        known, n_bins = np.empty_like(self.state), len(self.state) - len(FORECASTS) - 1
        _kernels().tell(self.state, self.shifts.get(pool, np.zeros(n_bins)), len(FORECASTS), known)
        return known

    def learn(self, parts: Floats, which: int, step: float, pool: str) -> None:
        """Learn from a job of a pool: what was forecast, (K, B), and the bin that came."""
        _kernels().learn(np.ascontiguousarray(parts), which, step, self.state, self.of_pool(pool))

    def replayed(
        self, parts: Floats, submit_s: Floats, lessons: Ints, settled_s: Floats, bins: Ints, burst: Ints,
        pool: NDArray[Any],
    ) -> Floats:  # fmt: skip
        """Weights, power and shifts as of the submission of each of many jobs, (n_jobs, K + 1 + B); learns all lessons.

        Parameters as of `calibration_kernels.replay` and of `steps_of`; `pool` (n_jobs,) are names.
        """
        names, which = np.unique(pool, return_inverse=True)
        # Copies in one array, which compiled code changes; they are put back below.
        shifts = np.array([self.of_pool(str(name)) for name in names]).reshape(len(names), -1)
        known = np.empty((len(submit_s), len(self.state)))
        steps = steps_of(lessons, burst)
        _kernels().replay(
            np.ascontiguousarray(parts), submit_s, lessons, settled_s, bins, steps, which.astype(np.int64), self.state,
            shifts, known,
        )  # fmt: skip
        self.shifts.update(zip(map(str, names), shifts, strict=True))
        return known

    def taught(self, parts: Floats, jobs: DurationData, until_s: float) -> Floats:
        """Calibrated forecasts of jobs, (n_jobs, B), each by what was known when it was submitted.

        Learns from all that reached the last bin's age before an instant.
        """
        # All settle at the same age, so by start is by the instant at which they teach.
        lessons = np.argsort(jobs.start_s, kind="stable")
        lessons = lessons[jobs.settled_s[lessons] < until_s]
        known = self.replayed(parts, jobs.submit_s, lessons, jobs.settled_s, jobs.bins, jobs.burst, jobs.pool)
        return calibrated_proba(parts, known)


def calibrated_proba(parts: Floats, known: Floats) -> Floats:
    """Calibrated probabilities, (n_jobs, B), from several, (n_jobs, K, B), and what is known of them."""
    proba = np.empty((len(parts), parts.shape[2]))
    _kernels().calibrated_rows(np.ascontiguousarray(parts), np.ascontiguousarray(known), proba)
    return proba


def _kernels() -> Any:
    """Compiled code is imported when it is first needed."""
    from jobcast.models import calibration_kernels

    return calibration_kernels
