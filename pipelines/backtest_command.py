"""A backtest of a user's own trace: the matrix, its figures, its folder."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib

from jobcast import __version__
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.backtest import (
    Cell,
    CellResult,
    label_of,
    matrix,
    run_matrix,
    windows_of,
    with_baseline,
    with_settings,
)
from jobcast.pipelines.backtest_results import remarks, results_of, write_results
from jobcast.pipelines.cells import LOCALITY, asks_for_locality, check_locality, placed
from jobcast.pipelines.closed_loop import check_loop, told_of_loop
from jobcast.pipelines.clusters import cluster_of
from jobcast.pipelines.console import Console
from jobcast.pipelines.files import write_json
from jobcast.pipelines.forecast_specs import ASKED, ForecastSpec
from jobcast.pipelines.gains import DRAWS
from jobcast.pipelines.policy_settings import check_forecasts, check_settings
from jobcast.pipelines.scenes import LOOP_NOTE, Scene, build_scene
from jobcast.pipelines.simulation import trust_lines
from jobcast.pipelines.times import iso
from jobcast.schedulers.policies import GOODPUT, POOLS, ROUNDS
from jobcast.schedulers.registry import find_of_kind
from jobcast.traces.facts import assumptions_beside, sentences
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
    against: tuple[str, ...] = ()


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
    wanted = with_settings(matrix(pairs, len(scenes), request.seeds), own, local)
    if not wanted:
        raise ConfigError("--policies: nothing named; write --policies mmfs,sia")
    cells = with_baseline(wanted, request.baseline)
    against = _against(request.against, cells)
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
    rests_on = assumptions_beside(trace.source.path)
    assumptions = sentences(rests_on) if rests_on else ()
    told = results_of(results, baseline=request.baseline, draws=DRAWS, against=against, assumptions=assumptions)
    result: dict[str, Any] = {
        **told,
        "rows": [_full_row(one, scenes[one.cell.window]) for one in results],
        "overlap_allowed": any(one.run.overlap for one in results),
        "simulated": True,
        "inputs": [scene.provenance() for scene in scenes],
        "configuration": {"settings": dict(request.settings)},
        "seeds": request.seeds,
        "jobcast": __version__,
    }
    if out:
        write_results(out, told, results, scenes)
        write_json(out / "inputs.json", _inputs(request, trace, scenes, result, home))
        write_json(out / "figures.json", result)
        from jobcast.pipelines.stages.report import report_backtest

        console.note(f"report: {report_backtest(out)}")
    doubts = [f"{one.cell.label}: {line}" for one in results for line in trust_lines(one.figures)]
    for note in (*scenes[0].notes, *_dropped(scenes), *remarks(result), *dict.fromkeys(doubts)):
        console.note(note)
    return result


def _full_row(one: CellResult, scene: Scene) -> dict[str, Any]:
    row = one.full_row()
    return {**row, "figures": row["figures"] | told_of_loop(scene, one.log)}


def _against(asked: Sequence[str], cells: Sequence[Cell]) -> list[str]:
    """Labels of the rows that `--against` means: one, or all of a policy. Raises ConfigError where there is none."""
    labels = list(dict.fromkeys(cell.label for cell in cells))
    policies = {cell.label: cell.policy for cell in cells}
    for name in asked:
        if name not in (*labels, *policies.values()):
            raise ConfigError(
                f"--against {name}: no such row; name a policy of --policies, or one of: {'; '.join(labels)}"
            )
    return [label for name in asked for label in labels if name in (label, policies[label])]


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

    used = {(name, number) for row in result["rows"] for name, number in row["versions"].items()}
    registry = open_registry(home)
    order = {name: position for position, name in enumerate(ASKED)}
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
