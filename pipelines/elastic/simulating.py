"""One simulation of elastic jobs: a scene replayed under a policy, its figures and its table."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.pipelines.clusters import preempting
from jobcast.pipelines.elastic.figures import all_figures, fair_finish_s, run_log
from jobcast.pipelines.elastic.scene import ElasticScene
from jobcast.pipelines.job_table import write_table
from jobcast.pipelines.simulation import finite_or_none
from jobcast.schedulers.policies import ELASTIC, split_settings
from jobcast.schedulers.registry import find_of_kind, make_rule
from jobcast.simulator.elastic.run import ElasticLog, ElasticReplay, replay_elastic
from jobcast.simulator.metrics import against_baseline


@dataclass(frozen=True, slots=True, eq=False)
class ElasticRun:
    """A finished replay, and what it cost: CPU and wall seconds of it alone."""

    log: ElasticLog
    cpu_s: float
    wall_s: float


def prepare(scene: ElasticScene, policy: str, settings: Mapping[str, Any]) -> ElasticReplay:
    """A run at its beginning. Raises ConfigError for an unknown policy or setting."""
    how = split_settings(find_of_kind(policy, ELASTIC), settings).mechanism
    rule = make_rule(policy, scene.gpu_types, settings)
    cluster = preempting(scene.cluster, how.preempt_s, placed=rule.integral)
    return ElasticReplay(scene.jobs, scene.size_s, cluster, rule, pending_lease=how.pending_lease)


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


def figures(
    run: ElasticRun, base: ElasticRun | None, *, policy: str, warmup_until_s: float | None = None
) -> dict[str, Any]:
    """The figures of `simulate --json`: the run's own, then those against the baseline."""
    result = {
        "policy": policy,
        "forecasts": "oracle",
        **all_figures(run.log, policy, warmup_until_s),
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
    }
    if base is not None:
        result |= against_baseline(run_log(run.log, policy), run_log(base.log, "baseline"), warmup_until_s)
    return finite_or_none(result)


def write_elastic_table(scene: ElasticScene, log: ElasticLog, path: Path) -> None:
    """One row a job: the columns of `simulate --out`, then its forecast, fair finish times and GPU-seconds."""
    table = pl.DataFrame(
        {
            "job_id": scene.job_ids,
            "pool": scene.pools,
            "submit_time": log.submit_s + scene.origin_s,
            "start_time": log.start_s + scene.origin_s,
            "end_time": log.end_s + scene.origin_s,
            "gpus": log.most.astype(np.int64),
            "duration": log.size_s,
            "preemptions": log.preemptions,
            "fair_finish_s": fair_finish_s(log),
            "fair_finish_over_time_s": fair_finish_s(log, over_time=True),
            "gpu_s": log.gpu_s,
        }
    )
    if np.isfinite(log.predicted_end_s).any():
        table = table.with_columns(
            predicted_end_time=pl.Series(log.predicted_end_s + scene.origin_s),
            predicted_jct_s=pl.Series(log.predicted_end_s - log.submit_s),
        )
    write_table(table, path)
