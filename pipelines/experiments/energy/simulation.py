"""One simulation of a scheduler of energy: a scenario replayed under a policy, its figures and its tables.

What a policy believes of the seconds an epoch takes: the truth, a registered model's forecasts from few profiled
points, or noise.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.bad_answers import EPOCHS, BadAnswers
from jobcast.domain.errors import ConfigError, OverlapError, TraceError
from jobcast.models.epoch_time.epoch_time import believed_epoch_s, guarded_epoch_s, pick_profiles, slowest_s
from jobcast.pipelines.experiments.energy.jobs import EnergyScene
from jobcast.pipelines.experiments.forecast_specs import EPOCH_TIME
from jobcast.pipelines.experiments.seen_data import seen_by
from jobcast.pipelines.experiments.simulation import Simulated, timed
from jobcast.pipelines.experiments.sources import Ask, Believed, registered
from jobcast.pipelines.report.job_table import write_table
from jobcast.schedulers.policies import ENERGY, split_settings
from jobcast.schedulers.registry import find_of_kind, make_policy, plugin_named
from jobcast.schedulers.rounds import figures_of
from jobcast.simulator.engine import Meter, replay
from jobcast.simulator.laws.epochs import Epochs
from jobcast.simulator.log import RunLog, by_job
from jobcast.simulator.meters import EnergyMeter, Timed
from jobcast.traces.profiles import ProfileTable, profile_table, read_profiles

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
    ask: Ask,
    believed_epoch_s: Floats | None = None,
    costs: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Simulated:
    """Replay a scenario. Raises ConfigError for a setting that is not known, DecisionError as the engine does.

    `believed_epoch_s`, (n_jobs, n_kinds, most_gpus), is what the policy goes by; by default the true times. `costs` of
    changes are by default those that settings name.
    """
    rule = policy_of(ask.policy, ask.settings, ask.seed)
    how = split_settings(find_of_kind(ask.policy, ENERGY), ask.settings).mechanism
    law = {"snapshot_epochs": how.snapshot_epochs, "restart_s": how.restart_s} if costs is None else costs
    asked: dict[str, Any] = {"known_s": believed_epoch_s, "progress": progress, "meters": ask.watching, **law}
    with plugin_named(ask.policy):
        log, took = timed(lambda: replay_scenario(scenario, rule, **asked))
    # Asked for only now: a policy counts while it decides.
    return Simulated(log, **took, own=figures_of(rule))


def write_segments(scenario: EnergyScene, log: RunLog, path: Path) -> None:
    """Write spans by job, then by time, CSV to the microsecond or Parquet, by the ending.

    Their columns: job_id, node, gpus, from, until; seconds from the epoch.
    """
    # A Gantt chart is read job by job.
    result, job_ids, names = by_job(log.spans), scenario.job_ids, scenario.place.names
    table = pl.DataFrame(
        {
            "job_id": [job_ids[job] for job in result.job.tolist()],
            "node": [names[node] for node in result.node.tolist()],
            "gpus": result.gpus.astype(np.int64),
            "from": result.from_s,
            "until": result.until_s,
        },
        schema_overrides={"job_id": pl.String, "node": pl.String},
    )
    write_table(table, path)


CHOICES = "oracle, registry, conservative or noisy:P"


def believed_times(scenario: EnergyScene, ask: Ask, known: Path | None) -> Believed[Floats]:
    """Seconds an epoch as a source forecasts them, (n_jobs, n_kinds, most_gpus), None for the true ones.

    Where a registered model answers what cannot be, the job's slowest profile.

    `known`: file of the few points that the registry's model goes by; None: those that it picks of the profiles.

    Raises ConfigError for a source that forecasts no times, RegistryError for a model that is not there.
    """
    spec = ask.source
    if known is not None and spec.kind != "registry":
        raise ConfigError(f"--set known: points that --forecasts registry goes by, not {spec.label}; leave it out")
    if spec.kind == "oracle":
        return Believed()
    if spec.kind == "noisy":
        return Believed(noisy(scenario.facts.times.epoch_s, scenario.job_ids, spec.probability, ask.seed))
    if spec.kind == "conservative":
        return Believed(slowest_s(scenario.facts.times.epoch_s))
    if spec.kind == "registry":
        return registered_times(scenario, ask, known)
    raise ConfigError(f"--forecasts {spec.label}: forecasts no seconds an epoch; choose {CHOICES}")


def noisy(epoch_s: Floats, job_ids: tuple[str, ...], spread: float, seed: int) -> Floats:
    """Each time multiplied by exp(N(0, spread)), drawn by seed, job, kind and number of GPUs."""
    factors = [
        # By job id: a job's noise stays when others are left out. Python's own hash differs each time.
        np.random.default_rng([seed, zlib.crc32(job_id.encode())]).standard_normal(epoch_s.shape[1:])
        for job_id in job_ids
    ]
    return epoch_s * np.exp(spread * np.array(factors))


def registered_times(scenario: EnergyScene, ask: Ask, known: Path | None) -> Believed[Floats]:
    """What the champion of epoch times, or the version that is asked for, forecasts.

    It goes by the points of `known`, else by at most 3 points of the profiles a model and GPU type, picked by the plan
    of the version. Points are believed as they are. Where a job cannot run at all is known. In place of a time that
    cannot be (see `guarded_epoch_s`), and with `degrade` of all where there is no version, the slowest is believed.

    Raises
    ------
    RegistryError
        There is no such version.
    OverlapError
        It was trained on these profiles, on applications of this window, and that is not allowed.
    TraceError
        A model of the window is without a known point.
    """
    result, profiled_s = BadAnswers(), scenario.facts.times.epoch_s
    asked = registered(EPOCH_TIME, ask.source, ask.home, result, EPOCHS, ask.degrade)
    if asked is None:
        return Believed(slowest_s(profiled_s), tally=result)
    version, model = asked.version, asked.model
    names, profiles = set(scenario.facts.models), scenario.facts.profiles
    # Profiles have no time: a model seen in training is what overlaps.
    overlap = version.trace_sha256 == profiles.sha256 and not names.isdisjoint(model.models_)
    if overlap and not ask.allow_overlap:
        raise OverlapError(
            f"{version.name} version {version.version} was trained on {profiles.path} and knows its models, "
            f"{', '.join(sorted(names.intersection(model.models_)))} among them; train it on other profiles or, by "
            f"`jobcast train {version.name} --trace FILE --until TIME`, on jobs before the window, or pass "
            "--allow-overlap"
        )
    overlap |= seen_by(version, scenario.trace, ask.allow_overlap)
    points = _points(scenario, model, known)
    if missing := sorted(names.difference(points.models)):
        raise TraceError(f"{points.path}: model {missing[0]} has no known point; profile it at least once")
    epoch_s = guarded_epoch_s(lambda: _as_in_scenario(model, points, scenario), profiled_s, result, scenario.job_ids)
    note = f"{version.name} version {version.version} forecasts epoch times from {len(points)} points of {points.path}"
    return Believed(epoch_s, asked.named, overlap, result, (note,))


def _points(scenario: EnergyScene, model: Any, known: Path | None) -> ProfileTable:
    if known is not None:
        return read_profiles(known)
    profiles = scenario.facts.profiles
    # Only applications of the window: points of others cost measurements too.
    mine = profiles.frame.filter(pl.col("model").is_in(sorted(set(scenario.facts.models))))
    return pick_profiles(profile_table(mine, profiles.path, profiles.sha256), model.plan_)


def _as_in_scenario(model: Any, points: ProfileTable, scenario: EnergyScene) -> Floats:
    """(n_jobs, n_kinds, most_gpus) forecasts, each pair of model and batch size asked for once."""
    facts = scenario.facts
    pairs = list(zip(facts.models, facts.batch_sizes, strict=True))
    # Jobs share few pairs, and a forecast is dear.
    distinct = {pair: row for row, pair in enumerate(dict.fromkeys(pairs))}
    models, batch_sizes = zip(*distinct, strict=True)
    most = scenario.facts.times.epoch_s.shape[2]
    result = believed_epoch_s(model, points, models, batch_sizes, facts.gpu_types, most)
    return result[[distinct[pair] for pair in pairs]] * facts.scale[:, None, None]
