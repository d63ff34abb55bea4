"""The restatement rule. Shockwave, section 5."""

from collections.abc import Mapping

from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.regimes.needs import training_of
from jobcast.models.regimes.trajectories import ADAPTATIONS, Adaptation, ahead_of, epochs_left, whole


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
