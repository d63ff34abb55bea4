"""One simulation of jobs of tasks: a scene replayed under a policy, its figures and its table."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import ConfigError
from jobcast.domain.tasks import AccuracyForecast, TaskPolicy
from jobcast.pipelines.tasks.learned import Learned
from jobcast.pipelines.tasks.scene import TaskScene
from jobcast.schedulers.settings import at_least_zero, delay, read_settings, seconds, share
from jobcast.schedulers.tasks.policies import TaskFactory, find_task_policy
from jobcast.simulator.log import RunLog
from jobcast.simulator.tasks.run import replay_tasks

FILES = ("tasks", "curves")
"""Settings that name files: what jobs consist of, and their true accuracies."""
MECHANISM = {"round_s": seconds, "fluctuation": at_least_zero, "restart_s": delay, "forecast_every": share}
"""Settings of the cluster, whatever the policy."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskRun:
    """A finished replay, CPU and wall seconds of it alone, the versions that answered, whether one saw the window, and
    what they answered that could not be."""

    log: RunLog
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


def own_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings that are a policy's own."""
    return {name: value for name, value in settings.items() if name not in (*FILES, *MECHANISM)}


def mechanism(settings: Mapping[str, str]) -> dict[str, Any]:
    """Settings of the cluster as `replay_tasks` takes them. Raises ConfigError for a value that cannot be read."""
    return read_settings("the cluster", MECHANISM, {key: settings[key] for key in settings if key in MECHANISM})


def simulate_tasks(
    scene: TaskScene,
    factory: TaskFactory,
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
    policy = _policy(factory, own_settings(settings), known, told)
    workload, how = scene.workload, mechanism(settings)
    wall, cpu = time.perf_counter(), time.process_time()
    log = replay_tasks(workload, policy, forecast, seed=seed, progress=progress, **how)
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
    return TaskRun(log, cpu_s, wall_s, {**(models or {}), **known.models}, known.overlap, told)


def _policy(factory: TaskFactory, own: Mapping[str, str], known: Learned, told: BadAnswers) -> TaskPolicy:
    """A policy; a learned one is guarded by the rule whose place it takes, which takes its where there is none."""
    if known.networks is None and not known.missed:
        return factory(own)
    from jobcast.schedulers.tasks.guarded import RULES, GuardedPolicy
    from jobcast.schedulers.tasks.network import Networks

    instead = find_task_policy(RULES[factory.name])
    rule = instead({name: value for name, value in own.items() if name in instead.readers})
    if not isinstance(known.networks, Networks):
        return rule
    return GuardedPolicy(factory(own, known.networks), rule, known.networks, told)
