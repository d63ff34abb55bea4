"""The Philly trace: its own job log as JSON (`philly_log`), or flattened to one CSV row a job.

Microsoft, 2017 (Jeon et al., USENIX ATC 2019). The flat file, timestamp, duration, num_gpus, cluster, is that of the
artifact of Pollux (OSDI 2021). In both, times are wall-clock times without an offset; durations are seconds.

Philly's list of machines: CSV, machineId, number of GPUs, single GPU mem ("m31,8, 24GB").
"""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.traces.check import REMEDY, require_columns
from jobcast.traces.columns import COLUMNS
from jobcast.traces.csv_table import header_of, read_csv
from jobcast.traces.files import FileBytes, PathLike, read_file
from jobcast.traces.readers.philly_log import is_job_log, read_job_log
from jobcast.traces.readers.reading import NO_DURATION, NO_GPUS, Reading, Unfit, leave_out, zone_note
from jobcast.traces.table import Source, Trace
from jobcast.traces.times import Clock
from jobcast.traces.typed import typed_columns

MACHINE, GPUS = "machineId", "number of GPUs"


def is_machine_list(header: Sequence[str]) -> bool:
    """Whether a header is that of a list of machines.

    >>> is_machine_list(["machineId", "number of GPUs", "single GPU mem"])
    True
    """
    return {MACHINE, GPUS} <= set(header)


def machines_note(file: FileBytes) -> str:
    """What the list tells: how many machines and GPUs the cluster had in all.

    Raises
    ------
    TraceError
        The file is malformed, or holds what is no number of GPUs.
    """
    frame, place = read_csv(file)
    gpus = frame[GPUS].str.strip_chars().cast(pl.Int64, strict=False)
    place.refuse(gpus.is_null() | (gpus < 0), frame[GPUS], "must be a whole number of GPUs", REMEDY)
    return f"{len(gpus):,} machines with {int(gpus.sum()):,} GPUs in all; quotas of virtual clusters are not told"


RENAMED = {"timestamp": "submit_time", "duration": "duration", "num_gpus": "gpus", "cluster": "pool"}
"""The flat file's columns and their canonical names; a cluster here is one of Philly's virtual clusters."""
ZONE = "America/Los_Angeles"
HEAD_BYTES = 65536


class PhillyReader:
    """Reads the job log or the flat CSV. Jobs that never ran or asked for no GPU are left out and counted.

    The list of machines may be given too: a note tells the GPUs in all. The quotas of the virtual clusters were never
    published, so that none are told.
    """

    name = "philly"
    needs = tuple(RENAMED)

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` is a job log or has the flat file's columns."""
        return is_job_log(head) or set(RENAMED) <= set(header_of(head))

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read the log or the flat file; in the latter job ids are the row numbers from 0, zero-padded.

        Parameters
        ----------
        sources : the file, and cluster_machine_list where it is at hand
        timezone : IANA zone of the times; None reads the wall clock as UTC, and a note says so
        strict : make rows that would be left out an error

        Raises
        ------
        TraceError
            A file cannot be read, or a row of it cannot be used; the line names the first such row.
        ConfigError
            The zone is not known, or there is not exactly one file of jobs.
        """
        clock = Clock(timezone)
        files = [read_file(source) for source in sources]
        machines = [is_machine_list(header_of(file.data[:HEAD_BYTES])) for file in files]
        file = _only_jobs([file for file, is_list in zip(files, machines, strict=True) if not is_list])
        notes = tuple(machines_note(file) for file, is_list in zip(files, machines, strict=True) if is_list)
        read = _read_log if file.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") else _read_flat
        return Reading(read(file, clock, strict, notes))


def _only_jobs(files: Sequence[FileBytes]) -> FileBytes:
    if len(files) != 1:
        given = ", ".join(file.path for file in files) or "none"
        raise ConfigError(f"philly takes one file of jobs, got {len(files)} ({given}); convert them one by one")
    return files[0]


def _read_log(file: FileBytes, clock: Clock, strict: bool, notes: tuple[str, ...]) -> Trace:
    advice = zone_note(clock.timezone, ZONE, "wall-clock times of the US Pacific coast, summer and winter")
    return read_job_log(file, clock, strict, (*advice, *notes))


def _read_flat(file: FileBytes, clock: Clock, strict: bool, notes: tuple[str, ...]) -> Trace:
    frame, place = read_csv(file)
    require_columns(frame.columns, place, PhillyReader.needs)
    place = replace(place, columns={ours: theirs for theirs, ours in RENAMED.items()})
    typed = typed_columns(_canonical_names(frame), place, clock)
    kept = leave_out(typed.frame, _unfit(typed.frame), place, strict)
    return Trace.from_frame(
        kept.frame,
        name=file.name,
        source=Source(file.path, file.sha256, frame.height),
        notes=(*typed.notes, *notes),
        dropped=kept.dropped,
        place=kept.place,
    )


def _canonical_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns under their canonical names, row numbers as job ids, and the columns that mean nothing to us."""
    digits = len(str(max(frame.height - 1, 0)))
    job_id = pl.Series("job_id", range(frame.height), dtype=pl.Int64).cast(pl.String).str.zfill(digits)
    extra = [name for name in frame.columns if name not in RENAMED and name not in COLUMNS]
    return frame.select(*RENAMED, *extra).rename(RENAMED).insert_column(0, job_id)


def _unfit(frame: pl.DataFrame) -> list[Unfit]:
    return [
        Unfit(NO_DURATION, frame["duration"].fill_null(0.0) <= 0.0, "duration", "must be > 0"),
        Unfit(NO_GPUS, frame["gpus"].fill_null(0) < 1, "gpus", "must be >= 1"),
    ]
