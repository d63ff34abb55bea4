"""Jobs to learn duration bins from, and the folds, in order of time, that settings are chosen by.

Forecasts of later jobs by what was learnt from earlier ones, and the algorithm that they speak for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.errors import TrainingError
from jobcast.domain.horizons import bin_labels
from jobcast.features.durations import duration_rows, edges_s
from jobcast.models.duration_booster import best_blend
from jobcast.models.scores import bin_scores, likeliest_bin
from jobcast.traces.table import Trace

MOST_JOBS = 300_000
"""Jobs that are learnt from: the last ones. Three weeks halve a job's weight, so that earlier ones count for little."""
FOLD_EDGES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the training time between which the folds lie; each learns from all that ended before it. Few and long: a
model serves for weeks, in which the mix of bins drifts away from what it has learnt."""
FEWEST_JOBS = 50
"""Jobs that must have ended before a fold, else it is left out."""


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


Forecaster = Callable[[DurationData, DurationData, float], Floats]
"""Probabilities (n_scored, B) from (jobs to learn from, jobs to score, the instant between them)."""
SHOWN = ("n", "log_loss", "accuracy", "macro_f1", "ece", "under_predicted")
"""Figures of the table."""


@dataclass(frozen=True, slots=True, eq=False)
class OutOfFold:
    """What later jobs were and were forecast to be.

    Attributes
    ----------
    proba : forecaster's name -> (n_jobs, B)
    bins, fold : (n_jobs,) true bins, and numbers of the folds in order of time
    """

    proba: Mapping[str, Floats]
    bins: Ints
    fold: Ints


def out_of_fold(data: DurationData, until_s: float, forecasters: Mapping[str, Forecaster]) -> OutOfFold:
    """Forecasts over `DurationData.folds`; without rows where the time is too short for folds."""
    proba: dict[str, list[Floats]] = {name: [np.empty((0, data.n_bins))] for name in forecasters}
    bins, fold = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for number, (known, scored, from_s) in enumerate(data.folds(until_s)):
        for name, forecaster in forecasters.items():
            proba[name].append(forecaster(known, scored, from_s))
        bins.append(scored.bins)
        fold.append(np.full(len(scored), number, np.int64))
    joined = {name: np.concatenate(parts) for name, parts in proba.items()}
    return OutOfFold(joined, np.concatenate(bins), np.concatenate(fold))


def blended_forward(booster: Floats, shares: Floats, bins: Ints, fold: Ints) -> Floats:
    """Blended forecasts of each fold, (n_jobs, B), with the blend that did best on the folds before it."""
    proba = np.empty_like(booster)
    for number in np.unique(fold):
        now, before = fold == number, fold < number
        blend = best_blend(booster[before], shares[before], bins[before])
        proba[now] = blend(booster[now], shares[now])
    return proba


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
