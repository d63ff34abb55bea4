"""`jobcast simulate` for schedulers of tasks: what was asked, carried out and told."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.hardware import Cluster
from jobcast.pipelines.commands.options import dropped_lines, table_or_json
from jobcast.pipelines.console import Console, Step
from jobcast.pipelines.elastic.asking import Asked
from jobcast.pipelines.forecast_specs import ForecastSpec
from jobcast.pipelines.registered import trust
from jobcast.pipelines.rounds import ORACLE
from jobcast.pipelines.simulation import counted_from, figures_table, trust_lines
from jobcast.pipelines.tasks.accuracy import accuracy_forecast
from jobcast.pipelines.tasks.learned import learned_or_missed, learned_policy
from jobcast.pipelines.tasks.scene import TaskScene, task_scene
from jobcast.pipelines.tasks.simulating import (
    TaskRun,
    figures,
    simulate_tasks,
    task_files,
    write_task_table,
)
from jobcast.schedulers.policies import TASKS, split_settings
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
    """Replay, write the job table, print or write the figures. Raises ConfigError and TraceError as its parts do."""
    spec = spec or ORACLE
    tasks, curves = task_files(asked.settings)
    scene = task_scene(
        trace, place, tasks=tasks, curves=curves, from_s=asked.window[0], until_s=asked.window[1], limit=asked.limit
    )
    warmup_until_s = counted_from(float(scene.jobs.submit_s[0]), float(scene.jobs.submit_s[-1]), asked.warmup_days)
    base_name = None if asked.baseline in (None, "none") else asked.baseline
    plain = split_settings(find_of_kind(asked.policy, TASKS), asked.settings).plain("mechanism", "files")
    if base_name is not None:
        find_of_kind(base_name, TASKS)
    with console.progress(f"simulate {asked.policy}") as step:
        run = _run(scene, asked, asked.policy, asked.settings, spec, home, step)
    base = None
    if base_name is not None:
        same = base_name == asked.policy and plain == asked.settings
        base = run if same else _run(scene, asked, base_name, plain, spec, home, None)
    result = {
        **figures(run, base, policy=asked.policy, forecasts=spec.label, warmup_until_s=warmup_until_s),
        "baseline": asked.baseline or "none",
        **asked.provenance(scene.provenance(), run.models, run.overlap),
        **trust(run.told, run.models),
    }
    if out:
        write_task_table(scene, run.log, out)
        console.note(f"jobs: {out}")
    for line in (*scene.notes, *dropped_lines(scene.dropped), *trust_lines(result)):
        console.note(line)
    table_or_json(result, json_to, figures_table(result), console)


def _run(
    scene: TaskScene,
    asked: Asked,
    policy: str,
    settings: Mapping[str, str],
    spec: ForecastSpec,
    home: Path,
    step: Step | None,
) -> TaskRun:
    """A replay under a policy; a baseline is given settings of files and cluster alone."""
    told = BadAnswers()
    chosen = accuracy_forecast(
        *(spec, scene.truth.metric), home=home, seed=asked.seed, told=told, job_ids=scene.job_ids, degrade=asked.degrade
    )
    how: dict[str, Any] = {"home": home, "allow_overlap": asked.allow_overlap}
    learned = (
        learned_or_missed(policy, spec, scene.trace, told=told, **how)
        if asked.degrade
        else learned_policy(policy, spec, scene.trace, **how)
    )
    return simulate_tasks(
        scene,
        policy,
        settings,
        chosen.forecast,
        seed=asked.seed,
        learned=learned,
        models=chosen.models,
        told=told,
        progress=step,
    )
