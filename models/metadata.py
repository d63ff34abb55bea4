"""The one JSON file that every saved predictor has: what it is, what it was trained on, what it decided."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import RegistryError
from jobcast.domain.memory import need_memory

METADATA = "metadata.json"
FORMAT = 1
"""Raised when a reader of an older version could not make sense of the files."""

JSON_BYTES = 20
"""Memory that a byte of JSON takes at most when it is read, nearly: lists of short numbers."""
REMEDY = "train the model again, or allow more with --memory"
_COUNTS = re.compile(r"^num_(?:leaves|cat)=(\d+)", re.MULTILINE)


def write_metadata(folder: Path, predictor: str, figures: dict[str, Any]) -> None:
    """Write `metadata.json` with sorted keys, so that equal models are equal bytes; makes the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, "predictor": predictor, **figures}, indent=1, sort_keys=True, allow_nan=False)
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
        # A file of gigabytes would be read whole before anything in it can be checked.
        need_memory(JSON_BYTES * path.stat().st_size, f"{path}", REMEDY)
    try:
        saved: dict[str, Any] = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise RegistryError(f"{path}: not valid JSON ({error}); export or train the model again") from error
    # The predictor comes first: another one's format number says nothing.
    if saved.get("predictor") != predictor:
        raise RegistryError(f"{path}: holds {saved.get('predictor')!r}, not {predictor!r}; give its folder")
    if saved.get("format") != FORMAT:
        raise RegistryError(f"{path}: format {saved.get('format')}, this version reads {FORMAT}; train it again")
    return saved


def kept(model: object, names: Iterable[str]) -> dict[str, Any]:
    """Fitted attributes by their names without the underscore at the end, as JSON can hold them."""
    # scikit-learn's underscore marks what was fitted; files have had the names without it from the start.
    values = {name.rstrip("_"): getattr(model, name) for name in names}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def take_up(model: object, figures: Mapping[str, Any], names: Iterable[str], arrays: Iterable[str] = ()) -> None:
    """Set fitted attributes from what `kept` gave: lists become tuples, or arrays where they were."""
    for name in names:
        value = figures[name.rstrip("_")]
        # Tuples, so that nobody changes a loaded model by changing a list that it handed out.
        setattr(model, name, tuple(value) if isinstance(value, list) else value)
    for name in arrays:
        setattr(model, name, np.array(figures[name.rstrip("_")]))


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

    def as_dict(self) -> dict[str, Any]:
        """What was learned, as JSON can hold it."""
        raise NotImplementedError

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """A model from what `told` gave, and the window that it has seen beside it."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write `metadata.json`; makes the folder."""
        window = {"trained_from_s": self.trained_from_s_, "trained_until_s": self.trained_until_s_}
        write_metadata(folder, self.name, {**self.as_dict(), **window})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; RegistryError when the folder holds no such model."""
        saved = read_metadata(folder, cls.name)
        model = cls.read(saved)
        model.trained_from_s_, model.trained_until_s_ = saved["trained_from_s"], saved["trained_until_s"]
        return model


def read_bytes(path: Path, remedy: str = "export or train the model again") -> bytes:
    """Content of a model's file; RegistryError when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise RegistryError(f"{path}: cannot be read ({error.strerror}); {remedy}") from error


def read_text(path: Path) -> str:
    """Text of a model's file; RegistryError when it cannot be read."""
    return read_bytes(path).decode("utf-8")


def booster_data(X: NDArray[Any], y: NDArray[Any], weight: NDArray[np.float64] | None = None) -> Any:
    """LightGBM's own form of rows (n, F), their labels and weights (n,), for any number of trainings."""
    import lightgbm

    return lightgbm.Dataset(np.ascontiguousarray(X), label=y, weight=weight, params={"verbosity": -1})


def trained_booster(data: Any, settings: Any, trees: int, seed: int, threads: int, more: Mapping[str, Any]) -> Any:
    """A LightGBM booster, the same for the same input.

    Parameters
    ----------
    data : of `booster_data`
    settings : with `leaves`, `learning_rate`, `l2` and `column_share`
    trees, seed : of the ensemble
    threads : fixed by the caller, since sums of gradients depend on how rows are shared out among them
    more : LightGBM's own parameters, in place of or beside these
    """
    # Imported where it is used: commands that train nothing start without it.
    import lightgbm

    parameters = {
        "num_leaves": settings.leaves,
        "learning_rate": settings.learning_rate,
        "lambda_l2": settings.l2,
        "feature_fraction": settings.column_share,
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,  # LightGBM would else time both ways, and may choose another one next time
        "num_threads": threads,
        "verbosity": -1,
    }
    return lightgbm.train({**parameters, **more}, data, num_boost_round=trees)


def booster_of(text: str) -> Any:
    """LightGBM's booster from its own text.

    LightGBM makes room for as many leaves as the text declares before it reads them, so those must be in it.

    Raises
    ------
    RegistryError
        The text declares more leaves than it can hold.
    """
    import lightgbm

    # Only numbers of leaves and categories make LightGBM allocate before it has read on.
    most = max((int(count) for count in _COUNTS.findall(text)), default=0)
    if most > len(text):
        raise RegistryError(f"a tree of {most:,} leaves in a text of {len(text):,} characters; train the model again")
    return lightgbm.Booster(model_str=text)
