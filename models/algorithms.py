"""The algorithms of arrivals by the name that users give.

The mean of several algorithms' logits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import RegistryError
from jobcast.models.classifier import Classifier, Constant, Matrix, ReadFile, from_logit, logit, plain
from jobcast.models.classifiers import (
    BoosterSettings,
    ExtraTrees,
    ForestSettings,
    LightGbm,
    Logistic,
    LogisticSettings,
    NoSettings,
    PaperXgBoost,
    XgBoost,
)
from jobcast.models.metadata import read_bytes

MEMBERS: tuple[str, ...] = ("lightgbm", "logistic", "extra-trees")
"""What is averaged: three that err in different ways."""


@dataclass(frozen=True, slots=True)
class AverageSettings:
    """Settings of each member."""

    lightgbm: BoosterSettings = field(default_factory=BoosterSettings)
    logistic: LogisticSettings = field(default_factory=LogisticSettings)
    extra_trees: ForestSettings = field(default_factory=ForestSettings)


@dataclass(slots=True)
class Average:
    """LightGBM, logistic regression and extremely randomised trees, each trained on all rows, averaged as logits."""

    names: ClassVar[tuple[str, ...]] = MEMBERS
    settings: AverageSettings = field(default_factory=AverageSettings)
    seed: int = 0
    members_: tuple[Classifier, ...] = field(default=(), init=False)

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """Train all members; see `Classifier`."""
        result = self.settings
        self.members_ = (
            LightGbm(result.lightgbm, self.seed).fit(X, y),
            Logistic(result.logistic, self.seed).fit(X, y),
            ExtraTrees(result.extra_trees, self.seed).fit(X, y),
        )
        return self

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Probabilities; see `Classifier`."""
        rows = plain(X)
        return mean_of_logits([member.predict_proba(rows) for member in self.members_])

    @property
    def gain(self) -> NDArray[np.float64]:
        """Mean of the members' shares of their own measures."""
        # Members measure gain in units of their own, so shares are averaged. A gain of 0 in all stays 0.
        shares = [member.gain / (member.gain.sum() or 1.0) for member in self.members_]
        return np.asarray(np.mean(shares, axis=0))

    def files(self, stem: str) -> dict[str, bytes]:
        """The members' files, named after them."""
        parts = [m.files(f"{stem}.{name}") for name, m in zip(self.names, self.members_, strict=True)]
        return {name: content for part in parts for name, content in part.items()}

    @classmethod
    def from_files(cls, stem: str, read: ReadFile) -> Self:
        """Read the members."""
        model = cls()
        kinds: tuple[type[Classifier], ...] = (LightGbm, Logistic, ExtraTrees)
        named = zip(cls.names, kinds, strict=True)
        model.members_ = tuple(kind.from_files(f"{stem}.{name}", read) for name, kind in named)
        return model


def mean_of_logits(probabilities: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Probability whose logit is the mean of the logits of several, each of shape (n_rows,).

    >>> mean_of_logits([np.array([0.1]), np.array([0.9])]).round(12).tolist()
    [0.5]
    """
    total: Any = sum(logit(np.stack(probabilities)))  # one after another, as `np.sum` may not
    return from_logit(total / len(probabilities))


Settings = BoosterSettings | LogisticSettings | ForestSettings | AverageSettings | NoSettings


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
"""What is chosen from."""
PAPER = "paper"
KNOWN: Mapping[str, Algorithm] = {**ALGORITHMS, PAPER: Algorithm(PaperXgBoost, NoSettings)}
"""And the paper's own, which is trained where it is asked for by name."""


def algorithm_named(name: str) -> Algorithm:
    """Algorithm of a name.

    Raises
    ------
    RegistryError
        There is none of that name.
    """
    if name not in KNOWN:
        raise RegistryError(f"algorithm {name!r} is not known; choose from {', '.join(KNOWN)}")
    return KNOWN[name]


def fit_classifier(
    name: str, X: Matrix, y: NDArray[np.bool_], seed: int = 0, settings: Settings | None = None
) -> Classifier:
    """Train a classifier, or a constant where y holds one class only.

    Parameters
    ----------
    name : key of `KNOWN`
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
    # No library trains on one class.
    if y.all() or not y.any():
        return Constant().fit(X, y)
    fitted: Classifier = algorithm.kind(chosen, seed).fit(X, y)
    return fitted


def read_classifier(name: str, folder: Path, stem: str) -> Classifier:
    """Classifier from a folder that its `files` were written to; RegistryError when a file cannot be read."""
    algorithm = algorithm_named(name)

    def read(file: str) -> bytes:
        return read_bytes(folder / file)

    # Which horizons are constants is told by the files alone.
    if (folder / f"{stem}.{Constant.suffix}").exists():
        return Constant.from_files(stem, read)
    classifier: Classifier = algorithm.kind.from_files(stem, read)
    return classifier


def settings_from_dict(name: str, figures: Mapping[str, Any]) -> Settings:
    """Settings of an algorithm from what `asdict` gave.

    >>> settings_from_dict("logistic", {"inverse_l2": 1.0})
    LogisticSettings(inverse_l2=1.0)
    """
    made: Settings = _rebuilt(algorithm_named(name).settings, figures)
    return made


def _rebuilt(kind: type, figures: Mapping[str, Any]) -> Any:
    """A dataclass and the dataclasses in it."""
    default = kind()
    values = {f.name: getattr(default, f.name) for f in fields(kind)}
    # Nested settings are dictionaries in JSON.
    return kind(
        **{key: _rebuilt(type(values[key]), v) if is_dataclass(values[key]) else v for key, v in figures.items()}
    )
