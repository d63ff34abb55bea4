"""The mean of several algorithms' logits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.models.boosters import BoosterSettings, LightGbm
from jobcast.models.classifier import Classifier, Matrix, ReadFile, from_logit, logit
from jobcast.models.extra_trees import ExtraTrees, ForestSettings
from jobcast.models.logistic import Logistic, LogisticSettings

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
        told = self.settings
        self.members_ = (
            LightGbm(told.lightgbm, self.seed).fit(X, y),
            Logistic(told.logistic, self.seed).fit(X, y),
            ExtraTrees(told.extra_trees, self.seed).fit(X, y),
        )
        return self

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Probabilities; see `Classifier`."""
        return mean_of_logits([member.predict_proba(X) for member in self.members_])

    @property
    def gain(self) -> NDArray[np.float64]:
        """Mean of the members' shares of their own measures."""
        shares = [member.gain / (member.gain.sum() or 1.0) for member in self.members_]
        mean: NDArray[np.float64] = np.mean(shares, axis=0)
        return mean

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
    total = logit(probabilities[0])
    for probability in probabilities[1:]:
        total = total + logit(probability)
    return from_logit(total / len(probabilities))
