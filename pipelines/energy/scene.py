"""What a simulation of schedulers of energy replays: the window's jobs with due dates, their profiles, the nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.energy import EnergyCluster, EnergyJobs, Floats
from jobcast.domain.errors import TraceError
from jobcast.domain.hardware import Cluster
from jobcast.pipelines.clusters import assumed_power, energy_cluster
from jobcast.pipelines.scenes import cut_window, window_told
from jobcast.simulator.energy.workload import EnergyTruth, EnergyWorkload
from jobcast.traces.profiles import ProfileTable, read_profiles
from jobcast.traces.table import MICROSECONDS, Trace

DEFAULT_WEIGHT = 1.0
"""EUR an hour of tardiness, of a job without a weight."""


@dataclass(frozen=True, slots=True, eq=False)
class EnergyScene:
    """A workload of jobs with due dates. Jobs are in order of submission.

    Attributes
    ----------
    jobs : what policies see of them where they know the true times; times are seconds from the epoch
    place : where they run
    cluster, gpu_types : its nodes as the engine takes them, and the GPU type of each kind of them
    job_ids, models, batch_sizes : (n_jobs,); no batch size: None
    scale : (n_jobs,) seconds an epoch over the profiled ones; 1 unless the trace binds durations, see `energy_scene`
    trace : the window
    profiles : the true times
    notes : decisions that a reader of the result should know
    dropped : reason -> number of rows that the reader left out
    """

    jobs: EnergyJobs
    place: Cluster
    cluster: EnergyCluster
    gpu_types: tuple[str, ...]
    job_ids: tuple[str, ...]
    models: tuple[str, ...]
    batch_sizes: tuple[int | None, ...]
    trace: Trace
    profiles: ProfileTable
    scale: Floats
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.job_ids)

    def workload(self, believed_epoch_s: Floats | None = None) -> EnergyWorkload:
        """As the engine takes it; the policy goes by `believed_epoch_s`, by default by the true times."""
        jobs = self.jobs if believed_epoch_s is None else self.jobs._replace(epoch_s=believed_epoch_s)
        truth, window = EnergyTruth(self.jobs.epoch_s), self.trace
        return EnergyWorkload(jobs, truth, self.cluster, self.job_ids, window.gpus, window.duration_s)

    def listed(self) -> pl.DataFrame:
        """What a table of jobs takes from the trace."""
        return self.trace.jobs

    def provenance(self) -> dict[str, Any]:
        """Inputs of the simulation, for results."""
        cluster = self.cluster
        return {
            **window_told(self.trace),
            "profiles": {"path": self.profiles.path, "sha256": self.profiles.sha256, "rows": len(self.profiles)},
            "cluster": self.place.origin,
            "nodes": len(cluster.kind_of),
            "gpus": self.place.gpus,
            "pue": cluster.pue,
            "tariff": dict(zip(cluster.tariff.from_s.tolist(), cluster.tariff.price_eur_kwh.tolist(), strict=True)),
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
        }


def energy_scene(
    trace: Trace,
    place: Cluster,
    *,
    profiles: Path,
    from_s: float | None = None,
    until_s: float | None = None,
    limit: int | None = None,
) -> EnergyScene:
    """Cut the window out of a trace and lay its jobs' times on every kind of node beside it.

    Where `duration_gpus` says how many GPUs a duration holds for, a job uses as many as it asks for at most, and its
    epochs are as much longer or shorter as makes it last for that duration on GPUs of the table's first type.

    Parameters
    ----------
    trace : canonical, with `epochs` and `model`; `batch_size`, `deadline` and `weight` where there are
    place : they share its nodes
    profiles : file of seconds an epoch, as `traces.profiles` reads it
    from_s, until_s, limit : the window, and how many of its jobs

    Raises
    ------
    TraceError
        The window holds no job, the file cannot be read, or a job can run on no node.
    ConfigError
        What the nodes draw is not known.
    """
    cluster, gpu_types = energy_cluster(place)
    window = cut_window(trace, from_s, until_s, limit)
    table = read_profiles(profiles)
    epochs = needed(window, "epochs").cast(pl.Float64).to_numpy()
    models = tuple(needed(window, "model").to_list())
    batch_sizes = tuple(window.values("batch_size"))
    job_ids = tuple(window.jobs["job_id"].to_list())
    epoch_s = epoch_times(table, models, batch_sizes, cluster, gpu_types)
    scale = _scale(window, table, models, batch_sizes, epochs)
    epoch_s = np.where(_beyond_asked(window, epoch_s.shape[2]), np.inf, epoch_s * scale[:, None, None])
    _refuse_homeless(epoch_s, window, models, batch_sizes, table, gpu_types)
    scene = EnergyScene(
        jobs=EnergyJobs(window.submit_s, _due_s(window), _weights(window), epochs, epoch_s),
        place=place,
        cluster=cluster,
        gpu_types=gpu_types,
        job_ids=job_ids,
        models=models,
        batch_sizes=batch_sizes,
        trace=window,
        profiles=table,
        scale=scale,
        notes=(*trace.notes, place.together, *assumed_power(place), *table.notes, *_missing(window)),
        dropped=dict(trace.dropped),
    )
    scene.workload().check()
    return scene


def epoch_times(
    table: ProfileTable,
    models: Sequence[str],
    batch_sizes: Sequence[int | None],
    cluster: EnergyCluster,
    gpu_types: Sequence[str],
) -> Floats:
    """(n_jobs, n_kinds, most_gpus) seconds an epoch; infinite beyond a kind's GPUs, and where nothing is profiled."""
    most = cluster.power_w.shape[1] - 1
    known = table.epoch_s(models, batch_sizes, gpu_types, most)
    beyond = np.arange(1, most + 1) > cluster.kind_gpus[:, None]
    return np.where(beyond, np.inf, known)


