"""What a reader makes of its files, and what readers share: sources, rows left out, notes.

Durations held against start and end: a job may run for less than lies between them, never for longer.

Tables of plain text without a header: one line a record, a separator between fields.
"""

import hashlib
import io
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError, NoJobsError, TraceError
from jobcast.domain.hardware import PoolsTable
from jobcast.traces.check import LONGEST_NAME, Place
from jobcast.traces.csv_table import header_of
from jobcast.traces.files import FileBytes, PathLike, read_file
from jobcast.traces.table import NO_GPUS as NO_GPUS
from jobcast.traces.table import Source, Trace

NO_DURATION = "duration missing or <= 0"
WITHOUT_STRICT = "correct it or read without --strict"


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace, the quotas of its pools where the files tell them, and the format (which `read_sources` fills in)."""

    trace: Trace
    pools: PoolsTable | None = None
    format_name: str = ""


@dataclass(frozen=True, slots=True)
class Unfit:
    """Rows that are no jobs to us.

    Attributes
    ----------
    reason : why, as it is counted
    rows : boolean, one a row; null = no
    column : the canonical column that tells
    what : what it must be, for the error under --strict
    """

    reason: str
    rows: pl.Series
    column: str
    what: str


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows that are jobs, how many others there were by reason, and where the kept ones stood."""

    frame: pl.DataFrame
    dropped: dict[str, int]
    place: Place

    def reading(
        self, files: Sequence[FileBytes], rows: int, notes: Iterable[str], *,
        jobs: pl.DataFrame | None = None, name: str | None = None,
    ) -> Reading:  # fmt: skip
        """A trace of the kept rows, or of `jobs` made of them, and where it came from.

        Parameters
        ----------
        files : that hold the jobs, in an order of the format's own
        rows : records of jobs in them, kept or not
        notes : what was decided
        jobs, name : where they are not the kept rows, and the first file's name
        """
        source = source_of([file.path for file in files], [file.sha256 for file in files], rows)
        frame, name = self.frame if jobs is None else jobs, name or files[0].name
        trace = Trace.from_frame(
            frame, name=name, source=source, notes=tuple(notes), dropped=self.dropped, place=self.place
        )
        return Reading(trace)


def only_source(sources: Sequence[PathLike], format_name: str) -> PathLike:
    """The one file of a format that comes in one; ConfigError where there are more."""
    if len(sources) != 1:
        given = ", ".join(os.fspath(source) for source in sources)
        raise ConfigError(f"{format_name} takes one source, got {len(sources)} ({given}); convert them one by one")
    return sources[0]


def with_table(
    sources: Sequence[PathLike], columns: Collection[str], takes: str, remedy: str
) -> tuple[FileBytes, FileBytes | None]:
    """The one file of jobs of a format, and the table with some columns that may come beside it.

    Raises ConfigError, which says what the format `takes` and the remedy, where there are others.
    """
    files = [read_file(path) for path in sources]
    tables = [file for file in files if set(columns) <= set(header_of(file.data))]
    jobs = [file for file in files if file not in tables]
    if len(jobs) != 1 or len(tables) > 1:
        raise ConfigError(f"{takes}, got {len(jobs)} and {len(tables)}; {remedy}")
    return jobs[0], tables[0] if tables else None


def source_of(paths: Sequence[PathLike], sha256s: Sequence[str], rows: int) -> Source:
    """Where a trace of one or several files came from: the paths, one hash over all of them, the records of jobs.

    Parameters
    ----------
    paths, sha256s : the files and the hex digests of their bytes, in an order of the format's own
    rows : records of jobs in them; a reader keeps or drops each, and says how many it dropped and why
    """
    shown = " + ".join(os.fspath(path) for path in paths)
    # of one file the hash is its own, which anybody can check with sha256sum
    digest = sha256s[0] if len(sha256s) == 1 else hashlib.sha256("\n".join(sha256s).encode()).hexdigest()
    return Source(shown, digest, rows)


