"""One simulation of jobs of tasks: a scene replayed under a policy, its figures and its table."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import ConfigError
from jobcast.domain.tasks import AccuracyForecast, TaskPolicy
from jobcast.pipelines.job_table import write_table
from jobcast.pipelines.simulation import finite_or_none
from jobcast.pipelines.speedups_by_job import speedups
from jobcast.pipelines.tasks.learned import Learned
from jobcast.pipelines.tasks.scene import TaskScene
from jobcast.schedulers.policies import TASKS, PolicySpec, split_settings
from jobcast.schedulers.registry import find_of_kind, make_rule
from jobcast.simulator.tasks.log import TaskLog
from jobcast.simulator.tasks.metrics import task_metrics
from jobcast.simulator.tasks.run import replay_tasks

FILES = ("tasks", "curves")
"""Settings that name files: what jobs consist of, and their true accuracies."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskRun:
    """A finished replay, CPU and wall seconds of it alone, the versions that answered, whether one saw the window, and
    what they answered that could not be."""

    log: TaskLog
    cpu_s: float
    wall_s: float
    models: Mapping[str, int] = field(default_factory=dict)
    overlap: bool = False
    told: BadAnswers = field(default_factory=BadAnswers)


def task_files(settings: Mapping[str, str]) -> tuple[Path, Path]:
    """The files of tasks and of curves. Raises ConfigError where one is not named."""
    for name in FILES:
        if name not in settings:
            raise ConfigError(
                f"--set {name}=FILE is missing: schedulers of tasks need it; `jobcast trace generate mlfs` writes one "
                f"with --{name}-out"
            )
    return Path(settings["tasks"]), Path(settings["curves"])


def simulate_tasks(
    scene: TaskScene,
    policy: str,
    settings: Mapping[str, str],
    forecast: AccuracyForecast | None,
    *,
    seed: int = 0,
    learned: Learned | None = None,
    models: Mapping[str, int] | None = None,
    told: BadAnswers | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TaskRun:
    """Replay a scene. Raises ConfigError for a setting that is not known, DecisionError as the engine does.

    `told`: where it is counted what a forecast and a learned policy answered that could not be.
    """
    known, told = learned or Learned(), BadAnswers() if told is None else told
    spec = find_of_kind(policy, TASKS)
    rule = _rule(spec, settings, known, told)
    workload, how = scene.workload, dict(split_settings(spec, settings).mechanism)
    wall, cpu = time.perf_counter(), time.process_time()
    log = replay_tasks(workload, rule, forecast, seed=seed, progress=progress, **how)
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
    return TaskRun(log, cpu_s, wall_s, {**(models or {}), **known.models}, known.overlap, told)


def _rule(spec: PolicySpec, settings: Mapping[str, str], known: Learned, told: BadAnswers) -> TaskPolicy:
    """A policy; a learned one is guarded by the rule whose place it takes, which takes its where there is none."""
    if known.networks is None and not known.missed:
        return cast(TaskPolicy, make_rule(spec.name, None, settings))
    from jobcast.schedulers.tasks.guarded import GuardedPolicy
    from jobcast.schedulers.tasks.network import Networks

    instead = find_of_kind(spec.instead, TASKS)
    rule = make_rule(spec.instead, None, {name: settings[name] for name in settings if instead.decides_by(name)})
    if not isinstance(known.networks, Networks):
        return cast(TaskPolicy, rule)
    return GuardedPolicy(make_rule(spec.name, known.networks, settings), rule, known.networks, told)


def figures(
    run: TaskRun, base: TaskRun | None, *, policy: str, forecasts: str, warmup_until_s: float | None = None
) -> dict[str, Any]:
    """The figures of `simulate --json`: the run's own, then those against the baseline."""
    result: dict[str, Any] = {
        "policy": policy,
        "forecasts": forecasts,
        **task_metrics(run.log, warmup_until_s),
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
    }
    if base is not None:
        result |= speedups(run.log, base.log, warmup_until_s)
    return finite_or_none(result)


def write_task_table(scene: TaskScene, log: TaskLog, path: Path) -> None:
    """One row a job: the columns of `simulate --out`, then deadline, accuracy and what its tasks cost."""
    trace = scene.trace
    table = pl.DataFrame(
        {
            "job_id": list(log.job_ids),
            "pool": trace.jobs["pool"],
            "submit_time": log.submit_s,
            "start_time": log.start_s,
            "end_time": log.end_s,
            "gpus": trace.jobs["gpus"],
            "duration": trace.jobs["duration"],
            "preemptions": log.preemptions,
            "waited_s": log.waited_s,
            "deadline_met": log.end_s <= log.deadline_s,
            "accuracy": log.accuracy,
            "accuracy_by_deadline": log.deadline_accuracy,
            "iterations_done": log.done / log.iterations,
            "migrations": log.migrations,
            "bandwidth_mb": log.edge_mb + log.moved_mb,
        }
    )
    write_table(table.with_columns(pl.col("start_time", "end_time").fill_nan(None)), path)
