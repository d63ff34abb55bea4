"""`jobcast simulate` for schedulers of energy: what was asked, carried out and told."""

from collections.abc import Mapping
from pathlib import Path

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import Cluster
from jobcast.pipelines.commands.options import check_places, dropped_lines, table_or_json
from jobcast.pipelines.console import Console, Step
from jobcast.pipelines.elastic.asking import Asked
from jobcast.pipelines.energy.believing import Believed, believed_times
from jobcast.pipelines.energy.scene import EnergyScene, energy_scene
from jobcast.pipelines.energy.simulating import (
    KNOWN,
    PROFILES,
    SEGMENTS,
    EnergyRun,
    check_segments,
    figures,
    policy_of,
    profiles_file,
    simulate_energy,
    write_energy_table,
    write_segments,
)
from jobcast.pipelines.forecast_specs import ForecastSpec
from jobcast.pipelines.registered import trust
from jobcast.pipelines.rounds import ORACLE
from jobcast.pipelines.simulation import counted_from, figures_table, trust_lines
from jobcast.schedulers.policies import ENERGY, split_settings
from jobcast.schedulers.registry import find_of_kind
from jobcast.traces.table import Trace


def simulate_and_tell(
    trace: Trace,
    place: Cluster,
    asked: Asked,
    spec: ForecastSpec | None,
    console: Console,
    *,
    home: Path,
    out: Path | None,
    json_to: str | None,
) -> None:
    """Replay, write the tables, print or write the figures. Raises ConfigError and TraceError as its parts do."""
    spec, settings = spec or ORACLE, asked.settings
    segments = _segments_file(asked, out, json_to)
    profiles, known = profiles_file(settings), Path(settings[KNOWN]) if KNOWN in settings else None
    split = split_settings(find_of_kind(asked.policy, ENERGY), settings)
    base_name = None if asked.baseline in (None, "none") else asked.baseline
    for name, given in ((asked.policy, settings), (base_name, {})):
        if name is not None:
            policy_of(name, given, asked.seed)
    scene = energy_scene(
        trace,
        place.priced(**dict(split.site)),
        profiles=profiles,
        from_s=asked.window[0],
        until_s=asked.window[1],
        limit=asked.limit,
    )
    submit_s = scene.jobs.submit_s
    warmup_until_s = counted_from(float(submit_s[0]), float(submit_s[-1]), asked.warmup_days)
    believed = believed_times(
        *(spec, scene),
        known=known,
        home=home,
        seed=asked.seed,
        allow_overlap=asked.allow_overlap,
        degrade=asked.degrade,
    )
    plain = split.plain("mechanism", "files", "site")
    with console.progress(f"simulate {asked.policy}") as step:
        run = _run(scene, asked, asked.policy, settings, believed, step)
    base = None
    if base_name is not None:
        same = base_name == asked.policy and plain == settings
        base = run if same else _run(scene, asked, base_name, plain, believed, None)
    result = {
        **figures(run, base, policy=asked.policy, forecasts=spec.label, warmup_until_s=warmup_until_s),
        "baseline": asked.baseline or "none",
        **asked.provenance(scene.provenance(), run.models, run.overlap),
        **trust(believed.told, run.models),
    }
    if out:
        write_energy_table(scene, run.log, out)
        console.note(f"jobs: {out}")
    if segments:
        write_segments(scene, run.log, segments)
        console.note(f"segments: {segments}")
    for line in (*scene.notes, *believed.notes, *dropped_lines(scene.dropped), *trust_lines(result)):
        console.note(line)
    table_or_json(result, json_to, figures_table(result), console)


def _segments_file(asked: Asked, out: Path | None, json_to: str | None) -> Path | None:
    """Where the Gantt chart goes. Raises ConfigError for a place that cannot be written to."""
    if SEGMENTS not in asked.settings:
        return None
    if not asked.settings[SEGMENTS]:
        raise ConfigError(f"--set {SEGMENTS}=: names nothing; name a file that ends in .csv or .parquet")
    segments = Path(asked.settings[SEGMENTS])
    check_segments(segments)
    inputs = [Path(asked.settings[name]) for name in (PROFILES, KNOWN) if name in asked.settings]
    check_places(json_to, inputs, {"--out": out, f"--set {SEGMENTS}": segments})
    return segments


def _run(
    scene: EnergyScene,
    asked: Asked,
    policy: str,
    settings: Mapping[str, str],
    believed: Believed,
    step: Step | None,
) -> EnergyRun:
    """A replay under a policy; a baseline is given settings of files and cluster alone."""
    return simulate_energy(
        scene,
        policy,
        settings,
        believed.epoch_s,
        seed=asked.seed,
        models=believed.models,
        overlap=believed.overlap,
        progress=step,
    )
