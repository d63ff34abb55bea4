"""Lives of predictors that learn from a trace of jobs alone: what those of pools and of jobs share."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from jobcast.domain.clock import WEEK_S
from jobcast.domain.errors import ConfigError, TraceError, TrainingError
from jobcast.domain.forecasts import Question
from jobcast.features.corpus import STEP_S
from jobcast.models.evaluation.intervals import CONFIDENCE
from jobcast.models.evaluation.smoothing import need_statsforecast
from jobcast.models.predictor import Known
from jobcast.models.predictors import answers_of
from jobcast.models.registry import Registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.experiments.seen_data import another_cluster, apart_in_time, refuse_overlap
from jobcast.pipelines.lifecycle.drift_rules import weak
from jobcast.pipelines.lifecycle.predictors.life import (
    EVALUATE,
    PREDICT,
    Asked,
    Fitted,
    Life,
    M,
    Told,
    VersionAndData,
    Wishes,
)
from jobcast.pipelines.lifecycle.recipes import RECIPES, UNTUNED, algorithms_of
from jobcast.pipelines.lifecycle.recipes.common import Recipe, TrainingData, card_of, told_parameters
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.formatting import iso
from jobcast.pipelines.report.model_tables import made_from
from jobcast.pipelines.report.predictor_plots import CurvePoints
from jobcast.traces.splits import MIN_TRAIN_JOBS, check_tests, gpu_jobs, pools_to_learn_from
from jobcast.traces.table import Trace

WITHOUT_DRAWS = ("from_s", "until_s", "seed", "out", "log", "allow_overlap")
"""Options of an evaluation whose figures have no intervals, and no other figures beside them."""
LATE_START_S = 86400.0
"""A trace that begins so much later than the training time does not hold it."""
ABLATED = ("will-jobs-arrive", "job-duration")
"""Ours that learn from features or tags that can be taken away, for messages."""


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
    registry: Registry
    train_step_s: float = STEP_S
    progress: Step | None = None

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
        # A day of grace: training from midnight on, and a first job that came later.
        begins_s = float(self.trace.submit_s[0])
        return len(self.training) > 0 and begins_s <= self.version.train_from_s + LATE_START_S

    def check(self, ablates: bool) -> None:
        """Raise a ConfigError for wishes that cannot be granted.

        Parameters
        ----------
        ablates : whether twins of this predictor can learn from less
        """
        without = self.wishes.without
        unknown = [pool for pool in without if pool not in self.pools]
        if unknown:
            raise ConfigError(f"--without {unknown[0]}: is no pool that is scored; there is {', '.join(self.pools)}")
        # Leaving out all pools would leave figures of nothing.
        if without and not self.others:
            raise ConfigError(f"--without {', '.join(without)}: leaves no pool to score; leave out fewer")
        if self.wishes.ablation:
            self._check_ablation(ablates)
        if self.wishes.smoothing:
            if answers_of(self.version.name) not in (Question.ARRIVALS, Question.LOADS):
                raise ConfigError(f"--smoothing: {self.version.name} has no series of counts; leave it out")
            need_statsforecast()

    def _check_ablation(self, ablates: bool) -> None:
        version, source = self.version, self.trace.source
        if not ablates:
            raise ConfigError(f"--ablation: {version.name} has none; it is for {' and '.join(ABLATED)}")
        if not self.holds_training:
            raise ConfigError(
                f"{source.path}: --ablation trains anew on {iso(version.train_from_s)} to {iso(version.train_until_s)} "
                f"of {version.trace_name}, which this trace does not hold; give the trace that {version} learnt from"
            )


class TraceLife(Life[M]):
    """Trained by a recipe on a window of a trace; scored on a later one, from what came before as history."""

    reads: ClassVar[Mapping[str, Collection[str]]] = {PREDICT: ("at_s", "seed")}
    untuned: ClassVar[Collection[str]] = UNTUNED
    ablates: ClassVar[bool] = False
    walks: ClassVar[bool] = True
    by_pools: ClassVar[bool] = True
    """Whether only jobs of some pools are scored, see `scored_pools`."""

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The default first; see `recipes.algorithms_of`."""
        return algorithms_of(self.model)

    @classmethod
    def known(cls, command: str, asked: Asked) -> Known:
        """The trace; of `predict` until the instant, by default the last that the trace tells of."""
        from jobcast.traces.readers import read_trace

        trace = read_trace(asked.path)
        if command != PREDICT:
            return Known(trace, {}, *asked.window)
        # A question has one instant; all before it is history.
        last_s = float(trace.seen_s.max()) if trace.is_snapshots else trace.last_known_s
        return Known(trace, {}, None, last_s if asked["at_s"] is None else asked["at_s"])

    def data(self, known: Known) -> TrainingData:
        """The jobs of the window. Raises TrainingError when they are too short or too few."""
        return TrainingData.of(known.jobs, known.from_s, known.until_s, self.settings.min_train_jobs)

    def fitted(self, known: Known, progress: Step | None) -> Fitted:
        """By the recipe of its question."""
        return self.trained(known, RECIPES[self.answers], progress)

    def trained(self, known: Known, recipe: Recipe, progress: Step | None) -> Fitted:
        """By a recipe, and what is told of it."""
        data = self.data(known)
        trained = recipe(data, self.algorithm, self.settings, progress, kind=self.model)
        result = {
            "training": {**told_parameters(trained, self.settings, data), "pool_names": list(data.pools)},
            "validation": dict(trained.validation),
            "weak_validation": weak(trained.validation),
            **made_from(known.jobs.source, known.jobs.notes, data.trace.dropped),
        }
        card = card_of(trained, data, self.settings)
        return Fitted(trained.predictor, card, result, trained.curves, trained.tables)

    def scored(self, case: VersionAndData) -> tuple[Told, CurvePoints]:
        """By default from where its training ended to the end of the trace; another trace without a calendar whole.

        Raises OverlapError for a version that saw the window, TrainingError when nothing can be scored, ConfigError
        for wishes that cannot be granted.
        """
        version, trace = case.version, gpu_jobs(case.known.jobs)
        # Before anything is computed: a year of features takes minutes.
        begin, end, overlap = window_scored(case, trace, float(trace.submit_s[0]))
        check_tests(trace, begin, end)
        # Later jobs must not even be there.
        known = trace.between(None, end)
        pools = scored_pools(known, version.train_from_s, version.train_until_s)
        # Twins of an ablation learn on the grid of the version.
        step_s = float(case.registry.parameters(version).get("step_s", STEP_S))
        data = Scoring(known, version, begin, end, pools, case.wishes, case.registry, step_s, case.progress)
        data.check(self.ablates)
        figures, curves = self.figures(data)
        left_out = unscored(known.between(begin, end), pools) if self.by_pools else {}
        # Intervals by drawing days are told where their number can be asked for.
        draws = _draws_of(case.wishes) if "draws" in self.reads.get(EVALUATE, ("draws",)) else {}
        return {**_told(figures, data, trace, overlap), **draws, **left_out, **self._elsewhere(case, known)}, curves

    def evaluate(self, known: Known) -> Told:
        """Of jobs and windows of [from, until), in all pools."""
        trace = gpu_jobs(known.jobs)
        begin, end = stretch_of(trace, known.from_s, known.until_s, float(trace.submit_s[0]), "score", "give another")
        return self.measured(trace.between(None, end), begin, end, tuple(trace.pools))

    def measured(self, trace: Trace, from_s: float, until_s: float, pools: tuple[str, ...]) -> Told:
        """Figures without intervals and beside the rules that need no training."""
        raise NotImplementedError

    def figures(self, data: Scoring) -> tuple[Told, CurvePoints]:
        """All that is told of a registered version."""
        raise NotImplementedError

    def predict(self, known: Known) -> pl.DataFrame:
        """See `Life`; nothing after the instant is read."""
        seen = self.seen(known)
        return self.rows(seen, float(seen.submit_s[-1]) if known.until_s is None else known.until_s)

    @staticmethod
    def seen(known: Known) -> Trace:
        """What was known of jobs at an instant. Raises TraceError where there is none."""
        trace, at_s = gpu_jobs(known.jobs), known.until_s
        found = trace if at_s is None else trace.as_of(at_s)
        # A trace that is empty by itself is refused by its reader.
        if at_s is not None and not len(found):
            raise TraceError(f"{trace.source.path}: no job was submitted by {iso(at_s)}; choose a later --at")
        return found

    def rows(self, known: Trace, at_s: float) -> pl.DataFrame:
        """Answers at an instant, from a trace that ends there."""
        raise NotImplementedError

    def answered(self, case: VersionAndData, asked: Mapping[str, Any]) -> Told:
        """Answers by pool and horizon, or by job."""
        at_s, source = case.known.until_s, case.known.jobs
        assert at_s is not None  # see `known`
        return {
            "at": iso(at_s),
            **self.report(self.predict(case.known)),
            "overlap": case.version.train_until_s > at_s,
            **self._elsewhere(case, source),
            **_silence(self.seen(case.known), at_s),
            **made_from(source.source, source.notes, gpu_jobs(source).dropped),
        }

    def _elsewhere(self, case: VersionAndData, trace: Trace) -> Told:
        """`another_cluster`, a line, where the version has learnt from none of a trace's pools; {} else."""
        lines = another_cluster(case.version, self.model_, trace.pools)
        return {"another_cluster": lines} if lines else {}

    def report(self, rows: pl.DataFrame) -> Told:
        """Rows as `jobcast predict --json` tells them."""
        raise NotImplementedError


