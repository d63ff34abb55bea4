"""Promotion: a candidate beside the version that it would replace, on data that neither saw, before the alias moves.

What a candidate is worth to `sia` beside the champion: the same jobs, replayed with each.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib

from jobcast import __version__
from jobcast.domain.errors import PromotionError, RegistryError
from jobcast.domain.hardware import pools_cluster
from jobcast.models.registry import Registry, open_registry
from jobcast.models.registry.cards import ModelVersion
from jobcast.models.registry.evaluations import log_evaluation
from jobcast.models.registry.references import CHAMPION as CHAMPION_ALIAS
from jobcast.pipelines.backtest import Cell, CellResult, run_matrix
from jobcast.pipelines.backtest_results import gains_between
from jobcast.pipelines.clusters import cluster_of
from jobcast.pipelines.console import Step
from jobcast.pipelines.evaluating import scored_pools, stretch_of
from jobcast.pipelines.experiment import Experiment
from jobcast.pipelines.files import to_json, write_json
from jobcast.pipelines.forecast_specs import PREDICTORS, ForecastSpec
from jobcast.pipelines.gains import DRAWS
from jobcast.pipelines.lifecycle.comparison import CANDIDATE, CHAMPION, RULES, compare_rows, why_worse
from jobcast.pipelines.lifecycle.rows import forecast_rows
from jobcast.pipelines.model_tables import made_from
from jobcast.pipelines.sources import refuse_overlap
from jobcast.pipelines.times import iso
from jobcast.schedulers.policies import POOLS
from jobcast.traces.owners import scratch_room
from jobcast.traces.pools import DEFAULT_LOAD, derive_pools
from jobcast.traces.splits import check_tests, gpu_jobs
from jobcast.traces.table import Trace

POLICY = "sia"
BASELINE = "fcfs"
KEPT = ("jobs", "speedup_gmean", "speedup_p5", "slowed_pct", "slowdown_total_min", "slowdown_max_min", "mean_jct_s")
"""Figures that are told of each."""


def replay_both(
    contest: "Contest", window: "Window", begin_s: float, end_s: float, *, home: Path, progress: Step | None
) -> tuple[dict[str, Any] | None, bool]:
    """Figures of `sia` with each version, gains between them, and whether a model had seen the window.

    None where a predictor that `sia` asks is not registered. Jobs of pools without capacity, or wider than their pool,
    are dropped and counted. Raises OverlapError for a champion of another predictor that has seen the window.
    """
    if contest.missing:
        return None, False
    experiment = _experiment(window, begin_s, end_s)
    place = experiment.place()
    cells = [
        Cell(POLICY, _pinned(contest, version), label)
        for label, version in ((CANDIDATE, contest.candidate), (CHAMPION, contest.champion))
    ]
    results = run_matrix(
        [experiment],
        cells,
        home=home,
        jobs=min(len(cells), joblib.cpu_count()),
        allow_overlap=window.allow_overlap,
        progress=progress,
    )
    told = {
        "policy": POLICY,
        "baseline": BASELINE,
        **{one.cell.label: _figures(one) for one in results},
        "gains": gains_between(results, [CHAMPION], draws=DRAWS)[0],
        "others": {version.name: version.version for version in contest.others},
        "quotas": place.origin,
        "pools": {pool.name: pool.quota for pool in place.pools},
        "dropped": dict(experiment.scene(POOLS).dropped),
    }
    return told, any(one.run.overlap for one in results)


def _experiment(window: "Window", begin_s: float, end_s: float) -> Experiment:
    """The jobs of the window; without a pools file, with quotas that it keeps busy."""
    if window.pools is not None:
        place = cluster_of(window.trace, pools=window.pools, from_s=begin_s)
    else:
        derived = derive_pools(window.trace.between(begin_s, end_s), span_s=end_s - begin_s)
        origin = f"derived: max(widest job, ceil(GPU-time / window / {DEFAULT_LOAD:g})) GPUs a pool"
        place = pools_cluster(derived, origin)
    return Experiment(trace=window.trace, cluster=place, from_s=begin_s, until_s=end_s, drop_wide=True, only_pools=True)


def _pinned(contest: "Contest", version: ModelVersion) -> ForecastSpec:
    versions = tuple((one.name, one.version) for one in (version, *contest.others))
    return ForecastSpec("registry", versions=versions)


def _figures(result: CellResult) -> dict[str, Any]:
    return {key: result.figures[key] for key in KEPT}


KIND = "promotion"
TAG = "promotion"
"""Tag of a version: what its comparison came to."""


@dataclass(frozen=True, slots=True)
class Window:
    """What the versions are compared on: a trace, [from_s, until_s) of it, quotas; None = defaults."""

    trace: Trace
    from_s: float | None = None
    until_s: float | None = None
    pools: Path | None = None
    allow_overlap: bool = False


@dataclass(frozen=True, slots=True)
class Contest:
    """The versions that take part.

    Attributes
    ----------
    candidate, champion : what is compared
    others : champions of the other predictors, which both are replayed with
    """

    candidate: ModelVersion
    champion: ModelVersion
    others: tuple[ModelVersion, ...]

    @classmethod
    def of(cls, registry: Registry, candidate: ModelVersion, champion: ModelVersion) -> "Contest":
        """Two versions beside the champions of the other predictors."""
        names = {version.name for version in registry.list()}
        others = (registry.resolve(name) for name in PREDICTORS if name != candidate.name and name in names)
        return cls(candidate, champion, tuple(others))

    @property
    def missing(self) -> list[str]:
        """Predictors that a backtest needs and that nobody has trained."""
        have = {self.candidate.name, *(version.name for version in self.others)}
        return [name for name in PREDICTORS if name not in have]

    @property
    def unseen_from_s(self) -> float:
        """The latest end of a training."""
        return max(version.train_until_s for version in (self.candidate, self.champion, *self.others))


def compare(
    registry: Registry, candidate: ModelVersion, champion: ModelVersion, window: Window, progress: Step | None = None
) -> dict[str, Any]:
    """Figures of both versions, and a backtest of `sia` with each.

    Raises ConfigError, OverlapError, TrainingError for a window that cannot be used, RegistryError for versions
    that cannot be compared.
    """
    trace, contest = gpu_jobs(window.trace), Contest.of(registry, candidate, champion)
    why = "--from (the latest end of a training, where it is not given) must lie before --until (the end of the trace)"
    begin, end = stretch_of(trace, window.from_s, window.until_s, contest.unseen_from_s, "compare on", why)
    overlap = [refuse_overlap(version, begin, end, window.allow_overlap) for version in (candidate, champion)]
    check_tests(trace, begin, end)
    known = trace.between(None, end)
    pools = _pools(known, candidate, champion)
    rows = [forecast_rows(registry.load(one), known, begin, end, pools, end) for one in (candidate, champion)]
    if not set(rows[0]) & set(rows[1]):
        raise RegistryError(
            f"{candidate} forecasts {', '.join(rows[0])} ahead, {champion} {', '.join(rows[1])}: they share no horizon "
            "to compare; train with the same --horizons or promote without --trace"
        )
    figures = compare_rows(rows[0], rows[1], (CANDIDATE, CHAMPION))
    backtest, overlaps = replay_both(contest, window, begin, end, home=registry.home, progress=progress)
    return {
        "window": {"from": iso(begin), "until": iso(end)},
        "pools": list(pools),
        "figures": figures,
        "backtest": backtest,
        "rules": RULES,
        "reasons": why_worse(figures, backtest),
        "overlap_allowed": any([*overlap, overlaps]),
        "simulated": backtest is not None,
        **made_from(trace.source, (*trace.notes, *_left_out(contest)), trace.dropped),
    }


def promote(
    name: str,
    number: int,
    alias: str,
    compare: Callable[[Registry, ModelVersion, ModelVersion], dict[str, Any]] | None,
    *,
    force: bool,
    home: Path,
) -> dict[str, Any]:
    """Move an alias to a version unless it did worse than the one that holds it; what to tell the user.

    A version that did worse is told by `promoted` = False; see `refuse`.

    Parameters
    ----------
    compare : figures of the version beside those of the one that holds the alias, else of the champion, with `reasons`
        why it is worse; None compares nothing
    """
    registry = open_registry(home)
    candidate = registry.resolve(name, number)
    told = {"model": name, "version": number, "alias": alias, "compared": False, "promoted": True, "forced": False}
    held = alias if alias in registry.show(name).aliases else CHAMPION_ALIAS
    champion = None if compare is None else registry.resolve(name, held)
    if compare is not None and champion is not None and champion.version != number:
        told |= {"compared": True, "against": champion.version, **compare(registry, candidate, champion)}
        told |= {"promoted": force or not told["reasons"], "forced": bool(force and told["reasons"])}
        _record(registry, candidate, told)
    if told["promoted"]:
        registry.promote(name, number, alias=alias)
    return {**told, "home": str(home), "jobcast": __version__}


def refuse(told: Mapping[str, Any]) -> None:
    """Raise a PromotionError where the version was not promoted."""
    if told["promoted"]:
        return
    window = told.get("window")
    where = f"from {window['from']} to {window['until']}" if window else f"on {told['inputs']['trace']['path']}"
    raise PromotionError(
        f"{told['model']}:{told['version']} is worse than {told['alias']} {told['against']} {where}: "
        f"{'; '.join(told['reasons'])}; {told['alias']} stays version {told['against']}, --force promotes all the same"
    )


def _pools(trace: Trace, candidate: ModelVersion, champion: ModelVersion) -> tuple[str, ...]:
    """Pools that both have learnt from; the candidate's where there is none."""
    ours, theirs = (scored_pools(trace, one.train_from_s, one.train_until_s) for one in (candidate, champion))
    return tuple(pool for pool in ours if pool in theirs) or ours


def _left_out(contest: Contest) -> list[str]:
    return [f"no backtest: {', '.join(contest.missing)} not trained yet"] if contest.missing else []


def _record(registry: Registry, candidate: ModelVersion, told: Mapping[str, Any]) -> None:
    """Keep a comparison as a tag of the version, and one on a window in MLflow too: a run beside the version's."""
    of = "window" if "window" in told else "inputs"
    verdict = {key: told[key] for key in ("alias", "against", "promoted", "forced", "reasons", of)}
    if of == "window":
        with scratch_room("promotion") as room:
            file = room / "comparison.json"
            write_json(file, told)
            verdict["run_id"] = log_evaluation(registry.home, candidate, told, [file], kind=KIND)
    registry.tag(candidate, {TAG: to_json(verdict).strip()})
