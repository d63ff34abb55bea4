"""Moving aliases: what an alias leaves is remembered for `rollback`; several models move together, or not at all."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from jobcast.models.registry.cards import MOST_CHARACTERS, RegisteredModel
from jobcast.models.registry.store import Store

if TYPE_CHECKING:
    from mlflow import MlflowClient

PREVIOUS_TAG = "previous"
"""Tag of a registered model, `previous.ALIAS`: the versions that the alias has left, oldest first."""
INTENT_TAG = "jobcast.promoting"
"""Tag of a registered model: what is being promoted together, while it is."""


def left_by(model: RegisteredModel, alias: str) -> list[int]:
    """Versions that an alias has left, oldest first."""
    text = model.tags.get(f"{PREVIOUS_TAG}.{alias}", "")
    return [int(number) for number in text.split(",") if number]


def remember(client: "MlflowClient", model: RegisteredModel, alias: str, left: list[int]) -> None:
    """Keep the versions that an alias has left, the newest that PostgreSQL has room for."""
    text = ",".join(map(str, left))
    if len(text) > MOST_CHARACTERS:
        # A number that is cut in two would be another one.
        text = text[-MOST_CHARACTERS:].partition(",")[2]
    client.set_registered_model_tag(model.name, f"{PREVIOUS_TAG}.{alias}", text)


def move_alias(client: "MlflowClient", model: RegisteredModel, alias: str, number: int) -> None:
    """Point an alias at a version and remember the one that it leaves."""
    current = model.aliases.get(alias)
    # Else rollback would find the version itself as the one before.
    if current == number:
        return
    if current is not None:
        remember(client, model, alias, [*left_by(model, alias), current])
    # Remembered first: who dies in between has only one memory too many.
    client.set_registered_model_alias(model.name, alias, str(number))


def move_together(client: "MlflowClient", store: Store, alias: str, numbers: Mapping[str, int]) -> None:
    """Point an alias of several models, by name, at a version of each.

    What is meant to be is written to the store first, beside one of them: where this process dies half-way, whoever
    sweeps next ends the move.
    """
    # Any of them would do: whoever sweeps looks at all models.
    holder = min(numbers)
    client.set_registered_model_tag(holder, INTENT_TAG, json.dumps({"alias": alias, "versions": dict(numbers)}))
    end_moves(client, store, [holder])


def half_moved(store: Store) -> list[str]:
    """Models beside which a move is written down whose process died half-way."""
    models = (store.model(name) for name in store.names())
    return [model.name for model in models if model is not None and INTENT_TAG in model.tags]


def end_moves(client: "MlflowClient", store: Store, holders: Iterable[str]) -> None:
    """Do what was written down and not done; models or versions that were deleted meanwhile are passed over."""
    for holder in holders:
        held = store.model(holder)
        meant = json.loads(held.tags[INTENT_TAG]) if held and INTENT_TAG in held.tags else {"versions": {}}
        for name, number in meant["versions"].items():
            model = store.model(name)
            if model is not None and number in {version.version for version in model.versions}:
                move_alias(client, model, meant["alias"], number)
        # Taken away last: until then whoever comes next repeats what was left.
        if meant["versions"]:
            client.delete_registered_model_tag(holder, INTENT_TAG)
