"""Workloads of PCS's evaluation (Table 1): AutoML apps, two Philly virtual clusters, Gavel's continuous-multiple."""

from dataclasses import replace
from pathlib import Path

from jobcast.domain.hardware import flat_cluster
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene, elastic_jobs, in_submission_order
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.traces.generators import generate
from jobcast.traces.readers import read_trace

FOLDER = "pcs"
SPEEDUPS = "speedups.csv"
CLUSTERS = ("0e4a51", "ee9e8c")
"""The two of the paper's six virtual clusters that are published as elastic jobs."""
MEASURED_JOBS = 301
"""Jobs of a trace that the published results are of."""
GPUS = 64
TESTBED_GPUS = 16
"""PCS, Table 1."""
APPS = 300
JOBS = 1000
"""Jobs of a sample; PCS, section 3.3."""
LOAD = 0.8  # PCS, section 5.4


def published(data: Path, cluster: str, first: int = 0, jobs: int | None = MEASURED_JOBS) -> ElasticScene:
    """Jobs of a published trace in a row on 64 GPUs, all of them for `jobs` None.

    Raises TraceError where a file of `data` cannot be read.
    """
    trace = in_submission_order(read_trace(data / FOLDER / f"trace_{cluster}.csv", format="pcs"))
    chosen = replace(trace, jobs=trace.jobs.slice(first, jobs))
    return elastic_jobs(cut_scenario(chosen, flat_cluster(GPUS)), speedups=data / FOLDER / SPEEDUPS)


def automl(
    seed: int, apps: int = APPS, load: float = LOAD, *, halving: bool = False, noise: float = 0.0
) -> ElasticScene:
    """Workload 1: AutoML apps on 16 GPUs.

    Parameters
    ----------
    seed : of the draw, and of noise
    apps, load, halving : see the generator `automl`
    noise : by what share declared sizes are wrong at most
    """
    trace, _ = generate("automl", seed, {"apps": apps, "load": load, "gpus": TESTBED_GPUS, "halving": halving})
    return elastic_jobs(cut_scenario(trace, flat_cluster(TESTBED_GPUS)), noise=noise, noise_seed=seed)


def themis(data: Path, seed: int, apps: int) -> ElasticScene:
    """Workload 1 before it is scaled down for the testbed: 64 GPUs, by the published distributions."""
    files = {"services": "service-times", "trial_counts": "num-jobs-per-app", "trial_gpus": "max-gpus-per-job"}
    chosen = {name: str(data / FOLDER / "workloads" / f"{file}-themis1.csv") for name, file in files.items()}
    trace, _ = generate("automl", seed, {"apps": apps, "load": LOAD, "gpus": GPUS, **chosen})
    return elastic_jobs(cut_scenario(trace, flat_cluster(GPUS)))


def gavel(seed: int, jobs: int = JOBS, *, at_width: bool = True) -> ElasticScene:
    """Workload 3: four jobs an hour of Gavel's continuous-multiple on 64 GPUs.

    Parameters
    ----------
    seed, jobs : of the draw
    at_width : whether run times are those at a job's width, as in Gavel, or work on one GPU
    """
    trace, _ = generate("gavel-elastic", seed, {"jobs": jobs, "gpus": GPUS, "at_width": at_width})
    return elastic_jobs(cut_scenario(trace, flat_cluster(GPUS)))
