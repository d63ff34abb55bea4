"""The package's code beside the versions that it trained: one archive a state of the code, named by its hash.

A version's card names the hash, so that the version's digest covers the code; what comes out of an archive is checked
against that hash before anybody can run it.
"""

import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import jobcast
from jobcast.domain.errors import RegistryError
from jobcast.models.registry.cards import digest
from jobcast.models.registry.store import Store
from jobcast.traces.files import replacing

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
