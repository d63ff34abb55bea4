"""Which algorithm forecasts arrivals best on later weeks: the choice behind `auto`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import Corpus
from jobcast.models import scores
from jobcast.models.algorithms import ALGORITHMS, Settings
from jobcast.models.arrival_folds import Learner, OutOfFold, Step, averaged, out_of_fold
from jobcast.models.average import MEMBERS, AverageSettings

FALLBACK = next(iter(ALGORITHMS))
"""Where the training time is too short for folds: the first."""
SMALLEST_LOSS = 1e-9
"""Log loss of a fold in which nothing, or everything, was bound to happen."""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Forecasts out of fold of all algorithms.

    Attributes
    ----------
    forecasts : algorithm -> its forecasts by horizon, in the order in which equals are preferred
    horizons_min : (H,) horizons in minutes
    """

    forecasts: Mapping[str, Sequence[OutOfFold]]
    horizons_min: tuple[float, ...]

    def winner(self, folds: int | None = None) -> str:
        """Least mean over horizons of the relative log loss, on the first so many folds; None: on all.

        The relative log loss of a fold is its log loss divided by that of always saying the fold's own share of
        windows with arrivals, so that long horizons, of which less can be known, do not outweigh short ones.
        """
        means = {name: self._mean_loss(parts, folds) for name, parts in self.forecasts.items()}
        known = {name: mean for name, mean in means.items() if mean is not None}
        return min(known, key=lambda name: known[name]) if known else FALLBACK

    def _mean_loss(self, parts: Sequence[OutOfFold], folds: int | None) -> float | None:
        losses = [relative_log_loss(cut_to(told, folds)) for told in parts]
        return scores.mean(np.array([loss for loss in losses if loss is not None]))

    def table(self) -> list[dict[str, Any]]:
        """Figures of each algorithm by horizon, means over folds; the mean over all horizons last, the winner first."""
        rows: list[dict[str, Any]] = []
        rank: dict[str, float] = {}
        for name, parts in self.forecasts.items():
            named = zip(self.horizons_min, parts, strict=True)
            figures = {horizon_label(k): _figures(told) for k, told in named if len(told)}
            if figures:
                blocks = list(figures.values())
                figures["all"] = {key: _mean([block[key] for block in blocks]) for key in blocks[0]}
                overall = figures["all"]["relative_log_loss"]
                rank[name] = math.inf if overall is None else overall
            rows += [{"algorithm": name, "horizon": horizon, **block} for horizon, block in figures.items()]
        return sorted(rows, key=lambda row: rank[row["algorithm"]])


def select(
    corpus: Corpus,
    from_s: float,
    until_s: float,
    seed: int = 0,
    settings: Mapping[str, Settings] | None = None,
    done: Step | None = None,
) -> Selection:
    """Forecast the folds of [from, until) by every algorithm.

    Parameters
    ----------
    corpus : rows of all pools
    from_s, until_s : training time, seconds from the epoch
    seed : of all draws
    settings : algorithm -> settings other than the defaults
    done : called as each algorithm's horizon is done
    """
    chosen = dict(settings or {})
    told: dict[str, list[OutOfFold]] = {}
    for name in ALGORITHMS:
        if name == "average" and averages_the_others(chosen):
            told[name] = averaged([told[member] for member in MEMBERS])
        else:
            told[name] = out_of_fold(Learner(name, seed, chosen.get(name)), corpus, from_s, until_s, done)
    return Selection(told, tuple(corpus.horizons_min))


def averages_the_others(settings: Mapping[str, Settings]) -> bool:
    """Whether the average's members are what the algorithms of their names are."""
    average = settings.get("average", AverageSettings())
    return all(
        settings.get(name, ALGORITHMS[name].settings()) == getattr(average, name.replace("-", "_")) for name in MEMBERS
    )


def cut_to(told: OutOfFold, folds: int | None) -> OutOfFold:
    """Forecasts of the first so many folds."""
    return told if folds is None else told.picked(told.fold < folds)


def relative_log_loss(told: OutOfFold) -> float | None:
    """Mean over folds of the log loss divided by that of the fold's share; None without a fold of both classes."""
    return _mean([_log_loss(part) / _entropy(part) for part in _folds(told) if _entropy(part) > SMALLEST_LOSS])


def _figures(told: OutOfFold) -> dict[str, float | None]:
    parts = _folds(told)
    return {
        "relative_log_loss": relative_log_loss(told),
        "log_loss": _mean([_log_loss(part) for part in parts]),
        "pr_auc": _mean([scores.pr_auc(part.arrives, part.probability) for part in parts]),
        "ece": _mean([scores.ece(part.arrives, part.probability) for part in parts]),
        "folds": float(len(parts)),
        "rows": float(len(told)),
    }


def _folds(told: OutOfFold) -> list[OutOfFold]:
    return [told.picked(told.fold == number) for number in np.unique(told.fold)]


def _log_loss(told: OutOfFold) -> float:
    of_truth = np.where(told.arrives, told.probability, 1.0 - told.probability)
    return float(-np.log(np.maximum(of_truth, SMALLEST_LOSS)).mean())


def _entropy(told: OutOfFold) -> float:
    share = np.full(len(told), told.arrives.mean())
    return _log_loss(OutOfFold(told.row, told.fold, told.arrives, share))


def _mean(values: Sequence[float | None]) -> float | None:
    return scores.mean(np.array([value for value in values if value is not None], np.float64))
