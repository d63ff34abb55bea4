"""A predictor's folder as an MLflow model that loads where jobcast is installed: no pickle, no database, no code."""

import shutil
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from jobcast import __version__
from jobcast.models.registry.cards import content_sha256
from jobcast.models.registry.code_archive import PACKAGE
from jobcast.models.registry.folders import write_card

if TYPE_CHECKING:
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
