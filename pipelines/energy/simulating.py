"""One simulation of a scheduler of energy: a scene replayed under a policy, its figures and its tables."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from jobcast.domain.energy import EnergyPolicy, Floats
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.energy.scene import EnergyScene
from jobcast.pipelines.job_table import write_table
from jobcast.pipelines.simulation import finite_or_none
from jobcast.pipelines.speedups_by_job import speedups
from jobcast.schedulers.policies import ENERGY, split_settings
from jobcast.schedulers.registry import find_of_kind, make_rule
from jobcast.simulator.energy.log import EnergyLog
from jobcast.simulator.energy.metrics import energy_metrics
from jobcast.simulator.energy.run import replay_energy
from jobcast.traces.files import replacing
from jobcast.traces.parquet import write_parquet

PROFILES, KNOWN, SEGMENTS = "profiles", "known", "segments"
"""Settings that name files: true times, the few that forecasts go by, and where to write the Gantt chart."""
SEED = "seed"
"""Setting of policies that draw."""


@dataclass(frozen=True, slots=True, eq=False)
class EnergyRun:
    """A finished replay, CPU and wall seconds of it alone, the versions that answered, whether one saw the window."""

    log: EnergyLog
    cpu_s: float
    wall_s: float
    models: Mapping[str, int] = field(default_factory=dict)
    overlap: bool = False


def profiles_file(settings: Mapping[str, str]) -> Path:
    """The file of profiles. Raises ConfigError where it is not named."""
    if PROFILES not in settings:
        raise ConfigError(
            f"--set {PROFILES}=FILE is missing: schedulers of energy need it; `jobcast trace generate andreas` writes "
            "one with --profiles-out"
        )
    return Path(settings[PROFILES])


def policy_of(policy: str, settings: Mapping[str, str], seed: int) -> EnergyPolicy:
    """A policy with its own of some settings; one that draws takes the seed where none is set. Raises ConfigError."""
    spec = find_of_kind(policy, ENERGY)
    drawn = {SEED: seed} if SEED in spec.settings.model_fields else {}
    return cast(EnergyPolicy, make_rule(policy, None, {**drawn, **settings}))


def simulate_energy(
    scene: EnergyScene,
    policy: str,
    settings: Mapping[str, str],
    believed_epoch_s: Floats | None = None,
    *,
    seed: int = 0,
    models: Mapping[str, int] | None = None,
    overlap: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> EnergyRun:
    """Replay a scene. Raises ConfigError for a setting that is not known, DecisionError as the engine does.

    `believed_epoch_s`, (n_jobs, n_kinds, most_gpus), is what the policy goes by; by default the true times.
    """
    rule, workload = policy_of(policy, settings, seed), scene.workload(believed_epoch_s)
    how = dict(split_settings(find_of_kind(policy, ENERGY), settings).mechanism)
    wall, cpu = time.perf_counter(), time.process_time()
    log = replay_energy(workload, rule, progress=progress, **how)
    return EnergyRun(log, time.process_time() - cpu, time.perf_counter() - wall, models or {}, overlap)


def figures(
    run: EnergyRun, base: EnergyRun | None, *, policy: str, forecasts: str, warmup_until_s: float | None = None
) -> dict[str, Any]:
    """The figures of `simulate --json`: the run's own, then those against the baseline."""
    own = energy_metrics(run.log, warmup_until_s)
    result: dict[str, Any] = {
        "policy": policy,
        "forecasts": forecasts,
        **own,
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
    }
    if base is not None:
        result |= speedups(run.log, base.log, warmup_until_s)
        result["saving_pct"] = saving_pct(own["total_eur"], energy_metrics(base.log, warmup_until_s)["total_eur"])
    return finite_or_none(result)


def saving_pct(total_eur: float, base_eur: float) -> float:
    """By how much less something costs than something else; NaN where that costs nothing.

    >>> saving_pct(38.0, 100.0)
    62.0
    """
    return 100.0 * (1.0 - total_eur / base_eur) if base_eur > 0.0 else float("nan")


def write_energy_table(scene: EnergyScene, log: EnergyLog, path: Path) -> None:
    """One row a job: the columns of `simulate --out`, then moves, energy, tardiness, and the due date in seconds."""
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
            "migrations": log.migrations,
            "energy_kwh": log.energy_kwh,
            "energy_eur": log.energy_eur,
            "tardiness_s": log.tardiness_s,
            "tardiness_eur": log.tardiness_eur,
            "deadline": np.where(np.isfinite(log.due_s), log.due_s, np.nan),
        }
    )
    write_table(table.with_columns(pl.col("start_time", "end_time", "deadline").fill_nan(None)), path)


def segments_table(scene: EnergyScene, log: EnergyLog) -> pl.DataFrame:
    """Stretches in which jobs held GPUs of a node: job_id, node, gpus, from, until; seconds from the epoch."""
    told, names = log.segments, scene.place.names
    return pl.DataFrame(
        {
            "job_id": [log.job_ids[job] for job in told.job.tolist()],
            "node": [names[node] for node in told.node.tolist()],
            "gpus": told.gpus,
            "from": told.from_s,
            "until": told.until_s,
        },
        schema_overrides={"job_id": pl.String, "node": pl.String},
    )


def write_segments(scene: EnergyScene, log: EnergyLog, path: Path) -> None:
    """Write `segments_table`, CSV to the microsecond or Parquet, by the ending."""
    check_segments(path)
    table = segments_table(scene, log)
    with replacing(path) as draft:
        if path.suffix.lower() == ".csv":
            table.write_csv(draft, float_precision=6, float_scientific=False)
        else:
            write_parquet(table, draft)


def check_segments(path: Path) -> None:
    """ConfigError unless the ending names a format."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ConfigError(f"--set {SEGMENTS}={path}: end the name in .csv or .parquet")
