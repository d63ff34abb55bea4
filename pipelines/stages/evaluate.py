"""Stage evaluate: the trained predictors on the test window, beside their baselines."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from jobcast.domain.history import PoolHistory
from jobcast.features.corpus import Corpus
from jobcast.models.baselines import EWMA, ewma_arrivals, of_rows
from jobcast.models.evaluation import arrival_curves, evaluate_arrivals, evaluate_durations, evaluate_loads
from jobcast.models.evaluation.ablation import PAPER_RECIPE, PaperRecipe, arrival_ablation
from jobcast.models.evaluation.intervals import mean_durations_min
from jobcast.models.predictors import load_predictor
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.lifecycle.model_files import model_folder
from jobcast.pipelines.report.files import write_json, write_text
from jobcast.pipelines.report.predictor_plots import CurvePoints, by_kind
from jobcast.pipelines.stages.context import Context
from jobcast.traces.history import histories_of
from jobcast.traces.table import Trace

ABLATION_STRIDE = 18
"""One training row in so many teaches the twins of the ablation, of which there are many."""


def work(context: Context, item: str = "") -> None:
    """Score every algorithm of every predictor; curves are those of the first algorithm."""
    split, _ = context.split()
    begin, end = split.train_until_s, split.test_until_s
    trace, corpus = context.trace().between(None, end), Corpus.read(context.corpus)
    histories = histories_of(trace, corpus.pools)
    arrivals, curves = _arrivals(context, trace.between(split.train_from_s, begin), corpus, histories, begin, end)
    loads, durations = _models(context, "new-load"), _models(context, "job-duration")
    step_s = context.params.featurize.step_s
    figures: dict[str, Any] = {
        "will-jobs-arrive": arrivals,
        "new-load": {name: evaluate_loads(one, histories, begin, end, step_s) for name, one in loads.items()},
        "job-duration": {
            name: evaluate_durations(one, trace, begin, end, corpus.pools) for name, one in durations.items()
        },
    }
    write_json(context.root / "processed/evaluation.json", {"figures": figures, "curves": curves.to_dict()})
    write_json(context.root / "processed/metrics/evaluate.json", _headlines(figures))
    for name, table in (
        ("precision_recall", curves.precision_at_recall()),
        ("reliability", curves.observed_by_forecast()),
    ):
        write_text(context.root / f"processed/plots/{name}.csv", pl.DataFrame(table).write_csv())
    context.write_receipt("evaluate", {"input": context.input_hash()})
    first = next(iter(arrivals.values()))["horizons"]
    shown = ", ".join(f"{name} F1 {block['f1'] or 0:.2f}" for name, block in first.items())
    context.console.note(f"evaluate: will-jobs-arrive {shown}")


def _arrivals(
    context: Context,
    training: Trace,
    corpus: Corpus,
    histories: Mapping[str, PoolHistory],
    begin: float,
    end: float,
) -> tuple[dict[str, Any], CurvePoints]:
    """Figures of every algorithm of WillJobsArrive, and the curves and the ablation of the first."""
    train, later = context.params.train, corpus.of_rows(corpus.tick_s >= begin)
    # Groups are made by what was known when training ended.
    mean_min = mean_durations_min(training)
    rules = {PAPER_RECIPE: PaperRecipe(seed=train.will_jobs_arrive.seed).fit(corpus, begin).predict_proba(later.X)}
    rules[EWMA] = of_rows(ewma_arrivals, later, histories)
    models = _models(context, "will-jobs-arrive")
    figures = {
        algorithm: evaluate_arrivals(model, later, begin, end, mean_min=mean_min, rules=rules)
        for algorithm, model in models.items()
    }
    # A plain one, not the algorithm in use: many twins are trained on few rows.
    twin = WillJobsArrive(miss_share=train.will_jobs_arrive.miss_share, seed=train.will_jobs_arrive.seed)
    step_s = ABLATION_STRIDE * context.params.featurize.step_s
    ablation = arrival_ablation(twin, corpus, begin, begin, end, train_step_s=step_s, mean_min=mean_min)
    algorithm, model = next(iter(models.items()))
    # It is not the algorithm's own, but the page draws the first one's figures.
    figures[algorithm]["ablation"] = ablation
    curves = by_kind(arrival_curves(model, later, begin, end), model.feature_importances)
    return figures, replace(curves, ablation=ablation["horizons"])


def _models(context: Context, predictor: str) -> dict[str, Any]:
    """The trained models by algorithm, that in use first."""
    algorithms = context.params.train.algorithms(predictor)
    return {name: load_predictor(predictor, model_folder(context.root, predictor, name)) for name in algorithms}


def _headlines(figures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """What `dvc metrics diff` compares, of the algorithms in use; the rest lies in processed/evaluation.json."""
    # Of each the first algorithm, which is the one in use.
    arrivals, loads, durations = (next(iter(by_algorithm.values())) for by_algorithm in figures.values())
    covered = [block["coverage"] for block in loads["horizons"].values() if block.get("coverage") is not None]
    return {
        "will-jobs-arrive": {f"f1_{horizon}": block["f1"] for horizon, block in arrivals["horizons"].items()},
        "new-load": {"least_coverage": min(covered, default=None)},
        "job-duration": {name: durations[name] for name in ("accuracy", "ece")},
    }
