"""Shockwave's traces: Gavel's, with the mode of adaptation and a nominal duration (uw-mad-dash/shockwave)."""

from jobcast.traces.readers.gavel import TrainingJobs


class ShockwaveReader(TrainingJobs):
    """Reads a trace. The duration is the nominal one of the trace, without changes of the batch size."""

    name = "shockwave"
    columns = (
        "job_type",
        "command",
        "working_directory",
        "steps_argument",
        "needs_data",
        "steps",
        "gpus",
        "adaptation",
        "weight",
        "slo",
        "duration",
        "submit_time",
    )
