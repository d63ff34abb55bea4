"""A backtest of a user's own trace: the matrix, its figures, its folder."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib

from jobcast import __version__
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.backtest import label_of, matrix, run_matrix, windows_of, with_settings
from jobcast.pipelines.backtest_results import gains_between, write_results
from jobcast.pipelines.cells import LOCALITY, asks_for_locality, check_locality, placed
from jobcast.pipelines.closed_loop import check_loop, told_of_loop
from jobcast.pipelines.clusters import cluster_of
from jobcast.pipelines.console import Console
from jobcast.pipelines.files import write_json
from jobcast.pipelines.forecast_specs import PREDICTORS, ForecastSpec
from jobcast.pipelines.gains import DRAWS
from jobcast.pipelines.policy_settings import check_forecasts, check_settings
from jobcast.pipelines.scenes import LOOP_NOTE, Scene, build_scene
from jobcast.pipelines.simulation import trust_lines
from jobcast.pipelines.times import iso
from jobcast.schedulers.policies import GOODPUT, POOLS, ROUNDS
from jobcast.schedulers.registry import find_of_kind
from jobcast.traces.table import Trace


@dataclass(frozen=True, slots=True)
class BacktestRequest:
    """What the user asked for."""

    policies: tuple[str, ...]
    forecasts: tuple[ForecastSpec, ...]
    pools: Path | None
    from_s: float | None
    until_s: float | None
    windows: int
    seeds: int
    baseline: str
    warmup_days: float
    drop_too_wide: bool
    pools_only: bool
    jobs: int | None
    engine: str
    allow_overlap: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    max_think_s: float | None = None
    degrade: bool = False


def run_backtest(
    request: BacktestRequest, trace: Trace, *, out: Path | None, home: Path, console: Console
) -> dict[str, Any]:
    """Replay the matrix; write the folder and its report where `out` is given; the figures come back.

    Raises ConfigError for unknown policies, and whatever scenes and sources refuse, before anything is written.
    """
    for name in (*request.policies, request.baseline):
        find_of_kind(name, POOLS, ROUNDS, GOODPUT)
    for policy in request.policies:
        for spec in request.forecasts:
            check_forecasts(policy, spec)
    local = asks_for_locality(request.settings)
    own = {name: value for name, value in request.settings.items() if name != LOCALITY}
    for policy in request.policies if local else ():
        check_locality(policy, request.baseline)
    check_settings(request.policies, own, local)
    if request.max_think_s is not None:
        asked = [(policy, spec) for policy in request.policies for spec in request.forecasts]
        check_loop(asked, request.baseline, request.settings)
    scenes = _scenes(request, trace)
    pairs = [(policy, spec, label_of(policy, spec)) for policy in request.policies for spec in request.forecasts]
    cells = with_settings(matrix(pairs, len(scenes), request.seeds), own, local)
    if not cells:
        raise ConfigError("--policies: nothing named; write --policies mmfs,sia")
    with console.progress("backtest") as step:
        results = run_matrix(
            scenes,
            cells,
            home=home,
            baseline=request.baseline,
            jobs=request.jobs or joblib.cpu_count(),
            engine=request.engine,
            allow_overlap=request.allow_overlap,
            degrade=request.degrade,
            warmup_days=request.warmup_days,
            progress=step,
        )
    result: dict[str, Any] = {
        "baseline": request.baseline,
        "rows": [
            one.row()
            | told_of_loop(scenes[one.cell.window], one.log)
            | {"wall_s": one.run.wall_s, "cpu_s": one.run.cpu_s}
            for one in results
        ],
        "gains": gains_between(results, draws=DRAWS),
        "models": {one.cell.label: dict(one.run.models) for one in results if one.run.models},
        "overlap_allowed": any(one.run.overlap for one in results),
        "simulated": True,
        "inputs": [scene.provenance(trace) for scene in scenes],
        "configuration": {"settings": dict(request.settings)},
        "seeds": request.seeds,
        "jobcast": __version__,
    }
    if out:
        names = [pool.name for pool in scenes[0].workload.pools]
        write_results(out, results, names, baseline=request.baseline, draws=DRAWS)
        write_json(out / "inputs.json", _inputs(request, trace, scenes, result, home))
        write_json(out / "figures.json", result)
        from jobcast.pipelines.stages.report import report_backtest

        console.note(f"report: {report_backtest(out)}")
    doubts = [f"{one.cell.label}: {line}" for one in results for line in trust_lines(one.figures)]
    for note in (*scenes[0].notes, *_dropped(scenes), *dict.fromkeys(doubts)):
        console.note(note)
    return result


def _scenes(request: BacktestRequest, trace: Trace) -> list[Scene]:
    place = cluster_of(trace, pools=request.pools, from_s=request.from_s)
    begin = float(trace.submit_s[0]) if request.from_s is None else request.from_s
    end = float(trace.submit_s[-1]) + 1.0 if request.until_s is None else request.until_s
    if begin >= end:
        raise ConfigError("--from must lie before --until")
    scenes = [
        build_scene(
            trace,
            place.pools,
            origin=place.origin,
            from_s=since,
            until_s=until,
            drop_wide=request.drop_too_wide,
            only_pools=request.pools_only,
            max_think_s=request.max_think_s,
        )
        for since, until in windows_of(begin, end, request.windows)
    ]
    return [placed(scene, place.cells) for scene in scenes] if asks_for_locality(request.settings) else scenes


def _dropped(scenes: list[Scene]) -> list[str]:
    return [
        f"dropped {count:,}: {reason} (window from {iso(scene.from_s)})"
        for scene in scenes
        for reason, count in scene.dropped.items()
    ]


def _inputs(
    request: BacktestRequest, trace: Trace, scenes: list[Scene], result: dict[str, Any], home: Path
) -> dict[str, Any]:
    from jobcast.models.registry import open_registry
    from jobcast.pipelines.model_tables import version_row

    used = {(name, number) for models in result["models"].values() for name, number in models.items()}
    registry = open_registry(home)
    order = {name: position for position, name in enumerate(PREDICTORS)}
    versions = [registry.resolve(*one) for one in sorted(used, key=lambda one: (order[one[0]], one[1]))]
    return {
        "trace": {
            "name": trace.name,
            "sha256": trace.source.sha256,
            "rows": trace.source.rows,
            "jobs": sum(len(scene.workload.jobs) for scene in scenes),
            "from": float(trace.submit_s[0]),
            "until": float(trace.submit_s[-1]),
            "pools_origin": next((note for note in scenes[0].notes if note.startswith("quotas:")), None),
            "notes": list(trace.notes),
            "dropped": dict(scenes[0].dropped),
        },
        "from_s": scenes[0].from_s,
        "until_s": scenes[-1].until_s,
        "pools": {pool.name: pool.quota for pool in scenes[0].workload.pools},
        "models": [version_row(version) for version in versions],
        "command": f"jobcast {shlex.join(sys.argv[1:])}",
        "notes": [
            *["training data of a model reach into the window (--allow-overlap)"] * result["overlap_allowed"],
            *(note for scene in scenes for note in scene.notes if note.startswith((LOOP_NOTE, LOCALITY))),
        ],
    }
