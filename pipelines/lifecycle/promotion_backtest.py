"""What a candidate is worth to `sia` beside the champion: the same jobs, replayed with each."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib

from jobcast.domain.hardware import Cluster, PoolsTable
from jobcast.models.registry.cards import ModelVersion
from jobcast.pipelines.backtest import Cell, CellResult, run_matrix
from jobcast.pipelines.backtest_results import gains_between
from jobcast.pipelines.clusters import cluster_of
from jobcast.pipelines.console import Step
from jobcast.pipelines.experiment import Experiment
from jobcast.pipelines.forecast_specs import ForecastSpec
from jobcast.pipelines.gains import DRAWS
from jobcast.pipelines.lifecycle.verdict import CANDIDATE, CHAMPION
from jobcast.schedulers.policies import POOLS
from jobcast.traces.pools import DEFAULT_LOAD, derive_pools

if TYPE_CHECKING:
    from jobcast.pipelines.lifecycle.promotion import Contest, Window

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
        place = Cluster(quotas=PoolsTable.of(derived), origin=origin)
    return Experiment(trace=window.trace, cluster=place, from_s=begin_s, until_s=end_s, drop_wide=True, only_pools=True)


def _pinned(contest: "Contest", version: ModelVersion) -> ForecastSpec:
    versions = tuple((one.name, one.version) for one in (version, *contest.others))
    return ForecastSpec("registry", versions=versions)


def _figures(result: CellResult) -> dict[str, Any]:
    return {key: result.figures[key] for key in KEPT}
