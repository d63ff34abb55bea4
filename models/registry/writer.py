"""Registering a version: an MLflow run with all that belongs to it, the model, and last the version itself.

The version is made last, so that whoever is interrupted leaves at most a run that is marked as such.

A predictor's folder as an MLflow model that loads where jobcast is installed: no pickle, no database, no code.
"""

import json
import math
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from jobcast import __version__
from jobcast.models.registry.cards import ModelCard, content_sha256, flatten_metrics
from jobcast.models.registry.code_archive import PACKAGE, keep_code
from jobcast.models.registry.folders import write_card
from jobcast.models.registry.home import ARTIFACT_ROOT, artifact_folder
from jobcast.models.registry.runs import ALIASES_TAG, open_run, point_aliases
from jobcast.traces.files import flush, flush_one
from jobcast.traces.owners import scratch_room

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel
    from mlflow.models import ModelSignature

LOADER_MODULE = "jobcast.models.pyfunc"
RUNTIME_PACKAGES: tuple[tuple[str, ...], ...] = (
    ("numpy",),
    ("pandas",),
    ("polars",),
    ("scipy",),
    ("numba",),
    ("lightgbm",),
    ("xgboost-cpu", "xgboost"),
)
"""What the package imports when it loads or predicts; of alternatives the installed one."""


def package_model(
    folder: Path, name: str, target: Path, about: Mapping[str, object], run_id: str, model_id: str
) -> str:
    """Write a predictor as an MLflow pyfunc model; the hash of its card.

    Parameters
    ----------
    folder : what the predictor's `save` wrote
    name : the predictor's name
    target : folder to make
    about : what `jobcast.json` holds beside the name and the content's hash
    run_id, model_id : for MLflow's own description of the model
    """
    import mlflow.pyfunc
    from mlflow.models import Model

    from jobcast.models.pyfunc import served

    staged = target.with_name(f"{target.name}-data") / name
    shutil.copytree(folder, staged)
    model = served(staged)
    mlflow.pyfunc.save_model(
        path=str(target),
        loader_module=LOADER_MODULE,
        data_path=str(staged),
        mlflow_model=Model(run_id=run_id, model_id=model_id),
        signature=_signature(model.inputs, model.outputs),
        input_example=model.example(),
        pip_requirements=requirements(),
    )
    return write_card(target, {"name": name, "content_sha256": content_sha256(folder), **about})


def requirements() -> list[str]:
    """This package and what it needs, pinned as installed here; inferring them would take MLflow a minute."""
    others = [f"{found[0]}=={found[1]}" for found in map(_installed, RUNTIME_PACKAGES) if found]
    return [f"{PACKAGE}=={__version__}", *others]


def _installed(alternatives: tuple[str, ...]) -> tuple[str, str] | None:
    for name in alternatives:
        try:
            return name, version(name)
        except PackageNotFoundError:
            continue
    return None


def _signature(inputs: Mapping[str, str], outputs: Mapping[str, str]) -> "ModelSignature":
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    schemas = [Schema([ColSpec(kind, name) for name, kind in columns.items()]) for columns in (inputs, outputs)]
    return ModelSignature(inputs=schemas[0], outputs=schemas[1])


T = TypeVar("T")

METRICS_A_BATCH = 1000  # MLflow's limits for one call of log_batch
PARAMS_A_BATCH = 100
DIGEST_LENGTH = 36  # of a data set, MLflow's column
MS_PER_S = 1000.0
DRAWINGS = frozenset({".svg", ".png"})


def write_version(client: "MlflowClient", home: Path, folder: Path, card: ModelCard, aliases: tuple[str, ...]) -> int:
    """Log a run for a fitted predictor and register its model; the number of the new version.

    The version gets those of the aliases that are free to have; see `point_aliases`.
    """
    tags = version_tags(folder, card)
    experiment_id = _experiment(client, card.name)
    about = {"jobcast_version": __version__, "python": platform.python_version(), ALIASES_TAG: ",".join(aliases)}
    run_name = f"{card.name} {card.algorithm} {card.trace_name}"
    with open_run(client, home, experiment_id, run_name, about) as run_id:
        _log_figures(client, run_id, card)
        _log_data_set(client, run_id, card)
        _log_files(client, run_id, card)
        tags["code_sha256"] = keep_code(home)
        model, tags["card_sha256"] = _log_model(client, home, run_id, experiment_id, folder, card, tags)
        _ensure_name(client, card.name)
        # The source is the place itself: a "models:/..." one would be looked up at the global tracking address.
        version = client.create_model_version(
            card.name,
            model.artifact_location,
            run_id,
            tags=tags,
            description=card.description,
            model_id=model.model_id,
        )
        point_aliases(client, home, card.name, int(version.version), aliases)
    return int(version.version)


