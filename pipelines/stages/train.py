"""Stage train: every algorithm of a predictor, saved as a plain folder and registered."""

import time
from typing import Any

from jobcast.features.corpus import Corpus
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.files import write_json
from jobcast.pipelines.model_tables import version_row
from jobcast.pipelines.recipes import TrainingData, TrainSettings, recipe_of
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.training import register_once
from jobcast.traces.files import replacing


def settings_of(context: Context) -> TrainSettings:
    """What predictors are trained with, from the parameters."""
    train, featurize = context.params.train, context.params.featurize
    return TrainSettings(
        horizons_min=featurize.horizons_min,
        step_s=featurize.step_s,
        miss_share=train.miss_share,
        coverage=train.coverage,
        seed=train.seed,
        min_train_jobs=featurize.min_train_jobs,
    )


def work(context: Context, item: str) -> None:
    """Train a predictor. A model whose files are already registered keeps its version."""
    settings, (split, told) = settings_of(context), context.split()
    trace = context.trace()
    data = TrainingData.of(
        trace, split.train_from_s, split.train_until_s, settings.min_train_jobs, Corpus.read(context.corpus)
    )
    metrics: dict[str, Any] = {}
    receipts: dict[str, Any] = {}
    with replacing(context.model(item, "").resolve()) as folder:
        folder.mkdir()
        for algorithm in context.params.train.algorithms(item):
            began = time.perf_counter()
            name, recipe = recipe_of(item, algorithm)
            with context.console.progress(f"train {item} {name}") as step:
                trained = recipe(data, name, settings, step)
            trained.predictor.save(folder / name)
            version, _ = register_once(context.home, folder / name, trained, data, settings)
            metrics[name] = {"validation": trained.validation}
            receipts[name] = {**version_row(version), "train_s": time.perf_counter() - began}
            context.console.note(f"train: {_told(version)}")
    write_json(context.root / f"processed/metrics/train-{item}.json", metrics)
    context.write_receipt(f"train-{item}", {"versions": receipts, "trace": told["name"], "input": context.input_hash()})


def _told(version: ModelVersion) -> str:
    return (
        f"{version.name} {version.algorithm} is version {version.version} ({', '.join(version.aliases) or 'no alias'})"
    )
