"""One simulation of a scheduler of energy: a scenario replayed under a policy, its figures and its tables."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.energy import Floats
from jobcast.pipelines.experiments.energy.jobs import EnergyScene
from jobcast.pipelines.experiments.simulation import Simulated, timed
from jobcast.pipelines.report.job_table import write_table
from jobcast.schedulers.policies import ENERGY, split_settings
from jobcast.schedulers.registry import find_of_kind, make_policy, plugin_named
from jobcast.schedulers.rounds import figures_of
from jobcast.simulator.engine import Meter, replay
from jobcast.simulator.laws.epochs import Epochs
from jobcast.simulator.log import RunLog, by_job
from jobcast.simulator.meters import EnergyMeter, Timed

PROFILES, KNOWN, SEGMENTS = "profiles", "known", "segments"
"""Settings that name files: true times, the few that forecasts go by, and where to write the Gantt chart."""
SEED = "seed"
"""Setting of policies that draw."""


def policy_of(policy: str, settings: Mapping[str, str], seed: int) -> Any:
    """A policy with its settings; one that draws takes the seed where none is set. Raises ConfigError."""
    spec = find_of_kind(policy, ENERGY)
    # A seed that is set goes before the run's.
    drawn = {SEED: seed} if SEED in spec.settings.model_fields else {}
    return make_policy(policy, None, {**drawn, **settings})


def replay_scenario(
    scenario: EnergyScene,
    policy: Any,
    *,
    known_s: Floats | None = None,
    true_s: Floats | None = None,
    snapshot_epochs: int | None = 1,
    restart_s: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
    meters: Sequence[Meter] = (),
) -> RunLog:
    """The log of a scenario under a policy, with its energy and the time that decisions take.

    `known_s`, `true_s` : (n_jobs, n_kinds, most_gpus) seconds an epoch, the scenario's by default
    """
    facts, timed = scenario.facts, Timed(policy)
    known_s = facts.times.epoch_s if known_s is None else known_s
    times = facts.times if true_s is None else facts.times._replace(epoch_s=true_s)
    law = Epochs(times, facts.cluster, known_s, snapshot_epochs, restart_s)
    return replay(
        scenario.workload, timed, progress=progress, law=law, meters=(EnergyMeter(facts.cluster), timed, *meters)
    )


def simulate_energy(
    scenario: EnergyScene,
    policy: str,
    settings: Mapping[str, str],
    believed_epoch_s: Floats | None = None,
    *,
    seed: int = 0,
    costs: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
    meters: Sequence[Meter] = (),
) -> Simulated:
    """Replay a scenario. Raises ConfigError for a setting that is not known, DecisionError as the engine does.

    `believed_epoch_s`, (n_jobs, n_kinds, most_gpus), is what the policy goes by; by default the true times. `costs` of
    changes are by default those that settings name.
    """
    rule, how = policy_of(policy, settings, seed), split_settings(find_of_kind(policy, ENERGY), settings).mechanism
    law = {"snapshot_epochs": how.snapshot_epochs, "restart_s": how.restart_s} if costs is None else costs
    asked: dict[str, Any] = {"known_s": believed_epoch_s, "progress": progress, "meters": meters, **law}
    with plugin_named(policy):
        log, took = timed(lambda: replay_scenario(scenario, rule, **asked))
    # Asked for only now: a policy counts while it decides.
    return Simulated(log, **took, own=figures_of(rule))


def segments_table(scenario: EnergyScene, log: RunLog) -> pl.DataFrame:
    """Spans by job, then by time: job_id, node, gpus, from, until; seconds from the epoch."""
    # A Gantt chart is read job by job.
    result, job_ids, names = by_job(log.spans), scenario.job_ids, scenario.place.names
    return pl.DataFrame(
        {
            "job_id": [job_ids[job] for job in result.job.tolist()],
            "node": [names[node] for node in result.node.tolist()],
            "gpus": result.gpus.astype(np.int64),
            "from": result.from_s,
            "until": result.until_s,
        },
        schema_overrides={"job_id": pl.String, "node": pl.String},
    )


def write_segments(scenario: EnergyScene, log: RunLog, path: Path) -> None:
    """Write `segments_table`, CSV to the microsecond or Parquet, by the ending."""
    write_table(segments_table(scenario, log), path)
