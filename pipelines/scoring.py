"""What each predictor's evaluation computes from a window of a trace, and what may be wished for beside it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobcast.domain.errors import ConfigError, RegistryError, TrainingError
from jobcast.domain.history import PoolHistory
from jobcast.domain.horizons import horizon_label
from jobcast.features.corpus import STEP_S, Corpus, build_corpus
from jobcast.models.evaluation import arrival_curves, evaluate_arrivals, evaluate_durations, evaluate_loads
from jobcast.models.evaluation.ablation import PAPER_RECIPE, PaperRecipe, arrival_ablation
from jobcast.models.evaluation.durations import tag_ablation
from jobcast.models.evaluation.intervals import DRAWS, mean_durations_min
from jobcast.models.evaluation.loads import ChosenMax
from jobcast.models.job_duration import JobDuration
from jobcast.models.new_load import NewLoad
from jobcast.models.regimes import RegimePrior
from jobcast.models.registry import Registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.console import Step
from jobcast.pipelines.curves import CurvePoints, by_kind
from jobcast.pipelines.times import iso
from jobcast.traces.history import pool_histories
from jobcast.traces.table import Trace

LATE_START_S = 86400.0
"""A trace that begins so much later than the training time does not hold it."""

ABLATED = (WillJobsArrive.name, JobDuration.name)
"""Predictors that learn from features or tags that can be taken away."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is asked of an evaluation beside its figures.

    Attributes
    ----------
    without : pools to leave out of one more set of figures
    ablation : train twins anew that look at less
    paper_recipe : train the paper's recipe as a rule to beat, where the trace holds the training time
    curves : points for plots too
    draws, seed : of the intervals; 0 draws = none
    given : what `--set` told, for a predictor that reads more than the trace
    """

    without: tuple[str, ...] = ()
    ablation: bool = False
    paper_recipe: bool = True
    curves: bool = False
    draws: int = DRAWS
    seed: int = 0
    given: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scoring:
    """The data of an evaluation: a trace until the window's end, the window, and the pools that count.

    `registry` holds the other predictors, where a predictor is also scored together with one.
    """

    trace: Trace
    version: ModelVersion
    from_s: float
    until_s: float
    pools: tuple[str, ...]
    wishes: Wishes
    train_step_s: float = STEP_S
    progress: Step | None = None
    registry: Registry | None = None

    @property
    def training(self) -> Trace:
        """Jobs of the version's training time."""
        return self.trace.between(self.version.train_from_s, self.version.train_until_s)

    @property
    def others(self) -> tuple[str, ...]:
        """Pools that are left with `--without`."""
        return tuple(pool for pool in self.pools if pool not in self.wishes.without)

    @property
    def holds_training(self) -> bool:
        """Whether the trace holds the training time, so that a twin can learn from the same jobs."""
        begins_s = float(self.trace.submit_s[0])
        return len(self.training) > 0 and begins_s <= self.version.train_from_s + LATE_START_S

    def check(self) -> None:
        """Raise a ConfigError for wishes that cannot be granted."""
        without = self.wishes.without
        unknown = [pool for pool in without if pool not in self.pools]
        if unknown:
            raise ConfigError(f"--without {unknown[0]}: is no pool that is scored; there is {', '.join(self.pools)}")
        if without and not self.others:
            raise ConfigError(f"--without {', '.join(without)}: leaves no pool to score; leave out fewer")
        if self.wishes.ablation:
            self._check_ablation()

    def _check_ablation(self) -> None:
        version, source = self.version, self.trace.source
        if version.name not in ABLATED:
            raise ConfigError(f"--ablation: {version.name} has none; it is for {' and '.join(ABLATED)}")
        if not self.holds_training:
            raise ConfigError(
                f"{source.path}: --ablation trains anew on {iso(version.train_from_s)} to {iso(version.train_until_s)} "
                f"of {version.trace_name}, which this trace does not hold; give the trace that {version} learnt from"
            )


Scored = tuple[dict[str, Any], CurvePoints]
Histories = Mapping[str, PoolHistory]
Scorer = Callable[[Any, Scoring], Scored]


