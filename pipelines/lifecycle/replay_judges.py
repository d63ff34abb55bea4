"""What versions are worth to the policies that ask for them: the same jobs replayed with each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib

from jobcast.domain.hardware import Cluster, pools_cluster
from jobcast.models.predictors import answers_of
from jobcast.models.registry import Registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.experiments.backtest import Cell, CellResult, baselines_of, run_matrix
from jobcast.pipelines.experiments.backtest_results import gains_between
from jobcast.pipelines.experiments.clusters import named_cluster
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS, ForecastSpec
from jobcast.pipelines.experiments.policy_runs import predictors_of
from jobcast.pipelines.experiments.seen_data import apart_in_time
from jobcast.pipelines.lifecycle.comparison import CANDIDATE, CHAMPION, SLOWED, SPEEDUP, Bound, why_slower
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.gains import DRAWS
from jobcast.schedulers.policies import POOLS, PolicySpec
from jobcast.schedulers.registry import find_policy
from jobcast.traces.pools import DEFAULT_LOAD, derive_pools, held_beyond
from jobcast.traces.table import Trace

FCFS = "fcfs"
KEPT = ("jobs", "speedup_gmean", "speedup_p5", "slowed_pct", "slowdown_total_min", "slowdown_max_min", "mean_jct_s")
"""Figures that are told of each version, beside those that the judge bounds."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A policy that asks for a predictor, and how much worse it may fare with a new version.

    Attributes
    ----------
    policy : by name
    bounds : what may be lost
    baseline : what speedups and slowed jobs are of; where jobs progress by another law, `backtest.LAW_BASELINES`
    """

    policy: str
    bounds: tuple[Bound, ...] = (SLOWED, SPEEDUP)
    baseline: str = FCFS

    @property
    def rule(self) -> PolicySpec:
        """The policy."""
        return find_policy(self.policy)

    @property
    def asks(self) -> frozenset[str]:
        """Predictors that it asks of the registry."""
        return frozenset(predictors_of(self.rule))

    def asks_about(self, name: str) -> bool:
        """Whether it asks the question that a predictor answers."""
        return answers_of(name) in {answers_of(one) for one in self.asks}

    @property
    def needs(self) -> frozenset[str]:
        """Those without which it cannot run; forecasts over pools are made of all three, whichever it asks."""
        if self.rule.kind == POOLS:
            return frozenset(PREDICTORS)
        # Such a policy runs without what it learned, too: others of its kind judge it by that.
        return self.asks - ({self.rule.learned} if self.rule.instead == self.policy else set())


@dataclass(frozen=True, slots=True)
class Window:
    """What the versions are compared on: a trace, [from_s, until_s) of it, GPUs, tables; None = defaults."""

    trace: Trace
    from_s: float | None = None
    until_s: float | None = None
    pools: Path | None = None
    cluster: Path | None = None
    gpus: int | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    allow_overlap: bool = False
    named: Cluster | None = None
    """The cluster itself, in place of files that name it."""

    def place(self, begin_s: float, end_s: float) -> Cluster:
        """The GPUs that were named, else quotas that the jobs of [begin_s, end_s) keep busy."""
        if self.named is not None:
            return self.named
        named = named_cluster(self.trace, pools=self.pools, cluster=self.cluster, gpus=self.gpus, from_s=begin_s)
        if named is not None:
            return named
        # Derived of the window alone: quotas of a whole year would leave a quiet month idle.
        window = self.trace.between(begin_s, end_s)
        derived = derive_pools(window, span_s=end_s - begin_s)
        rule = f"derived: max(widest job, ceil(GPU-time / window / {DEFAULT_LOAD:g})) GPUs a pool"
        return pools_cluster(derived, rule + held_beyond(window, derived))

    def experiment(self, begin_s: float, end_s: float, place: Cluster) -> Experiment:
        """The jobs of [begin_s, end_s); those of pools without capacity, or wider than their pool, are left out."""
        return Experiment(
            trace=self.trace,
            cluster=place,
            from_s=begin_s,
            until_s=end_s,
            given=self.given,
            drop_wide=True,
            only_pools=True,
        )


def unseen_from_s(version: ModelVersion, trace: Trace) -> float:
    """From when on a version has not seen a trace, at the earliest from its beginning; see `overlap.apart_in_time`."""
    begin_s = float(trace.submit_s[0])
    apart = apart_in_time(version, begin_s, trace.source.sha256)
    # A trace that begins after the training ended is unseen from its own beginning.
    return begin_s if apart else max(version.train_until_s, begin_s)


@dataclass(frozen=True, slots=True)
class Contest:
    """The versions that take part.

    Attributes
    ----------
    candidate, champion : what is compared
    others : champions of the other predictors that the judges ask, which both are replayed with
    """

    candidate: ModelVersion
    champion: ModelVersion
    others: tuple[ModelVersion, ...]

    @classmethod
    def of(
        cls, registry: Registry, candidate: ModelVersion, champion: ModelVersion, judges: Sequence[Judge]
    ) -> "Contest":
        """Two versions beside the champions of the other predictors."""
        names, question = {version.name for version in registry.list()}, answers_of(candidate.name)
        # A dict keeps the order and each name once.
        asked = {name: None for judge in judges for name in sorted(judge.asks) if answers_of(name) != question}
        return cls(candidate, champion, tuple(registry.resolve(name) for name in asked if name in names))

    def missing(self, judge: Judge) -> list[str]:
        """Predictors that a judge cannot run without and that nobody has trained."""
        have = {answers_of(version.name) for version in (self.candidate, *self.others)}
        return sorted(name for name in judge.needs if answers_of(name) not in have)

    def unseen_from_s(self, trace: Trace) -> float:
        """The latest end of a training, but not before the trace begins, whose own times may hang on no calendar."""
        return max(unseen_from_s(one, trace) for one in (self.candidate, self.champion, *self.others))


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a judge found: figures for people, and the runs by label."""

    figures: dict[str, Any]
    runs: Mapping[str, CellResult]

    @property
    def overlap(self) -> bool:
        """Whether a model had seen the window."""
        return any(one.run.overlap for one in self.runs.values())