def _silence(seen: Trace, at_s: float) -> Told:
    """`silent_s`, from the last submission to the instant, where that is more than a week; {} else."""
    silent_s = at_s - float(seen.submit_s[-1])
    return {"silent_s": silent_s} if silent_s > WEEK_S else {}


def scored_pools(trace: Trace, train_from_s: float, train_until_s: float) -> tuple[str, ...]:
    """Pools with at least 100 training jobs; all pools where the trace does not hold the training time."""
    # Pools with few jobs in training were not learnt: scoring them would tell of nothing that was trained.
    training = trace.between(train_from_s, train_until_s)
    if not len(training):
        return tuple(trace.pools)
    try:
        return pools_to_learn_from(training, MIN_TRAIN_JOBS)
    except TrainingError:
        return tuple(trace.pools)


def unscored(window: Trace, pools: Collection[str]) -> Told:
    """`unscored`: jobs of a window by the pools that do not count, and their share of all of it; {} where all count."""
    counts = window.jobs["pool"].value_counts().filter(~pl.col("pool").is_in(list(pools)))
    # Most jobs first; by name where as many, so that equal data give equal files.
    jobs: dict[str, int] = dict(counts.sort("count", "pool", descending=[True, False]).iter_rows())
    return {"unscored": {"jobs": jobs, "share": sum(jobs.values()) / len(window)}} if jobs else {}