def _arrivals(model: WillJobsArrive, data: Scoring) -> Scored:
    wishes, version = data.wishes, data.version
    known = data.holds_training
    recipe = wishes.paper_recipe and known and version.train_until_s <= data.from_s
    begin_s = version.train_from_s if recipe or wishes.ablation else data.from_s
    histories = {name: h for name, h in pool_histories(data.trace).items() if name in data.pools}
    whole = build_corpus(histories, begin_s, data.until_s, model.horizons_min_, STEP_S, data.progress)
    corpus = whole.of_rows(whole.tick_s >= data.from_s)
    mean_min = mean_durations_min(data.training if known else data.trace)
    rules = {PAPER_RECIPE: _recipe(model, whole, version.train_until_s).predict_proba(corpus.X)} if recipe else {}
    span = (data.from_s, data.until_s)
    shared: dict[str, Any] = {"mean_min": mean_min, "draws": wishes.draws, "seed": wishes.seed}
    figures = evaluate_arrivals(model, corpus, *span, wishes.without, rules=rules, **shared)
    if wishes.ablation:
        figures["ablation"] = arrival_ablation(
            model,
            whole,
            version.train_until_s,
            *span,
            train_step_s=data.train_step_s,
            progress=data.progress,
            **shared,
        )
    curves = by_kind(arrival_curves(model, corpus, *span), model.feature_importances) if wishes.curves else None
    return figures, curves or CurvePoints()


def _recipe(model: WillJobsArrive, corpus: Corpus, until_s: float) -> PaperRecipe:
    return PaperRecipe(seed=model.seed).fit(corpus.of_rows(corpus.until(until_s)), until_s)


def _loads(model: NewLoad, data: Scoring) -> Scored:
    histories = {name: h for name, h in pool_histories(data.trace).items() if name in data.pools}
    window = (data.from_s, data.until_s)
    version = data.version
    chosen = None
    if data.holds_training and version.train_until_s <= data.from_s:
        chosen = _chosen_max(model, histories, version.train_from_s, version.train_until_s)
    gate, name, note = _gate_of(model, data)
    shared: dict[str, Any] = {"arrivals": gate, "chosen_max": chosen, "seed": data.wishes.seed}
    figures = evaluate_loads(model, histories, *window, draws=data.wishes.draws, **shared)
    figures["total"] = {"arrivals": name, "note": note, **figures.get("total", {})}
    if data.wishes.without:
        fewer = evaluate_loads(model, {name: histories[name] for name in data.others}, *window, draws=0, **shared)
        figures["without"] = {"pools": list(data.wishes.without), **fewer}
    return figures, CurvePoints()


def _chosen_max(model: NewLoad, histories: Histories, from_s: float, until_s: float) -> ChosenMax | None:
    """The paper's rule on the version's training time; None where this trace has too little of it."""
    try:
        return ChosenMax.on(histories, from_s, until_s, model)
    except TrainingError:
        return None


def _gate_of(model: NewLoad, data: Scoring) -> tuple[WillJobsArrive | None, str | None, str | None]:
    """The champion of arrivals and its name, with which TotalNewLoad is made; or, in words, why there is none."""
    if data.registry is None:
        return None, None, "no registry to take a model of arrivals from"
    try:
        version = data.registry.resolve(WillJobsArrive.name)
        gate: WillJobsArrive = data.registry.load(version)
    except RegistryError as error:
        return None, None, str(error)
    if tuple(gate.horizons_min_) != tuple(model.horizons_min_):
        have = ", ".join(map(horizon_label, gate.horizons_min_))
        return None, str(version), f"{version}, the champion, forecasts other horizons: {have}"
    if version.train_until_s > data.from_s:
        ended = iso(version.train_until_s)
        return None, str(version), f"{version}, the champion, was trained until {ended}, which reaches into this window"
    return gate, str(version), None


def _durations(model: JobDuration, data: Scoring) -> Scored:
    window = (data.from_s, data.until_s)
    figures = evaluate_durations(model, data.trace, *window, data.pools, draws=data.wishes.draws)
    if data.wishes.without:
        fewer = evaluate_durations(model, data.trace, *window, data.others, draws=0)
        figures["without"] = {"pools": list(data.wishes.without), **fewer}
    if data.wishes.ablation:
        figures["ablation"] = tag_ablation(model, data.trace, *window, data.pools)
    return figures, CurvePoints()


def _regimes(model: RegimePrior, data: Scoring) -> Scored:
    from jobcast.pipelines.recipes.regimes import compared, jitter_of, training_jobs

    jobs, truth = training_jobs(data.trace.between(data.from_s, data.until_s), data.wishes.given, data.wishes.seed)
    k = "declared" if all(job.training.max_regimes for job in jobs if job.training is not None) else "not known"
    told = {"jitter": jitter_of(data.wishes.given), "k": k, "calibration": model.calibration}
    return {"regimes": compared(model, jobs, truth), "sample": told}, CurvePoints()


SCORERS: Mapping[str, Scorer] = {
    WillJobsArrive.name: _arrivals,
    NewLoad.name: _loads,
    JobDuration.name: _durations,
    RegimePrior.name: _regimes,
}
