"""One simulation of a scheduler of energy: a scene replayed under a policy, its figures and its tables."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl

from jobcast.domain.energy import EnergyPolicy, Floats
from jobcast.domain.errors import ConfigError
from jobcast.pipelines.energy.scene import EnergyScene
from jobcast.pipelines.simulation import Simulated
from jobcast.schedulers.policies import ENERGY, split_settings
from jobcast.schedulers.registry import find_of_kind, make_rule
from jobcast.simulator.energy.run import replay_energy
from jobcast.simulator.log import RunLog
from jobcast.simulator.spans import by_job
from jobcast.traces.files import replacing
from jobcast.traces.parquet import write_parquet

PROFILES, KNOWN, SEGMENTS = "profiles", "known", "segments"
"""Settings that name files: true times, the few that forecasts go by, and where to write the Gantt chart."""
SEED = "seed"
"""Setting of policies that draw."""


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
    progress: Callable[[int, int], None] | None = None,
) -> Simulated:
    """Replay a scene. Raises ConfigError for a setting that is not known, DecisionError as the engine does.

    `believed_epoch_s`, (n_jobs, n_kinds, most_gpus), is what the policy goes by; by default the true times.
    """
    rule, workload = policy_of(policy, settings, seed), scene.workload.believing(believed_epoch_s)
    how = dict(split_settings(find_of_kind(policy, ENERGY), settings).mechanism)
    wall, cpu = time.perf_counter(), time.process_time()
    log = replay_energy(workload, rule, progress=progress, **how)
    return Simulated(log, time.process_time() - cpu, time.perf_counter() - wall)


def segments_table(scene: EnergyScene, log: RunLog) -> pl.DataFrame:
    """Spans by job, then by time: job_id, node, gpus, from, until; seconds from the epoch."""
    told, job_ids, names = by_job(log.spans), scene.job_ids, scene.place.names
    return pl.DataFrame(
        {
            "job_id": [job_ids[job] for job in told.job.tolist()],
            "node": [names[node] for node in told.node.tolist()],
            "gpus": told.gpus.astype(np.int64),
            "from": told.from_s,
            "until": told.until_s,
        },
        schema_overrides={"job_id": pl.String, "node": pl.String},
    )


def write_segments(scene: EnergyScene, log: RunLog, path: Path) -> None:
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
