"""Writing files so that an interruption leaves the old one or the new one, never a half."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; when the block succeeds it takes the place of `path`.

    Raises ConfigError when the folder cannot be made or written to.
    """
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        room = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=folder))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); name another place") from error
    try:
        draft = room / path.name
        yield draft
        if path.is_dir() and draft.is_dir():
            shutil.rmtree(path)
        os.replace(draft, path)
    except IsADirectoryError as error:
        raise ConfigError(f"{path}: is a folder; name a file") from error
    finally:
        shutil.rmtree(room, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file whole, in a form that is the same for the same value."""
    write_text(path, to_json(value))


def to_json(value: Mapping[str, Any]) -> str:
    """JSON with keys in their given order and a final newline; not-a-number is refused.

    >>> to_json({"a": 1.5})
    '{\\n  "a": 1.5\\n}\\n'
    """
    return json.dumps(value, indent=2, allow_nan=False, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; ConfigError names the file and what made it."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file; run the stage that writes it first") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as JSON ({error}); run the stage that writes it again") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: a JSON object was expected, got {type(value).__name__}")
    return value


def sha256_of(path: Path) -> str:
    """Content hash of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
