"""How good the predictors are on a later window: the figures of `jobcast evaluate --json`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import bin_labels, horizon_label
from jobcast.features.corpus import STEP_S, Corpus, Mask, grid
from jobcast.features.targets import load_within
from jobcast.models import baselines, scores
from jobcast.models.job_duration import JobDuration, bins_of, group_counts
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.traces.table import Trace

MINUTE_S = 60.0
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


def evaluate_loads(
    model: NewLoad, histories: Mapping[str, PoolHistory], from_s: float, until_s: float, step_s: float = STEP_S
) -> dict[str, Any]:
    """Figures of NewLoad by horizon, all rows pooled and by pool, with the rules to beat.

    Parameters
    ----------
    histories : events of the pools that count, from before `from_s` to `until_s` at least
    from_s, until_s : seconds from the epoch; instants on the grid from `from_s` on whose window does not reach
        past `until_s` are scored
    step_s : grid

    Raises
    ------
    TrainingError
        There is nothing to score.
    """
    blocks = {}
    for horizon, horizon_min in enumerate(model.horizons_min_):
        horizon_s = MINUTE_S * horizon_min
        ticks_s = grid(from_s, until_s, step_s)
        ticks_s = ticks_s[ticks_s + horizon_s <= until_s]
        loads = {pool: load_within(history, ticks_s, [horizon_s])[:, 0] for pool, history in histories.items()}
        estimates = {pool: model.predict(history, ticks_s)[:, horizon] for pool, history in histories.items()}
        block = _load_block(loads, estimates)
        block["windows"] = model.windows_[horizon]
        block["baselines"] = {
            name: _load_block(loads, {pool: rule(history, ticks_s, horizon_s) for pool, history in histories.items()})
            for name, rule in baselines.LOAD_RULES.items()
        }
        for told in block["baselines"].values():
            del told["by_pool"]
        blocks[horizon_label(horizon_min)] = block
    return {"horizons": _checked(blocks)}


def evaluate_durations(
    model: JobDuration, trace: Trace, from_s: float, until_s: float, pools: Sequence[str] | None = None
) -> dict[str, Any]:
    """Figures of JobDuration over the jobs of a window, with the rules to beat.

    Parameters
    ----------
    trace : jobs, from before `from_s` on: what had finished by a job's submission is its history
    from_s, until_s : jobs submitted in [from_s, until_s) and ended by `until_s` are scored, seconds from the epoch
    pools : those that count; None = all

    Returns
    -------
    The figures of `scores.bin_scores`; `unknown`, how many jobs had not ended; `baselines`.

    Raises
    ------
    TrainingError
        There is nothing to score.
    """
    trace = trace.between(None, until_s)
    submitted = trace.submit_s >= from_s
    if pools is not None:
        submitted &= trace.jobs["pool"].is_in(list(pools)).to_numpy()
    scored = submitted & (trace.end_s <= until_s)
    if not scored.any():
        raise TrainingError(f"{trace.name}: no job of the window ended in it; widen --from and --until")
    labels = bin_labels(model.horizons_min)
    truth = bins_of(trace.duration_s, model.horizons_min)[scored]
    counts = model.counts(trace)[scored]
    forecast, probability = model.predict(counts), model.predict_proba(counts)
    return {
        **scores.bin_scores(truth, forecast, probability, labels),
        "unknown": int((submitted & ~scored).sum()),
        "baselines": _duration_baselines(model, trace, scored, truth),
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


def _scored(corpus: Corpus, span: tuple[float, float], horizon: int, without: Sequence[str]) -> Mask:
    left_out = [index for index, pool in enumerate(corpus.pools) if pool in without]
    rows: Mask = corpus.scored(*span, horizon) & ~np.isin(corpus.pool_index, left_out)
    return rows


def _checked(blocks: dict[str, Any]) -> dict[str, Any]:
    """Blocks by horizon, of which one at least has rows; the others' figures are None."""
    if not any(block["n"] for block in blocks.values()):
        raise TrainingError(
            f"there is nothing to score: no pool has a window of {' or '.join(blocks)} within the time to score; "
            f"widen --from and --until"
        )
    return blocks


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
    return _checked(blocks)


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


def _load_block(loads: Mapping[str, Floats], estimates: Mapping[str, Floats]) -> dict[str, Any]:
    by_pool = {pool: scores.coverage(loads[pool], estimates[pool]) for pool in loads}
    pooled = scores.coverage(*(np.concatenate([np.empty(0), *of.values()]) for of in (loads, estimates)))
    name, worst = scores.worst_pool(by_pool)
    n = sum(len(load) for load in loads.values())
    return {"n": n, **pooled, "worst_pool": worst, "worst_pool_name": name, "by_pool": by_pool}


def _duration_baselines(
    model: JobDuration, trace: Trace, scored: Mask, truth: NDArray[np.int64]
) -> dict[str, dict[str, Any]]:
    labels = bin_labels(model.horizons_min)
    counts = group_counts(trace, model.horizons_min, baselines.LIKE_WIDTH)[scored]
    told = {
        name: scores.bin_rule_scores(truth, rule(counts, model.prior_), labels)
        for name, rule in baselines.DURATION_RULES.items()
    }
    for figures in told.values():
        del figures["by_bin"]
    return told
