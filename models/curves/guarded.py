"""Accuracies that a model forecasts, looked at before a policy is told them."""

from collections.abc import Sequence

import numpy as np

from jobcast.domain.answer_checks import failed, floats_of, shown
from jobcast.domain.bad_answers import CURVES, BadAnswerError, BadAnswers, Reason
from jobcast.domain.tasks import AccuracyForecast, Bools, Floats, Ints
from jobcast.models.curves.metrics import limits

DUST = 1e-9
"""By which a metric may leave its limits, for rounding."""


def guarded_accuracies(forecast: AccuracyForecast, told: BadAnswers, job_ids: Sequence[str] = ()) -> AccuracyForecast:
    """The same forecasts, but none (not a number, so that the job does not stop) where they cannot be.

    Means and standard deviations must be finite, no deviation below 0; a metric of which all seen values lie in 0 to 1,
    0 to 100 or above 0 stays there, and deviates by no more than that. An answer that cannot be read forecasts nothing
    of any job asked about, no more than one that raises.

    Parameters
    ----------
    forecast : asked
    told : where bad answers are counted, one a job and question
    job_ids : names of jobs, where they are known
    """

    def answers(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        count = len(jobs)
        told.checked(CURVES, count)
        try:
            mean, spread = _columns(forecast(jobs.copy(), seen.copy(), at.copy(), epochs.copy()), count)
        except Exception as error:  # whatever a model does wrong, the run goes on without it
            failed(told, CURVES, error, answers=count)
            return np.full(count, np.nan), np.full(count, np.nan)
        bad = np.zeros(count, dtype=np.bool_)
        for reason, rows in _faults(mean, spread, seen):
            new = np.flatnonzero(rows & ~bad)
            if len(new):
                row = int(new[0])
                name = job_ids[jobs[row]] if len(job_ids) else f"number {jobs[row]}"
                what = f"job {name} after {at[row]} epochs: {mean[row]:g}, deviating by {spread[row]:g}"
                told.bad(CURVES, reason, what, len(new))
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
        (Reason.OUT_OF_RANGE, (mean < least - DUST) | (mean > most + DUST) | (spread > most - least)),
    )
