"""Stage evaluate: the trained predictors on the test window, beside their baselines."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from jobcast.features.corpus import Corpus
from jobcast.models.evaluation import arrival_curves, evaluate_arrivals, evaluate_durations, evaluate_loads
from jobcast.models.evaluation.ablation import PAPER_RECIPE, PaperRecipe, arrival_ablation
from jobcast.models.evaluation.intervals import mean_durations_min
from jobcast.models.predictors import load_predictor
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.curves import CurvePoints, by_kind
from jobcast.pipelines.files import write_json, write_text
from jobcast.pipelines.stages.context import Context
from jobcast.traces.history import pool_histories
from jobcast.traces.table import Trace

ABLATION_STRIDE = 9
"""One training row in so many teaches the twins of the ablation, of which there are many."""
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
    arrivals, curves = _arrivals(context, trace.between(split.train_from_s, begin), corpus, begin, end)
    figures: dict[str, Any] = {"will-jobs-arrive": arrivals}
    for algorithm in train.algorithms("new-load"):
        model: Any = load_predictor("new-load", context.model("new-load", algorithm))
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
        write_text(context.root / f"processed/plots/{name}.csv", pl.DataFrame(table).write_csv())
    context.write_receipt("evaluate", {"input": context.input_hash()})
    first = figures["will-jobs-arrive"][train.algorithms("will-jobs-arrive")[0]]["horizons"]
    shown = ", ".join(f"{name} F1 {block['f1'] or 0:.2f}" for name, block in first.items())
    context.console.note(f"evaluate: will-jobs-arrive {shown}")


def _arrivals(
    context: Context, training: Trace, corpus: Corpus, begin: float, end: float
) -> tuple[dict[str, Any], CurvePoints]:
    """Figures of every algorithm of WillJobsArrive, and the curves and the ablation of the first."""
    train, later = context.params.train, corpus.of_rows(corpus.tick_s >= begin)
    mean_min = mean_durations_min(training)
    rules = {PAPER_RECIPE: PaperRecipe(seed=train.seed).fit(corpus, begin).predict_proba(later.X)}
    models: dict[str, Any] = {
        algorithm: load_predictor("will-jobs-arrive", context.model("will-jobs-arrive", algorithm))
        for algorithm in train.algorithms("will-jobs-arrive")
    }
    figures = {
        algorithm: evaluate_arrivals(model, later, begin, end, mean_min=mean_min, rules=rules)
        for algorithm, model in models.items()
    }
    twin = WillJobsArrive(miss_share=train.miss_share, seed=train.seed)
    step_s = ABLATION_STRIDE * context.params.featurize.step_s
    ablation = arrival_ablation(twin, corpus, begin, begin, end, train_step_s=step_s, mean_min=mean_min)
    algorithm, model = next(iter(models.items()))
    figures[algorithm]["ablation"] = ablation
    curves = by_kind(arrival_curves(model, later, begin, end), model.feature_importances)
    return figures, replace(curves, ablation=ablation["horizons"])


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
