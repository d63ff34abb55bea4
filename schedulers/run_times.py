"""Run times of active jobs for scheduling by rounds: of training jobs from their regimes, of others from a duration."""

import numpy as np

from jobcast.domain.forecasts import WorkForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.rounds import ActiveJob

# No noise takes all of a job away.
LEAST_FACTOR = 0.01
# What is left of a job that has outrun its forecast, seconds.
LEAST_S = 1.0
# Level of what is left of a job where a policy must be on the safe side, and how far it goes without a distribution.
QUANTILE, HEDGE = 0.9, 1.0
# Epochs, seconds an epoch, batch size.
Stretch = tuple[float, float, int]


class RunTimes:
    """What forecasts say of the time that jobs still need on the GPUs that they ask for.

    Parameters
    ----------
    forecasts : asked for the regimes of jobs that report their epochs, and for the run times of all others
    noise : p of Shockwave, section 8.10: what is left of a job is multiplied by a factor drawn for it in 1 -+ p
    seed : of the draws
    """

    def __init__(self, forecasts: WorkForecasts, noise: float = 0.0, seed: int = 0) -> None:
        self._forecasts, self._noise, self._seed = forecasts, noise, seed
        self._factors: dict[int, float] = {}

    def left(self, active: ActiveJob) -> tuple[Stretch, ...]:
        """Stretches still to run, in order; a job that reports no epochs is a single one of one epoch.

        Stretches of nothing are left out; a job always has something left.
        """
        factor = self._factor(active.job) if self._noise else 1.0
        return tuple((epochs, epoch_s * factor, size) for epochs, epoch_s, size in self._exact(active))

    def _exact(self, active: ActiveJob) -> tuple[Stretch, ...]:
        training, progress = active.job.training, active.progress
        if training is None or progress is None:
            duration_s = self._forecasts.duration_s(active.job)
            return ((1.0, max(LEAST_S, duration_s - active.run_s), 1),)
        regimes = self._forecasts.regimes(active.job, progress)
        found = tuple(
            (regime.epochs, training.epoch_s[regime.batch_size], regime.batch_size)
            for regime in regimes
            if regime.epochs > 0
        )
        epoch_s = training.epoch_s[progress.batch_size]
        # A job that outruns its forecast is about to end, yet must not count as done.
        return found or ((LEAST_S / epoch_s, epoch_s, progress.batch_size),)

    def remaining_s(self, active: ActiveJob) -> float:
        """Seconds of progress that a job still needs."""
        return sum(epochs * epoch_s for epochs, epoch_s, _ in self.left(active))

    def at_most_s(self, active: ActiveJob, level: float = QUANTILE, hedge: float = HEDGE) -> float:
        """Seconds that a job still needs at most, no less than `remaining_s`.

        It holds with probability `level` where forecasts tell a distribution. Where they do not, it lies `hedge` of the
        way from the forecast to the present batch size until the end.
        """
        left_s, training, progress = self.remaining_s(active), active.job.training, active.progress
        if training is None or progress is None:
            return left_s
        factor = self._factor(active.job) if self._noise else 1.0
        ask = getattr(self._forecasts, "left_quantile_s", None)
        told_s = None if ask is None else ask(active.job, progress, level)
        if told_s is not None:
            return max(left_s, factor * float(told_s))
        present_s = factor * (training.epochs - progress.epochs) * training.epoch_s[progress.batch_size]
        return left_s + hedge * max(0.0, present_s - left_s)

    def total_s(self, active: ActiveJob) -> float:
        """Seconds of progress that a job needs from its beginning to its end."""
        return active.run_s + self.remaining_s(active)

    def _factor(self, job: Job) -> float:
        if job.seq not in self._factors:
            self._factors[job.seq] = noise_factor(job, self._noise, self._seed)
        return self._factors[job.seq]


def noise_factor(job: Job, noise: float, seed: int) -> float:
    """What is left of a job as it is told over what was forecast. Shockwave, section 8.10."""
    # By job, not in the order of asking: every policy is told the same wrong numbers.
    drawn = np.random.default_rng([seed, job.seq]).uniform(-1.0, 1.0)
    return max(LEAST_FACTOR, 1.0 + noise * float(drawn))
