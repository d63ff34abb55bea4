"""One simulation of elastic jobs: a scene replayed under a policy, its figures and its table."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.clusters import preempting
from jobcast.pipelines.elastic.scene import ElasticScene
from jobcast.schedulers.elastic.policies import ELASTIC_POLICIES, find_elastic
from jobcast.schedulers.policies import POLICIES
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic
from jobcast.simulator.log import RunLog
from jobcast.traces.table import Trace

TABLE_SETTINGS = ("speedups", "noise", "noise_seed")
"""Settings that say what jobs are, whatever the policy."""


@dataclass(frozen=True, slots=True, eq=False)
class ElasticRun:
    """A finished replay, and what it cost: CPU and wall seconds of it alone."""

    log: RunLog
    cpu_s: float
    wall_s: float


def for_elastic(policy: str, trace: Trace) -> bool:
    """Whether a policy is to be taken from the elastic ones: they alone know it, or the trace's jobs are elastic."""
    return policy in ELASTIC_POLICIES and (policy not in POLICIES or bool(trace.elastic.any()))


def own_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings that are a policy's own."""
    return {name: value for name, value in settings.items() if name not in TABLE_SETTINGS}


def demand_settings(settings: Mapping[str, str]) -> dict[str, Any]:
    """Settings of the demand as `elastic_scene` takes them. Raises ConfigError for a value that cannot be read."""
    read: dict[str, Any] = {}
    if "speedups" in settings:
        read["speedups"] = Path(settings["speedups"])
    for name, kind, what in (("noise", float, "a share such as 0.4"), ("noise_seed", int, "a whole number")):
        if name in settings:
            try:
                read[name] = kind(settings[name])
            except ValueError as error:
                raise ConfigError(f"setting {name}: {settings[name]!r} is not {what}") from error
    return read


def prepare(scene: ElasticScene, policy: str, settings: Mapping[str, Any]) -> ElasticReplay:
    """A run at its beginning. Raises ConfigError for an unknown policy or setting."""
    factory = find_elastic(policy)
    rule = factory(settings, scene.gpu_types)
    mechanism = factory.mechanism(settings)
    cluster = preempting(scene.cluster, mechanism["preempt_s"], placed=rule.integral)
    how = {"pending_lease": mechanism["pending_lease"], "origin_s": scene.origin_s}
    return ElasticReplay(scene.jobs, scene.size_s, cluster, rule, **how)


def simulate_elastic(
    scene: ElasticScene,
    policy: str,
    settings: Mapping[str, Any],
    *,
    predict: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ElasticRun:
    """Replay a scene, with a forecast of each job's completion at its submission where `predict`.

    Raises ConfigError as `prepare`, DecisionError for a rule that gives out what is not there.
    """
    run = prepare(scene, policy, settings)
    wall, cpu = time.perf_counter(), time.process_time()
    log = replay_elastic(run, predict=predict, progress=progress)
    return ElasticRun(log, time.process_time() - cpu, time.perf_counter() - wall)