def leave_out(frame: pl.DataFrame, unfit: Sequence[Unfit], place: Place, strict: bool) -> Kept:
    """Leave out the rows that are no jobs and count them, each under the first reason that holds.

    Raises
    ------
    TraceError
        A row would be left out under `strict` (the line names the first), or no row is left.
    """
    # rows that an earlier reason took, so that none is counted twice
    bad = pl.repeat(False, frame.height, dtype=pl.Boolean, eager=True)
    dropped: dict[str, int] = {}
    for one in unfit:
        # a comparison with null is null, which tells nothing against the row
        rows = one.rows.fill_null(False) & ~bad
        # the first reason in order is the one told, as the one that would be counted
        if strict:
            place.refuse(rows, frame[one.column], one.what, WITHOUT_STRICT)
        if count := int(rows.sum()):
            dropped[one.reason] = dropped.get(one.reason, 0) + count
        bad = bad | rows
    if not dropped:
        return Kept(frame, {}, place)
    # kept rows must still be named by where they stood in the file
    positions = (~bad).arg_true()
    if not len(positions):
        why = ", ".join(f"{rows} {reason}" for reason, rows in dropped.items())
        raise NoJobsError(f"{place.path}: none of its {frame.height} rows is a job ({why}); check the columns")
    return Kept(frame.filter(~bad), dropped, replace(place, row=lambda index: place.row(int(positions[index]))))


def without_contradictions(frame: pl.DataFrame, place: Place, strict: bool) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Empty start and end where they lie before the submission or each other; the job and its duration stay.

    Raises
    ------
    TraceError
        There is such a row under `strict`; the line names the first.
    """
    submit, start, end = frame["submit_time"], frame["start_time"], frame["end_time"]
    # null compares as null: a time that is missing contradicts nothing
    bad = (start < submit).fill_null(False) | (end < start).fill_null(False) | (end < submit).fill_null(False)
    if strict:
        place.refuse(bad, start, "start and end must not lie before submission or each other", WITHOUT_STRICT)
    if not (count := int(bad.sum())):
        return frame, ()
    kept = pl.when(~bad)
    frame = frame.with_columns(kept.then(pl.col("start_time")), kept.then(pl.col("end_time")))
    where = "where they lie before submit_time or each other"
    return frame, (f"start_time, end_time: emptied in {count} of {frame.height} jobs, {where}",)


def merged_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Notes that say the same of several columns, as one.

    >>> merged_notes(["start: read as UTC", "end: read as UTC", "gpus: rounded up"])
    ('start, end: read as UTC', 'gpus: rounded up')
    """
    # dicts keep the order in which notes came, which tests and users compare
    columns: dict[str, list[str]] = {}
    for note in notes:
        column, colon, said = note.partition(": ")
        columns.setdefault(said if colon else note, []).append(column if colon else "")
    return tuple(
        f"{', '.join(dict.fromkeys(names))}: {said}" if any(names) else said for said, names in columns.items()
    )


def zone_note(timezone: str | None, zone: str, what: str) -> tuple[str, ...]:
    """Advice where a format's times hang on a clock of their own and no zone was given."""
    return () if timezone else (f"times are {what}; --timezone {zone} brings them to UTC",)


ROUNDING_S, ROUNDING_SHARE = 2.0, 0.01
"""How much longer a duration may be: start and end are often cut to whole seconds."""
UNITS = (60.0, 1000.0, 3600.0, 86400.0, 1e6)
"""Factors between units of time: a column in another unit than seconds is off by one of them."""
NEAR, EXACT = 0.02, 0.001
"""How near to such a factor a ratio is that tells it, of a whole column and of one row."""
WHOLE_COLUMN = 0.9
"""Share of jobs that are off by one factor, from which the column is in another unit."""
FEW = 3
"""Of fewer jobs shorter durations tell no unit: they may have been preempted."""


def contradictions(trace: Trace, strict: bool) -> tuple[str, ...]:
    """A note on durations that are longer than end_time - start_time, or off by a unit of time; none where all fit.

    Shorter ones are no contradiction: preempted and suspended jobs have them. Nor are those of elastic jobs, which are
    on one GPU.

    Raises
    ------
    TraceError
        The whole column is in another unit than seconds; or there is any such job, under `strict`.
    """
    if not {"start_time", "end_time"} <= set(trace.jobs.columns):
        return ()
    # start_s and end_s fill gaps by the duration itself, which would agree with anything
    known = trace.jobs["start_time"].is_not_null() & trace.jobs["end_time"].is_not_null()
    jobs = np.flatnonzero(known.to_numpy() & ~trace.elastic)
    if not len(jobs):
        return ()
    duration_s, span_s = trace.duration_s[jobs], trace.end_s[jobs] - trace.start_s[jobs]
    # a span of 0 s gives an infinite ratio, which the line tells as inf
    with np.errstate(divide="ignore"):
        ratio = duration_s / span_s
    # first the whole column: else every row of it would be told as a contradiction of its own
    _refuse_unit(trace, jobs, ratio)
    # shorter ones are preempted jobs, unless they miss by exactly a unit
    wrong = (duration_s - span_s > np.maximum(ROUNDING_S, ROUNDING_SHARE * span_s)) | _off_by_a_unit(ratio)
    if not wrong.any():
        return ()
    job = jobs[wrong][0]
    text = (
        f"duration: contradicts end_time - start_time in {int(wrong.sum()):,} of {len(jobs):,} jobs, "
        f"by a factor of {_factor(float(np.median(ratio[wrong])))} in the middle ({_job(trace, int(job))})"
    )
    if strict:
        raise TraceError(f"{trace.source.path}: {text}; {WITHOUT_STRICT}")
    return (text,)


