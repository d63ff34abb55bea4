"""Scenes of whole jobs on pools, rows of traces, elastic jobs as columns and logs of runs, short to write."""

import numpy as np
import polars as pl

from jobcast.domain.elastic import ElasticJobs
from jobcast.domain.hardware import pools_cluster
from jobcast.domain.jobs import Pool
from jobcast.pipelines.experiments.rigid_jobs import rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.simulator.log import RunLog, flat_spans
from jobcast.traces.cluster_file import write_cluster
from jobcast.traces.generators import generate, generate_nodes, generate_profiles, generate_tasks
from jobcast.traces.learning_curves import write_job_curves
from jobcast.traces.profiles import write_profiles
from jobcast.traces.table import Trace
from jobcast.traces.table_files import write_trace
from jobcast.traces.tasks import write_tasks


def pool_scenario(trace, pools, *, from_s=None, until_s=None, limit=None, **how):
    """Whole jobs of a window on pools whose quotas never change."""
    return rigid_jobs(cut_scenario(trace, pools_cluster(pools), from_s=from_s, until_s=until_s, limit=limit), **how)


def frame_of(submit_s, **columns):
    """Rows of jobs, submitted at these instants: of pool a, one GPU and ten minutes each, but for what is told."""
    names = [f"{row:04d}" for row in range(len(submit_s))]
    plain = {"job_id": names, "pool": "a", "submit_time": submit_s, "duration": 600.0, "gpus": 1}
    return pl.DataFrame(plain | columns)


def trace_of(names, rows, **columns):
    """A trace of rows that tell the columns of these names, among them submit_time; all else is as in `frame_of`."""
    told = dict(zip(names.split(), map(list, zip(*rows, strict=True)), strict=False))
    return Trace.from_frame(frame_of(told.pop("submit_time"), **told, **columns), name="test")


def elastic_jobs_of(submit_s, size_s, most, speedup=range(9), **others):
    """Elastic jobs of one model and one stage each, on up to `most` GPUs; by default g GPUs are g times as fast."""
    count, most = len(size_s), np.array(most, dtype=np.float64)
    columns = {
        "submit_s": np.array(submit_s, dtype=np.float64),
        "size_s": np.array(size_s, dtype=np.float64),
        "least": np.zeros(count),
        "most": most,
        "model": np.zeros(count, dtype=np.int64),
        "stage_of": np.arange(count + 1),
        "stage_end": np.ones(count),
        "stage_most": most.copy(),
        "speedup": np.tile(np.array(speedup, dtype=np.float64), (1, 2, 1)),
        "speed": np.ones((1, 1)),
    }
    return ElasticJobs(**columns | others)


def log_of(submit_s, start_s, end_s, *, gpus=None, **others):
    """The log of jobs of one pool, of one GPU each, that ran once from start to end, but for what is told otherwise."""
    submit_s, start_s, end_s = (np.array(column, dtype=np.float64) for column in (submit_s, start_s, end_s))
    count = len(end_s)
    none, gpus = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64) if gpus is None else np.array(gpus)
    plain = {
        "policy": "p",
        "pools": (Pool("all", 4),),
        "duration_s": end_s - start_s,
        "pool": none,
        "preemptions": none,
        "dedicated": none == 0,
        "spans": flat_spans(np.arange(count), start_s, end_s, gpus.astype(np.float64)),
        "events": 2 * count,
    }
    return RunLog(**plain | {"submit_s": submit_s, "start_s": start_s, "end_s": end_s, "gpus": gpus} | others)


def write_energy_scene(folder, settings, endings=("csv",)):
    """A small campaign of ANDREAS: energy.jobs.parquet, energy.yaml and profiles."""
    write_trace(generate("andreas", 3, settings)[0], folder / "energy.jobs.parquet")
    write_cluster(generate_nodes("andreas", settings), folder / "energy.yaml")
    for ending in endings:
        write_profiles(generate_profiles("andreas", settings), folder / f"profiles.{ending}")


def write_tasks_scene(folder, settings, endings=("parquet",)):
    """A small workload of MLFS: tasks.jobs.parquet, tasks and curves."""
    write_trace(generate("mlfs", 3, settings)[0], folder / "tasks.jobs.parquet")
    tasks, curves = generate_tasks("mlfs", 3, settings)
    for ending in endings:
        write_tasks(tasks, folder / f"tasks.{ending}")
        write_job_curves(curves, folder / f"curves.{ending}")
