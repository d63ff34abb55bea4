"""Stage evaluate: the trained predictors on the test window, beside their baselines."""

import io
from collections.abc import Mapping
from typing import Any

import polars as pl

from jobcast.features.corpus import Corpus
from jobcast.models.evaluation import arrival_curves, evaluate_arrivals, evaluate_durations, evaluate_loads
from jobcast.models.predictors import load_predictor
from jobcast.pipelines.curves import CurvePoints, by_kind
from jobcast.pipelines.files import write_json, write_text
from jobcast.pipelines.stages.context import Context
from jobcast.traces.history import pool_histories

HEADLINE = (
    "base_rate",
    "precision",
    "recall",
    "f1",
    "pr_auc",
    "roc_auc",
    "ece",
    "coverage",
    "coverage_nonzero",
    "over",
)
"""Figures of a horizon that `dvc metrics show` lists; the rest lies in processed/evaluation.json."""
DURATION_HEADLINE = ("accuracy", "macro_f1", "log_loss", "ece", "under_predicted")


def work(context: Context, item: str = "") -> None:
    """Score every algorithm of every predictor; curves are those of the first algorithm."""
    split, _ = context.split()
    begin, end = split.train_until_s, split.test_until_s
    trace, corpus = context.trace().between(None, end), Corpus.read(context.corpus)
    histories = {name: history for name, history in pool_histories(trace).items() if name in corpus.pools}
    train = context.params.train
    figures: dict[str, Any] = {}
    curves = CurvePoints()
    for algorithm in train.algorithms("will-jobs-arrive"):
        model: Any = load_predictor("will-jobs-arrive", context.model("will-jobs-arrive", algorithm))
        figures.setdefault("will-jobs-arrive", {})[algorithm] = evaluate_arrivals(model, corpus, begin, end)
        if not curves.reliability:
            curves = by_kind(arrival_curves(model, corpus, begin, end), model.feature_importances)
    for algorithm in train.algorithms("new-load"):
        model = load_predictor("new-load", context.model("new-load", algorithm))
        scored = evaluate_loads(model, histories, begin, end, context.params.featurize.step_s)
        figures.setdefault("new-load", {})[algorithm] = scored
    for algorithm in train.algorithms("job-duration"):
        model = load_predictor("job-duration", context.model("job-duration", algorithm))
        figures.setdefault("job-duration", {})[algorithm] = evaluate_durations(model, trace, begin, end, corpus.pools)
    write_json(context.root / "processed/evaluation.json", {"figures": figures, "curves": curves.to_dict()})
    write_json(context.root / "processed/metrics/evaluate.json", _headlines(figures))
    for name, table in (
        ("precision_recall", curves.precision_at_recall()),
        ("reliability", curves.observed_by_forecast()),
    ):
        text = io.StringIO()
        pl.DataFrame(table).write_csv(text)
        write_text(context.root / f"processed/plots/{name}.csv", text.getvalue())
    context.write_receipt("evaluate", {"input": context.input_hash()})
    first = figures["will-jobs-arrive"][train.algorithms("will-jobs-arrive")[0]]["horizons"]
    shown = ", ".join(f"{name} F1 {block['f1'] or 0:.2f}" for name, block in first.items())
    context.console.note(f"evaluate: will-jobs-arrive {shown}")


def _headlines(figures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    return {
        predictor: {algorithm: _headline(scored) for algorithm, scored in by_algorithm.items()}
        for predictor, by_algorithm in figures.items()
    }


def _headline(scored: Mapping[str, Any]) -> dict[str, Any]:
    if "horizons" not in scored:
        return {key: scored[key] for key in DURATION_HEADLINE if scored.get(key) is not None}
    return {
        horizon: {key: block[key] for key in HEADLINE if block.get(key) is not None}
        for horizon, block in scored["horizons"].items()
    }
