"""Workloads of Shockwave's evaluation: the published traces, and draws of the generator that made them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.hardware import FLAT_POOL, flat_cluster, pools_cluster
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.traces.generators import generate, generate_courses
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace
from jobcast.traces.trainings import Courses, TrainingTables, read_courses, read_throughputs

KIND = "gavel"
FOLDER = "shockwave"
TACC, WISR = "throughputs_tacc.csv", "throughputs_wisr.csv"
HOUR_S = 3600.0
SHORTEST_S, LONGEST_S = 0.2 * HOUR_S, 5.0 * HOUR_S
"""Run times of jobs. Shockwave, section 8.1."""
WIDEST = 8  # GPUs of a job; Shockwave, section 8.1
CROWD_JOBS, CROWD_GPUS = 220, 64
"""The larger published trace, and the GPUs that it is replayed on. Shockwave, figure 9."""
RUN_TIMES_OFF, ARRIVALS_OFF_S = 0.001, 1.0
CONTENTION = 3.0  # Shockwave, appendix I: its default


def published(data: Path, jobs: int, gpus: int, throughputs: str) -> RigidScenario:
    """A published trace of 120 or 220 jobs whose batch sizes change as planned.

    Raises TraceError where a file of `data` cannot be read.
    """
    folder = data / FOLDER
    trace = read_trace(folder / f"{jobs}_jobs.trace", format="shockwave")
    courses = read_courses(folder / f"regimes_{jobs}_planned.csv")
    tables = TrainingTables(read_throughputs(folder / throughputs), courses=courses)
    return rigid_jobs(cut_scenario(trace, flat_cluster(gpus)), tables=tables)


def drawn(data: Path, seed: int, throughputs: str = TACC, **settings: str | float) -> RigidScenario:
    """Jobs of the generator after section 8.1, on as many GPUs as its settings say.

    Parameters
    ----------
    data : folder of traces, for throughputs and doublings
    seed : of the draw
    throughputs : file of steps per second
    settings : of the generator, by name
    """
    folder = data / FOLDER
    files: dict[str, str] = {"throughputs": str(folder / throughputs), "gns": str(folder / "regimes.csv")}
    chosen = {**files, **settings}
    trace, pools = generate(KIND, seed, chosen)
    courses = Courses(KIND, generate_courses(KIND, trace, seed, chosen))
    tables = TrainingTables(read_throughputs(folder / throughputs), courses=courses)
    return rigid_jobs(cut_scenario(trace, pools_cluster(pools)), tables=tables)


def resampled(data: Path, seed: int, throughputs: str, jobs: int, gpus: int) -> RigidScenario:
    """Jobs of both published traces, drawn with replacement, as crowded on another cluster as 220 jobs are on 64 GPUs.

    Gaps between submissions are drawn from that trace, and are shorter as the cluster is larger.
    Raises TraceError where a file of `data` cannot be read.
    """
    rng = np.random.default_rng(seed)
    small, large = (published(data, count, gpus, throughputs) for count in (120, CROWD_JOBS))
    known = [pair for one in (small, large) for pair in zip(one.workload.jobs, one.workload.outcomes, strict=True)]
    gaps_s = np.diff([job.submit_s for job in large.workload.jobs]) * CROWD_GPUS / gpus
    submit_s = [0.0, *np.cumsum(rng.choice(gaps_s, jobs - 1)).tolist()]
    picked = [known[index] for index in rng.integers(len(known), size=jobs)]
    named = [
        replace(job, job_id=f"{index:03d}", submit_s=at_s)
        for index, (at_s, (job, _)) in enumerate(zip(submit_s, picked, strict=True))
    ]
    return replace(large, workload=replace(large.workload, jobs=named, outcomes=[outcome for _, outcome in picked]))


def perturbed(scenario: RigidScenario, seed: int) -> RigidScenario:
    """The same jobs, run times off by up to .1 % and arrivals by up to 1 s, each job's by draws of its own.

    What a policy makes of such jobs tells how much of a figure is chance.
    """
    rng, jobs, outcomes = np.random.default_rng(seed), [], []
    for job, outcome in zip(scenario.workload.jobs, scenario.workload.outcomes, strict=True):
        factor, later_s = 1 + RUN_TIMES_OFF * rng.uniform(-1, 1), ARRIVALS_OFF_S * rng.uniform(-1, 1)
        known = job.training
        training = known and replace(known, epoch_s={size: one_s * factor for size, one_s in known.epoch_s.items()})
        jobs.append(replace(job, submit_s=max(0.0, job.submit_s + later_s), training=training))
        outcomes.append(replace(outcome, duration_s=outcome.duration_s * factor))
    return replace(scenario, workload=replace(scenario.workload, jobs=jobs, outcomes=outcomes))


def philly(data: Path, jobs: int, gpus: int) -> RigidScenario:
    """Jobs of the Philly trace in a row whose demand comes nearest the default contention; the earliest such window.

    Jobs shorter or longer than Shockwave's are left out, widths are cut to the widest of Shockwave.
    """
    trace = read_trace(data / "philly" / "philly_jobs.csv", format="philly")
    like = trace.jobs.filter(pl.col("duration").is_between(SHORTEST_S, LONGEST_S))
    like = like.with_columns(pl.col("gpus").clip(upper_bound=WIDEST), pool=pl.lit(FLAT_POOL))
    first = nearest_window(Trace.from_frame(like, name="philly"), jobs, gpus)
    chosen = Trace.from_frame(like.slice(first, jobs), name="philly", source="philly")
    return rigid_jobs(cut_scenario(chosen, flat_cluster(gpus)))


def nearest_window(trace: Trace, jobs: int, gpus: int) -> int:
    """Where the window of so many jobs begins whose GPU-time / (span x GPUs) is nearest `CONTENTION`."""
    work = trace.gpu_time_s.cumsum()
    # From the job before the window: a window of n jobs spans n gaps.
    span_s = trace.submit_s[jobs:] - trace.submit_s[:-jobs]
    demand = (work[jobs:] - work[:-jobs]) / (span_s.clip(min=1.0) * gpus)
    return int(abs(demand - CONTENTION).argmin()) + 1
