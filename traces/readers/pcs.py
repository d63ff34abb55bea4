"""PCS's traces: elastic jobs with linear bounds, one CSV row a job (TuftsNATLab/PCS).

Columns app_id, submit_time, service, num_jobs, sleep_time, model_name: `service` is seconds on one GPU, `num_jobs` the
most GPUs that a job can use, times are seconds from the trace's start.
"""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from jobcast.traces.check import require_columns
from jobcast.traces.column_types import Clock, numbers_of, typed_columns
from jobcast.traces.csv_table import header_of, read_csv
from jobcast.traces.files import PathLike, read_file
from jobcast.traces.readers.cluster_log import cluster_named
from jobcast.traces.readers.reading import (
    NO_DURATION,
    NO_GPUS,
    Reading,
    Unfit,
    leave_out,
    merged_notes,
    only_source,
)

RENAMED = {"app_id": "job_id", "service": "duration", "num_jobs": "gpus", "model_name": "model"}
NEEDS = ("app_id", "submit_time", "service", "num_jobs", "model_name")
LEAST_GPUS = 0
"""A job may be left without GPUs at any time."""
LOG_NAME = "trace"
NOTES = (
    "times are seconds from the trace's start, kept as seconds from the epoch",
    "jobs are elastic: duration is seconds on one GPU, gpus the most that a job can use",
)


class PcsReader:
    """Reads a trace of elastic jobs; the pool is what the file's name adds to `trace_`."""

    name = "pcs"
    needs = NEEDS

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` has the trace's columns."""
        return set(NEEDS) <= set(header_of(head))

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read a trace.

        Parameters
        ----------
        sources : the one file
        timezone : not applied: the times hang on no calendar; a note says so
        strict : make rows that would be left out an error

        Raises
        ------
        TraceError
            The file cannot be read, or a row of it cannot be used; the line names the first such row.
        ConfigError
            The zone is not known, or there are several files.
        """
        clock = Clock(timezone)
        file = read_file(only_source(sources, self.name))
        frame, place = read_csv(file)
        require_columns(frame.columns, place, NEEDS)
        # errors name columns as the file does
        place = replace(place, columns={ours: theirs for theirs, ours in RENAMED.items()})
        # made numbers first: as text small ones could be taken for years
        submit_s = numbers_of(frame["submit_time"], place)
        table = frame.select(*RENAMED).rename(RENAMED).with_columns(submit_s)
        table = table.with_columns(
            pool=pl.lit(cluster_named(file.path, (LOG_NAME,))), min_gpus=pl.lit(LEAST_GPUS, dtype=pl.Int64)
        )
        typed = typed_columns(table, place, clock)
        unfit = [
            Unfit(NO_DURATION, typed.frame["duration"].fill_null(0.0) <= 0.0, "duration", "must be > 0"),
            Unfit(NO_GPUS, typed.frame["gpus"].fill_null(0) < 1, "gpus", "must be >= 1"),
        ]
        kept = leave_out(typed.frame, unfit, place, strict)
        return kept.reading([file], frame.height, (*merged_notes(typed.notes), *NOTES))
