"""Stage train: every algorithm of a predictor, saved as a plain folder with its card beside it, and registered."""

import time
from dataclasses import replace
from typing import Any

from jobcast.features.corpus import Corpus
from jobcast.models.care import Care
from jobcast.models.predictors import load_predictor
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.lifecycle.model_files import CARDS, MODELS, VARIANTS, drawn_card, register_files, write_card
from jobcast.pipelines.lifecycle.recipes import recipe_of
from jobcast.pipelines.lifecycle.recipes.common import TrainingData, TrainSettings, card_of
from jobcast.pipelines.report.files import read_json
from jobcast.pipelines.report.model_tables import version_row
from jobcast.pipelines.stages.context import Context
from jobcast.traces.files import replacing


def settings_of(context: Context, predictor: str) -> TrainSettings:
    """What a predictor is trained with, from the parameters: as bold as it may be."""
    featurize = context.params.featurize
    return TrainSettings(
        horizons_min=featurize.horizons_min,
        step_s=featurize.step_s,
        min_train_jobs=featurize.min_train_jobs,
        **context.params.train.of(predictor).model_dump(exclude={"algorithms"}),
    )


def training_data(context: Context) -> TrainingData:
    """The run's training time."""
    split, _ = context.split()
    least, corpus = context.params.featurize.min_train_jobs, Corpus.read(context.corpus)
    return TrainingData.of(context.trace(), split.train_from_s, split.train_until_s, least, corpus)


def work(context: Context, item: str) -> None:
    """Train a predictor as careful as stage care found. A model whose files are already registered keeps its version.

    None becomes champion here: that is for stage promote to say.
    """
    care = read_json(context.root / f"interim/care/{item}.json")
    # What the predictor's care is called among its settings, and its values, the choice first.
    respect, (first, *others) = care["respect"], care["values"]
    settings, data = replace(settings_of(context, item), **{respect: first}), training_data(context)
    algorithms, seconds = context.params.train.algorithms(item), []
    places = ((context.root / place / item).resolve() for place in (MODELS, CARDS, VARIANTS))
    with replacing(next(places)) as models, replacing(next(places)) as cards, replacing(next(places)) as careful:
        for folder in (models, cards, careful):
            folder.mkdir()
        for number, algorithm in enumerate(algorithms):
            began = time.perf_counter()
            name, recipe = recipe_of(item, algorithm)
            # Twins are of the first algorithm; others fit their own.
            twin = _twin(context, item) if number == 0 else None
            with context.console.progress(f"train {item} {name}") as step:
                trained = recipe(replace(data, twin=twin), name, settings, step)
            trained.predictor.save(models / name)
            with drawn_card(card_of(trained, data, settings), trained.curves, trained.tables) as card:
                write_card(cards / name, card)
            if number == 0:
                # The same model with other thresholds, in a few milliseconds, where the gate finds them.
                model: Any = trained.predictor
                for value in others:
                    model.take(Care(**{respect: value}))
                    model.save(careful / f"{value:g}")
            seconds.append(time.perf_counter() - began)
    versions = [register_files(context.root, context.home, item, algorithm) for algorithm in algorithms]
    rows = [{**version_row(version), "train_s": took} for version, took in zip(versions, seconds, strict=True)]
    context.write_receipt(f"train-{item}", {"versions": rows, "input": context.input_hash()})
    context.console.note(*(f"train: {_told(version)}" for version in versions))


def _twin(context: Context, item: str) -> Any:
    """The twin that stage care trained; None where the history was too short for one."""
    folder = context.root / "interim/twins" / item
    return load_predictor(item, folder) if folder.is_dir() else None


def _told(version: ModelVersion) -> str:
    return (
        f"{version.name} {version.algorithm} is version {version.version} ({', '.join(version.aliases) or 'no alias'})"
    )
