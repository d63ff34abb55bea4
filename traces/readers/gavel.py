"""Gavel's traces: ten tab-separated fields a job, without durations (stanford-futuredata/gavel)."""

from collections.abc import Sequence

from jobcast.traces.files import PathLike
from jobcast.traces.readers.reading import Reading
from jobcast.traces.readers.training_jobs import JobFormat, read_jobs

GAVEL = JobFormat(
    "gavel",
    (
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
    ),
)


class GavelReader:
    """Reads a trace and a table of throughputs, which gives run times: steps / steps per second on a V100."""

    name = GAVEL.name
    needs: Sequence[str] = ()

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether the first line is a job type and nine more fields."""
        return GAVEL.recognises(head)

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read a trace; parameters and errors as `training_jobs.read_jobs`."""
        return read_jobs(sources, GAVEL, timezone, strict)
