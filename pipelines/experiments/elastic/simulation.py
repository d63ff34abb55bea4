"""One simulation of elastic jobs: a scenario replayed under a policy, its figures and its table."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from jobcast.pipelines.experiments.clusters import preempting
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene
from jobcast.pipelines.experiments.simulation import Simulated
from jobcast.schedulers.policies import ELASTIC, split_settings
from jobcast.schedulers.registry import find_of_kind, make_rule
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic


def prepare(scenario: ElasticScene, policy: str, settings: Mapping[str, Any]) -> ElasticReplay:
    """A run at its beginning. Raises ConfigError for an unknown policy or setting."""
    how, workload = split_settings(find_of_kind(policy, ELASTIC), settings).mechanism, scenario.workload
    rule = make_rule(policy, scenario.place.gpu_types, settings)
    cluster = preempting(workload.cluster, how.preempt_s, placed=rule.integral)
    given = {"pending_lease": how.pending_lease, "origin_s": workload.origin_s}
    return ElasticReplay(workload.jobs, workload.size_s, cluster, rule, **given)


def simulate_elastic(
    scenario: ElasticScene,
    policy: str,
    settings: Mapping[str, Any],
    *,
    predict: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Simulated:
    """Replay a scenario, with a forecast of each job's completion at its submission where `predict`.

    Raises ConfigError as `prepare`, DecisionError for a rule that gives out what is not there.
    """
    run = prepare(scenario, policy, settings)
    wall, cpu = time.perf_counter(), time.process_time()
    log = replay_elastic(run, predict=predict, progress=progress)
    return Simulated(log, time.process_time() - cpu, time.perf_counter() - wall)


def placing_notes(scenario: ElasticScene, policy: str, own: Mapping[str, Any]) -> tuple[str, ...]:
    """What to say where a cluster has nodes and jobs are not placed on them."""
    placed = len(scenario.workload.cluster.node_gpus) > 0
    if not placed or make_rule(policy, scenario.place.gpu_types, own).integral:
        return ()
    return (f"{policy} deals out fractions of GPUs: jobs are not placed on nodes (--set whole_gpus=true places them)",)
