"""The one JSON file that every saved predictor has: what it is, what it was trained on, what it decided."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

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


class JsonModel:
    """A model whose numbers are all in `metadata.json`: equal models, equal bytes.

    Attributes
    ----------
    name : of the predictor
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch
    """

    name: ClassVar[str]
    trained_from_s_: float
    trained_until_s_: float

    def told(self) -> dict[str, Any]:
        """What was learned, as JSON can hold it."""
        raise NotImplementedError

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Self:
        """A model from what `told` gave, and the window that it has seen beside it."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write `metadata.json`; makes the folder."""
        window = {"trained_from_s": self.trained_from_s_, "trained_until_s": self.trained_until_s_}
        write_metadata(folder, self.name, {**self.told(), **window})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; RegistryError when the folder holds no such model."""
        told = read_metadata(folder, cls.name)
        model = cls.read(told)
        model.trained_from_s_, model.trained_until_s_ = told["trained_from_s"], told["trained_until_s"]
        return model


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
