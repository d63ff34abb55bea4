"""From a trace to a registered version: fit, validate on the end of the training time, register."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jobcast import __version__
from jobcast.domain.errors import ConfigError
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.features.arrivals import feature_names
from jobcast.features.corpus import STEP_S, Corpus, build_corpus
from jobcast.models.evaluation import arrival_curves, evaluate_arrivals, evaluate_durations, evaluate_loads
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import COVERAGE, NewLoad
from jobcast.models.predictors import Predictor
from jobcast.models.registry import open_registry
from jobcast.models.registry.cards import ModelCard, ModelVersion, content_sha256
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.console import Step
from jobcast.pipelines.curves import CurvePoints, by_kind
from jobcast.pipelines.times import iso
from jobcast.traces.history import pool_histories
from jobcast.traces.splits import MIN_TRAIN_JOBS, check_training, pools_to_learn_from
from jobcast.traces.table import Trace

VALIDATION_SHARE = 0.2
"""Last part of the training time; a twin that has not seen it is scored on it, for the run's figures in MLflow."""


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """What a predictor is trained with, whatever the data."""

    horizons_min: tuple[float, ...] = DEFAULT_HORIZONS_MIN
    step_s: float = STEP_S
    miss_share: float = 0.05
    coverage: float = COVERAGE
    seed: int = 0
    min_train_jobs: int = MIN_TRAIN_JOBS


@dataclass(frozen=True, slots=True)
class TrainingData:
    """A trace that ends where training ends, the window to learn from, and the corpus where it is known already.

    Attributes
    ----------
    trace : jobs submitted before until_s, those before from_s as history
    from_s, until_s : training window, seconds from the epoch
    pools : those with enough jobs in the window
    corpus : features of at least the window; None: built when needed
    """

    trace: Trace
    from_s: float
    until_s: float
    pools: tuple[str, ...]
    corpus: Corpus | None = None

    @classmethod
    def of(
        cls, trace: Trace, from_s: float | None, until_s: float | None, min_jobs: int, corpus: Corpus | None = None
    ) -> "TrainingData":
        """Cut the training data out of a trace. Raises TrainingError when they are too short or too few."""
        check_training(trace, from_s, until_s)
        known = trace.between(None, until_s)
        begin = float(known.submit_s[0]) if from_s is None else from_s
        end = float(known.submit_s[-1]) + 1.0 if until_s is None else until_s
        return cls(known, begin, end, pools_to_learn_from(known.between(begin, end), min_jobs), corpus)

    @property
    def validation_from_s(self) -> float:
        """Where the last part of the training time begins."""
        return self.until_s - VALIDATION_SHARE * (self.until_s - self.from_s)


@dataclass(frozen=True, slots=True)
class Trained:
    """A fitted predictor, what its twin scored on the end of the training time, and that twin's curves."""

    predictor: Predictor
    validation: Mapping[str, Any]
    curves: CurvePoints = field(default_factory=CurvePoints)


Recipe = Callable[[TrainingData, str, TrainSettings, Step | None], Trained]


def parse_horizons(text: str | None) -> tuple[float, ...]:
    """`--horizons 5,60,720`; ConfigError unless they are positive and ascend.

    >>> parse_horizons("5,60")
    (5, 60)
    """
    if text is None:
        return DEFAULT_HORIZONS_MIN
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if not values or values[0] <= 0 or values != sorted(set(values)) or not np.isfinite(values[-1]):
        raise ConfigError(f"--horizons {text}: write ascending minutes between commas, as in 5,60,720")
    return tuple(int(value) if value.is_integer() else value for value in values)


def train_arrivals(data: TrainingData, algorithm: str, settings: TrainSettings, progress: Step | None) -> Trained:
    """WillJobsArrive. SIA, section 5.4.1."""
    corpus = data.corpus
    if corpus is None:
        histories = {name: h for name, h in pool_histories(data.trace).items() if name in data.pools}
        corpus = build_corpus(histories, data.from_s, data.until_s, settings.horizons_min, settings.step_s, progress)

    def fitted(until_s: float) -> WillJobsArrive:
        model = WillJobsArrive(algorithm, settings.miss_share, settings.seed)
        return model.fit(corpus.of_rows(corpus.until(until_s)), until_s)

    validation, curves = {}, CurvePoints()
    if data.until_s - data.validation_from_s > 60.0 * max(settings.horizons_min):
        twin = fitted(data.validation_from_s)
        window = (data.validation_from_s, data.until_s)
        validation = evaluate_arrivals(twin, corpus, *window)
        curves = by_kind(arrival_curves(twin, corpus, *window), twin.feature_importances)
    return Trained(fitted(data.until_s), validation, curves)


def train_loads(data: TrainingData, algorithm: str, settings: TrainSettings, progress: Step | None) -> Trained:
    """NewLoad. SIA, section 5.4.1."""
    histories = {name: h for name, h in pool_histories(data.trace).items() if name in data.pools}

    def fitted(until_s: float) -> NewLoad:
        return NewLoad(settings.coverage).fit(histories, data.from_s, until_s, settings.horizons_min)

    validation: Mapping[str, Any] = {}
    if data.until_s - data.validation_from_s > 60.0 * max(settings.horizons_min):
        twin = fitted(data.validation_from_s)
        validation = evaluate_loads(twin, histories, data.validation_from_s, data.until_s, settings.step_s)
    return Trained(fitted(data.until_s), validation)


