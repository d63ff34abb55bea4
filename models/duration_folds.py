"""Forecasts of later jobs by what was learnt from earlier ones, and the algorithm that they speak for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.horizons import bin_labels
from jobcast.models.duration_blend import best_blend
from jobcast.models.duration_data import DurationData
from jobcast.models.scores import bin_scores, likeliest_bin

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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
