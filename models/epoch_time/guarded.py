"""Seconds an epoch that a model forecasts, looked at before a policy is told them."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.answer_checks import failed, floats_of
from jobcast.domain.bad_answers import EPOCHS, BadAnswers, Reason
from jobcast.models.epoch_time.shape import Floats

MOST_FASTER, MOST_SLOWER = 1e6, 1e3
"""Than a job's slowest profile. More GPUs are not always faster (see docs/profiles.md), so no order is asked for; but
between the slowest GPU alone and all GPUs of the fastest node lie some thousands, not millions."""


def slowest_s(profiled_s: Floats) -> Floats:
    """What is believed where nothing is: every configuration takes as long as the job's slowest.

    Parameters
    ----------
    profiled_s : (n_jobs, n_kinds, most_gpus) seconds an epoch, infinite where a job cannot run

    >>> slowest_s(np.array([[[9.0, 6.0], [20.0, np.inf]]])).tolist()
    [[[20.0, 20.0], [20.0, inf]]]
    """
    runs = np.isfinite(profiled_s)
    slowest: Floats = np.where(runs, profiled_s, -np.inf).max(axis=(1, 2), keepdims=True)
    return np.where(runs, slowest, np.inf)


def guarded_epoch_s(
    forecast: Callable[[], object], profiled_s: Floats, told: BadAnswers, job_ids: Sequence[str]
) -> Floats:
    """(n_jobs, n_kinds, most_gpus) what is forecast, the job's slowest profile where that cannot be.

    Times must be finite, above 0, and within `MOST_FASTER` and `MOST_SLOWER`. Where a job cannot run nothing is
    forecast: they are infinite there.

    Parameters
    ----------
    forecast : asked once, for an array of the shape of `profiled_s`
    profiled_s : true seconds an epoch, infinite where a job cannot run
    told : where bad answers are counted, one a job and configuration
    job_ids : (n_jobs,)
    """
    runs, slowest = np.isfinite(profiled_s), slowest_s(profiled_s)
    told.checked(EPOCHS, int(runs.sum()))
    try:
        epoch_s = floats_of(forecast(), profiled_s.shape)
    except Exception as error:  # whatever a model does wrong, the run goes on without it
        failed(told, EPOCHS, error, answers=int(runs.sum()))
        return slowest
    bad = ~runs
    for reason, wrong in _faults(epoch_s, slowest):
        found = np.argwhere(wrong & ~bad)
        if len(found):
            job, kind, column = found[0].tolist()
            what = f"job {job_ids[job]} on {column + 1} GPUs of kind {kind}: {epoch_s[job, kind, column]:g} s"
            told.bad(EPOCHS, reason, what, len(found))
        bad |= wrong
    return np.where(bad, slowest, epoch_s)


def _faults(epoch_s: Floats, slowest: Floats) -> tuple[tuple[Reason, NDArray[np.bool_]], ...]:
    """Reasons and the configurations, of the shape of `epoch_s`, that they hold for."""
    beyond = (epoch_s < slowest / MOST_FASTER) | (epoch_s > slowest * MOST_SLOWER)
    return (Reason.NOT_FINITE, ~np.isfinite(epoch_s)), (Reason.OUT_OF_RANGE, (epoch_s <= 0.0) | beyond)
