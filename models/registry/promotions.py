"""Moving aliases: what an alias leaves is remembered for `rollback`; several models move together, or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jobcast.models.registry.cards import RegisteredModel
from jobcast.models.registry.database import StoreDatabase
from jobcast.models.registry.home import store_folder
from jobcast.traces.files import replacing

if TYPE_CHECKING:
    from mlflow import MlflowClient

PREVIOUS_TAG = "previous"
"""Tag of a registered model, `previous.ALIAS`: the versions that the alias has left, oldest first."""
INTENT = "promoting.json"
"""What is being promoted together, in the store's folder while it is."""


def left_by(model: RegisteredModel, alias: str) -> list[int]:
    """Versions that an alias has left, oldest first."""
    text = model.tags.get(f"{PREVIOUS_TAG}.{alias}", "")
    return [int(number) for number in text.split(",") if number]


def remember(client: "MlflowClient", model: RegisteredModel, alias: str, left: list[int]) -> None:
    """Keep the versions that an alias has left."""
    client.set_registered_model_tag(model.name, f"{PREVIOUS_TAG}.{alias}", ",".join(map(str, left)))


def move_alias(client: "MlflowClient", model: RegisteredModel, alias: str, number: int) -> None:
    """Point an alias at a version and remember the one that it leaves."""
    current = model.aliases.get(alias)
    if current == number:
        return
    if current is not None:
        remember(client, model, alias, [*left_by(model, alias), current])
    client.set_registered_model_alias(model.name, alias, str(number))


def move_together(client: "MlflowClient", home: Path, alias: str, numbers: Mapping[str, int]) -> None:
    """Point an alias of several models, by name, at a version of each; the caller holds the store's lock.

    What is meant to be is written down first: where this process dies half-way, the next sweep ends the move.
    """
    with replacing(store_folder(home) / INTENT) as draft:
        draft.write_text(json.dumps({"alias": alias, "versions": dict(numbers)}), encoding="utf-8")
    end_move(client, home)


def is_half_moved(home: Path) -> bool:
    """Whether somebody died while models moved together, for who holds the store's lock."""
    return (store_folder(home) / INTENT).is_file()


def end_move(client: "MlflowClient", home: Path) -> None:
    """Do what was written down and not done; models or versions that were deleted meanwhile are passed over."""
    file = store_folder(home) / INTENT
    meant = json.loads(file.read_text(encoding="utf-8"))
    for name, number in meant["versions"].items():
        model = StoreDatabase(home).model(name)
        if model is not None and number in {version.version for version in model.versions}:
            move_alias(client, model, meant["alias"], number)
    file.unlink()