def replay_both(
    judge: Judge, contest: Contest, experiment: Experiment, *, home: Path, allow_overlap: bool, progress: Step | None
) -> Replayed:
    """Figures of a policy with each version, gains between them, and in which ways the candidate is worse.

    Raises OverlapError for a champion of another predictor that has seen the window.
    """
    versions = {CANDIDATE: contest.candidate, CHAMPION: contest.champion}
    # Both with the same versions of all other predictors: the difference is the candidate's.
    cells = [Cell(judge.policy, _pinned(judge, one, contest.others), label) for label, one in versions.items()]
    results = _run(judge, cells, experiment, home, allow_overlap, progress)
    scenario, place = experiment.scenario(judge.rule.kind, judge.rule.scope), experiment.place(judge.rule.kind)
    sides = {one.cell.label: _figures(one, judge) for one in results}
    result = {
        "policy": judge.policy,
        "baseline": _baseline(judge, cells, experiment),
        **sides,
        "gains": gains_between(results, [CHAMPION], draws=DRAWS)[0],
        "others": {version.name: version.version for version in contest.others if judge.asks_about(version.name)},
        "quotas": place.origin,
        "pools": {pool.name: pool.quota for pool in place.pools},
        "dropped": dict(scenario.dropped),
        "bounds": {bound.figure: bound.to_dict() for bound in judge.bounds},
        "reasons": why_slower(sides[CANDIDATE], sides[CHAMPION], judge.bounds),
    }
    return Replayed(result, {one.cell.label: one for one in results})


def replay_one(
    judge: Judge, version: ModelVersion, experiment: Experiment, *, home: Path, allow_overlap: bool
) -> CellResult:
    """A policy with one version, all else at its champion, beside its baseline."""
    cell = Cell(judge.policy, _pinned(judge, version, ()), str(version))
    return _run(judge, [cell], experiment, home, allow_overlap, None)[0]


def _run(
    judge: Judge,
    cells: Sequence[Cell],
    experiment: Experiment,
    home: Path,
    allow_overlap: bool,
    progress: Step | None,
) -> list[CellResult]:
    return run_matrix(
        [experiment],
        cells,
        home=home,
        bases=baselines_of(cells, judge.baseline, experiment),
        jobs=min(len(cells), joblib.cpu_count()),
        allow_overlap=allow_overlap,
        progress=progress,
    )


def _baseline(judge: Judge, cells: Sequence[Cell], experiment: Experiment) -> str | None:
    """Whom speedups are over; None in a law where nobody came first."""
    base = baselines_of(cells, judge.baseline, experiment).get(experiment.law_of(judge.rule))
    return None if base is None else base.policy


def _pinned(judge: Judge, version: ModelVersion, others: Sequence[ModelVersion]) -> ForecastSpec:
    # Versions of questions that the policy does not ask would be refused.
    pins = tuple((one.name, one.version) for one in (version, *others) if judge.asks_about(one.name))
    return ForecastSpec("registry", versions=pins)


def _figures(result: CellResult, judge: Judge) -> dict[str, Any]:
    kept = dict.fromkeys((*KEPT, *(bound.figure for bound in judge.bounds)))
    return {key: result.figures[key] for key in kept if key in result.figures}
