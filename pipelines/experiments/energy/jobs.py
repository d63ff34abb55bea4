"""Jobs with due dates: a window's jobs, their profiles, and nodes of unlike GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.energy import EnergyCluster, EpochTimes
from jobcast.domain.errors import TraceError
from jobcast.domain.jobs import FLAT_POOL, Job, Outcome, Pool
from jobcast.pipelines.experiments.clusters import assumed_power, energy_cluster
from jobcast.pipelines.experiments.scenarios import Bare, Scenario, untold
from jobcast.simulator.workload import Workload
from jobcast.traces.profiles import ProfileTable, read_profiles
from jobcast.traces.table import Trace

DEFAULT_WEIGHT = 1.0
"""EUR an hour of tardiness, of a job without a weight."""
UNTOLD = {
    "deadline": "no deadline: jobs may end at any time",
    "weight": f"no weight: an hour of tardiness of any job costs {DEFAULT_WEIGHT:g} EUR",
    "batch_size": "no batch_size: profiles of any batch size are taken, else those of a model's smallest",
}
"""What jobs are taken to be where the trace does not say."""
WHO = "schedulers of energy"
"""Who needs columns, in words."""


@dataclass(frozen=True, slots=True, eq=False)
class EnergyFacts:
    """What is known of jobs and nodes.

    Attributes
    ----------
    times : epochs of jobs and how long they take, in truth
    cluster : the nodes
    profiles : the true times
    scale : (n_jobs,) seconds an epoch over the profiled ones; 1 unless the trace binds durations, see `energy_jobs`
    models, batch_sizes : (n_jobs,); no batch size: None
    gpu_types : of each kind of nodes
    """

    times: EpochTimes
    cluster: EnergyCluster
    profiles: ProfileTable
    scale: Floats
    models: tuple[str, ...]
    batch_sizes: tuple[int | None, ...]
    gpu_types: tuple[str, ...]


EnergyScene = Scenario[Workload, EnergyFacts]


def energy_jobs(cut: Bare, *, profiles: Path, widest: int = 0) -> EnergyScene:
    """The jobs of a window with their times on every kind of node; the policy knows the true ones.

    Where `duration_gpus` says how many GPUs a duration holds for, a job uses as many as it asks for at most, and its
    epochs are as much longer or shorter as makes it last for that duration on GPUs of the table's first type.

    Parameters
    ----------
    cut : the window, with `epochs` and `model`; `batch_size`, `deadline` and `weight` where there are
    profiles : file of seconds an epoch, as `traces.profiles` reads it
    widest : GPUs up to which times are read, also beyond those of a node; a node's by default

    Raises
    ------
    TraceError
        The file cannot be read, or a job can run on no node.
    ConfigError
        What the nodes draw is not known.
    """
    place, window = cut.place, cut.trace
    cluster, gpu_types = energy_cluster(place)
    table = read_profiles(profiles)
    epochs = window.needed("epochs", WHO).cast(pl.Float64).to_numpy()
    models, batch_sizes = tuple(window.needed("model", WHO).to_list()), tuple(window.values("batch_size"))
    scale = _scale(window, table, models, batch_sizes, epochs)
    epoch_s = epoch_times(table, models, batch_sizes, cluster, gpu_types, widest)
    # A bound job uses no more GPUs than it asks for: its duration says nothing of more.
    beyond = window.bound[:, None] & (np.arange(1, epoch_s.shape[2] + 1) > window.gpus[:, None])
    epoch_s = np.where(beyond[:, None, :], np.inf, epoch_s * scale[:, None, None])
    numbers: dict[tuple[str, int | None], int] = {}
    applications = [numbers.setdefault(pair, len(numbers)) for pair in zip(models, batch_sizes, strict=True)]
    times = EpochTimes(epochs, epoch_s, np.array(applications))
    facts = EnergyFacts(times, cluster, table, scale, models, batch_sizes, gpu_types)
    # Told by job and profile, before the workload's own check, which knows neither.
    _refuse_homeless(epoch_s, window, facts)
    workload = _workload(cut, cluster)
    workload.check()
    notes = (place.origin, *assumed_power(place), *table.notes, *untold(window, UNTOLD))
    inputs = {"profiles": {"path": table.path, "sha256": table.sha256, "rows": len(table)}}
    return cut.of(workload, facts, *notes, inputs=inputs)


def _workload(cut: Bare, cluster: EnergyCluster) -> Workload:
    """Jobs that may all be stopped, in one pool; one that asks for more GPUs than there are asks for all of them."""
    window, servers = cut.trace, cluster.kind_gpus[cluster.kind_of].tolist()
    total = sum(servers)
    # More GPUs than there are would fail the workload's own check.
    gpus, weights = np.minimum(window.gpus, total).tolist(), window.numbers("weight", DEFAULT_WEIGHT).tolist()
    rows = zip(cut.job_ids, window.submit_s.tolist(), gpus, weights, window.due_s.tolist(), strict=True)
    jobs = [
        Job(seq, job_id, FLAT_POOL, submit_s, asked, preemptible=True, weight=weight, due_s=due_s)
        for seq, (job_id, submit_s, asked, weight, due_s) in enumerate(rows)
    ]
    outcomes = [Outcome(duration_s) for duration_s in window.duration_s.tolist()]
    return Workload(jobs, outcomes, [Pool(FLAT_POOL, total)], servers=servers)


def epoch_times(
    table: ProfileTable,
    models: Sequence[str],
    batch_sizes: Sequence[int | None],
    cluster: EnergyCluster,
    gpu_types: Sequence[str],
    widest: int = 0,
) -> Floats:
    """(n_jobs, n_kinds, most_gpus) seconds an epoch; infinite where nothing is profiled.

    Without `widest` also beyond a kind's GPUs; with it times are those of gangs on as many GPUs of several nodes, too.
    """
    most = max(cluster.power_w.shape[1] - 1, widest)
    known = table.epoch_s(models, batch_sizes, gpu_types, most)
    if widest:
        return known
    # One node at most: more GPUs than it has are none of its times.
    beyond = np.arange(1, most + 1) > cluster.kind_gpus[:, None]
    return np.where(beyond, np.inf, known)


def _scale(
    window: Trace, table: ProfileTable, models: Sequence[str], batch_sizes: Sequence[int | None], epochs: Floats
) -> Floats:
    """(n_jobs,) duration over that of the profiles, on GPUs of the table's first type; 1 where nothing is bound.

    Raises TraceError where a job is not profiled on the GPUs that its duration holds for.
    """
    bound, gpus = window.bound, window.duration_gpus
    profiled = np.ones(len(window))
    rows = np.flatnonzero(bound)
    keys = [(models[row], batch_sizes[row], int(gpus[row])) for row in rows.tolist()]
    # Jobs share few models and sizes: each is looked up once.
    known = {key: table.epoch_s_of(*key) for key in dict.fromkeys(keys)}
    profiled[rows] = [known[key] for key in keys]
    if not np.isfinite(profiled).all():
        row = int(np.flatnonzero(~np.isfinite(profiled))[0])
        raise TraceError(
            f"{window.source.path}: job {window.jobs['job_id'][row]} lasts for its duration on {gpus[row]} GPUs of "
            f"type {table.gpu_types[0]}, where {table.path} has no row of model {models[row]}; add it"
        )
    # Duration is of all epochs, profiles of one.
    return np.where(bound, window.duration_s / (epochs * profiled), 1.0)


def _refuse_homeless(epoch_s: Floats, window: Trace, facts: EnergyFacts) -> None:
    homeless = np.flatnonzero(~np.isfinite(epoch_s).any(axis=(1, 2)))
    if not len(homeless):
        return
    row, table = int(homeless[0]), facts.profiles
    model, batch_size = facts.models[row], facts.batch_sizes[row]
    profiled = table.gpu_types_of(model, batch_size)
    on = f"on {', '.join(profiled)}" if profiled else "nowhere"
    size = "" if batch_size is None else f", batch size {batch_size}"
    more = f" ({len(homeless) - 1} more such jobs)" if len(homeless) > 1 else ""
    raise TraceError(
        f"{window.source.path}: job {window.jobs['job_id'][row]} (model {model}{size}) can run on no node: it is "
        f"profiled {on} in {table.path}, nodes have {', '.join(dict.fromkeys(facts.gpu_types))}{more}; profile it or "
        "drop it"
    )
