"""Shockwave's traces: Gavel's, with the mode of adaptation and a nominal duration (uw-mad-dash/shockwave)."""

from collections.abc import Sequence

from jobcast.traces.files import PathLike
from jobcast.traces.readers.reading import Reading
from jobcast.traces.readers.training_jobs import JobFormat, read_jobs

SHOCKWAVE = JobFormat(
    "shockwave",
    (
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
    ),
)


class ShockwaveReader:
    """Reads a trace. The duration is the nominal one of the trace, without changes of the batch size."""

    name = SHOCKWAVE.name
    needs: Sequence[str] = ()

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether the first line is a job type and eleven more fields."""
        return SHOCKWAVE.recognises(head)

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read a trace; parameters and errors as `training_jobs.read_jobs`."""
        return read_jobs(sources, SHOCKWAVE, timezone, strict)
