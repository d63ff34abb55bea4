"""Trained models as files of the pipeline: each model's folder, and beside it the card that it is registered with.

Both are the same in every checkout, so that a registry can be filled from files that were pulled.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from jobcast.domain.errors import ConfigError
from jobcast.models.care import RESPECTS, Care
from jobcast.models.registry import open_registry
from jobcast.models.registry.cards import ModelCard, ModelVersion, content_sha256
from jobcast.models.registry.references import CHAMPION
from jobcast.pipelines.report.files import read_json, write_json
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.owners import scratch_room

MODELS, CARDS, PROMOTION = "processed/models", "processed/cards", "processed/promotion.json"
VARIANTS = "interim/careful"
JUDGED, VERDICT = "processed/judged", "verdict.json"
"""A folder a predictor of enriched traces; the file that says whether its first algorithm may be champion."""
CARD_FILE = "card.json"


def model_folder(root: Path, predictor: str, algorithm: str) -> Path:
    """Where a trained model lies."""
    return root / MODELS / predictor / algorithm


def card_folder(root: Path, predictor: str, algorithm: str) -> Path:
    """Where its card lies, with drawings and tables."""
    return root / CARDS / predictor / algorithm


def write_card(folder: Path, card: ModelCard) -> None:
    """Write what a model is to be registered with, its drawings and tables too."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in card.files:
        # Contents only: times and rights differ between checkouts.
        shutil.copyfile(file, folder / file.name)
    write_json(folder / CARD_FILE, asdict(card) | {"files": sorted(file.name for file in card.files)})


def read_card(folder: Path) -> ModelCard:
    """The card in a folder. Raises ConfigError where there is none that this code can read."""
    result = read_json(folder / CARD_FILE)
    try:
        series = {name: tuple(values) for name, values in result.pop("series").items()}
        # JSON has lists where cards have tuples.
        features, files = tuple(result.pop("feature_names")), tuple(folder / name for name in result.pop("files"))
        return ModelCard(feature_names=features, series=series, files=files, **result)
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{folder / CARD_FILE}: no card that this jobcast can read; train the model again") from error


def register_files(root: Path, home: Path, predictor: str, algorithm: str) -> ModelVersion:
    """The version of a model in the files of a pipeline, registered unless there is one; never champion by that."""
    return _registered(home, *_checked(root, predictor, algorithm))


def _checked(root: Path, predictor: str, algorithm: str) -> tuple[Path, ModelCard]:
    """Folder and card of a model, both of which must be there."""
    folder, card = model_folder(root, predictor, algorithm), read_card(card_folder(root, predictor, algorithm))
    return _there(folder, predictor), card


def _there(folder: Path, predictor: str) -> Path:
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such model; `dvc pull` or the stage train {predictor} brings it")
    return folder


def trio_of(root: Path, home: Path) -> dict[str, ModelVersion]:
    """By predictor the version that the gate judged last: with the care that passed, if any did."""
    result = read_json(root / PROMOTION)
    # Where no care passed, the first is what models were trained with.
    first, last = (Care(**result["tries"][place]["care"]) for place in (0, -1 if result["passed"] else 0))
    return {
        name: register_files(root, home, name, algorithm)
        # A predictor whose own care did not change keeps its files, card and drawings.
        if last.of(name) == first.of(name)
        else _register_variant(root, home, name, algorithm, last, result["tries"][-1]["number"] + 1)
        for name, algorithm in result["trio"].items()
    }


def variant_folder(root: Path, predictor: str, value: float) -> Path:
    """Where the first algorithm's model lies that is as careful as a value says."""
    return root / VARIANTS / predictor / f"{value:g}"


def _register_variant(root: Path, home: Path, name: str, algorithm: str, care: Care, order: int) -> ModelVersion:
    card = read_card(card_folder(root, name, algorithm))
    parameters = {**card.parameters, RESPECTS[name]: care.of(name), "order_of_care": order}
    folder = _there(variant_folder(root, name, care.of(name)), name)
    # Drawings show the model as it was trained, not with this care.
    return _registered(home, folder, replace(card, parameters=parameters, files=()))


def _registered(home: Path, folder: Path, card: ModelCard) -> ModelVersion:
    registry = open_registry(home)
    known = registry.find_by_content(card.name, content_sha256(folder))  # needs no MLflow
    return known or registry.register_once(folder, card, first_is_champion=False)[0]


def restore(root: Path, home: Path) -> dict[str, list[ModelVersion]]:
    """Register what lies in a pipeline's files and is not yet registered; whatever passed the gate becomes champion.

    Champions that there are already stay.

    Returns
    -------
    Versions that were registered now (`restored`), that there were (`known`), that became champions (`champions`).

    Raises
    ------
    ConfigError
        There are no models, or a model lacks its card.
    """
    cards = sorted((root / CARDS).glob(f"*/*/{CARD_FILE}"))
    if not cards:
        raise ConfigError(f"{root / CARDS}: no trained models there; `dvc pull` or `dvc repro` brings them")
    registry = open_registry(home)
    before = {str(version) for version in registry.list()}
    # All are checked before any is registered.
    files = [_checked(root, card.parent.parent.name, card.parent.name) for card in cards]
    found = {str(version): version for version in (_registered(home, *one) for one in files)}
    champions: list[ModelVersion] = []
    if (root / PROMOTION).is_file() and read_json(root / PROMOTION)["passed"]:
        trio = trio_of(root, home)
        found |= {str(version): version for version in trio.values()}
        # All three or none: a trio that is half another's was never tested.
        if not any(CHAMPION in registry.show(name).aliases for name in trio):
            registry.promote_together(trio.values())
            champions = list(trio.values())
    for verdict in sorted((root / JUDGED).glob(f"*/{VERDICT}")):
        name, result = verdict.parent.name, read_json(verdict)
        if result["passed"] and CHAMPION not in registry.show(name).aliases:
            champions.append(register_files(root, home, name, result["algorithm"]))
            registry.promote(name, champions[-1].version, alias=CHAMPION)
    return {
        "restored": [version for name, version in found.items() if name not in before],
        "known": [version for name, version in found.items() if name in before],
        "champions": champions,
    }


@contextmanager
def drawn_card(card: ModelCard, curves: CurvePoints, tables: Mapping[str, str]) -> Iterator[ModelCard]:
    """A card with curves and tables as files that are there meanwhile."""
    with scratch_room("files") as room:
        for name, text in tables.items():
            (room / name).write_text(text, encoding="utf-8", newline="")
        yield replace(card, files=(*curves.draw(room), *(room / name for name in tables)))
