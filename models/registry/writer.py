"""Registering a version: an MLflow run with all that belongs to it, the model, and last the version itself.

The version is made last, so that whoever is interrupted leaves at most a run that is marked as such.

A predictor's folder as an MLflow model that loads where jobcast is installed: no pickle, no database, no code.
"""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobcast import __version__
from jobcast.models.predictors import load_predictor
from jobcast.models.registry.cards import (
    CARD_MARKDOWN,
    DRAWINGS,
    ModelCard,
    ModelVersion,
    content_sha256,
    description_of,
    flatten_metrics,
    headlines,
    model_card,
    summary_of,
)
from jobcast.models.registry.folders import FIGURES, PACKAGE, keep_code, write_card
from jobcast.models.registry.runs import log_numbers, open_run, point_aliases, run_tags
from jobcast.models.registry.store import ALIASES_TAG, Store
from jobcast.traces.owners import scratch_room

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel
    from mlflow.models import ModelSignature

    from jobcast.models.pyfunc import Served

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
    folder: Path,
    name: str,
    target: Path,
    about: Mapping[str, object],
    run_id: str,
    model_id: str,
    beside: Mapping[str, str],
) -> str:
    """Write a predictor as an MLflow pyfunc model; the hash of its card.

    Parameters
    ----------
    folder : what the predictor's `save` wrote
    name : the predictor's name
    target : folder to make
    about : what `jobcast.json` holds beside the name and the content's hash
    run_id, model_id : for MLflow's own description of the model
    beside : text of the files beside it, by name
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
        signature=_signature(model),
        input_example=model.example(),
        pip_requirements=requirements(),
    )
    for file, text in beside.items():
        (target / file).write_text(text, encoding="utf-8", newline="")
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


def _signature(model: "Served") -> "ModelSignature":
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    optional: frozenset[str] = getattr(model, "optional", frozenset())
    inputs = Schema([ColSpec(kind, name, required=name not in optional) for name, kind in model.inputs.items()])
    outputs = Schema([ColSpec(kind, name) for name, kind in model.outputs.items()])
    params: Mapping[str, tuple[str, Any, Any]] = getattr(model, "params", {})
    specs = [ParamSpec(name, kind, default, shape) for name, (kind, default, shape) in params.items()]
    return ModelSignature(inputs=inputs, outputs=outputs, params=ParamSchema(specs) if specs else None)  # type: ignore[arg-type]


DIGEST_LENGTH = 36  # of a data set, MLflow's column


def write_version(
    client: "MlflowClient",
    store: Store,
    folder: Path,
    card: ModelCard,
    aliases: tuple[str, ...],
    broken: ModelVersion | None = None,
) -> int:
    """Log a run for a fitted predictor and register its model; the number of the new version.

    The version gets those of the aliases that are free to have, see `point_aliases`, and those of `broken`: the version
    of the same files that has lost them.
    """
    tags = version_tags(folder, card)
    experiment_id = store.experiment(client, card.name)
    about = {**run_tags(), ALIASES_TAG: ",".join(aliases)}
    run_name = f"{card.name} {card.algorithm} {card.trace_name}"
    told = {"algorithm": card.algorithm, "seed": card.seed, **card.parameters}
    facts = {name: value for name, value in told.items() if value is not None}
    # Before anything is logged: a folder that does not load is no version.
    predictor = load_predictor(card.name, folder)
    with open_run(client, store, experiment_id, run_name, about) as run_id:
        log_numbers(client, run_id, headlines(card.metrics), facts, card.series)
        _log_data_set(client, run_id, card)
        _log_files(client, run_id, card)
        tags["code_sha256"] = keep_code(store, client)
        text = model_card(card, folder, predictor, tags)
        model, tags["card_sha256"] = _log_model(client, store, run_id, experiment_id, folder, card, tags, text)
        _ensure_name(client, card.name, summary_of(predictor))
        # The source is the place itself: a "models:/..." one would be looked up at the global tracking address.
        shown = description_of(text)
        made = client.create_model_version(
            card.name, model.artifact_location, run_id, tags=tags, description=shown, model_id=model.model_id
        )
        number = int(made.version)
        # Locks hold on one machine; of clients elsewhere the lowest number wins.
        if (equal := _oldest_equal(store, card.name, tags["content_sha256"], broken)) < number:
            client.delete_model_version(card.name, made.version)  # a client elsewhere was first
            number = equal
        point_aliases(client, store, card.name, number, aliases)
        for alias in broken.aliases if broken else ():
            client.set_registered_model_alias(card.name, alias, str(number))
    return number


def _oldest_equal(store: Store, name: str, sha256: str, broken: ModelVersion | None) -> int:
    """Number of the first version of these files, of those since `broken`."""
    model, last = store.model(name), broken.version if broken else 0
    equal = (one.version for one in (model.versions if model else ()) if one.tags.get("content_sha256") == sha256)
    return min(number for number in equal if number > last)


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
    store: Store,
    run_id: str,
    experiment_id: str,
    folder: Path,
    card: ModelCard,
    tags: Mapping[str, str],
    text: str,
) -> tuple["LoggedModel", str]:
    """The model, and the hash of its card. All figures lie beside it, and the card for people."""
    from mlflow.entities import LoggedModelOutput

    model = client.create_logged_model(
        experiment_id, name=card.name, source_run_id=run_id, tags=dict(tags), model_type=card.algorithm
    )
    with scratch_room("version") as scratch:
        target = scratch / "model"
        about = {**tags, "features": list(card.feature_names)}
        beside = {FIGURES: json.dumps(flatten_metrics(card.metrics), indent=2) + "\n", CARD_MARKDOWN: text}
        ids = {"run_id": run_id, "model_id": model.model_id}
        card_sha256 = package_model(folder, card.name, target, about, beside=beside, **ids)
        client.log_model_artifacts(model.model_id, str(target))
    # Files before the version that names them.
    store.settle(model.artifact_location)
    client.finalize_logged_model(model.model_id, "READY")
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])
    return model, card_sha256


def _ensure_name(client: "MlflowClient", name: str, description: str) -> None:
    """The registered model, with what it forecasts as its description."""
    from mlflow.exceptions import MlflowException

    try:
        if client.get_registered_model(name).description:
            return
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        with suppress(MlflowException):  # of clients that make it at once, one does
            client.create_registered_model(name)
    client.update_registered_model(name, description)
