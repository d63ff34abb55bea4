"""How good WillJobsArrive is on a later window.

How recall differs from hour to hour and from pool to pool. SIA, appendix B, Figures 21 and 22.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import STEP_S, Corpus, Mask
from jobcast.models import baselines, scores
from jobcast.models.evaluation.intervals import DRAWS, arrival_intervals, checked, duration_groups
from jobcast.models.will_jobs_arrive import WillJobsArrive

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def recall_per_pool_hour(arrives: Mask, declared: Mask, pool_index: NDArray[Any], tick_s: Floats) -> dict[str, Any]:
    """Recall within each hour of each pool: errors that hang together make it 0 or 1. SIA, Figure 21.

    Parameters
    ----------
    arrives, declared : (n_rows,) what came and what was forecast
    pool_index, tick_s : (n_rows,) pool and instant of each row, seconds from the epoch

    Returns
    -------
    hours : pool-hours in which at least one window has arrivals; the others have no recall
    mean, p10 ... p90, cdf : see `distribution`
    share_0, share_1 : of those hours in which none, all of the windows with arrivals were forecast
    extremes_if_independent : what `share_0 + share_1` would be if each window of an hour were forecast or missed by
        itself, with the recall of all; well above it, errors are correlated in time

    Examples
    --------
    One pool, two hours: both windows of the first are found, one of two of the second.

    >>> tick_s = np.array([0.0, 300.0, 3600.0, 3900.0, 7200.0])
    >>> arrives, declared = np.array([1, 1, 1, 1, 0], bool), np.array([1, 1, 1, 0, 0], bool)
    >>> told = recall_per_pool_hour(arrives, declared, np.zeros(5, int), tick_s)
    >>> told["hours"], told["mean"], told["share_0"], told["share_1"], told["cdf"]
    (2, 0.75, 0.0, 0.5, [{'recall': 0.5, 'share': 0.5}, {'recall': 1.0, 'share': 1.0}])
    """
    # Recall knows only windows with arrivals.
    came = np.flatnonzero(arrives)
    hour = np.floor(tick_s[came] / HOUR_S).astype(np.int64)
    cell = np.stack([np.asarray(pool_index)[came].astype(np.int64), hour])
    _, position, windows = np.unique(cell, axis=1, return_inverse=True, return_counts=True)
    found = np.bincount(position.ravel(), weights=declared[came].astype(np.float64), minlength=len(windows))
    recall = found / windows
    # The recall of all, with which each window is found or missed by itself.
    whole = float(declared[came].mean()) if len(came) else np.nan
    apart = whole**windows + (1.0 - whole) ** windows
    return {
        "hours": len(recall),
        "share_0": scores.mean(recall == 0.0),
        "share_1": scores.mean(recall == 1.0),
        "extremes_if_independent": scores.mean(apart),
        **distribution(recall),
    }


def recall_by_pool(recalls: Mapping[str, float | None]) -> dict[str, Any]:
    """Distribution of the pools' recalls, each pool counted once; pools without arrivals have none. SIA, Figure 22.

    >>> recall_by_pool({"a": 0.25, "b": 0.75, "c": None})["cdf"]
    [{'recall': 0.25, 'share': 0.5}, {'recall': 0.75, 'share': 1.0}]
    """
    known = np.array([recall for recall in recalls.values() if recall is not None], np.float64)
    return {"pools": len(known), **distribution(known)}


def distribution(recall: Floats) -> dict[str, Any]:
    """`mean`, quantiles `p10` to `p90`, and `cdf`: each recall that occurs and the share at or below it."""
    values, counts = np.unique(recall, return_counts=True)
    below = np.cumsum(counts) / len(recall)
    return {
        "mean": scores.mean(recall),
        **{f"p{100 * q:g}": float(np.quantile(recall, q)) if len(recall) else None for q in QUANTILES},
        "cdf": [{"recall": float(at), "share": float(share)} for at, share in zip(values, below, strict=True)],
    }


CURVE_POINTS = 200
"""Points of a precision-recall curve that are kept for plots."""


def evaluate_arrivals(
    model: WillJobsArrive,
    corpus: Corpus,
    from_s: float | None = None,
    until_s: float | None = None,
    without: Sequence[str] = (),
    *,
    mean_min: Mapping[str, float] | None = None,
    rules: Mapping[str, Floats] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Any]:
    """Figures of WillJobsArrive by horizon, all rows pooled and by pool, with the rules to beat.

    Parameters
    ----------
    model : a trained model
    corpus : rows of the pools that count
    from_s, until_s : what is scored, seconds from the epoch: rows from `from_s` on whose window does not reach
        past `until_s`; None takes all of the corpus
    without : pools to leave out of one more set of figures
    mean_min : mean run time of each pool's jobs, minutes, which groups the pools; None: no groups
    rules : name -> probabilities of all rows, shape (N, H), to tell beside the baselines, such as `PaperRecipe`'s
    draws, seed : of the intervals (days drawn with replacement); 0 draws leave them out

    Returns
    -------
    `horizons`: horizon -> figures, None where a horizon has no row or a figure is undefined. Beside the contract's
    there are `reliability`, `recall_per_pool_hour`, `recall_by_pool` (see `recalls`), `by_duration_group` (see
    `groups`) and `intervals` (see `arrival_intervals`).

    `without`: {`pools`, `horizons`}, of all other pools; `without_bots`: the same without the pools whose arrivals
    the model found to run like clockwork, where there are any. Where no bot is left the F1 threshold is the one that
    was chosen, in training, without bots.

    Raises
    ------
    RegistryError
        The corpus has other features or horizons than the model.
    TrainingError
        There is nothing to score.
    """
    probability, span = _probability(model, corpus), _span(corpus, from_s, until_s)

    def blocks(left_out: Sequence[str]) -> dict[str, Any]:
        picked = Picked(model, corpus, probability, span, tuple(left_out), rules or {})
        labels = map(horizon_label, model.horizons_min_)
        each = (_horizon_block(picked, h, mean_min or {}, draws, seed) for h in range(len(model.horizons_min_)))
        return checked(dict(zip(labels, each, strict=True)))

    result: dict[str, Any] = {"horizons": blocks(())}
    if without:
        result["without"] = {"pools": list(without), "horizons": blocks(without)}
    # Those among the scored pools; where all of these are bots, nothing would be left without them.
    bots = tuple(pool for pool in model.bot_pools_ if pool in corpus.pools)
    if bots and len(bots) < len(corpus.pools):
        result["without_bots"] = {"pools": list(bots), "horizons": blocks(bots)}
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """What one set of figures is computed from: forecasts for the rows of a window, some pools left out."""

    model: WillJobsArrive
    corpus: Corpus
    probability: Floats
    span: tuple[float, float]
    without: tuple[str, ...] = ()
    rules: Mapping[str, Floats] = field(default_factory=dict)

    def rows(self, horizon: int) -> Mask:
        """Rows that count for a horizon, shape (N,)."""
        left_out = [index for index, pool in enumerate(self.corpus.pools) if pool in self.without]
        return self.corpus.scored(*self.span, horizon) & ~np.isin(self.corpus.pool_index, left_out)

    def thresholds(self, horizon: int) -> tuple[float, float]:
        """For reports and for the gate; the former as chosen without bots where none is left."""
        model = self.model
        # The other threshold was chosen for exactly these rows.
        human = bool(model.bot_pools_) and set(model.bot_pools_) <= set(self.without)
        best_f1 = model.thresholds_f1_others_ if human else model.thresholds_f1_
        return float(best_f1[horizon]), float(model.thresholds_gate_[horizon])


def arrival_curves(
    model: WillJobsArrive, corpus: Corpus, from_s: float | None = None, until_s: float | None = None
) -> dict[str, dict[str, list[dict[str, float]]]]:
    """Points for plots, by horizon.

    `reliability` (see `scores.reliability`), `precision_recall`, and the distributions `recall_per_pool_hour` and
    `recall_by_pool` (see `recalls`). Parameters and errors as `evaluate_arrivals`; at most `CURVE_POINTS` points of
    precision and recall, by descending threshold.
    """
    picked = Picked(model, corpus, _probability(model, corpus), _span(corpus, from_s, until_s))
    return {
        horizon_label(horizon_min): _curves(picked, horizon) for horizon, horizon_min in enumerate(model.horizons_min_)
    }


def _curves(picked: Picked, horizon: int) -> dict[str, list[dict[str, float]]]:
    corpus, rows = picked.corpus, picked.rows(horizon)
    arrives, forecast, index = corpus.arrives[rows, horizon], picked.probability[rows, horizon], corpus.pool_index[rows]
    declared = forecast >= picked.thresholds(horizon)[0]
    pools = {corpus.pools[i]: scores.mean(declared[arrives & (index == i)]) for i in np.unique(index)}
    return {
        "reliability": scores.reliability(arrives, forecast),
        "precision_recall": _precision_recall(arrives, forecast),
        "recall_per_pool_hour": recall_per_pool_hour(arrives, declared, index, corpus.tick_s[rows])["cdf"],
        "recall_by_pool": recall_by_pool(pools)["cdf"],
    }


def _probability(model: WillJobsArrive, corpus: Corpus) -> Floats:
    model.check_features(corpus.feature_names)
    if tuple(corpus.horizons_min) != tuple(model.horizons_min_):
        raise RegistryError(
            f"{model.name}: forecasts {list(model.horizons_min_)} minutes, the features are of "
            f"{list(corpus.horizons_min)}; build them with the model's horizons"
        )
    return model.predict_proba(corpus.X)


def _span(corpus: Corpus, from_s: float | None, until_s: float | None) -> tuple[float, float]:
    if not len(corpus):
        raise TrainingError("there is nothing to score: the window holds no pool with enough jobs; widen it")
    first_s, last_s = float(corpus.tick_s.min()), float(corpus.tick_s.max())
    return first_s if from_s is None else from_s, last_s + STEP_S if until_s is None else until_s


def _horizon_block(
    picked: Picked, horizon: int, mean_min: Mapping[str, float], draws: int, seed: int
) -> dict[str, Any]:
    corpus, rows, thresholds = picked.corpus, picked.rows(horizon), picked.thresholds(horizon)
    arrives, forecast = corpus.arrives[rows, horizon], picked.probability[rows, horizon]
    index, tick_s = corpus.pool_index[rows], corpus.tick_s[rows]

    def block_of(pools: Sequence[str]) -> dict[str, Any]:
        mine = np.isin(index, [corpus.pools.index(pool) for pool in pools])
        return arrival_block(arrives[mine], forecast[mine], *thresholds)

    by_pool = {pool: block_of([pool]) for pool in (corpus.pools[i] for i in np.unique(index))}
    groups = duration_groups(by_pool, mean_min)
    return {
        **arrival_block(arrives, forecast, *thresholds),
        "baselines": {name: _rule_block(arrives, said) for name, said in _rules(picked, horizon, rows)},
        "by_pool": by_pool,
        "by_duration_group": {label: {"pools": list(pools), **block_of(pools)} for label, pools in groups.items()},
        "recall_per_pool_hour": recall_per_pool_hour(arrives, forecast >= thresholds[0], index, tick_s),
        "recall_by_pool": recall_by_pool({pool: block["recall"] for pool, block in by_pool.items()}),
        "reliability": scores.reliability(arrives, forecast),
        "intervals": arrival_intervals(arrives, forecast, *thresholds, tick_s, draws, seed),
    }


def _rules(picked: Picked, horizon: int, rows: Mask) -> Iterator[tuple[str, Floats]]:
    """What each rule to beat says of some rows."""
    for name, rule in baselines.ARRIVAL_RULES.items():
        yield name, rule(picked.corpus, horizon)[rows]
    for name, said in picked.rules.items():
        yield name, said[rows, horizon]


def arrival_block(arrives: Mask, forecast: Floats, threshold: float, gate_threshold: float) -> dict[str, Any]:
    """Figures of some rows: what came and what was forecast, shape (n_rows,), under two thresholds."""
    declared = forecast >= threshold
    return {
        "n": len(arrives),
        "base_rate": scores.mean(arrives),
        **scores.detection(arrives, declared),
        "pr_auc": scores.pr_auc(arrives, forecast),
        "roc_auc": scores.roc_auc(arrives, forecast),
        "ece": scores.ece(arrives, forecast),
        "threshold": threshold,
        "idle": _idle(arrives, declared, forecast),
        "gate": {"threshold": gate_threshold, **scores.gate(arrives, forecast >= gate_threshold)},
    }


def _idle(arrives: Mask, declared: Mask, forecast: Floats) -> dict[str, scores.Figure]:
    """Windows without arrivals: detection by the same threshold, and, whatever the threshold, average precision."""
    return {**scores.idle_detection(arrives, declared), "pr_auc": scores.pr_auc(~arrives, -forecast)}


def _rule_block(arrives: Mask, forecast: Floats) -> dict[str, Any]:
    declared = forecast >= baselines.EVEN_ODDS
    return {
        **scores.detection(arrives, declared),
        "pr_auc": scores.pr_auc(arrives, forecast),
        "idle": _idle(arrives, declared, forecast),
    }


def _precision_recall(arrives: Mask, forecast: Floats) -> list[dict[str, float]]:
    """Precision and recall by descending threshold, thinned evenly; empty where nothing arrives."""
    from sklearn.metrics import precision_recall_curve

    if not arrives.any():
        return []
    precision, recall, threshold = precision_recall_curve(arrives, forecast)
    # Turned round: scikit-learn gives thresholds ascending.
    kept = np.unique(np.linspace(0, len(threshold) - 1, CURVE_POINTS).round().astype(np.int64))[::-1]
    return [
        {"threshold": float(threshold[i]), "precision": float(precision[i]), "recall": float(recall[i])} for i in kept
    ]
