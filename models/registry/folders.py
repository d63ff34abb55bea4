"""The folder of one version: an MLflow model that loads without MLflow, and without a database, too."""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import ModelVersion, content_sha256

DATA_FOLDER = "data"  # MLflow's name for what a loader module reads
CARD_FILE = "jobcast.json"


@runtime_checkable
class ReadsFeatures(Protocol):
    """A predictor whose input is the matrix of `features.arrivals`."""

    def check_features(self, names: Sequence[str]) -> None:
        """Raise RegistryError unless these are the columns that it was trained on."""
        ...


def write_card(target: Path, card: Mapping[str, object]) -> None:
    """Write the file by which a model folder is known without a database."""
    (target / CARD_FILE).write_text(json.dumps(card, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_card(folder: Path) -> dict[str, object]:
    """The card of a model folder. Raises RegistryError where the folder is none."""
    file = folder / CARD_FILE
    try:
        card = json.loads(file.read_text(encoding="utf-8"))
        return {**card, "name": str(card["name"]), "content_sha256": str(card["content_sha256"])}
    except FileNotFoundError:
        raise RegistryError(
            f"{folder}: no {CARD_FILE} there, so this is no exported model; make one with `jobcast models export`"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise RegistryError(
            f"{file}: damaged ({error!r}); export the model again with `jobcast models export`"
        ) from None


def load_folder(folder: Path, expected_sha256: str | None = None) -> Any:
    """The predictor in a model folder, in its native formats, without MLflow.

    Raises RegistryError where files are missing or differ from what was registered, or where the model reads
    other features than this code builds.
    """
    from jobcast.features.arrivals import feature_names
    from jobcast.models.predictors import load_predictor

    card = read_card(folder)
    data = folder / DATA_FOLDER / str(card["name"])
    if content_sha256(data) != (expected_sha256 or card["content_sha256"]):
        raise RegistryError(f"{data}: differs from what was registered; restore the files or train again")
    predictor = load_predictor(str(card["name"]), data)
    if isinstance(predictor, ReadsFeatures):
        predictor.check_features(feature_names())
    return predictor


def load_exported(folder: Path) -> Any:
    """The predictor in a folder that `Registry.export` made, with no database at hand. Errors as `load_folder`."""
    return load_folder(folder)


def export_folder(source: Path, target: Path, version: ModelVersion) -> Path:
    """Copy a version's folder and write its number into the card; `target` appears whole or not at all.

    Raises RegistryError where `target` exists and is not an empty folder.
    """
    target = target.absolute()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise RegistryError(f"{target}: exists already; name a folder that does not, or empty it")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        copy = Path(scratch) / target.name
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        write_card(copy, {**read_card(copy), "version": version.version, "created_s": version.created_s})
        if target.exists():
            target.rmdir()
        copy.rename(target)
    return target
