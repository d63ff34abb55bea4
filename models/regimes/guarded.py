"""Regimes that a model forecasts, looked at before a policy is told them.

RegimePrior as MLflow serves it: one row a running job.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite
from numbers import Integral
from typing import Any

from jobcast.domain import tolerance
from jobcast.domain.answer_checks import failed, floats_of, shown
from jobcast.domain.bad_answers import REGIMES, BadAnswerError, BadAnswers, Reason
from jobcast.domain.errors import RegistryError
from jobcast.domain.forecasts import RegimeForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.training import Progress, Regime, Training
from jobcast.models.predictor import Frame, ServedModel
from jobcast.models.regimes.prior import RegimePrior
from jobcast.models.regimes.trajectories import Restatement, epochs_left, training_of

MOST_REGIMES = 1_000
"""Policies keep a table as wide as the longest answer."""


class GuardedRegimes:
    """What a rule says, as far as it can be; in place of anything else, and of what it raises, the restatement rule.

    Parameters
    ----------
    rule : asked first
    tally : where bad answers are counted
    """

    def __init__(self, rule: RegimeForecasts, tally: BadAnswers) -> None:
        self._rule, self._tally, self._instead = rule, tally, Restatement()
        self._replaced: set[str] = set()  # jobs of whom the last answer was none

    def regimes(self, job: Job, progress: Progress) -> tuple[Regime, ...]:
        """What is left; see `domain.forecasts.RegimeForecasts`."""
        self._tally.checked(REGIMES)
        try:
            answer = self._rule.regimes(job, progress)
            check_regimes(answer, training_of(job), progress)
        except Exception as error:  # whatever a model does wrong, the run goes on without it
            failed(self._tally, REGIMES, error, f"job {job.job_id} after {progress.epochs:g} epochs: ")
            self._replaced.add(job.job_id)
            return self._instead.regimes(job, progress)
        self._replaced.discard(job.job_id)
        return answer

    def left_quantile_s(self, job: Job, progress: Progress, level: float) -> float | None:
        """What the rule says, None where it cannot be, or where its regimes could not."""
        ask: Callable[..., object] | None = getattr(self._rule, "left_quantile_s", None)
        # The restatement rule tells no distribution: who stands in for a model answers alone.
        if ask is None or job.job_id in self._replaced:
            return None
        self._tally.checked(REGIMES)
        try:
            left_s = float(floats_of(ask(job, progress, level), ()))
            if not 0 <= left_s < inf:
                raise BadAnswerError(Reason.OUT_OF_RANGE, f"{left_s:g} seconds left")
        except Exception as error:  # as above
            failed(self._tally, REGIMES, error, f"job {job.job_id} after {progress.epochs:g} epochs: ")
            return None
        return left_s


def check_regimes(answer: object, training: Training, progress: Progress) -> None:
    """Raise BadAnswerError unless an answer can be what is left of a job.

    >>> job, now = Training("LM", 10, 40, "gns", {10: 60.0, 20: 40.0}), Progress(4.0, (Regime(10, 4.0),))
    >>> check_regimes((Regime(10, 16.0), Regime(20, 20.0)), job, now)
    >>> check_regimes((Regime(10, 16.0),), job, now)
    Traceback (most recent call last):
    jobcast.domain.bad_answers.BadAnswerError: inconsistent: regimes of 16 epochs in all, 36 are left
    """
    if not isinstance(answer, tuple) or not all(isinstance(one, Regime) for one in answer):
        raise BadAnswerError(Reason.WRONG_SHAPE, f"{shown(answer)} in place of regimes")
    if not 0 < len(answer) <= MOST_REGIMES:
        raise BadAnswerError(Reason.WRONG_SHAPE, f"{len(answer)} regimes")
    total, left = sum(_epochs(regime, training) for regime in answer), epochs_left(training, progress)
    first, now = answer[0].batch_size, progress.batch_size
    if first != now:
        raise BadAnswerError(Reason.INCONSISTENT, f"the first regime is of batch size {first}, the job runs at {now}")
    if abs(total - left) > tolerance.REGIME_EPOCHS * training.epochs:
        raise BadAnswerError(Reason.INCONSISTENT, f"regimes of {total:g} epochs in all, {left:g} are left")


def _epochs(regime: Regime, training: Training) -> float:
    """How long one regime lasts. Raises BadAnswerError where it cannot be."""
    size, epochs = regime.batch_size, float(floats_of(regime.epochs, ()))
    if not isinstance(size, Integral):
        raise BadAnswerError(Reason.NO_NUMBER, f"a regime of batch size {shown(size)}")
    if size not in training.epoch_s:
        raise BadAnswerError(Reason.OUT_OF_RANGE, f"a regime of batch size {shown(size)}, which is not profiled")
    if not isfinite(epochs):
        raise BadAnswerError(Reason.NOT_FINITE, f"a regime of {epochs:g} epochs")
    if epochs < 0:
        raise BadAnswerError(Reason.OUT_OF_RANGE, f"a regime of {epochs:g} epochs")
    return epochs


class ServedRegimePrior(ServedModel):
    """Columns: `model`, `mode`, `batch_size`, `epochs`; `epoch_s`, JSON, batch size -> seconds an epoch takes; and
    `regimes`, JSON, [[batch size, epochs], ...] run so far, the last one running.

    Answers the mean seconds that are left, an interval that holds them with 90 %, and the regimes that are left.
    """

    inputs: Mapping[str, str] = {
        "model": "string",
        "mode": "string",
        "batch_size": "long",
        "epochs": "long",
        "epoch_s": "string",
        "regimes": "string",
    }
    outputs: Mapping[str, str] = {"remaining_s": "double", "low_s": "double", "high_s": "double", "left": "string"}

    # A job that has not started.
    shown: Mapping[str, Sequence[Any]] = {
        "model": ["LM"],
        "mode": ["gns"],
        "batch_size": [10],
        "epochs": [40],
        "epoch_s": ['{"10": 60, "20": 40}'],
        "regimes": ["[[10, 0]]"],
    }
    predictor: RegimePrior

    def answer(self, frame: Frame, params: Mapping[str, Any]) -> Iterable[Any]:
        """Answers, one row for each job asked, in that order."""
        rows = [self._answer(row) for row in frame[list(self.inputs)].itertuples(index=False)]
        return list(zip(*rows, strict=True)) or [()] * len(self.outputs)

    def _answer(self, row: Any) -> tuple[float, float, float, str]:
        try:
            epoch_s = {int(size): float(seconds) for size, seconds in json.loads(row.epoch_s).items()}
            seen = tuple(Regime(int(size), float(epochs)) for size, epochs in json.loads(row.regimes))
        except (ValueError, TypeError, AttributeError) as error:
            raise RegistryError(f"regime: epoch_s or regimes cannot be read ({error}); see the example") from error
        if not seen or any(regime.batch_size not in epoch_s for regime in seen):
            raise RegistryError("regime: regimes must name at least one batch size, all of them in epoch_s")
        training = Training(row.model, int(row.batch_size), int(row.epochs), row.mode, dict(sorted(epoch_s.items())))
        progress = Progress(sum(regime.epochs for regime in seen), seen)
        # Only its training is read.
        job = Job(0, "0", "", 0.0, 1, training=training)
        time = self.predictor.remaining_time(job, progress)
        left = [[regime.batch_size, regime.epochs] for regime in self.predictor.regimes(job, progress)]
        return time.mean_s, time.low_s, time.high_s, json.dumps(left)
