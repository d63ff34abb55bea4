"""The greedy rule: the present batch size to the end, as reactive schedulers believe. Shockwave, section 5."""

from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes.needs import training_of
from jobcast.models.regimes.trajectories import epochs_left, whole


class Greedy:
    """Nothing ever changes from now on."""

    def regimes(self, job: Job, progress: Progress) -> tuple[Regime, ...]:
        """What is left; see `domain.forecasts.RegimeForecasts`."""
        return self.left(training_of(job), progress)

    def left(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """What is left: all of it at the present batch size."""
        return (Regime(progress.batch_size, epochs_left(training, progress)),)

    def trajectory(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """All regimes from the beginning on."""
        return whole(progress, self.left(training, progress))
