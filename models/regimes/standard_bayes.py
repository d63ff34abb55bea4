"""The standard Bayesian update, which takes epochs for independent draws. Shockwave, section 5."""

from collections.abc import Mapping

from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes.needs import training_of
from jobcast.models.regimes.trajectories import ADAPTATIONS, Adaptation, ahead_of, epochs_left


class StandardBayes:
    """Dirichlet counts: the prior Dir(N/K, ..., N/K) and one for each observed epoch.

    The posterior's mean of regime i is (N/K + m_i) / (N + epochs done) of the epochs, also where the regime is
    completed and was of another length: the weakness that the restatement rule mends.

    Parameters
    ----------
    rules : adaptation by mode
    """

    def __init__(self, rules: Mapping[str, Adaptation] = ADAPTATIONS) -> None:
        self.rules = rules

    def regimes(self, job: Job, progress: Progress) -> tuple[Regime, ...]:
        """What is left; see `domain.forecasts.RegimeForecasts`."""
        return self.left(training_of(job), progress)

    def left(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """What is left of a job, the rest of the running regime first.

        The mean of the running regime less what it has run, never below nothing, and the means of those ahead, scaled
        so that they fill the epochs left.
        """
        ahead = ahead_of(training, progress, self.rules)
        left, now = epochs_left(training, progress), progress.regimes[-1]
        even = training.epochs / (len(progress.regimes) + len(ahead))
        scale = training.epochs / (training.epochs + progress.epochs)
        rest = max(0.0, scale * (even + now.epochs) - now.epochs) if ahead else left
        total = rest + len(ahead) * scale * even
        fill = left / total if total > 0 else 0.0
        return (Regime(now.batch_size, rest * fill), *(Regime(size, scale * even * fill) for size in ahead))

    def trajectory(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """All regimes from the beginning on: the mean of the posterior, completed regimes too."""
        ahead = ahead_of(training, progress, self.rules)
        even = training.epochs / (len(progress.regimes) + len(ahead))
        scale = training.epochs / (training.epochs + progress.epochs)
        seen = (Regime(regime.batch_size, scale * (even + regime.epochs)) for regime in progress.regimes)
        return (*seen, *(Regime(size, scale * even) for size in ahead))
