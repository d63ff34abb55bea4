"""What every recipe shares: the data and settings of a training, and what comes out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.features.corpus import STEP_S, Corpus
from jobcast.models.duration_booster import UNDER_COST
from jobcast.models.load_data import COVERAGE, LENDING_COVERAGE
from jobcast.models.predictor import Model
from jobcast.models.registry.cards import ModelCard
from jobcast.pipelines.lifecycle.drift_rules import weak
from jobcast.pipelines.report.formatting import iso
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.splits import MIN_TRAIN_JOBS, check_training, gpu_jobs, pools_to_learn_from
from jobcast.traces.table import Trace

AUTO = "auto"
"""Whichever algorithm forecasts the end of the training time best, having learnt from what came before."""
VALIDATION_SHARE = 0.2
"""Last part of the training time; a twin that has not seen it is scored on it, for the run's figures in MLflow."""


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """What a predictor is trained with, whatever the data.

    Attributes
    ----------
    horizons_min : horizons in minutes, and the inner edges of the duration bins
    step_s : grid of the training rows
    miss_share : of the windows with arrivals that the gate may miss
    coverage : of the windows whose load the estimate shall reach
    lending_coverage : of the load windows that a scheduler's reservation shall reach
    under_cost : what an hour of overstaying on all lenders' GPUs costs a scheduler, in duration bins too long
    seed : of all draws
    min_train_jobs : that a pool needs to count
    tune : trials of a search for the model's settings; 0 takes the defaults
    given : what `--set` told, for a predictor that reads more than the trace
    """

    horizons_min: tuple[float, ...] = DEFAULT_HORIZONS_MIN
    step_s: float = STEP_S
    miss_share: float = 0.05
    coverage: float = COVERAGE
    lending_coverage: float = LENDING_COVERAGE
    under_cost: float = UNDER_COST
    seed: int = 0
    min_train_jobs: int = MIN_TRAIN_JOBS
    tune: int = 0
    given: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrainingData:
    """A trace that ends where training ends, the window to learn from, and the corpus where it is known already.

    Attributes
    ----------
    trace : jobs submitted before until_s, those before from_s as history
    from_s, until_s : training window, seconds from the epoch
    pools : those with enough jobs in the window
    corpus : features of at least the window; None: built when needed
    validation_share : of the window, at its end, on which a twin that has not seen it is scored; 0: no twin
    twin : that twin, fitted, where it is known already
    """

    trace: Trace
    from_s: float
    until_s: float
    pools: tuple[str, ...]
    corpus: Corpus | None = None
    validation_share: float = VALIDATION_SHARE
    twin: Model | None = None

    @classmethod
    def of(
        cls, trace: Trace, from_s: float | None, until_s: float | None, min_jobs: int, corpus: Corpus | None = None
    ) -> "TrainingData":
        """Cut the training data out of a trace. Raises TrainingError when they are too short or too few."""
        trace = gpu_jobs(trace)
        # Before anything is cut, so that errors name what was asked for.
        check_training(trace, from_s, until_s)
        # Jobs before the window are kept: features look back over them.
        known = trace.between(None, until_s)
        begin = float(known.submit_s[0]) if from_s is None else from_s
        end = float(known.submit_s[-1]) + 1.0 if until_s is None else until_s
        return cls(known, begin, end, pools_to_learn_from(known.between(begin, end), min_jobs), corpus)

    @property
    def validation_from_s(self) -> float:
        """Where the last part of the training time begins."""
        return self.until_s - self.validation_share * (self.until_s - self.from_s)


@dataclass(frozen=True, slots=True)
class Trained:
    """A fitted predictor and what is to be told of it.

    Attributes
    ----------
    predictor : fitted on all of the training time
    algorithm : the concrete one, also where `auto` chose it
    validation : what its twin scored on the end of the training time
    parameters : what it was fitted with, scalars by name, for the registry
    curves : that twin's
    tables : file name (`tuning.csv`) -> CSV text to keep beside the run: out-of-fold scores, the trials of a search
    series : metric -> values by step, for MLflow's history: the value of each trial
    """

    predictor: Model
    algorithm: str
    validation: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    curves: CurvePoints = field(default_factory=CurvePoints)
    tables: Mapping[str, str] = field(default_factory=dict)
    series: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


def kept(selection: Sequence[Mapping[str, Any]], trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`tables` and `series` of what an algorithm was selected by and of the trials of a search, where there are any."""
    tables = {"selection.csv": selection, "tuning.csv": trials}
    return {
        "tables": {
            # Columns may first appear in a late trial: all rows decide on the types.
            name: pl.DataFrame(list(rows), infer_schema_length=None).write_csv()
            for name, rows in tables.items()
            if rows
        },
        "series": {"tuning/value": tuple(trial["value"] for trial in trials)} if trials else {},
    }


def card_of(trained: Trained, data: TrainingData, settings: TrainSettings) -> ModelCard:
    """What the registry is told of a fitted predictor; its metrics are the twin's on the end of the training time."""
    model, trace = trained.predictor, data.trace
    told = "; ".join(weak(trained.validation))
    # Models of rules read no features.
    reads = getattr(model, "feature_names_", None) or getattr(model, "columns", None) or ()
    return ModelCard(
        name=model.name,
        algorithm=trained.algorithm,
        seed=settings.seed,
        trace_name=trace.name,
        trace_sha256=trace.source.sha256,
        trace_rows=trace.source.rows,
        train_from_s=data.from_s,
        train_until_s=data.until_s,
        feature_names=tuple(reads),
        parameters=told_parameters(trained, settings, data),
        metrics={"validation": trained.validation},
        series=trained.series,
        description=(
            f"{trained.algorithm}, trained on {trace.name} from {iso(data.from_s)} to {iso(data.until_s)}; metrics "
            f"are of a twin that did not see the last {VALIDATION_SHARE:.0%} of that time, scored on it"
            f"{told and f'; warning: {told}'}"
        ),
    )


def told_parameters(trained: Trained, settings: TrainSettings, data: TrainingData) -> dict[str, Any]:
    """What it was trained with, for the registry and the user."""
    return {
        "horizons_min": ",".join(f"{k:g}" for k in settings.horizons_min),
        "train_from": iso(data.from_s),
        "train_until": iso(data.until_s),
        "pools": len(data.pools),
        **trained.parameters,
    }


Recipe = Callable[..., Trained]
"""Trains: (data, algorithm, settings, progress, kind=the class that is trained)."""


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
    # NaN is neither equal to itself nor sorted, infinity is caught at the end.
    if not values or values[0] <= 0 or values != sorted(set(values)) or not np.isfinite(values[-1]):
        raise ConfigError(f"--horizons {text}: write ascending minutes between commas, as in 5,60,720")
    # Whole minutes stay whole: 5 and 5.0 would name horizons, columns and bins differently.
    return tuple(int(value) if value.is_integer() else value for value in values)