def train_durations(data: TrainingData, algorithm: str, settings: TrainSettings, progress: Step | None) -> Trained:
    """JobDuration. SIA, section 5.4.2."""
    window = data.trace.between(data.from_s, None)

    def fitted(until_s: float) -> JobDuration:
        return JobDuration(settings.horizons_min).fit(window, until_s)

    validation: Mapping[str, Any] = {}
    ended = data.trace.end_s[data.trace.submit_s >= data.validation_from_s] <= data.until_s
    if ended.any():
        twin = fitted(data.validation_from_s)
        validation = evaluate_durations(twin, data.trace, data.validation_from_s, data.until_s, data.pools)
    return Trained(fitted(data.until_s), validation)


RECIPES: Mapping[str, tuple[tuple[str, ...], Recipe]] = {
    WillJobsArrive.name: (("lightgbm", "xgboost"), train_arrivals),
    NewLoad.name: (("sliding-max",), train_loads),
    JobDuration.name: (("tag-pool-width",), train_durations),
}
"""Predictor -> its algorithms, the default first, and how it is trained."""


def recipe_of(predictor: str, algorithm: str | None) -> tuple[str, Recipe]:
    """Algorithm and recipe; ConfigError lists what there is."""
    if predictor not in RECIPES:
        raise ConfigError(f"{predictor!r} is no predictor; choose from {', '.join(RECIPES)}")
    algorithms, recipe = RECIPES[predictor]
    if algorithm is not None and algorithm not in algorithms:
        raise ConfigError(f"--algorithm {algorithm}: {predictor} knows {', '.join(algorithms)}")
    return algorithm or algorithms[0], recipe


def card_of(
    trained: Trained, algorithm: str, data: TrainingData, settings: TrainSettings, trace: Trace, plots: tuple[Path, ...]
) -> ModelCard:
    """What the registry is told of a fitted predictor; its metrics are the twin's on the end of the training time."""
    model = trained.predictor
    reads = feature_names() if isinstance(model, WillJobsArrive) else ()
    return ModelCard(
        name=model.name,
        algorithm=algorithm,
        seed=settings.seed,
        trace_name=trace.name,
        trace_sha256=trace.source.sha256,
        trace_rows=trace.source.rows,
        train_from_s=data.from_s,
        train_until_s=data.until_s,
        feature_names=reads,
        parameters=_parameters(model, settings, data),
        metrics={"validation": trained.validation},
        plots=plots,
        description=(
            f"{algorithm}, trained on {trace.name} from {iso(data.from_s)} to {iso(data.until_s)}; metrics are of a "
            f"twin that did not see the last {VALIDATION_SHARE:.0%} of that time, scored on it"
        ),
    )


def _parameters(model: Predictor, settings: TrainSettings, data: TrainingData) -> dict[str, Any]:
    told: dict[str, Any] = {
        "horizons_min": ",".join(f"{k:g}" for k in settings.horizons_min),
        "train_from": iso(data.from_s),
        "train_until": iso(data.until_s),
        "pools": len(data.pools),
    }
    if isinstance(model, WillJobsArrive):
        told |= {"miss_share": model.miss_share, "step_s": settings.step_s}
    if isinstance(model, NewLoad):
        told |= {"coverage": model.coverage, "windows": ",".join(map(str, model.windows_))}
    if isinstance(model, JobDuration):
        told |= {"last_n": model.last_n, "min_same_tag": model.min_same_tag, "prior_weight": model.prior_weight}
    return told


def register(
    home: Path,
    folder: Path,
    trained: Trained,
    algorithm: str,
    data: TrainingData,
    settings: TrainSettings,
    trace: Trace,
) -> ModelVersion:
    """Register a saved predictor as a new version, with its curves as plots."""
    with tempfile.TemporaryDirectory(prefix="jobcast-plots-") as room:
        plots = trained.curves.draw(Path(room))
        return open_registry(home).register(folder, card_of(trained, algorithm, data, settings, trace, plots))


def registered_already(home: Path, name: str, folder: Path) -> ModelVersion | None:
    """The version with exactly these files, if there is one: the same training gives the same bytes."""
    return open_registry(home).find_by_content(name, content_sha256(folder))


def train_and_register(
    predictor: str,
    algorithm: str | None,
    trace: Trace,
    from_s: float | None,
    until_s: float | None,
    settings: TrainSettings,
    *,
    home: Path,
    progress: Step | None = None,
) -> dict[str, Any]:
    """Train a predictor on [from, until) and register it as a new version; what to tell the user.

    Raises ConfigError, TrainingError for what cannot be trained, RegistryError for a store that cannot be used.
    """
    chosen, recipe = recipe_of(predictor, algorithm)
    data = TrainingData.of(trace, from_s, until_s, settings.min_train_jobs)
    trained = recipe(data, chosen, settings, progress)
    with tempfile.TemporaryDirectory(prefix="jobcast-model-") as room:
        folder = Path(room) / predictor
        trained.predictor.save(folder)
        version = register(home, folder, trained, chosen, data, settings, trace)
    return {
        "predictor": predictor,
        "version": version.version,
        "aliases": list(version.aliases),
        "run_id": version.run_id,
        "algorithm": chosen,
        "seed": settings.seed,
        "training": {**_parameters(trained.predictor, settings, data), "pool_names": list(data.pools)},
        "validation": dict(trained.validation),
        "inputs": {"trace": {"path": trace.source.path, "sha256": trace.source.sha256, "rows": trace.source.rows}},
        "notes": list(trace.notes),
        "home": str(home),
        "jobcast": __version__,
    }
