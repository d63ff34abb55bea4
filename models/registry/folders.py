"""The folder of one version: an MLflow model that loads without MLflow, and without a database, too.

The package's code beside the versions that it trained: one archive a state of the code, named by its hash. A version's
card names the hash, so that the version's digest covers the code; what comes out of an archive is checked against that
hash before anybody can run it.
"""

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jobcast
from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import ModelVersion, content_sha256, digest
from jobcast.models.registry.store import Store
from jobcast.traces.files import replacing, sha256_of

if TYPE_CHECKING:
    from mlflow import MlflowClient


PACKAGE = "jobcast"
CACHE = "__pycache__"


def keep_code(store: Store, client: "MlflowClient") -> str:
    """Hash of the package as it is installed here; its archive is made where the store has none yet.

    Processes that keep the same code at once write the same file, each whole.
    """
    files = list(_installed())
    sha256 = digest(files)

    def write(archive: Path) -> None:
        with replacing(archive) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data in files:
                packed.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # its date is the same for all

    # The writer is handed over: a store that has the archive does not have it made.
    store.share_code(client, sha256, write)
    return sha256


def unpack_code(archive: Path, sha256: str, target: Path) -> None:
    """Write a state of the code into a folder that need not exist.

    Raises RegistryError where the archive is gone, damaged, or holds another code.
    """
    for name, data in _checked(archive, sha256):
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def _checked(archive: Path, sha256: str) -> list[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(archive) as packed:
            files = [(name, packed.read(name)) for name in packed.namelist()]
    except FileNotFoundError:
        raise RegistryError(f"{archive}: the code of the version is missing; restore it from a copy") from None
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise RegistryError(f"{archive}: damaged ({error}); restore it from a copy") from None
    # The hash says that nothing was changed; the paths, that nothing lands outside of the folder.
    if digest(files) != sha256 or not all(_is_inside(name) for name, _ in files):
        raise RegistryError(f"{archive}: differs from the code that was registered; restore it from a copy")
    return files


def _is_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return parts[:1] == (PACKAGE,) and ".." not in parts


def _installed() -> Iterator[tuple[str, bytes]]:
    """Name in the archive and content of each file of the package, ascending. The rooms may be links."""
    root = Path(jobcast.__file__).parent
    for file in sorted(_files(root)):
        yield (PACKAGE / file.relative_to(root)).as_posix(), file.read_bytes()


def _files(root: Path) -> Iterable[Path]:
    # followlinks: in a checkout the rooms are links.
    for folder, inner, names in os.walk(root, followlinks=True):
        # In place, which keeps os.walk out of them.
        inner[:] = [name for name in inner if name != CACHE]
        yield from (Path(folder) / name for name in names)


DATA_FOLDER = "data"  # MLflow's name for what a loader module reads
CODE_FOLDER = "code"
CARD_FILE = "jobcast.json"
FIGURES = "figures.json"
"""All scores that a version was registered with, by name."""


@runtime_checkable
class ReadsFeatures(Protocol):
    """A predictor whose input is the matrix of `features.arrivals`."""

    def check_features(self, names: Sequence[str]) -> None:
        """Raise RegistryError unless these are the columns that it was trained on."""


def write_card(target: Path, card: Mapping[str, object]) -> str:
    """Write the file by which a model folder is known without a database; the hash of its bytes.

    It holds the hash of every file beside the predictor's own, which `content_sha256` covers.
    """
    # The card cannot hold its own hash; a version's tag does.
    files = {name: sha256 for name, sha256 in _hashes(target) if name != CARD_FILE}
    text = json.dumps({**card, "files": files}, indent=2, sort_keys=True) + "\n"
    (target / CARD_FILE).write_bytes(text.encode())
    return hashlib.sha256(text.encode()).hexdigest()


def _hashes(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and hash of each file of a model folder but for the predictor's own."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = file.relative_to(folder)
        if name.parts[0] != DATA_FOLDER:
            yield name.as_posix(), sha256_of(file)


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


def load_exported(folder: Path, version: ModelVersion | None = None) -> Any:
    """The predictor in a model folder, such as `Registry.export` makes, in its native formats, without MLflow.

    Raises RegistryError where files are missing or differ from what was registered, or where the model reads
    other features than this code builds.
    """
    from jobcast.features.arrivals import feature_names
    from jobcast.models.predictors import load_predictor

    card = checked_card(folder, version)
    predictor = load_predictor(str(card["name"]), folder / DATA_FOLDER / str(card["name"]))
    if isinstance(predictor, ReadsFeatures):
        predictor.check_features(feature_names())
    return predictor


def checked_card(folder: Path, version: ModelVersion | None = None) -> dict[str, Any]:
    """The card of a model folder whose files are those that the card, and the version, were made with.

    Files that the card does not name are let be: MLflow adds one of its own when it loads a version, and nothing
    reads the others. Raises RegistryError for any other difference.
    """
    card: dict[str, Any] = read_card(folder)
    data = folder / DATA_FOLDER / str(card["name"])
    # Versions of older stores have no hash of their card.
    if version is not None and version.card_sha256 not in (None, sha256_of(folder / CARD_FILE)):
        raise _differs(folder / CARD_FILE)
    if content_sha256(data) != (version.content_sha256 if version else card["content_sha256"]):
        raise _differs(data)
    listed = card.get("files", {})
    have = dict(_hashes(folder)) if listed else {}
    # Files that the card does not list are let be, see above.
    if changed := [name for name, sha256 in sorted(listed.items()) if have.get(name) != sha256]:
        raise _differs(folder / changed[0])
    return card


def _differs(place: Path) -> RegistryError:
    return RegistryError(f"{place}: differs from what was registered; restore the files or train again")


def export_folder(source: Path, target: Path, version: ModelVersion, code: Callable[[str], Path]) -> Path:
    """Copy a version's folder with the code that made it; `target` appears whole or not at all.

    The card gets the version's number; `code` finds the archive of a state of the code by its hash. Raises
    RegistryError where `target` exists and is not an empty folder, and where files or code differ from what was
    registered.
    """
    target = target.absolute()
    # Nothing of the user's is ever overwritten.
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise RegistryError(f"{target}: exists already; name a folder that does not, or empty it")
    card = checked_card(source, version)
    with replacing(target) as copy:
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns(CACHE))
        if "code_sha256" in card:
            sha256 = str(card["code_sha256"])
            unpack_code(code(sha256), sha256, copy / CODE_FOLDER)
            _point_at_code(copy)
        write_card(copy, {**card, "version": version.version, "created_s": version.created_s})
    return target


def _point_at_code(folder: Path) -> None:
    """Tell MLflow that the package lies in the folder, and no longer has to be installed."""
    import yaml

    model = folder / "MLmodel"
    result = yaml.safe_load(model.read_text(encoding="utf-8"))
    result["flavors"]["python_function"]["code"] = CODE_FOLDER
    model.write_text(yaml.safe_dump(result), encoding="utf-8")
    for name in ("requirements.txt", "conda.yaml"):
        lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
        # The package lies in the folder: pip must not fetch another one.
        kept = [line for line in lines if not line.strip(" -").startswith(f"{PACKAGE}==")]
        (folder / name).write_text("".join(kept), encoding="utf-8")
