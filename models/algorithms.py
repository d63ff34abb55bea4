"""The algorithms of arrivals by the name that users give."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import RegistryError
from jobcast.models.average import Average, AverageSettings
from jobcast.models.boosters import BoosterSettings, LightGbm, XgBoost
from jobcast.models.classifier import Classifier, Constant, Matrix
from jobcast.models.extra_trees import ExtraTrees, ForestSettings
from jobcast.models.logistic import Logistic, LogisticSettings

Settings = BoosterSettings | LogisticSettings | ForestSettings | AverageSettings


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A classifier and the settings that it takes; made by `kind(settings, seed)`."""

    kind: Any
    settings: type[Settings]


ALGORITHMS: Mapping[str, Algorithm] = {
    "lightgbm": Algorithm(LightGbm, BoosterSettings),
    "xgboost": Algorithm(XgBoost, BoosterSettings),
    "logistic": Algorithm(Logistic, LogisticSettings),
    "extra-trees": Algorithm(ExtraTrees, ForestSettings),
    "average": Algorithm(Average, AverageSettings),
}


def algorithm_named(name: str) -> Algorithm:
    """Algorithm of a name.

    Raises
    ------
    RegistryError
        There is none of that name.
    """
    if name not in ALGORITHMS:
        raise RegistryError(f"algorithm {name!r} is not known; choose from {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def fit_classifier(
    name: str, X: Matrix, y: NDArray[np.bool_], seed: int = 0, settings: Settings | None = None
) -> Classifier:
    """Train a classifier, or a constant where y holds one class only.

    Parameters
    ----------
    name : key of `ALGORITHMS`
    X : shape (n_rows, n_features); NaN is a missing value
    y : shape (n_rows,)
    seed : of all that the algorithm draws
    settings : of the algorithm's own kind; None takes the defaults

    Raises
    ------
    RegistryError
        There is no such algorithm, or the settings are another's.
    """
    algorithm = algorithm_named(name)
    chosen = algorithm.settings() if settings is None else settings
    if not isinstance(chosen, algorithm.settings):
        raise RegistryError(f"{name} takes {algorithm.settings.__name__}, got {type(chosen).__name__}")
    if y.all() or not y.any():
        return Constant().fit(X, y)
    fitted: Classifier = algorithm.kind(chosen, seed).fit(X, y)
    return fitted


def read_classifier(name: str, folder: Path, stem: str) -> Classifier:
    """Classifier from a folder that its `files` were written to; RegistryError when a file cannot be read."""
    algorithm = algorithm_named(name)

    def read(file: str) -> bytes:
        try:
            return (folder / file).read_bytes()
        except OSError as error:
            raise RegistryError(
                f"{folder / file}: cannot be read ({error.strerror}); export or train the model again"
            ) from error

    if (folder / f"{stem}.{Constant.suffix}").exists():
        return Constant.from_files(stem, read)
    classifier: Classifier = algorithm.kind.from_files(stem, read)
    return classifier


def settings_to_dict(settings: Settings) -> dict[str, Any]:
    """JSON-ready."""
    return asdict(settings)


def settings_from_dict(name: str, told: Mapping[str, Any]) -> Settings:
    """Settings of an algorithm from what `settings_to_dict` gave.

    >>> settings_from_dict("logistic", {"inverse_l2": 1.0})
    LogisticSettings(inverse_l2=1.0)
    """
    made: Settings = _rebuilt(algorithm_named(name).settings, told)
    return made


def _rebuilt(kind: type, told: Mapping[str, Any]) -> Any:
    """A dataclass and the dataclasses in it."""
    default = kind()
    values = {f.name: getattr(default, f.name) for f in fields(kind)}
    return kind(**{key: _rebuilt(type(values[key]), v) if is_dataclass(values[key]) else v for key, v in told.items()})