def _refuse_unit(trace: Trace, jobs: NDArray[np.int64], ratio: Floats) -> None:
    """Refuse a column that is off by one factor between units of time throughout."""
    for unit in UNITS:
        # both directions: minutes given as seconds, and milliseconds
        for factor, remedy in ((unit, f"divide by {unit:g}"), (1.0 / unit, f"multiply by {unit:g}")):
            off = np.abs(ratio / factor - 1.0) <= NEAR
            # too long is impossible for even one job, too short may be preemption where there are few
            if off.mean() >= WHOLE_COLUMN and (factor > 1.0 or len(ratio) >= FEW):
                job = int(jobs[off][0])
                raise TraceError(
                    f"{trace.source.path}: duration is {_factor(factor)} times end_time - start_time in "
                    f"{int(off.sum()):,} of {len(jobs):,} jobs ({_job(trace, job)}); give seconds: {remedy}"
                )


def _off_by_a_unit(ratio: Floats) -> NDArray[np.bool_]:
    """Which durations are shorter by a factor between units, to the point: hardly by preemption."""
    return np.asarray(np.any([np.abs(ratio * unit - 1.0) <= EXACT for unit in UNITS], axis=0))


def _factor(factor: float) -> str:
    """
    >>> _factor(60.0), _factor(1 / 3600), _factor(9999.9), _factor(1.018), _factor(float("inf"))
    ('60', '1/3,600', '9,999.9', '1.018', 'inf')
    """
    if factor < 1.0:
        return f"1/{_factor(1.0 / factor)}"
    # near 1 the decimals are all that it tells
    if factor < 10.0:
        return f"{factor:.4g}"
    return f"{factor:,.1f}".removesuffix(".0")


def _job(trace: Trace, job: int) -> str:
    name, span_s = trace.jobs["job_id"][job][:LONGEST_NAME], trace.end_s[job] - trace.start_s[job]
    return f"job {name}: {trace.duration_s[job]:,.10g} s where {span_s:,.10g} s lie between"


FIRST_LINE = 1


def read_headless(
    file: FileBytes, names: Sequence[str], separator: str, first_line: int = FIRST_LINE, quote: str | None = None
) -> tuple[pl.DataFrame, Place]:
    """Read such a table as text; empty fields are null.

    Parameters
    ----------
    file : its bytes
    names : of its columns, in order
    separator : between fields, one character
    first_line : number of the first line as a person sees it in the file
    quote : may stand around a field, which holds no separator even so; None: it is text like any other

    Raises
    ------
    TraceError
        The file is no UTF-8 text, or a line has another number of fields; the first such line is named.
    """
    text = file.text("give a text file in UTF-8")
    lines = text.count("\n") + (not text.endswith("\n"))
    frame = None
    # cheap test by counting: as many separators as a sound table has, else look line by line
    if text.count(separator) == lines * (len(names) - 1):
        frame = _plain(file.data, names, separator, quote)
    # polars drops blank lines and accepts short ones, which would shift row numbers
    if frame is None or frame.height != lines or frame.width != len(names):
        raise _first_bad(file, text, len(names), separator, first_line)
    return frame, Place(file.path, lambda index: f"row {index + first_line}")


def _plain(data: bytes, names: Sequence[str], separator: str, quote: str | None) -> pl.DataFrame | None:
    try:
        return pl.read_csv(
            io.BytesIO(data.removeprefix(b"\xef\xbb\xbf")),
            has_header=False,
            new_columns=list(names),
            separator=separator,
            infer_schema=False,
            quote_char=quote,
        )
    except pl.exceptions.PolarsError:
        return None


def _first_bad(file: FileBytes, text: str, width: int, separator: str, first_line: int) -> TraceError:
    for number, line in enumerate(text.splitlines(), first_line):
        found = line.count(separator) + 1 if line.strip() else 0
        if found != width:
            return TraceError(f"{file.path}, row {number}: {found} fields where {width} are due; correct the line")
    return TraceError(f"{file.path}: not a table of {width} fields a line; check the file")