def version_tags(folder: Path, card: ModelCard) -> dict[str, str]:
    """What every version carries: how to know it again, and what it was trained on."""
    return {
        "content_sha256": content_sha256(folder),
        "trace_name": card.trace_name,
        "trace_sha256": card.trace_sha256,
        "trace_rows": str(card.trace_rows),
        "train_from_s": repr(float(card.train_from_s)),
        "train_until_s": repr(float(card.train_until_s)),
        "algorithm": card.algorithm,
        "seed": str(card.seed),
        "jobcast_version": __version__,
    }


def _experiment(client: "MlflowClient", name: str) -> str:
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    return client.create_experiment(name, artifact_location=f"{ARTIFACT_ROOT}/{name}")


def _log_figures(client: "MlflowClient", run_id: str, card: ModelCard) -> None:
    from mlflow.entities import Metric, Param

    facts = {"algorithm": card.algorithm, "seed": card.seed, **card.parameters}
    params = [Param(name, str(value)) for name, value in facts.items() if value is not None]
    now_ms = int(time.time() * MS_PER_S)
    metrics = [Metric(name, value, now_ms, 0) for name, value in flatten_metrics(card.metrics).items()]
    for name, values in card.series.items():
        metrics += [Metric(name, value, now_ms, step) for step, value in enumerate(values) if math.isfinite(value)]
    for some in _batches(params, PARAMS_A_BATCH):
        client.log_batch(run_id, params=some)
    for few in _batches(metrics, METRICS_A_BATCH):
        client.log_batch(run_id, metrics=few)


def _log_data_set(client: "MlflowClient", run_id: str, card: ModelCard) -> None:
    """The trace as MLflow's UI shows data sets: by name and hash, never by the path that it was read from."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    data_set = Dataset(
        name=card.trace_name,
        digest=card.trace_sha256[:DIGEST_LENGTH],
        source_type="jobcast-trace",
        source=json.dumps({"sha256": card.trace_sha256}),
        profile=json.dumps({"rows": card.trace_rows, "from_s": card.train_from_s, "until_s": card.train_until_s}),
    )
    tags = [InputTag("mlflow.data.context", "training"), InputTag("sha256", card.trace_sha256)]
    client.log_inputs(run_id, [DatasetInput(data_set, tags)])


def _log_files(client: "MlflowClient", run_id: str, card: ModelCard) -> None:
    client.log_dict(run_id, {"features": list(card.feature_names)}, "features.json")
    for file in card.files:
        client.log_artifact(run_id, str(file), "plots" if file.suffix in DRAWINGS else "tables")


def _log_model(
    client: "MlflowClient",
    home: Path,
    run_id: str,
    experiment_id: str,
    folder: Path,
    card: ModelCard,
    tags: Mapping[str, str],
) -> tuple["LoggedModel", str]:
    """The model, and the hash of its card."""
    from mlflow.entities import LoggedModelOutput

    model = client.create_logged_model(
        experiment_id, name=card.name, source_run_id=run_id, tags=dict(tags), model_type=card.algorithm
    )
    with scratch_room("version") as scratch:
        target = scratch / "model"
        about = {**tags, "features": list(card.feature_names)}
        card_sha256 = package_model(folder, card.name, target, about, run_id=run_id, model_id=model.model_id)
        client.log_model_artifacts(model.model_id, str(target))
    _flush(artifact_folder(home, model.artifact_location).parent)
    client.finalize_logged_model(model.model_id, "READY")
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])
    return model, card_sha256


def _flush(model: Path) -> None:
    """Have the disk hold a model's files and the folders that they lie in, before a version names them."""
    flush(model)
    for folder in (model.parent, model.parent.parent):
        flush_one(folder)


def _ensure_name(client: "MlflowClient", name: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.get_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        client.create_registered_model(name)


def _batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
