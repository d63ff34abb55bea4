"""The one JSON file that every saved predictor has: what it is, what it was trained on, what it decided."""

import json
import re
from pathlib import Path
from typing import Any

from jobcast.domain.errors import RegistryError
from jobcast.domain.memory import need_memory

METADATA = "metadata.json"
FORMAT = 1
"""Raised when a reader of an older version could not make sense of the files."""

JSON_BYTES = 20
"""Memory that a byte of JSON takes at most when it is read, nearly: lists of short numbers."""
REMEDY = "train the model again, or allow more with --memory"
_COUNTS = re.compile(r"^num_(?:leaves|cat)=(\d+)", re.MULTILINE)


def write_metadata(folder: Path, predictor: str, told: dict[str, Any]) -> None:
    """Write `metadata.json` with sorted keys, so that equal models are equal bytes; makes the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, "predictor": predictor, **told}, indent=1, sort_keys=True, allow_nan=False)
    (folder / METADATA).write_text(text + "\n", encoding="utf-8")


def read_metadata(folder: Path, predictor: str) -> dict[str, Any]:
    """Read `metadata.json` of a predictor.

    Raises
    ------
    RegistryError
        The folder holds no model, one of another predictor, or one of a later format.
    MemoryLimitError
        The file is larger than what may be read.
    """
    path = folder / METADATA
    if path.is_file():
        need_memory(JSON_BYTES * path.stat().st_size, f"{path}", REMEDY)
    try:
        told: dict[str, Any] = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise RegistryError(f"{path}: not valid JSON ({error}); export or train the model again") from error
    if told.get("predictor") != predictor:
        raise RegistryError(f"{path}: holds {told.get('predictor')!r}, not {predictor!r}; give its folder")
    if told.get("format") != FORMAT:
        raise RegistryError(f"{path}: format {told.get('format')}, this version reads {FORMAT}; train it again")
    return told


def read_text(path: Path) -> str:
    """Text of a model's file; RegistryError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise RegistryError(f"{path}: cannot be read ({error.strerror}); export or train the model again") from error


def booster_of(text: str) -> Any:
    """LightGBM's booster from its own text.

    LightGBM makes room for as many leaves as the text declares before it reads them, so those must be in it.

    Raises
    ------
    RegistryError
        The text declares more leaves than it can hold.
    """
    import lightgbm

    most = max((int(count) for count in _COUNTS.findall(text)), default=0)
    if most > len(text):
        raise RegistryError(f"a tree of {most:,} leaves in a text of {len(text):,} characters; train the model again")
    return lightgbm.Booster(model_str=text)
