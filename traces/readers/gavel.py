"""Gavel's traces: ten tab-separated fields a job, without durations (stanford-futuredata/gavel)."""

from jobcast.traces.readers.training_jobs import TrainingJobs


class GavelReader(TrainingJobs):
    """Reads a trace and a table of throughputs, which gives run times: steps / steps per second on a V100."""

    name = "gavel"
    columns = (
        "job_type",
        "command",
        "working_directory",
        "steps_argument",
        "needs_data",
        "steps",
        "gpus",
        "weight",
        "slo",
        "submit_time",
    )