def _beyond_asked(window: Trace, most: int) -> NDArray[np.bool_]:
    """(n_jobs, 1, most) numbers of GPUs that a job whose duration is bound never uses."""
    beyond: NDArray[np.bool_] = window.bound[:, None] & (np.arange(1, most + 1) > window.gpus[:, None])
    return beyond[:, None, :]


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
    known = {key: table.epoch_s_of(*key) for key in dict.fromkeys(keys)}
    profiled[rows] = [known[key] for key in keys]
    if not np.isfinite(profiled).all():
        row = int(np.flatnonzero(~np.isfinite(profiled))[0])
        raise TraceError(
            f"{window.source.path}: job {window.jobs['job_id'][row]} lasts for its duration on {gpus[row]} GPUs of "
            f"type {table.gpu_types[0]}, where {table.path} has no row of model {models[row]}; add it"
        )
    return np.where(bound, window.duration_s / (epochs * profiled), 1.0)


def needed(window: Trace, name: str) -> pl.Series:
    """A column that each job must fill. Raises TraceError that names the first that does not."""
    path = window.source.path
    if name not in window.jobs.columns:
        raise TraceError(f"{path}: column {name} missing, which schedulers of energy need; add it")
    known = window.jobs[name]
    if known.null_count():
        job_id = window.jobs["job_id"][int(known.is_null().arg_true()[0])]
        raise TraceError(f"{path}: job {job_id} has no {name}; fill the column {name}")
    return known


def _refuse_homeless(
    epoch_s: Floats,
    window: Trace,
    models: Sequence[str],
    batch_sizes: Sequence[int | None],
    table: ProfileTable,
    gpu_types: Sequence[str],
) -> None:
    homeless = np.flatnonzero(~np.isfinite(epoch_s).any(axis=(1, 2)))
    if not len(homeless):
        return
    row = int(homeless[0])
    profiled = table.gpu_types_of(models[row], batch_sizes[row])
    on = f"on {', '.join(profiled)}" if profiled else "nowhere"
    size = "" if batch_sizes[row] is None else f", batch size {batch_sizes[row]}"
    more = f" ({len(homeless) - 1} more such jobs)" if len(homeless) > 1 else ""
    raise TraceError(
        f"{window.source.path}: job {window.jobs['job_id'][row]} (model {models[row]}{size}) can run on no node: it is "
        f"profiled {on} in {table.path}, nodes have {', '.join(dict.fromkeys(gpu_types))}{more}; profile it or "
        "drop it"
    )


def _missing(window: Trace) -> list[str]:
    """What jobs are taken to be where the trace does not say."""
    taken = {
        "deadline": "no deadline: jobs may end at any time",
        "weight": f"no weight: an hour of tardiness of any job costs {DEFAULT_WEIGHT:g} EUR",
        "batch_size": "no batch_size: profiles of any batch size are taken, else those of a model's smallest",
    }
    return [said for name, said in taken.items() if name not in window.jobs.columns]


def _weights(window: Trace) -> Floats:
    if "weight" not in window.jobs.columns:
        return np.full(len(window), DEFAULT_WEIGHT)
    return window.jobs["weight"].cast(pl.Float64).fill_null(DEFAULT_WEIGHT).to_numpy()


def _due_s(window: Trace) -> Floats:
    """(n_jobs,) seconds from the epoch, infinite where there is none."""
    if "deadline" not in window.jobs.columns:
        return np.full(len(window), np.inf)
    at_us = window.jobs["deadline"].dt.timestamp("us").cast(pl.Float64)
    return (at_us / MICROSECONDS).fill_null(np.inf).to_numpy()
