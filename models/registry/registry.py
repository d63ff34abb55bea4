"""The registry: versions of fitted predictors, the aliases that point at them, and what they were trained on."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import ModelCard, ModelVersion, RegisteredModel, content_sha256
from jobcast.models.registry.home import find_home
from jobcast.models.registry.promotions import left_by, move_alias, move_together, remember
from jobcast.models.registry.references import CHALLENGER, CHAMPION, Ref, check_alias
from jobcast.models.registry.runs import sweep_locked
from jobcast.models.registry.store_lock import locked
from jobcast.models.registry.stores import store_of

ORIGIN = ("git_commit", "git_dirty", "dvc_rev", "dvc_experiment", "params_sha256", "lock_sha256", "mlflow.user")
"""Tags of a run that `origin` tells."""


def open_registry(home: Path | None = None) -> "Registry":
    """The registry of a home (default: `find_home()`). The store is made when something is first registered."""
    return Registry(find_home() if home is None else Path(home).absolute())


class Registry:
    """Reads cost milliseconds; whatever writes imports MLflow, which takes seconds.

    Parameters
    ----------
    home : folder that holds `mlruns/`

    Raises
    ------
    RegistryError
        From every method: no such model, alias or version, or a store that cannot be opened.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.store = store_of(home)
        self._loaded: dict[tuple[str, int], Any] = {}

    def list(self) -> tuple[ModelVersion, ...]:
        """All versions of all models, names ascending, newest first."""
        return tuple(version for name in self.store.names() for version in self.show(name).versions)

    def show(self, name: str) -> RegisteredModel:
        """A model, its versions (newest first) and aliases."""
        model = self.store.model(name)
        if model is None:
            raise self._no_such_model(name)
        return model

    def resolve(self, name: str, ref: Ref = None) -> ModelVersion:
        """The version that an alias or a number names; None means the champion.

        Ask once and keep the answer: results should name the concrete version.
        """
        model = self.show(name)
        number = _number_of(model, CHAMPION if ref is None else str(ref))
        for version in model.versions:
            if version.version == number:
                return version
        have = ", ".join(str(version.version) for version in reversed(model.versions))
        raise RegistryError(f"{name} has no version {number}, it has: {have}; see `jobcast models show {name}`")

    def pinned(self, name: str, number: int) -> ModelVersion:
        """A version by its number, as it was last seen here: nobody is asked twice what never changes."""
        model = self.store.recalled(name)
        known = (version for version in (model.versions if model else ()) if version.version == number)
        return next(known, None) or self.resolve(name, number)

    def asked(self, name: str, ref: Ref) -> ModelVersion:
        """A version by an alias, which is looked up, or by its number, as `pinned`."""
        return self.pinned(name, ref) if isinstance(ref, int) else self.resolve(name, ref)

    def find_by_content(self, name: str, sha256: str) -> ModelVersion | None:
        """The newest version whose files hash to `sha256` (see `content_sha256`), if there is one."""
        return next((version for version in self._versions(name) if version.tags.get("content_sha256") == sha256), None)

    def metrics(self, version: ModelVersion) -> dict[str, float]:
        """Scores that a version was registered with, by name."""
        from jobcast.models.registry.folders import FIGURES

        file = self.folder(version) / FIGURES
        if file.is_file():
            return dict(json.loads(file.read_text(encoding="utf-8")))
        return self.run_metrics(version)  # versions of before have all of them there

    def run_metrics(self, version: ModelVersion) -> dict[str, float]:
        """The scores that a version's run shows, by name; some of them, whatever became of its files."""
        return dict(self.store.run(version.run_id).metrics)

    def parameters(self, version: ModelVersion) -> dict[str, str]:
        """Parameters that a version was fitted with, as text by name."""
        return dict(self.store.run(version.run_id).parameters)

    def origin(self, version: ModelVersion) -> dict[str, str]:
        """What code, parameters and data pipeline made a version, and who, by tag; see `provenance`."""
        tags = self.store.run(version.run_id).tags
        return {name: tags[name] for name in ORIGIN if name in tags}

    def folder(self, version: ModelVersion) -> Path:
        """The folder of a version's MLflow model. Raises RegistryError where it is gone."""
        return self.store.folder(version)

    def load(self, version: ModelVersion) -> Any:
        """The predictor of a version, from its native formats; read once, then the same object.

        Raises RegistryError where files differ from what was registered, or where the model reads other
        features than this code builds.
        """
        from jobcast.models.registry.folders import load_exported

        key = (version.name, version.version)
        if key not in self._loaded:
            self._loaded[key] = load_exported(self.folder(version), version)
        return self._loaded[key]

    def register(self, folder: Path, card: ModelCard) -> ModelVersion:
        """Register what a predictor's `save` wrote, as a new version with the alias `challenger`.

        The first version of a name becomes `champion` too. Of equal files there is one version: the answer's `is_new`
        says whether it was registered now. An interrupt leaves the versions as they were.

        Parameters
        ----------
        folder : what the predictor saved
        card : what it was fitted with, and how well it scored
        """
        return self.register_once(folder, card)[0]

    def register_once(self, folder: Path, card: ModelCard, first_is_champion: bool = True) -> tuple[ModelVersion, bool]:
        """The version of exactly these files, registered unless there is one; whether it was registered just now.

        Of several processes that ask at once, one registers. Where a gate is to say who becomes champion, the first
        version of a name does not. A version whose own files are gone or damaged gets a successor, which takes its
        aliases.
        """
        from jobcast.models.registry.writer import write_version

        aliases = (CHAMPION, CHALLENGER) if first_is_champion else (CHALLENGER,)
        # The client first: importing MLflow takes seconds that nobody should wait for.
        with self.store.client() as client, locked(self.home):
            sweep_locked(self.store)  # a version whose process died before it had its aliases gets them
            found = self.find_by_content(card.name, content_sha256(folder))
            if found is not None and self._is_whole(found):
                return found, False
            before = {version.version for version in self._versions(card.name)}
            number = write_version(client, self.store, folder, card, aliases, found)
            lost = found.version if found else None
            version = replace(self.resolve(card.name, number), is_new=number not in before, instead_of=lost)
        return version, version.is_new

    def _check_whole(self, version: ModelVersion) -> None:
        from jobcast.models.registry.folders import checked_card

        checked_card(self.folder(version), version)

    def _is_whole(self, version: ModelVersion) -> bool:
        try:
            self._check_whole(version)
        except (RegistryError, OSError):
            return False
        return True

    def _versions(self, name: str) -> tuple[ModelVersion, ...]:
        model = self.store.model(name)
        return model.versions if model else ()

    def set_alias(self, name: str, alias: str, ref: Ref) -> ModelVersion:
        """Point an alias at a version, with no memory of where it pointed."""
        check_alias(alias)
        target = self.resolve(name, ref)
        with self.store.client() as client:
            client.set_registered_model_alias(name, alias, str(target.version))
        return self.resolve(name, target.version)

    def promote(self, name: str, ref: Ref, alias: str = CHAMPION) -> ModelVersion:
        """Point an alias at a version and remember the one that it leaves, for `rollback`.

        Raises RegistryError where the version's files are gone or damaged: nobody could load it; or for what can be no
        alias.
        """
        check_alias(alias)
        target = self.resolve(name, ref)
        model = self.show(name)
        if model.aliases.get(alias) == target.version:
            return target
        self._check_whole(target)
        with self.store.client() as client:
            move_alias(client, model, alias, target.version)
        return self.resolve(name, target.version)

    def promote_together(self, versions: Iterable[ModelVersion], alias: str = CHAMPION) -> None:
        """As `promote`, a version of each of several models: all of them, whatever ends this process meanwhile."""
        numbers = {version.name: version.version for version in versions}
        if all(self.show(name).aliases.get(alias) == number for name, number in numbers.items()):
            return
        with self.store.client() as client, locked(self.home):
            sweep_locked(self.store)
            move_together(client, self.store, alias, numbers)
        for name in numbers:
            self.show(name)  # what was last seen is what they are now

    def tag(self, version: ModelVersion, tags: Mapping[str, str]) -> ModelVersion:
        """Add tags to a version, in place of those of the same names."""
        with self.store.client() as client:
            for key, value in tags.items():
                client.set_model_version_tag(version.name, str(version.version), key, value)
        return self.resolve(version.name, version.version)

    def rollback(self, name: str, alias: str = CHAMPION) -> ModelVersion:
        """Point an alias back at the version that the last `promote` took it from, past those whose files are gone."""
        model = self.show(name)
        current = model.aliases.get(alias)
        known = {version.version: version for version in model.versions}
        # An interrupted promote or rollback may have left the current version on top.
        left = [number for number in left_by(model, alias) if number in known]
        while left and (left[-1] == current or not self._is_whole(known[left[-1]])):
            left.pop()
        if not left:
            raise RegistryError(
                f"{name}: no earlier {alias} to go back to; choose with `jobcast models promote {name}:VERSION`"
            )
        with self.store.client() as client:
            client.set_registered_model_alias(name, alias, str(left[-1]))
            # After the alias moved: who dies in between leaves a memory of where it points now, passed over above.
            remember(client, model, alias, left[:-1])
        return self.resolve(name, left[-1])

    def export(self, version: ModelVersion, folder: str | PathLike[str]) -> Path:
        """Copy a version and its code to a plain folder that loads without any database; see `load_exported`.

        The folder is also an MLflow model: `mlflow models serve -m FOLDER` takes it. It appears whole or not
        at all.
        """
        from jobcast.models.registry.folders import export_folder

        return export_folder(self.folder(version), Path(folder), version, self.store.code)

    def staleness(self) -> dict[str, Any]:
        """What answers rest on where the registry cannot be reached, as results of commands tell it; else {}."""
        stale = self.store.stale
        if stale is None:
            return {}
        result = {
            "place": self.store.place,
            "seen_s": stale.seen_s,
            "age_s": time.time() - stale.seen_s,
            "why": stale.why,
        }
        return {"registry": result}

    def _no_such_model(self, name: str) -> RegistryError:
        from jobcast.models.predictors import PREDICTORS

        have = ", ".join(self.store.names()) or "none yet"
        known = name in PREDICTORS
        remedy = (
            f"run `jobcast train {name} --trace FILE` first"
            if known
            else "`jobcast predictors` lists what there can be"
        )
        return RegistryError(f"no model {name!r} in {self.store.place}, there is: {have}; {remedy}")


def _number_of(model: RegisteredModel, ref: str) -> int:
    """The version number that an alias or a number stands for, whether or not there is such a version."""
    if ref in model.aliases:
        return model.aliases[ref]
    if ref.isdecimal():
        return int(ref)
    if ref == CHAMPION:
        raise RegistryError(
            f"{model.name} has no champion: none of its {len(model.versions)} versions was promoted; see why in the"
            f" report of `jobcast run`, promote one with `jobcast models promote {model.name}:VERSION`, or name an"
            f" alias that there is ({', '.join(model.aliases) or 'none'})"
        )
    raise RegistryError(
        f"{model.name} has no alias {ref!r}, it has: {', '.join(model.aliases) or 'none'}; set it with"
        f" `jobcast models promote {model.name}:VERSION --alias {ref}`"
    )
