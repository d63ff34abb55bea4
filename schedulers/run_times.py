"""Run times of active jobs for scheduling by rounds: of training jobs from their regimes, of others from a duration."""

from jobcast.domain.forecasts import WorkForecasts
from jobcast.domain.rounds import ActiveJob

LEAST_S = 1.0
"""What is left of a job that has outrun its forecast, seconds."""
Stretch = tuple[float, float, int]
"""Epochs, seconds an epoch, batch size."""


class RunTimes:
    """What forecasts say of the time that jobs still need on the GPUs that they ask for.

    Parameters
    ----------
    forecasts : asked for the regimes of jobs that report their epochs, and for the run times of all others
    """

    def __init__(self, forecasts: WorkForecasts) -> None:
        self._forecasts = forecasts

    def left(self, active: ActiveJob) -> tuple[Stretch, ...]:
        """Stretches still to run, in order; a job that reports no epochs is a single one of one epoch.

        Stretches of nothing are left out; a job always has something left.
        """
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
        return found or ((LEAST_S / epoch_s, epoch_s, progress.batch_size),)

    def remaining_s(self, active: ActiveJob) -> float:
        """Seconds of progress that a job still needs."""
        return sum(epochs * epoch_s for epochs, epoch_s, _ in self.left(active))

    def total_s(self, active: ActiveJob) -> float:
        """Seconds of progress that a job needs from its beginning to its end."""
        return active.run_s + self.remaining_s(active)
