"""What the jobs of a window teach beside their times: training curves and profiles, from tables of a trace's jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from jobcast.domain.errors import TrainingError
from jobcast.traces.job_curves import read_job_curves
from jobcast.traces.learning_curves import CurveTable, curves_of_jobs, read_learning_curves
from jobcast.traces.profiles import ProfileTable, read_profiles
from jobcast.traces.readers import read_trace
from jobcast.traces.splits import finished_jobs

Window = tuple[float | None, float | None]
"""From and until, seconds from the epoch; None leaves a side open."""


def read_curves(path: Path, curves: Path | None, window: Window = (None, None)) -> CurveTable:
    """The curves of a CSV, or where `curves` are of jobs, those of a trace's jobs that were over when a window ended.

    Raises TraceError for files that do not fit, TrainingError for a window without such a job.
    """
    if curves is None:
        return read_learning_curves(path)
    jobs, from_s, until_s = finished_jobs(read_trace(path), *window)
    return replace(curves_of_jobs(jobs, read_job_curves(curves)), from_s=from_s, until_s=until_s)


def profiles_of(path: Path, profiles: Path | None, window: Window = (None, None)) -> ProfileTable:
    """A table of profiles, or where `profiles` are of jobs, of models and batch sizes that were over, as `read_curves`.

    Raises TraceError for files that do not fit, TrainingError for a window without such a job.
    """
    if profiles is None:
        return read_profiles(path)
    jobs, from_s, until_s = finished_jobs(read_trace(path), *window)
    frame = read_profiles(profiles).of_jobs(jobs.values("model"), jobs.values("batch_size"))
    source = jobs.source
    return ProfileTable(source.path, source.sha256, frame, jobs.notes, from_s, until_s)


@contextmanager
def of_file(path: str) -> Iterator[None]:
    """A TrainingError in here names the file that the training went by."""
    try:
        yield
    except TrainingError as error:
        raise TrainingError(f"{path}: {error}") from error