def stretch_of(
    trace: Trace, from_s: float | None, until_s: float | None, begin_s: float, doing: str, why: str
) -> tuple[float, float]:
    """[from, until) of a trace, by default from `begin_s` to its end. Raises ConfigError where it is empty."""
    # Windows are half open: a second more takes in the last job.
    begin = begin_s if from_s is None else from_s
    end = float(trace.seen_s.max()) + 1.0 if until_s is None else until_s
    if begin >= end:
        raise ConfigError(f"{trace.source.path}: nothing to {doing} from {iso(begin)} until {iso(end)}; {why}")
    return begin, end


def window_scored(case: VersionAndData, trace: Trace, first_s: float) -> tuple[float, float, bool]:
    """[from, until) that a version is scored on, by default from where its training ended; whether it has seen of that.

    A trace of another cluster, or one whose times hang on no calendar, is unseen from its beginning, `first_s`, on.

    Raises OverlapError for a version that saw the window where that is not allowed, ConfigError where it is empty.
    """
    version, known, sha256 = case.version, case.known, trace.source.sha256
    default_s = first_s if apart_in_time(version, first_s, sha256) else version.train_until_s
    why = f"{version} was trained until {iso(version.train_until_s)}, --from must lie before --until"
    begin, end = stretch_of(trace, known.from_s, known.until_s, default_s, "score", why)
    return begin, end, refuse_overlap(version, begin, end, case.allow_overlap, sha256)


def _draws_of(wishes: Wishes) -> Told:
    return {"bootstrap": {"draws": wishes.draws, "seed": wishes.seed, "confidence": CONFIDENCE, "block": "day"}}


def _told(figures: Mapping[str, Any], data: Scoring, trace: Trace, overlap: bool) -> Told:
    version = data.version
    return {
        **figures,
        "algorithm": version.algorithm,
        "pools": list(data.pools),
        "window": {"from": iso(data.from_s), "until": iso(data.until_s)},
        "trained": {
            "from": iso(version.train_from_s),
            "until": iso(version.train_until_s),
            "trace": version.trace_name,
        },
        "overlap_allowed": overlap,
        "simulated": False,
        **made_from(trace.source, trace.notes, trace.dropped),
    }
