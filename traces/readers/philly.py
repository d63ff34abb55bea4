"""The Philly trace, flattened to one CSV row a job: timestamp, duration, num_gpus, cluster.

Microsoft, 2017 (Jeon et al., USENIX ATC 2019), as flattened in the artifact of Pollux (OSDI 2021).
Timestamps are wall-clock times of submission without an offset; durations are seconds.
"""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place, require_columns
from jobcast.traces.columns import COLUMNS
from jobcast.traces.csv_table import header_of, read_csv
from jobcast.traces.files import PathLike, read_file
from jobcast.traces.readers.reading import Reading, only_source
from jobcast.traces.table import Source, Trace
from jobcast.traces.times import Clock
from jobcast.traces.typed import typed_columns

RENAMED = {"timestamp": "submit_time", "duration": "duration", "num_gpus": "gpus", "cluster": "pool"}
"""The flat file's columns and their canonical names; a cluster here is one of Philly's virtual clusters."""
NO_DURATION = "duration missing or <= 0"
NO_GPUS = "no GPUs"


class PhillyReader:
    """Reads the flat Philly CSV. Jobs that never ran or asked for no GPU are left out and counted."""

    name = "philly"
    needs = tuple(RENAMED)

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` has the flat file's columns."""
        return set(RENAMED) <= set(header_of(head))

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read the flat file; job ids are the row numbers from 0, zero-padded.

        Parameters
        ----------
        sources : the one file
        timezone : IANA zone of the times; None reads the wall clock as UTC, and a note says so
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
        require_columns(frame.columns, place, self.needs)
        place = replace(place, columns={ours: theirs for theirs, ours in RENAMED.items()})
        typed = typed_columns(_canonical_names(frame), place, clock)
        line = place.row
        kept, dropped, rows = _usable(typed.frame, place, strict)
        trace = Trace.from_frame(
            kept,
            name=file.name,
            source=Source(file.path, file.sha256, frame.height),
            notes=typed.notes,
            dropped=dropped,
            place=replace(place, row=lambda index: line(rows[index])),
        )
        return Reading(trace)


def _canonical_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns under their canonical names, row numbers as job ids, and the columns that mean nothing to us."""
    digits = len(str(max(frame.height - 1, 0)))
    job_id = pl.Series("job_id", range(frame.height), dtype=pl.Int64).cast(pl.String).str.zfill(digits)
    extra = [name for name in frame.columns if name not in RENAMED and name not in COLUMNS]
    return frame.select(*RENAMED, *extra).rename(RENAMED).insert_column(0, job_id)


def _usable(frame: pl.DataFrame, place: Place, strict: bool) -> tuple[pl.DataFrame, dict[str, int], list[int]]:
    """Rows that are jobs, how many others there were by reason, and the positions of the rows kept."""
    no_duration = frame["duration"].fill_null(0.0) <= 0.0
    no_gpus = (frame["gpus"].fill_null(0) < 1) & ~no_duration
    if strict:
        place.refuse(no_duration, frame["duration"], "must be > 0", "correct it or read without --strict")
        place.refuse(no_gpus, frame["gpus"], "must be >= 1", "correct it or read without --strict")
    counts = {NO_DURATION: int(no_duration.sum()), NO_GPUS: int(no_gpus.sum())}
    dropped = {reason: rows for reason, rows in counts.items() if rows}
    kept = ~(no_duration | no_gpus)
    if frame.height and not kept.any():
        why = ", ".join(f"{rows} {reason}" for reason, rows in dropped.items())
        raise TraceError(f"{place.path}: none of its {frame.height} rows is a job ({why}); check the columns")
    return frame.filter(kept), dropped, kept.arg_true().to_list()
