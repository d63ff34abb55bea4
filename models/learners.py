"""Base classes of predictors whose learner another package brings; rows, thresholds and files are jobcast's.

A package's predictor is a subclass that names itself and its learner, and an entry point `jobcast.predictors`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.features.corpus import Corpus, Mask
from jobcast.models.arrival_folds import Learner
from jobcast.models.classifier import Classifier, Constant, Matrix, plain
from jobcast.models.duration_calibration import Calibration
from jobcast.models.duration_data import DurationData
from jobcast.models.feature_spans import feature_spans
from jobcast.models.job_duration import JobDuration
from jobcast.models.load_data import LoadData
from jobcast.models.load_quantile import LevelledLoad
from jobcast.models.metadata import read_bytes
from jobcast.models.new_load import NewLoad
from jobcast.models.scores import likeliest_bin
from jobcast.models.will_jobs_arrive import WillJobsArrive

OWN = "own"
"""The algorithm of a predictor that brings its learner."""
LEVELS = tuple(np.linspace(0.5, 0.995, 100).round(6).tolist())
"""Quantiles of loads among which the one that covers what is demanded is sought."""
FILE = "learner"


class KeptLearner(Protocol):
    """What every learner can: become bytes and come back. Equal learners give equal bytes. Made by `learner()`."""

    def to_bytes(self) -> bytes:
        """All that was learned."""

    @classmethod
    def from_bytes(cls, value: bytes) -> Self:
        """Read what `to_bytes` gave."""


class ArrivalLearner(KeptLearner, Protocol):
    """Learns, for one horizon, whether jobs arrive; there is one a horizon."""

    def fit(self, X: Matrix, y: Bools) -> Self:
        """Learn from rows of both classes: X (n, F) as `features.arrivals.feature_names`, y (n,)."""

    def predict_proba(self, X: Matrix) -> Floats:
        """Probability that a job arrives, (n,)."""


class LoadLearner(KeptLearner, Protocol):
    """Learns, for one horizon, the distribution of the GPUs that are asked for; there is one a horizon."""

    def fit(self, X: Matrix, y: Floats) -> Self:
        """Learn from rows: X (n, F) as `features.loads.load_feature_names`, y (n,) GPUs."""

    def predict_quantiles(self, X: Matrix, levels: Sequence[float]) -> Floats:
        """GPUs that the load stays within with each probability, (n, L): never less at a higher level."""


class DurationLearner(KeptLearner, Protocol):
    """Learns which duration bin jobs fall into."""

    def fit(self, X: Floats, y: Ints, bins: int) -> Self:
        """Learn from rows: X (n, F) as `features.durations.duration_columns`, y (n,) bins 0, 1, ..., bins - 1."""

    def predict_proba(self, X: Floats) -> Floats:
        """Probabilities of the bins, (n, bins)."""


@dataclass(slots=True)
class BroughtClassifier:
    """A learner of arrivals as a `classifier.Classifier`."""

    learner: ArrivalLearner
    n_features: int = 0

    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self:
        """See `Classifier`."""
        self.learner, self.n_features = self.learner.fit(X, y), X.shape[1]
        return self

    def predict_proba(self, X: Matrix) -> Floats:
        """See `Classifier`."""
        return np.asarray(self.learner.predict_proba(plain(X)), np.float64)

    @property
    def gain(self) -> Floats:
        """Nobody asks a learner which column matters."""
        return np.zeros(self.n_features)

    def files(self, stem: str) -> dict[str, bytes]:
        """One file."""
        return {f"{stem}.{FILE}": self.learner.to_bytes()}


@dataclass(frozen=True, slots=True)
class BroughtLearner(Learner):
    """How the classifiers of `LearnedArrivals` are trained."""

    make: Callable[[], ArrivalLearner] | None = None

    def fitted(self, corpus: Corpus, horizon: int, rows: Mask) -> Classifier:
        """Trained on some rows (N,) of a corpus; a constant where one class only has been seen."""
        assert self.make is not None
        X, arrives = corpus.horizon_matrix(horizon, rows)
        X = self.read(X)
        # A learner is promised rows of both classes.
        if arrives.all() or not arrives.any():
            return Constant().fit(X, arrives)
        made: Any = BroughtClassifier(self.make()).fit(X, arrives)
        return made  # type: ignore[no-any-return]


class LearnedArrivals(WillJobsArrive):
    """Answers like `will-jobs-arrive`, thresholds and all, by `learner`, an `ArrivalLearner`."""

    name: ClassVar[str]
    learner: ClassVar[Any]
    algorithms: ClassVar[Sequence[str]] = (OWN,)

    @property
    def trainer(self) -> Learner:
        """How its classifiers are trained."""
        return BroughtLearner(self.algorithm, self.seed, None, self._positions(), make=self.learner)

    def told_settings(self) -> dict[str, Any]:
        """A learner keeps its own."""
        return {}

    @classmethod
    def read_settings(cls, algorithm: str, saved: Mapping[str, Any]) -> None:
        """None of ours."""

    @classmethod
    def read_classifier(cls, algorithm: str, folder: Path, stem: str) -> Any:
        """The constant, else the learner."""
        if (folder / f"{stem}.{Constant.suffix}").exists():
            return Constant.from_files(stem, lambda file: (folder / file).read_bytes())
        return BroughtClassifier(cls.learner.from_bytes(_bytes(folder / f"{stem}.{FILE}")))


class LearnedLoad(LevelledLoad):
    """A learner of loads as a rule of `NewLoad`."""

    algorithm: ClassVar[str] = OWN
    candidates: ClassVar[Sequence[float]] = LEVELS

    def __init__(self, make: Any) -> None:
        self.make = make

    def fitted(self, data: LoadData, horizon: int, rows: Mask) -> Any:
        """See `LevelledLoad`."""
        return self.make().fit(plain(data.X[rows, horizon]), data.load[rows, horizon].astype(np.float64))

    def forecast(self, distribution: Any, X: NDArray[Any]) -> tuple[Floats, ...]:
        """Quantiles at all levels."""
        # All levels at once: a learner may compute them together.
        return (_rising(distribution.predict_quantiles(plain(X), LEVELS)),)

    def nth(self, forecast: tuple[Floats, ...], number: int) -> Floats:
        """See `LevelledLoad`."""
        return forecast[0][:, number]

    def estimate(self, X: NDArray[Any], horizon: int) -> Floats:
        """GPUs from rows (n, F) of a horizon, (n,)."""
        return self._of_level(X, horizon, self.levels_)

    def lend(self, X: NDArray[Any]) -> Floats:
        """GPUs that a scheduler reserves, from rows (n, H, F), (n, H)."""
        each = [self._of_level(X[:, h], h, self.lending_levels_) for h in range(X.shape[1])]
        return np.stack(each, axis=1)

    def _of_level(self, X: NDArray[Any], horizon: int, levels: Sequence[float]) -> Floats:
        return _rising(self.distributions_[horizon].predict_quantiles(plain(X), (levels[horizon],)))[:, 0]

    def quantiles(self, X: NDArray[Any], levels: Floats) -> Floats:
        """GPUs at each level, (n, H, L), from rows (n, H, F)."""
        wanted = tuple(levels.tolist())
        rows = [_rising(one.predict_quantiles(plain(X[:, h]), wanted)) for h, one in enumerate(self.distributions_)]
        return np.stack(rows, axis=1)

    def write(self, folder: Path) -> None:
        """A file a horizon."""
        for label, learner in zip(self.labels_, self.distributions_, strict=True):
            (folder / f"{label}.{FILE}").write_bytes(learner.to_bytes())

    def read(self, saved: Mapping[str, Any], folder: Path) -> Self:
        """Read what `told` and `write` gave."""
        self.take_up(saved)
        files = (folder / f"{label}.{FILE}" for label in self.labels_)
        self.distributions_ = [self.make.from_bytes(_bytes(file)) for file in files]
        return self


class LearnedLoads(NewLoad):
    """Answers like `new-load`, levels and all, by `learner`, a `LoadLearner`."""

    name: ClassVar[str]
    learner: ClassVar[Any]
    algorithms: ClassVar[Sequence[str]] = (OWN,)

    def _rule(self) -> Any:
        return LearnedLoad(self.learner)

    @classmethod
    def read_rule(cls, algorithm: str, saved: dict[str, Any], folder: Path) -> Any:
        """What `LearnedLoad` wrote."""
        return LearnedLoad(cls.learner).read(saved, folder)


class LearnedDurations(JobDuration):
    """Answers like `job-duration`, the chosen bins and all, by `learner`, a `DurationLearner`."""

    name: ClassVar[str]
    learner: ClassVar[Any]
    algorithms: ClassVar[Sequence[str]] = (OWN,)

    def fit_data(self, data: DurationData, until_s: float, calibration: Calibration | None = None) -> Self:
        """See `JobDuration`."""
        super().fit_data(data, until_s, calibration)
        known = data.known(until_s)
        self.learner_ = self.learner().fit(known.rows, known.bins, known.n_bins)
        # A learner reads rows like a booster does; the base class gives rules no spans.
        self.feature_spans_ = feature_spans(self.columns, [known.rows])
        return self

    def predict_proba(self, rows: Floats) -> Floats:
        """See `JobDuration`."""
        return np.asarray(self.learner_.predict_proba(rows), np.float64)

    def predict(self, rows: Floats) -> Ints:
        """Index of the likeliest bin, (n_jobs,): the longer of equals."""
        return likeliest_bin(self.predict_proba(rows))

    def save(self, folder: Path) -> None:
        """See `JobDuration`."""
        super().save(folder)
        (folder / FILE).write_bytes(self.learner_.to_bytes())

    @classmethod
    def load(cls, folder: Path) -> Self:
        """See `JobDuration`."""
        model = super().load(folder)
        model.learner_ = cls.learner.from_bytes(_bytes(folder / FILE))
        return model


def _rising(quantiles: Any) -> Floats:
    """No quantile below one of a lower level, none below 0."""
    # Learners of packages are not trusted to rise.
    return np.maximum.accumulate(np.maximum(np.asarray(quantiles, np.float64), 0.0), axis=1)


def _bytes(path: Path) -> bytes:
    return read_bytes(path, "train the model again")
