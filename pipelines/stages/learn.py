"""Stage learn: a predictor of enriched traces, trained as `jobcast train` does, saved with its cards and registered."""

import shutil
import time
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

from jobcast.domain.errors import ConfigError, TrainingError
from jobcast.domain.forecasts import Question
from jobcast.models.predictors import PREDICTORS, load_predictor, ours_for
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.lifecycle.model_files import CARDS, MODELS, drawn_card, model_folder, register_files, write_card
from jobcast.pipelines.lifecycle.predictors import life_of
from jobcast.pipelines.lifecycle.predictors.life import TRAIN, Asked
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.report.model_tables import version_row
from jobcast.pipelines.stages.config import OF_WAITS, SCHEDULERS, Params
from jobcast.pipelines.stages.context import Context
from jobcast.traces.files import replacing

REQUIRES = {"regime": ("pymc", "bayes"), "mlf-policy": ("torch", "rl"), "device-rl": ("torch", "rl")}
"""Package and extra without which a predictor cannot be trained."""


def lacks(params: Params, item: str) -> str:
    """Why a predictor that the parameters name cannot be trained here, empty where it can."""
    package, extra = REQUIRES.get(item, ("", ""))
    if not package or not params.learned(item).algorithms or find_spec(package):
        return ""
    return f"{item} needs the extra {extra}: pip install 'jobcast[{extra}]'; or leave it out: `algorithms: []`"


def work(context: Context, item: str) -> None:
    """Train every algorithm of a predictor on the enriched jobs before the split; see stage judge for the rest."""
    if why := lacks(context.params, item):
        raise ConfigError(why)
    algorithms, seconds, drafts = context.params.learned(item).algorithms, [], []
    places = ((context.root / place / item).resolve() for place in (MODELS, CARDS))
    # Models and cards change together or not at all.
    with replacing(next(places)) as models, replacing(next(places)) as cards:
        models.mkdir()
        cards.mkdir()
        for algorithm in algorithms:
            began = time.perf_counter()
            try:
                fitted = _fitted(context, item, algorithm)
            except TrainingError as error:
                if item not in (*OF_WAITS, *SCHEDULERS):
                    raise
                # In some traces nobody waits, or all jobs are too wide for the servers that schedulers learn on.
                context.console.note(f"learn: {item} is left out: {error}")
                continue
            fitted.model.save(models / algorithm)
            fitted.beside(models / algorithm)
            with drawn_card(fitted.card, fitted.curves, fitted.tables) as card:
                write_card(cards / algorithm, card)
            seconds.append(time.perf_counter() - began)
            drafts += [fitted.draft] if fitted.draft else []
    versions = list(registered(context, item).values())
    # Only once all versions are registered: until then an interrupted training can go on.
    for draft in drafts:
        shutil.rmtree(draft)
    rows = [{**version_row(version), "train_s": took} for version, took in zip(versions, seconds, strict=True)]
    context.write_receipt(f"learn-{item}", {"versions": rows})
    said = [f"{one.algorithm} is version {one.version}" for one in versions] or ["no version"]
    context.console.note(f"learn: {item} {', '.join(said)}")


def registered(context: Context, item: str) -> dict[str, ModelVersion]:
    """Versions of the trained models by algorithm; those that were pulled are registered now."""
    place = context.root / MODELS / item
    # What could not be learnt left no folder beside those that were.
    there = [one for one in context.params.learned(item).algorithms if not place.is_dir() or (place / one).is_dir()]
    return {one: register_files(context.root, context.home, item, one) for one in there}


def asked_for(context: Context, item: str, algorithm: str) -> Asked:
    """What `jobcast train` would be asked for."""
    section, (split, _) = context.params.learned(item), context.split()
    options = {
        # Options that nobody asks for are at their defaults.
        **asdict(TrainSettings(seed=section.seed)),
        **{"predictor": item, "trace_path": context.learned_from(item), "algorithm": algorithm, "horizons": None},
        **{"from_s": None, "until_s": split.train_until_s},
        "pairs": tuple(f"{name}={value}" for name, value in section.settings.items()),
        **({"accuracies": _accuracies(context)} if item in SCHEDULERS else {}),
    }
    return Asked(options, context.home, context.console.note)


def _fitted(context: Context, item: str, algorithm: str) -> Any:
    life, asked = life_of(item), asked_for(context, item, algorithm)
    predictor = life.asked(PREDICTORS[item], asked)
    known = life.known(TRAIN, asked)
    with context.console.progress(f"learn {item} {algorithm}") as step:
        return predictor.fit(known, step).fitted_


def _accuracies(context: Context) -> Any:
    """The run's own model of training curves, in place of whichever is champion; None where that was left out."""
    name = ours_for(Question.ACCURACIES)
    chosen = context.params.learned(name).algorithms[:1]
    models = [load_predictor(name, model_folder(context.root, name, algorithm)) for algorithm in chosen]
    return models[0] if models else None
