"""AccuracyCurve as MLflow serves it: one row a running job.

Accuracies that a model forecasts, looked at before a policy is told them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.answer_checks import failed, floats_of, shown
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.bad_answers import CURVES, BadAnswerError, BadAnswers, Reason
from jobcast.domain.errors import RegistryError
from jobcast.domain.tasks import AccuracyForecast
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.curves.finished import limits
from jobcast.models.predictor import ServedModel
from jobcast.traces.learning_curves import LearningCurve

if TYPE_CHECKING:
    import pandas as pd


def guarded_accuracies(forecast: AccuracyForecast, tally: BadAnswers, job_ids: Sequence[str] = ()) -> AccuracyForecast:
    """The same forecasts, but none (not a number, so that the job does not stop) where they cannot be.

    Means and standard deviations must be finite, no deviation below 0; a metric of which all seen values lie in 0 to 1,
    0 to 100 or above 0 stays there, and deviates by no more than that. An answer that cannot be read forecasts nothing
    of any job asked about, no more than one that raises.

    Parameters
    ----------
    forecast : asked
    tally : where bad answers are counted, one a job and question
    job_ids : names of jobs, where they are known
    """

    def answers(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        count = len(jobs)
        tally.checked(CURVES, count)
        try:
            # Copies: a model could write into what it is shown.
            mean, spread = _columns(forecast(jobs.copy(), seen.copy(), at.copy(), epochs.copy()), count)
        except Exception as error:  # whatever a model does wrong, the run goes on without it
            failed(tally, CURVES, error, answers=count)
            return np.full(count, np.nan), np.full(count, np.nan)
        bad = np.zeros(count, dtype=np.bool_)
        for reason, rows in _faults(mean, spread, seen):
            new = np.flatnonzero(rows & ~bad)
            if len(new):
                row = int(new[0])
                name = job_ids[jobs[row]] if len(job_ids) else f"number {jobs[row]}"
                what = f"job {name} after {at[row]} epochs: {mean[row]:g}, deviating by {spread[row]:g}"
                tally.bad(CURVES, reason, what, len(new))
            # An answer counts once, for the first reason that holds.
            bad |= rows
        return np.where(bad, np.nan, mean), np.where(bad, np.nan, spread)

    return answers


def _columns(answer: object, count: int) -> tuple[Floats, Floats]:
    """Means and standard deviations, (count,) each. Raises BadAnswerError."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise BadAnswerError(Reason.WRONG_SHAPE, f"{shown(answer)} in place of means and deviations")
    return floats_of(answer[0], (count,)), floats_of(answer[1], (count,))


def _faults(mean: Floats, spread: Floats, seen: Floats) -> tuple[tuple[Reason, Bools], ...]:
    """Reasons and the rows, (n,), that they hold for; a row may have several."""
    least, most = limits(seen)
    return (
        (Reason.NOT_FINITE, ~(np.isfinite(mean) & np.isfinite(spread))),
        (Reason.NOT_MONOTONE, spread < 0.0),  # an interval whose ends are not on both sides of its mean
        (
            Reason.OUT_OF_RANGE,
            (mean < least - tolerance.METRICS) | (mean > most + tolerance.METRICS) | (spread > most - least),
        ),
    )


MEDIAN = 0.5


class ServedAccuracyCurve(ServedModel):
    """Columns: `app`, `batch_size`; `metric`, JSON, validation metric of the epochs seen so far; `epoch`, JSON, their
    numbers (empty: 1, 2, ...); `epochs` of the whole run; `lr_milestones`, JSON, epochs after which the learning rate
    is cut (empty: none); `target`, a metric to reach (not a number: none).

    Answers the final metric, an interval that holds it with 90 %, the probability that the target is reached by the
    end, and the median of the epoch when (not a number: never, or no target).
    """

    inputs: Mapping[str, str] = {
        "app": "string",
        "batch_size": "long",
        "epoch": "string",
        "metric": "string",
        "epochs": "long",
        "lr_milestones": "string",
        "target": "double",
    }
    outputs: Mapping[str, str] = {
        "final": "double",
        "low": "double",
        "high": "double",
        "reach_probability": "double",
        "reach_epoch": "double",
    }

    # A run of 100 epochs that has seen four.
    shown: Mapping[str, Sequence[Any]] = {
        "app": ["cifar10"],
        "batch_size": [128],
        "epoch": ["[1, 2, 3, 4]"],
        "metric": ["[0.45, 0.6, 0.66, 0.75]"],
        "epochs": [100],
        "lr_milestones": ["[]"],
        "target": [0.9],
    }
    predictor: AccuracyCurve

    def predict(self, frame: "pd.DataFrame", params: Mapping[str, Any] | None = None) -> "pd.DataFrame":
        """Answers, one row for each job asked, in that order."""
        import pandas as pd

        if not len(frame):
            return pd.DataFrame(columns=list(self.outputs), index=frame.index, dtype=np.float64)
        rows: list[Any] = list(frame[list(self.inputs)].itertuples(index=False))
        curves, epochs = [_curve(row) for row in rows], [int(row.epochs) for row in rows]
        forecast = self.predictor.forecast(curves, epochs)
        chance, when = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        targets = frame["target"].to_numpy(np.float64)
        for target in np.unique(targets[np.isfinite(targets)]):
            asked = targets == target
            chance[asked] = np.asarray(forecast.reach_probability(float(target)))[asked]
            when[asked] = np.asarray(forecast.reach_epoch(float(target), MEDIAN))[asked]
        when[~np.isfinite(when)] = np.nan
        answers = (forecast.final_mean, forecast.final_low, forecast.final_high, chance, when)
        return pd.DataFrame(dict(zip(self.outputs, answers, strict=True)), index=frame.index)


def _curve(row: Any) -> LearningCurve:
    """What a row tells of a job. Raises RegistryError where that cannot be read."""
    try:
        metric = np.array(json.loads(row.metric), dtype=np.float64)
        # No numbers: 1, 2, ...
        epoch = np.array(json.loads(row.epoch or "[]") or range(1, metric.size + 1), dtype=np.int64)
        milestones = tuple(sorted({int(one) for one in json.loads(row.lr_milestones or "[]")}))
    except (ValueError, TypeError) as error:
        raise RegistryError(f"accuracy-curve: a row cannot be read ({error}); see the example") from error
    steps = np.diff(epoch, prepend=0)
    # json reads NaN and nested lists without complaint.
    if metric.ndim != 1 or not metric.size or not np.isfinite(metric).all():
        raise RegistryError("accuracy-curve: metric must be a list of finite numbers, one at least")
    if epoch.shape != metric.shape or (steps < 1).any() or int(row.epochs) < epoch[-1]:
        raise RegistryError("accuracy-curve: epoch must ascend from 1 or later to at most epochs, one for each metric")
    return LearningCurve(str(row.app), int(row.batch_size), epoch, metric, milestones)
