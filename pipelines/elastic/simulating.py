"""One simulation of elastic jobs: a scene replayed under a policy, its figures and its table."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jobcast.pipelines.clusters import preempting
from jobcast.pipelines.elastic.scene import ElasticScene
from jobcast.schedulers.policies import ELASTIC, split_settings
from jobcast.schedulers.registry import find_of_kind, make_rule
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic
from jobcast.simulator.log import RunLog


@dataclass(frozen=True, slots=True, eq=False)
class ElasticRun:
    """A finished replay, and what it cost: CPU and wall seconds of it alone."""

    log: RunLog
    cpu_s: float
    wall_s: float


def prepare(scene: ElasticScene, policy: str, settings: Mapping[str, Any]) -> ElasticReplay:
    """A run at its beginning. Raises ConfigError for an unknown policy or setting."""
    how = split_settings(find_of_kind(policy, ELASTIC), settings).mechanism
    rule = make_rule(policy, scene.gpu_types, settings)
    cluster = preempting(scene.cluster, how.preempt_s, placed=rule.integral)
    given = {"pending_lease": how.pending_lease, "origin_s": scene.origin_s}
    return ElasticReplay(scene.jobs, scene.size_s, cluster, rule, **given)


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
