"""Stage train: every algorithm of a predictor, saved as a plain folder and registered."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jobcast.features.corpus import Corpus
from jobcast.models.care import Care
from jobcast.models.predictors import load_predictor
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.files import read_json, write_json
from jobcast.pipelines.model_tables import version_row
from jobcast.pipelines.recipes import Trained, TrainingData, TrainSettings, recipe_of
from jobcast.pipelines.stages.context import Context
from jobcast.pipelines.training import register_once
from jobcast.traces.files import replacing


def settings_of(context: Context) -> TrainSettings:
    """What predictors are trained with, from the parameters: as bold as they may be."""
    train, featurize = context.params.train, context.params.featurize
    return TrainSettings(
        horizons_min=featurize.horizons_min,
        step_s=featurize.step_s,
        miss_share=train.miss_share,
        coverage=train.coverage,
        seed=train.seed,
        min_train_jobs=featurize.min_train_jobs,
    )


def training_data(context: Context) -> TrainingData:
    """The run's training time."""
    split, _ = context.split()
    least, corpus = context.params.featurize.min_train_jobs, Corpus.read(context.corpus)
    return TrainingData.of(context.trace(), split.train_from_s, split.train_until_s, least, corpus)


def cares(context: Context) -> list[Care]:
    """What stage care found: the one to be registered with, then those that the gate may try instead."""
    return [Care(**care) for care in read_json(context.root / "interim/care.json")["cares"]]


def work(context: Context, item: str) -> None:
    """Train a predictor as careful as stage care found. A model whose files are already registered keeps its version.

    None becomes champion here: that is for stage promote to say.
    """
    first, *others = cares(context)
    settings = replace(settings_of(context), **asdict(first))
    data, told = training_data(context), context.split()[1]
    metrics: dict[str, Any] = {}
    receipts: dict[str, Any] = {}
    careful = (context.root / "interim/careful" / item).resolve()
    with replacing(context.model(item, "").resolve()) as folder, replacing(careful) as more:
        folder.mkdir()
        more.mkdir()
        for number, algorithm in enumerate(context.params.train.algorithms(item)):
            began = time.perf_counter()
            name, recipe = recipe_of(item, algorithm)
            twin = _twin(context, item) if number == 0 else None
            with context.console.progress(f"train {item} {name}") as step:
                trained = recipe(replace(data, twin=twin), name, settings, step)
            trained.predictor.save(folder / name)
            version, _ = register_once(context.home, folder / name, trained, data, settings, first_is_champion=False)
            if number == 0:
                _save_others(trained, others, more)
            metrics[name] = {"validation": trained.validation}
            receipts[name] = {**version_row(version), "train_s": time.perf_counter() - began}
            context.console.note(f"train: {_told(version)}")
    write_json(context.root / f"processed/metrics/train-{item}.json", metrics)
    context.write_receipt(f"train-{item}", {"versions": receipts, "trace": told["name"], "input": context.input_hash()})


def _save_others(trained: Trained, others: Sequence[Care], folder: Path) -> None:
    """The predictor with each care that the gate may try, in folders by number from 1, and what its twin scored."""
    write_json(folder / "validation.json", dict(trained.validation))
    predictor: Any = trained.predictor
    for number, care in enumerate(others, 1):
        predictor.take(care)
        predictor.save(folder / str(number))


def _twin(context: Context, item: str) -> Any:
    """The twin that stage care trained; None where the history was too short for one."""
    folder = context.root / "interim/twins" / item
    return load_predictor(item, folder) if folder.is_dir() else None


def _told(version: ModelVersion) -> str:
    return (
        f"{version.name} {version.algorithm} is version {version.version} ({', '.join(version.aliases) or 'no alias'})"
    )
