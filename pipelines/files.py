"""Files of results: written whole or not at all, JSON the same for the same value."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.traces.files import replacing


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
