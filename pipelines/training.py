"""From a trace to a registered version: train by recipe, save, register."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.registry import open_registry
from jobcast.models.registry.cards import ModelCard, ModelVersion, content_sha256
from jobcast.models.registry.references import CHAMPION
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.console import Step
from jobcast.pipelines.model_tables import made_from, of_training, saved
from jobcast.pipelines.recipes import DATA, Trained, TrainingData, TrainSettings, recipe_of
from jobcast.pipelines.recipes.common import VALIDATION_SHARE
from jobcast.pipelines.times import iso
from jobcast.traces.owners import scratch_room
from jobcast.traces.table import Trace


def card_of(trained: Trained, data: TrainingData, settings: TrainSettings, files: tuple[Path, ...] = ()) -> ModelCard:
    """What the registry is told of a fitted predictor; its metrics are the twin's on the end of the training time."""
    model, trace = trained.predictor, data.trace
    reads: tuple[str, ...] = ()
    if isinstance(model, WillJobsArrive):
        reads = model.feature_names_
    elif isinstance(model, NewLoad | JobDuration):
        reads = model.columns
    return ModelCard(
        name=model.name,
        algorithm=trained.algorithm,
        seed=settings.seed,
        trace_name=trace.name,
        trace_sha256=trace.source.sha256,
        trace_rows=trace.source.rows,
        train_from_s=data.from_s,
        train_until_s=data.until_s,
        feature_names=reads,
        parameters=_parameters(trained, settings, data),
        metrics={"validation": trained.validation},
        series=trained.series,
        files=files,
        description=(
            f"{trained.algorithm}, trained on {trace.name} from {iso(data.from_s)} to {iso(data.until_s)}; metrics "
            f"are of a twin that did not see the last {VALIDATION_SHARE:.0%} of that time, scored on it"
        ),
    )


def _parameters(trained: Trained, settings: TrainSettings, data: TrainingData) -> dict[str, Any]:
    return {
        "horizons_min": ",".join(f"{k:g}" for k in settings.horizons_min),
        "train_from": iso(data.from_s),
        "train_until": iso(data.until_s),
        "pools": len(data.pools),
        **trained.parameters,
    }


def register_once(
    home: Path,
    folder: Path,
    trained: Trained,
    data: TrainingData,
    settings: TrainSettings,
    first_is_champion: bool = True,
) -> tuple[ModelVersion, bool]:
    """The version with exactly these files, registered unless there is one; whether it was now.

    The same training gives the same bytes; see `Registry.register_once`.
    """
    registry = open_registry(home)
    found = registry.find_by_content(trained.predictor.name, content_sha256(folder))
    if found is not None:
        return found, False
    with _card(trained, data, settings) as card:
        return registry.register_once(folder, card, first_is_champion)


@contextmanager
def _card(trained: Trained, data: TrainingData, settings: TrainSettings) -> Iterator[ModelCard]:
    """What the registry is told, with curves and tables as files that are there meanwhile."""
    with scratch_room("files") as room:
        tables = tuple(room / name for name in trained.tables)
        for path in tables:
            path.write_text(trained.tables[path.name], encoding="utf-8", newline="")
        yield card_of(trained, data, settings, (*trained.curves.draw(room), *tables))


def train_and_register(
    predictor: str,
    algorithm: str | None,
    trace: Trace,
    from_s: float | None,
    until_s: float | None,
    settings: TrainSettings,
    *,
    home: Path,
    progress: Step | None = None,
) -> dict[str, Any]:
    """Train a predictor on [from, until) and register it as a new version; what to tell the user.

    Raises ConfigError, TrainingError for what cannot be trained, RegistryError for a store that cannot be used.
    """
    chosen, recipe = recipe_of(predictor, algorithm)
    data = DATA.get(predictor, TrainingData.of)(trace, from_s, until_s, settings.min_train_jobs)
    trained = recipe(data, chosen, settings, progress)
    with saved(trained.predictor) as folder, _card(trained, data, settings) as card:
        version = open_registry(home).register(folder, card)
    return {
        **of_training(version, home, settings.seed),
        **({"gated": False} if CHAMPION in version.aliases else {}),
        "training": {**_parameters(trained, settings, data), "pool_names": list(data.pools)},
        "validation": dict(trained.validation),
        **made_from(trace.source, trace.notes, data.trace.dropped),
    }
