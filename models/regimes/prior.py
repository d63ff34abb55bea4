"""RegimePrior: a hierarchical Dirichlet prior over regimes, learned from finished jobs. After Shockwave, section 5."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.parse import unquote

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import RegistryError
from jobcast.domain.forecasts import Question
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.metadata import JsonModel
from jobcast.models.regimes.ahead import (
    ALL,
    MOST_AHEAD,
    OPEN,
    Prior,
    calibrated,
    epoch_nodes,
    mean_regimes,
    quantile,
    shortest,
    stated,
    time_nodes,
)
from jobcast.models.regimes.finished import Finished, Key
from jobcast.models.regimes.learning import STEPS, learn
from jobcast.models.regimes.numbers import Numbers, numbers_for, numbers_of
from jobcast.models.regimes.trajectories import ADAPTATIONS, UNKNOWN, Adaptation, sizes_ahead, training_of, whole

LEVEL = 0.9
BAR = "|"
"""Between the parts of a key, as it is saved."""
MOST_REMEMBERED = 4096
"""Jobs whose priors are kept at hand."""


@dataclass(frozen=True, slots=True)
class RunTime:
    """Seconds on the GPUs that a job asks for: the mean, and an interval that holds the truth with some probability."""

    mean_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class RegimeAhead:
    """A regime of which something is left: its epochs from now on, the mean, and an interval that holds the truth."""

    batch_size: int
    epochs: float
    low: float
    high: float


class RegimePrior(JsonModel):
    """How many regimes jobs like this one ran through, and how long those were; updated while the job runs.

    Parameters
    ----------
    seed : of the fit
    steps : of the variational fit
    calibration : which intervals are to hold the truth as often as they say, open or all; see `calibration`
    rules : adaptation by mode

    Attributes
    ----------
    numbers_ : by key (mode, model, batch size), by model and by mode
    levels_ : level of an interval that was asked for -> the level to compute so that finished jobs were covered
    jobs_ : how many it has learnt from
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    """

    name: ClassVar[str] = "regime"
    answers: ClassVar[Question] = Question.REGIMES
    algorithm: ClassVar[str] = "hierarchical"
    algorithms: ClassVar[Sequence[str]] = (algorithm,)

    def __init__(
        self,
        seed: int = 0,
        steps: int = STEPS,
        calibration: str = ALL,
        rules: Mapping[str, Adaptation] = ADAPTATIONS,
    ) -> None:
        if calibration not in (OPEN, ALL):
            raise RegistryError(f"regime: calibration {calibration!r} is not known; choose from {OPEN}, {ALL}")
        self.seed, self.steps, self.calibration, self.rules = seed, steps, calibration, rules
        self._priors: dict[tuple[object, ...], Prior] = {}

    def fit(
        self, finished: Iterable[tuple[Training, Sequence[Regime]]], from_s: float = 0.0, until_s: float = 0.0
    ) -> Self:
        """Learn from finished jobs.

        Parameters
        ----------
        finished : what was known of each job, and the regimes that it ran through
        from_s, until_s : when they were submitted, seconds from the epoch; kept for the registry

        Raises
        ------
        TrainingError
            No job could have changed its batch size.
        """
        jobs = [(training, tuple(regimes)) for training, regimes in finished]
        tables = Finished.of(jobs, self.rules)
        self.numbers_: Mapping[Key, Numbers] = numbers_of(tables, learn(tables, self.seed, self.steps))
        self.jobs_ = tables.jobs
        self.trained_from_s_, self.trained_until_s_ = from_s, until_s
        self._priors, self.levels_ = {}, {}
        self.levels_ = calibrated(self, jobs, self.calibration)
        return self

    def regimes(self, job: Job, progress: Progress) -> tuple[Regime, ...]:
        """Mean of what is left; see `domain.forecasts.RegimeForecasts`."""
        return self.left(training_of(job), progress)

    def left(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """Mean of what is left, over all numbers of regimes, the rest of the running one first."""
        return mean_regimes(training, progress, self._prior(training), self._ahead(training, progress))

    def trajectory(self, training: Training, progress: Progress) -> tuple[Regime, ...]:
        """All regimes from the beginning on."""
        return whole(progress, self.left(training, progress))

    def remaining_time(self, job: Job, progress: Progress, level: float = LEVEL) -> RunTime:
        """Seconds of progress that a job still needs.

        Parameters
        ----------
        job : a training job
        progress : how far it is
        level : probability that the interval shall hold
        """
        training = training_of(job)
        prior, ahead = self._prior(training), self._ahead(training, progress)
        mean = training.run_time_s(mean_regimes(training, progress, prior, ahead))
        low, high = self._interval(*time_nodes(training, progress, prior, ahead), level)
        # The shortest interval may leave a skewed mean outside.
        return RunTime(mean, min(low, mean), max(high, mean))

    def regimes_ahead(self, job: Job, progress: Progress) -> tuple[RegimeAhead, ...]:
        """What is left of a job by regime, the running one first; regimes that are hardly expected are left out.

        Each interval is of one regime by itself, see `remaining_time`.
        """
        training = training_of(job)
        prior, ahead = self._prior(training), self._ahead(training, progress)
        means = mean_regimes(training, progress, prior, ahead)
        epochs, weights = epoch_nodes(training, progress, prior, ahead)
        rows = []
        for mean, nodes in zip(means, epochs, strict=False):
            low, high = self._interval(nodes, weights, LEVEL)
            rows.append(RegimeAhead(mean.batch_size, mean.epochs, min(low, mean.epochs), max(high, mean.epochs)))
        return tuple(rows)

    def _interval(self, nodes: Floats, weights: Floats, level: float) -> tuple[float, float]:
        low, high = shortest(nodes, weights, np.array([stated(level, self.levels_)]))
        return float(low[0]), float(high[0])

    def left_quantile_s(self, job: Job, progress: Progress, level: float) -> float:
        """Seconds that the rest of a training job takes at most, with probability `level`."""
        return quantile(*self.nodes(training_of(job), progress), level)

    def nodes(self, training: Training, progress: Progress) -> tuple[Floats, Floats]:
        """The distribution of the seconds left, as values and weights; see `ahead.time_nodes`."""
        return time_nodes(training, progress, self._prior(training), self._ahead(training, progress))

    def _prior(self, training: Training) -> Prior:
        name = (training.mode, training.model, training.batch_size, training.epochs)
        found = self._priors.get(name)
        if found is None:
            # All at once: simpler than the oldest, and as rare.
            if len(self._priors) >= MOST_REMEMBERED:
                self._priors.clear()
            found = self._priors[name] = Prior.of(numbers_for(training, self.numbers_), training.epochs)
        return found

    def _ahead(self, training: Training, progress: Progress) -> tuple[int, ...]:
        """Batch sizes that may follow; as many as the rule goes on to, up to the declared number of regimes."""
        sizes = [regime.batch_size for regime in progress.regimes]
        most = len(sizes) + MOST_AHEAD
        if training.max_regimes is not None:
            most = min(most, max(training.max_regimes, len(sizes)))
        return sizes_ahead(training, self.rules.get(training.mode, UNKNOWN), sizes, most)

    def as_dict(self) -> dict[str, Any]:
        """See `JsonModel`. A user's own rules are not kept."""
        return {
            "seed": self.seed,
            "steps": self.steps,
            "calibration": self.calibration,
            "jobs": self.jobs_,
            "levels": {str(level): used for level, used in self.levels_.items()},
            "numbers": {_joined(key): numbers.as_dict() for key, numbers in self.numbers_.items()},
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """See `JsonModel`."""
        model = cls(saved["seed"], saved["steps"], saved["calibration"])
        known = saved["numbers"].items()
        model.numbers_ = {tuple(map(unquote, key.split(BAR))): Numbers.read(numbers) for key, numbers in known}
        model.jobs_ = saved["jobs"]
        model.levels_ = {float(level): used for level, used in saved["levels"].items()}
        return model


def _joined(key: Key) -> str:
    # A model's name is free text; a bar in it would make another key of it.
    return BAR.join(part.replace("%", "%25").replace(BAR, "%7C") for part in key)
