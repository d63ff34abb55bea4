"""A workload of training jobs: what tables say of them, laid over the jobs of a trace."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome
from jobcast.simulator.workload import Workload
from jobcast.traces.table import Trace
from jobcast.traces.trainings import (
    SAMPLES,
    Trainings,
    TrainingTables,
    read_courses,
    read_datasets,
    read_throughputs,
    trainings_of,
)

TABLE_SETTINGS = ("throughputs", "regimes", "datasets", "gpu_type", "planned")
"""Settings that say what jobs do, whatever the policy."""


def read_tables(settings: Mapping[str, str]) -> TrainingTables | None:
    """The tables that settings name; None without any. Raises ConfigError for one that needs throughputs."""
    if "throughputs" not in settings:
        # Tables that only refine throughputs.
        stray = [name for name in TABLE_SETTINGS if name in settings]
        if stray:
            raise ConfigError(f"setting {stray[0]}: tells nothing without throughputs; add --set throughputs=FILE")
        return None
    return TrainingTables(
        read_throughputs(Path(settings["throughputs"]), settings.get("gpu_type")),
        read_datasets(Path(settings["datasets"])) if "datasets" in settings else SAMPLES,
        read_courses(Path(settings["regimes"])) if "regimes" in settings else None,
        read_courses(Path(settings["planned"])) if "planned" in settings else None,
    )


def training_workload(workload: Workload, trace: Trace, tables: TrainingTables) -> tuple[Workload, Trainings]:
    """The workload with training jobs in it: their regimes, and the run time that these take.

    Parameters
    ----------
    workload : of the jobs of `trace`, found by job id
    trace : with the columns that `trainings_of` reads
    tables : throughputs, data sets, courses

    Raises TraceError; see `trainings_of`.
    """
    trainings = trainings_of(trace, tables)
    # By id: the workload may hold fewer jobs than the trace.
    known = dict(zip(trace.jobs["job_id"], zip(trainings.trainings, trainings.regimes, strict=True), strict=True))
    jobs: list[Job] = []
    outcomes: list[Outcome] = []
    for job, outcome in zip(workload.jobs, workload.outcomes, strict=True):
        training, regimes = known[job.job_id]
        if training is not None:
            job = replace(job, training=training)
            outcome = Outcome(training.run_time_s(regimes), regimes, outcome.start_s)
        jobs.append(job)
        outcomes.append(outcome)
    return replace(workload, jobs=jobs, outcomes=outcomes), trainings


def planned_run_times(trace: Trace, tables: TrainingTables) -> dict[str, float]:
    """Seconds that training jobs would take alone as planned, by job id; none without planned courses.

    Raises TraceError as `trainings_of` does, for the planned courses.
    """
    if tables.planned is None:
        return {}
    # Planned courses stand where the executed ones did; all else is the same.
    planned = trainings_of(trace, replace(tables, courses=tables.planned))
    rows = zip(trace.jobs["job_id"], planned.trainings, planned.regimes, strict=True)
    return {job_id: training.run_time_s(regimes) for job_id, training, regimes in rows if training is not None}
