"""How good WillJobsArrive is on a later window."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import STEP_S, Corpus, Mask
from jobcast.models import baselines, scores
from jobcast.models.evaluation.blocks import checked
from jobcast.models.will_jobs_arrive import WillJobsArrive

CURVE_POINTS = 200
"""Points of a precision-recall curve that are kept for plots."""
Floats = NDArray[Any]


def evaluate_arrivals(
    model: WillJobsArrive,
    corpus: Corpus,
    from_s: float | None = None,
    until_s: float | None = None,
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """Figures of WillJobsArrive by horizon, all rows pooled and by pool, with the rules to beat.

    Parameters
    ----------
    model : a trained model
    corpus : rows of the pools that count
    from_s, until_s : what is scored, seconds from the epoch: rows from `from_s` on whose window does not reach
        past `until_s`; None takes all of the corpus
    without : pools to leave out of a second set of figures

    Returns
    -------
    `horizons`: horizon -> figures, None where a horizon has no row or a figure is undefined; with `without` also
    `without`: {`pools`, `horizons`}.

    Raises
    ------
    RegistryError
        The corpus has other features or horizons than the model.
    TrainingError
        There is nothing to score.
    """
    probability = _probability(model, corpus)
    span = _span(corpus, from_s, until_s)
    told: dict[str, Any] = {"horizons": _arrival_blocks(model, corpus, probability, span, ())}
    if without:
        blocks = _arrival_blocks(model, corpus, probability, span, without)
        told["without"] = {"pools": list(without), "horizons": blocks}
    return told


def arrival_curves(
    model: WillJobsArrive, corpus: Corpus, from_s: float | None = None, until_s: float | None = None
) -> dict[str, dict[str, list[dict[str, float]]]]:
    """Points for plots, by horizon: `reliability` (see `scores.reliability`) and `precision_recall`.

    Parameters and errors as `evaluate_arrivals`; at most `CURVE_POINTS` points a curve, by descending threshold.
    """
    probability = _probability(model, corpus)
    span = _span(corpus, from_s, until_s)
    curves = {}
    for horizon, horizon_min in enumerate(model.horizons_min_):
        rows = _scored(corpus, span, horizon, ())
        arrives, forecast = corpus.arrives[rows, horizon], probability[rows, horizon]
        curves[horizon_label(horizon_min)] = {
            "reliability": scores.reliability(arrives, forecast),
            "precision_recall": _precision_recall(arrives, forecast),
        }
    return curves


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


def _scored(corpus: Corpus, span: tuple[float, float], horizon: int, without: Sequence[str]) -> Mask:
    left_out = [index for index, pool in enumerate(corpus.pools) if pool in without]
    rows: Mask = corpus.scored(*span, horizon) & ~np.isin(corpus.pool_index, left_out)
    return rows


def _arrival_blocks(
    model: WillJobsArrive, corpus: Corpus, probability: Floats, span: tuple[float, float], without: Sequence[str]
) -> dict[str, Any]:
    blocks = {}
    for horizon, horizon_min in enumerate(model.horizons_min_):
        rows = _scored(corpus, span, horizon, without)
        arrives, forecast = corpus.arrives[rows, horizon], probability[rows, horizon]
        thresholds = float(model.thresholds_f1_[horizon]), float(model.thresholds_gate_[horizon])
        block = _arrival_block(arrives, forecast, *thresholds)
        block["baselines"] = {
            name: _rule_block(arrives, rule(corpus, horizon)[rows]) for name, rule in baselines.ARRIVAL_RULES.items()
        }
        index = corpus.pool_index[rows]
        block["by_pool"] = {
            corpus.pools[i]: _arrival_block(arrives[index == i], forecast[index == i], *thresholds)
            for i in np.unique(index)
        }
        blocks[horizon_label(horizon_min)] = block
    return checked(blocks)


def _arrival_block(arrives: Mask, forecast: Floats, threshold: float, gate_threshold: float) -> dict[str, Any]:
    declared = forecast >= threshold
    return {
        "n": len(arrives),
        "base_rate": scores.mean(arrives),
        **scores.detection(arrives, declared),
        "pr_auc": scores.pr_auc(arrives, forecast),
        "roc_auc": scores.roc_auc(arrives, forecast),
        "ece": scores.ece(arrives, forecast),
        "threshold": threshold,
        "idle": scores.idle_detection(arrives, declared),
        "gate": {"threshold": gate_threshold, **scores.gate(arrives, forecast >= gate_threshold)},
    }


def _rule_block(arrives: Mask, forecast: Floats) -> dict[str, Any]:
    declared = forecast >= baselines.EVEN_ODDS
    return {
        **scores.detection(arrives, declared),
        "pr_auc": scores.pr_auc(arrives, forecast),
        "idle": scores.idle_detection(arrives, declared),
    }


def _precision_recall(arrives: Mask, forecast: Floats) -> list[dict[str, float]]:
    """Precision and recall by descending threshold, thinned evenly; empty where nothing arrives."""
    from sklearn.metrics import precision_recall_curve

    if not arrives.any():
        return []
    precision, recall, threshold = precision_recall_curve(arrives, forecast)
    kept = np.unique(np.linspace(0, len(threshold) - 1, CURVE_POINTS).round().astype(np.int64))[::-1]
    return [
        {"threshold": float(threshold[i]), "precision": float(precision[i]), "recall": float(recall[i])} for i in kept
    ]
