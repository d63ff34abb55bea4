"""Windows of a trace: what a predictor is trained on, and what comes after it."""

import math
from dataclasses import dataclass, replace

from jobcast.domain.clock import DAY_S, HOUR_S
from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.domain.times import iso
from jobcast.traces.table import Trace

MIN_TRAIN_JOBS = 100
"""Pools with fewer training jobs neither train nor count in scores."""
SHORTEST_TRAINING_S = DAY_S
"""A predictor that has not seen each hour of the day once knows nothing of the others."""


@dataclass(frozen=True, slots=True)
class Split:
    """Training in [train_from_s, train_until_s), tests in [train_until_s, test_until_s), epoch seconds."""

    train_from_s: float
    train_until_s: float
    test_until_s: float


def gpu_jobs(trace: Trace) -> Trace:
    """The jobs that ask for GPUs, which all predictors are about. Raises TrainingError where a trace has no such."""
    kept = trace.on_gpus
    if len(trace) and not len(kept):
        raise TrainingError(f"{trace.source.path}: none of its {len(trace):,} jobs asks for GPUs; give another trace")
    return kept


def split_by_share(trace: Trace, train_share: float) -> Split:
    """Split a trace at the midnight (UTC) nearest to a share of its span.

    Parameters
    ----------
    trace : the jobs
    train_share : share of the time from the first to the last submission that trains, in (0, 1)

    Raises
    ------
    ConfigError
        The share is out of range.
    TrainingError
        A part would hold no jobs, or the training part less than a day.
    """
    if not 0.0 < train_share < 1.0:
        raise ConfigError(f"train_share must be in (0, 1), got {train_share}; 0.7 trains on the first 70 %")
    if not len(trace):
        raise TrainingError(f"{trace.name}: no jobs to train on; widen the window or give another trace")
    submit_s = trace.submit_s
    first_s, last_s = float(submit_s[0]), float(submit_s[-1])
    # days stay whole, so that no rhythm of a day is cut
    midnight_s = round((first_s + train_share * (last_s - first_s)) / DAY_S) * DAY_S
    if midnight_s <= first_s:
        raise TrainingError(
            f"{trace.name}: {(last_s - first_s) / HOUR_S:.1f} h from first to last job, too short to split "
            f"at a share of {train_share}; give a trace of several days"
        )
    # whole seconds outwards, so that all jobs are within
    split = Split(float(math.floor(first_s)), midnight_s, math.floor(last_s) + 1.0)
    check_split(trace, split)
    return split


def check_split(trace: Trace, split: Split) -> None:
    """Raise a TrainingError unless both parts of a split hold what they need."""
    check_training(trace, split.train_from_s, split.train_until_s)
    check_tests(trace, split.train_until_s, split.test_until_s)


def check_training(trace: Trace, from_s: float | None, until_s: float | None) -> None:
    """Check the window that a predictor is to be trained on; None leaves a side open.

    Raises
    ------
    TrainingError
        It holds no jobs, or is shorter than a day between its first job and its end.
    """
    window = trace.between(from_s, until_s)
    if not len(window):
        raise TrainingError(
            f"{trace.name}: no jobs to train on {_between(from_s, until_s)}; "
            f"the trace has jobs {_extent(trace)}: widen the window"
        )
    last_s = float(window.submit_s[-1]) if until_s is None else until_s
    length_s = last_s - max(float(window.submit_s[0]), -math.inf if from_s is None else from_s)
    if length_s < SHORTEST_TRAINING_S:
        raise TrainingError(
            f"{trace.name}: {length_s / HOUR_S:.1f} h to train on {_between(from_s, until_s)}, at least "
            f"{SHORTEST_TRAINING_S / HOUR_S:.0f} h are needed; widen the window or give a longer trace"
        )


def check_tests(trace: Trace, from_s: float | None, until_s: float | None) -> None:
    """Raise a TrainingError where the window that a predictor is to be scored on holds no jobs."""
    if not len(trace.between(from_s, until_s)):
        raise TrainingError(
            f"{trace.name}: no jobs to test on {_between(from_s, until_s)}; "
            f"the trace has jobs {_extent(trace)}: train on less of it or move the window"
        )


def _between(from_s: float | None, until_s: float | None) -> str:
    """Name of a window, e.g. from 2017-10-02T00:00:00Z until the end."""
    since = "from the start" if from_s is None else f"from {iso(math.floor(from_s))}"
    return f"{since} until {'the end' if until_s is None else iso(math.floor(until_s))}"


def _extent(trace: Trace) -> str:
    submit_s = trace.submit_s
    return f"from {iso(math.floor(submit_s[0]))} to {iso(math.floor(submit_s[-1]))}" if len(trace) else "at no time"


def pools_to_learn_from(training: Trace, min_jobs: int) -> tuple[str, ...]:
    """Pools with at least `min_jobs` jobs, names ascending.

    Raises
    ------
    TrainingError
        There is none.
    """
    # sorted by name below: counting keeps no order
    counts = training.jobs["pool"].value_counts()
    names = counts.filter(counts["count"] >= min_jobs)["pool"].sort().to_list()
    if not names:
        most = max(counts["count"].to_list(), default=0)
        raise TrainingError(
            f"{training.source.path}: too short to train on: no pool has {min_jobs} jobs in the training time, the "
            f"busiest has {most}; bring a longer trace, or `jobcast train` with a lower --min-jobs"
        )
    return tuple(names)


def finished_jobs(trace: Trace, from_s: float | None, until_s: float | None) -> tuple[Trace, float, float]:
    """The jobs on GPUs of a window that were over when it ended, its beginning and its end, seconds from the epoch.

    By default the whole trace, until its last job was over. Raises TrainingError where no job is left.
    """
    window = trace.between(from_s, until_s).on_gpus
    # an end that was not known by then must not count
    known_s = math.inf if until_s is None else until_s
    over = replace(window, jobs=window.jobs.filter(window.ended & (window.known_s <= known_s)))
    if not len(over):
        raise TrainingError(f"{trace.name}: no job of the window was over when it ended; widen the window")
    begin_s = float(over.submit_s[0]) if from_s is None else from_s
    return over, begin_s, float(over.end_s.max()) if until_s is None else until_s
