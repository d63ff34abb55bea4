"""Rules that forecast regimes without learning: restatement, a standard Bayesian estimate, the batch size of now.

What forecasts of regimes need of a job.

The restatement rule. Shockwave, section 5.

The standard Bayesian update, which takes epochs for independent draws. Shockwave, section 5.

The greedy rule: the present batch size to the end, as reactive schedulers believe. Shockwave, section 5.
"""

from collections.abc import Mapping

from jobcast.domain.errors import RegistryError
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes.trajectories import ADAPTATIONS, Adaptation, ahead_of, epochs_left, whole


def training_of(job: Job) -> Training:
    """What the job trains; RegistryError for one that trains nothing."""
    if job.training is None:
        raise RegistryError(f"job {job.job_id}: is no training job, it has no regimes; give the trace's throughputs")
    return job.training


class Restatement:
    """Completed regimes as observed; the running one and those ahead split the rest of the epochs evenly.

    After k - 1 completed regimes of m_1, ..., m_{k-1} epochs the posterior is Dir(m_1, ..., m_{k-1}, S, ..., S) with
    S = (N - m_1 - ... - m_{k-1}) / (K - k + 1), and its mean the forecast. The running regime is at least as long as
    observed; what it takes beyond S, those ahead lose evenly.

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

        >>> job = Training("LM", 10, 40, "gns", {10: 60.0, 20: 40.0})
        >>> Restatement().left(job, Progress(4.0, (Regime(10, 4.0),)))
        (Regime(batch_size=10, epochs=16.0), Regime(batch_size=20, epochs=20.0))
        """
        ahead = ahead_of(training, progress, self.rules)
        left, now = epochs_left(training, progress), progress.regimes[-1]
        share = (left + now.epochs) / (len(ahead) + 1)
        rest = max(0.0, share - now.epochs) if ahead else left
        each = (left - rest) / max(1, len(ahead))
        return (Regime(now.batch_size, rest), *(Regime(size, each) for size in ahead))

    def trajectory(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """All regimes from the beginning on: the mean of the posterior."""
        return whole(progress, self.left(training, progress))


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
