"""Jobs to learn duration bins from, and the folds, in order of time, that settings are chosen by."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import TrainingError
from jobcast.features.durations import duration_rows, edges_s
from jobcast.traces.table import Trace

MOST_JOBS = 300_000
"""Jobs that are learnt from: the last ones. Three weeks halve a job's weight, so that earlier ones count for little."""
FOLD_EDGES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the training time between which the folds lie; each learns from all that ended before it. Few and long: a
model serves for weeks, in which the mix of bins drifts away from what it has learnt."""
FEWEST_JOBS = 50
"""Jobs that must have ended before a fold, else it is left out."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class DurationData:
    """Jobs in order of submission, with their rows.

    Attributes
    ----------
    name : of the trace
    horizons_min : inner edges of the bins in minutes
    rows : (n_jobs, F), see `features.durations.duration_columns`
    bins : (n_jobs,) where run times fall; of no meaning for a job that has not ended
    submit_s, end_s, duration_s : (n_jobs,) seconds
    """

    name: str
    horizons_min: tuple[float, ...]
    rows: Floats
    bins: Ints
    submit_s: Floats
    end_s: Floats
    duration_s: Floats

    @classmethod
    def of(cls, trace: Trace, horizons_min: Sequence[float], from_s: float | None = None) -> Self:
        """Jobs of a trace submitted from an instant on, at most `MOST_JOBS`; those before it are history."""
        wanted = trace.submit_s >= (-np.inf if from_s is None else from_s)
        wanted[: max(0, len(wanted) - MOST_JOBS)] = False
        rows = duration_rows(trace, horizons_min, wanted)
        submit_s, end_s, duration_s = (part[wanted] for part in (trace.submit_s, trace.end_s, trace.duration_s))
        return cls(
            trace.name, tuple(horizons_min), rows, bins_of(duration_s, horizons_min), submit_s, end_s, duration_s
        )

    def __len__(self) -> int:
        return len(self.bins)

    @property
    def n_bins(self) -> int:
        """B."""
        return len(self.horizons_min) + 1

    def among(self, chosen: Bools) -> "DurationData":
        """Some of the jobs."""
        return DurationData(
            self.name,
            self.horizons_min,
            self.rows[chosen],
            self.bins[chosen],
            self.submit_s[chosen],
            self.end_s[chosen],
            self.duration_s[chosen],
        )

    def ended(self, until_s: float) -> "DurationData":
        """Jobs that ended before an instant. Raises TrainingError when there is none."""
        chosen = self.end_s < until_s
        if not chosen.any():
            raise TrainingError(f"job-duration: no job of {self.name} ended in the training time; widen the window")
        return self.among(chosen)

    def folds(self, until_s: float) -> "Iterator[tuple[DurationData, DurationData, float]]":
        """Pairs of jobs to learn from and later jobs to score, and the instant between them, in order of time.

        What is learnt from ended before the fold begins; what is scored ended before `until_s`.
        """
        begin_s = float(self.submit_s[0])
        edges = [begin_s + share * (until_s - begin_s) for share in FOLD_EDGES]
        for from_s, to_s in pairwise(edges):
            known = self.end_s < from_s
            scored = (self.submit_s >= from_s) & (self.submit_s < to_s) & (self.end_s < until_s)
            if known.sum() >= FEWEST_JOBS and scored.any():
                yield self.among(known), self.among(scored), from_s


def bins_of(duration_s: NDArray[Any], horizons_min: Sequence[float]) -> Ints:
    """Indices of the duration bins, shape of `duration_s`; see `domain.horizons.duration_bin`.

    >>> bins_of(np.array([300.0, 300.5, 43201.0]), (5, 60, 720)).tolist()
    [0, 1, 3]
    """
    return np.searchsorted(edges_s(horizons_min), duration_s, side="left").astype(np.int64)


def shares_of_bins(bins: Ints, n_bins: int) -> Floats:
    """Share of the jobs in each bin, (B,)."""
    counts = np.bincount(bins, minlength=n_bins)
    return np.asarray(counts / counts.sum(), np.float64)
