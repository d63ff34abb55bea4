"""Jobs to learn duration bins from, and the folds, in order of time, that settings are chosen by.

Forecasts of later jobs by what was learnt from earlier ones, and the algorithm that they speak for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.errors import TrainingError
from jobcast.domain.horizons import bin_labels
from jobcast.features.durations import burst_numbers, duration_rows, edges_s
from jobcast.features.queueing import queued, shows_queues
from jobcast.models.scores import bin_scores, likeliest_bin
from jobcast.traces.table import Trace

MOST_JOBS = 300_000
"""Jobs that are learnt from: the last ones. Three weeks halve a job's weight, so that earlier ones count for little."""
FOLD_EDGES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the training time between which the folds lie; each learns from all that ended before it. Few and long: a
model serves for weeks, in which the mix of bins drifts away from what it has learnt."""
FEWEST_JOBS = 50
"""Jobs that must have ended before a fold, else it is left out."""


COLUMNS = ("rows", "bins", "submit_s", "start_s", "end_s", "duration_s", "pool", "burst", "position")
"""What `DurationData` always holds of each job."""


class QueuedRows:
    """Rows of the jobs of a trace as pools short of GPUs would have shown them: made once, by who asks first.

    Parameters
    ----------
    trace : without starts; see `features.queueing`
    horizons_min : inner edges of the bins in minutes
    wanted : (n_jobs,) whose rows to give
    """

    def __init__(self, trace: Trace, horizons_min: Sequence[float], wanted: Bools) -> None:
        self._asked = trace, horizons_min, wanted

    @cached_property
    def rows(self) -> Floats:
        """(n_wanted, F), see `features.durations.duration_columns`."""
        trace, horizons_min, wanted = self._asked
        return duration_rows(queued(trace), horizons_min, wanted)


@dataclass(frozen=True, slots=True, eq=False)
class DurationData:
    """Jobs in order of submission, with their rows.

    Attributes
    ----------
    name : of the trace
    horizons_min : inner edges of the bins in minutes
    rows : (n_jobs, F), see `features.durations.duration_columns`
    bins : (n_jobs,) where run times fall; of no meaning before `known_s`
    submit_s, start_s, end_s, duration_s : (n_jobs,) seconds; ends as of when they were known
    pool : (n_jobs,) names
    burst : (n_jobs,) numbers of their bursts; see `features.durations.burst_key`
    position : (n_jobs,) which of the jobs that the data was made of they are
    lag_s : seconds within which the trace tells ends, see `Trace.lag_s`: who is not heard of may have ended before
    queues : rows of all of those as queues would have shown them, where the trace has no starts and so shows none
    """

    name: str
    horizons_min: tuple[float, ...]
    rows: Floats
    bins: Ints
    submit_s: Floats
    start_s: Floats
    end_s: Floats
    duration_s: Floats
    pool: NDArray[Any]
    burst: Ints
    position: Ints
    lag_s: float = 0.0
    queues: QueuedRows | None = None

    @classmethod
    def of(cls, trace: Trace, horizons_min: Sequence[float], from_s: float | None = None) -> Self:
        """Jobs of a trace submitted from an instant on, at most `MOST_JOBS`; those before it are history."""
        wanted = trace.submit_s >= (-np.inf if from_s is None else from_s)
        # The first ones go: the last weigh most.
        wanted[: max(0, len(wanted) - MOST_JOBS)] = False
        submit_s, start_s, end_s, duration_s = (
            part[wanted] for part in (trace.submit_s, trace.start_s, trace.known_s, trace.duration_s)
        )
        lag_s = trace.lag_s
        return cls(
            trace.name,
            tuple(horizons_min),
            duration_rows(trace, horizons_min, wanted),
            _bins(start_s, end_s, duration_s, horizons_min, lag_s),
            submit_s,
            start_s,
            end_s,
            duration_s,
            trace.jobs["pool"].to_numpy()[wanted],
            burst_numbers(trace)[wanted],
            np.arange(int(wanted.sum())),
            lag_s,
            # Made lazily: only boosters read these rows, and they cost as much as the others.
            None if shows_queues(trace) else QueuedRows(trace, horizons_min, wanted),
        )

    def __len__(self) -> int:
        return len(self.bins)

    @property
    def n_bins(self) -> int:
        """B."""
        return len(self.horizons_min) + 1

    def among(self, chosen: Bools | Ints) -> "DurationData":
        """Some of the jobs, by a mask or by positions."""
        # `queues` stays whole; `position` finds a job's row there.
        return replace(self, **{name: getattr(self, name)[chosen] for name in COLUMNS})

    def seen_twice(self) -> "DurationData":
        """Each job as the trace shows it, and as a queue would have; not in order of submission."""
        assert self.queues is not None
        # All jobs as they are shown, then all of them again as queued.
        twice = self.among(np.tile(np.arange(len(self)), 2))
        return replace(twice, rows=np.vstack([self.rows, self.queues.rows[self.position]]))

    @property
    def settled_s(self) -> Floats:
        """When the bins of jobs are known at the latest, (n_jobs,); see `last_bin_told_s`."""
        return last_bin_told_s(self.start_s, self.horizons_min, self.lag_s)

    @property
    def known_s(self) -> Floats:
        """When the bins of jobs are known, (n_jobs,): when they end, or when the last bin begins, if they run then."""
        return np.minimum(self.end_s, self.settled_s)

    def known(self, until_s: float) -> "DurationData":
        """Jobs whose bins were known before an instant. Raises TrainingError when there is none."""
        chosen = self.known_s < until_s
        if not chosen.any():
            raise TrainingError(f"job-duration: no job of {self.name} ended in the training time; widen the window")
        return self.among(chosen)

    def folds(self, until_s: float) -> "Iterator[tuple[DurationData, DurationData, float]]":
        """Pairs of jobs to learn from and later jobs to score, and the instant between them, in order of time.

        What is learnt from was known before the fold begins; what is scored was known before `until_s`.
        """
        for known, scored, from_s in self.fold_masks(until_s):
            yield self.among(known), self.among(scored), from_s

    def fold_masks(self, until_s: float) -> Iterator[tuple[Bools, Bools, float]]:
        """As `folds`, which jobs they are, (n_jobs,)."""
        # Jobs are in order of submission.
        begin_s = float(self.submit_s[0])
        edges = [begin_s + share * (until_s - begin_s) for share in FOLD_EDGES]
        for from_s, to_s in pairwise(edges):
            # By what was known then, not by what was submitted: jobs that ran on are no lesson yet.
            known = self.known_s < from_s
            scored = (self.submit_s >= from_s) & (self.submit_s < to_s) & (self.known_s < until_s)
            if known.sum() >= FEWEST_JOBS and scored.any():
                yield known, scored, from_s


def last_bin_told_s(start_s: Floats, horizons_min: Sequence[float], lag_s: float) -> Floats:
    """When jobs that still run are known to be of the last bin, (n_jobs,), if ends are told up to `lag_s` s late."""
    # Any sooner, a job of which nothing is heard may have ended long ago.
    return np.asarray(start_s + edges_s(horizons_min)[-1] + lag_s)


def _bins(start_s: Floats, end_s: Floats, duration_s: Floats, horizons_min: Sequence[float], lag_s: float) -> Ints:
    """Bins as they are known when jobs end, or when the last one begins and they have not."""
    longest = end_s > last_bin_told_s(start_s, horizons_min, lag_s)
    return np.where(longest, len(horizons_min), bins_of(duration_s, horizons_min))


def bins_of(duration_s: NDArray[Any], horizons_min: Sequence[float]) -> Ints:
    """Indices of the duration bins, shape of `duration_s`; see `domain.horizons.duration_bin`.

    >>> bins_of(np.array([300.0, 300.5, 43201.0]), (5, 60, 720)).tolist()
    [0, 1, 3]
    """
    # Bins are closed above, as `domain.horizons.duration_bin` has them.
    return np.searchsorted(edges_s(horizons_min), duration_s, side="left").astype(np.int64)


def shares_of_bins(bins: Ints, n_bins: int) -> Floats:
    """Share of the jobs in each bin, (B,)."""
    counts = np.bincount(bins, minlength=n_bins)
    return np.asarray(counts / counts.sum(), np.float64)


Forecaster = Callable[[DurationData, DurationData, float], Floats]
"""Probabilities (n_scored, B), or several, (n_scored, K, B), from jobs to learn from, jobs to score, and the instant
between them."""
SHOWN = ("n", "log_loss", "accuracy", "macro_f1", "ece", "under_predicted")
"""Figures of the table."""


@dataclass(frozen=True, slots=True, eq=False)
class OutOfFold:
    """What later jobs were and were forecast to be.

    Attributes
    ----------
    proba : forecaster's name -> (n_jobs, B)
    bins, fold : (n_jobs,) true bins, and numbers of the folds in order of time
    job : (n_jobs,) positions in the data that the folds are of
    """

    proba: Mapping[str, Floats]
    bins: Ints
    fold: Ints
    job: Ints = field(default_factory=lambda: np.empty(0, np.int64))


def out_of_fold(data: DurationData, until_s: float, forecasters: Mapping[str, Forecaster]) -> OutOfFold:
    """Forecasts over `DurationData.folds`; without rows where the time is too short for folds."""
    proba: dict[str, list[Floats]] = {name: [] for name in forecasters}
    job, fold = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for number, (known, scored, from_s) in enumerate(data.fold_masks(until_s)):
        for name, forecaster in forecasters.items():
            proba[name].append(forecaster(data.among(known), data.among(scored), from_s))
        job.append(np.flatnonzero(scored))
        fold.append(np.full(len(job[-1]), number, np.int64))
    joined = {name: np.concatenate(parts) if parts else np.empty((0, data.n_bins)) for name, parts in proba.items()}
    which = np.concatenate(job)
    return OutOfFold(joined, data.bins[which], np.concatenate(fold), which)


def selection_table(scored: OutOfFold, horizons_min: tuple[float, ...]) -> list[dict[str, float | str]]:
    """Figures of each forecaster by fold and over all of them (fold `all`), the least log loss over all first."""
    labels = bin_labels(horizons_min)
    rows: list[dict[str, float | str]] = []
    for name, proba in scored.proba.items():
        for fold in (*np.unique(scored.fold).tolist(), "all"):
            chosen = np.ones(len(scored.bins), np.bool_) if fold == "all" else scored.fold == fold
            figures = bin_scores(scored.bins[chosen], likeliest_bin(proba[chosen]), proba[chosen], labels)
            rows.append({"algorithm": name, "fold": str(fold), **{key: figures[key] for key in SHOWN}})
    overall = {row["algorithm"]: row["log_loss"] for row in rows if row["fold"] == "all"}
    return sorted(rows, key=lambda row: (overall[row["algorithm"]], row["algorithm"]))
