"""SWF, the Standard Workload Format of the Parallel Workloads Archive: 18 numbers a job, comments behind semicolons.

Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999. -1 is unknown.
"""

import gzip
import io
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Sequence

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place
from jobcast.traces.column_types import Clock, numbers_of, typed_columns
from jobcast.traces.files import FileBytes, PathLike, read_file
from jobcast.traces.readers.reading import FIRST_LINE, Reading, Unfit, leave_out, merged_notes, only_source

FIELDS = (
    "job_number",
    "submit",
    "wait",
    "run_time",
    "allocated_processors",
    "cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user_id",
    "group_id",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
CANCELLED_STATUS = 5
KB_A_GB = 1024.0**2
STATES = {0: "FAILED", 1: "COMPLETED", CANCELLED_STATUS: "CANCELLED"}
PARTIAL = (2, 3, 4)
"""Lines about parts of a job that was checkpointed or swapped out; the job has a line of its own."""
COMMENT = ";"
GZIP = b"\x1f\x8b"
GZIP_WINDOW = 16 + zlib.MAX_WBITS
"""Tells zlib to expect a gzip header."""
UNIX_START = re.compile(r"^;\s*UnixStartTime:\s*(\d+)", re.MULTILINE)
MAX_PROCESSORS = re.compile(r"^;\s*MaxProcs:\s*(\d+)", re.MULTILINE)
ZONE = re.compile(r"^;\s*TimeZoneString:\s*(\S+)", re.MULTILINE)
NUMBERS = re.compile(rb"^\s*(-?\d+(\.\d+)?\s+){17}-?\d+(\.\d+)?\s*$")
PROCESSORS = "processors stand for GPUs: allocated ones, requested where those are unknown"
NO_PROCESSORS = "no processors"
CANCELLED = "cancelled before it ran"
NO_RUN_TIME = "run time missing or <= 0"
PARTIAL_LINE = "part of a job (status 2, 3 or 4)"


class SwfReader:
    """Reads a log. The pool is the partition, or the queue where no job names a partition; the executable is the tag.

    The group is the account; requested time and memory (a processor's, in kB) are the job's limit and memory.

    Times are seconds from the header's `UnixStartTime`, which is UTC. Of each job the preceding job and the think time
    are kept in columns of their own: they tell what followed what.
    """

    name = "swf"
    needs: Sequence[str] = ()

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether the first line of `head` that is no comment holds 18 numbers."""
        # logs come packed, and recognising them must not unpack the whole; some editors set a mark before the text
        text = unpacked(head).removeprefix(BOM_UTF8)
        lines = (line for line in text.split(b"\n") if line.strip() and not line.lstrip().startswith(b";"))
        return NUMBERS.match(next(lines, b"")) is not None

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read a log.

        Parameters
        ----------
        sources : the one file
        timezone : not applied: the times are absolute, or hang on no calendar
        strict : make rows that would be left out an error

        Raises
        ------
        TraceError
            The file cannot be read, or a line of it cannot be used; the message names the first such line.
        ConfigError
            The zone is not known, or there are several files.
        """
        clock = Clock(timezone)
        file = read_file(only_source(sources, self.name))
        text = _text(file)
        frame, place = _records(file, text)
        start = UNIX_START.search(text)
        fields = {name: _number(frame[name], place) for name in FIELDS}
        # looked up in a table of whole numbers below
        fields["status"] = fields["status"].cast(pl.Int64, strict=False)
        typed = typed_columns(_canonical(frame, fields, float(start[1]) if start else 0.0), place, clock)
        kept = leave_out(typed.frame, _unfit(typed.frame, fields), place, strict)
        zone = ZONE.search(text)
        result = (PROCESSORS, *_size_note(text), _clock_note(start is not None, zone[1] if zone else ""))
        return kept.reading([file], frame.height, merged_notes((*typed.notes, *result)))


def unpacked(head: bytes) -> bytes:
    """What a gzip file begins with, unpacked; any other as it is, and one that cannot be unpacked too."""
    if not head.startswith(GZIP):
        return head
    try:
        # a cut head is no whole gzip file: decompressobj takes what is there
        return zlib.decompressobj(GZIP_WINDOW).decompress(head)
    except zlib.error:
        return head


def _text(file: FileBytes) -> str:
    """The log's text. Names in its comments may be of any encoding; a line of a job is of ASCII or refused later."""
    data = file.data
    if data.startswith(GZIP):
        try:
            data = gzip.decompress(data)
        # gzip raises these three, by which of its layers finds the damage
        except (OSError, EOFError, zlib.error):
            raise TraceError(f"{file.path}: cannot be unpacked (gzip); download or pack it again") from None
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + FIRST_LINE
        raise TraceError(f"{file.path}, row {line}: holds binary data; give a text file")
    # site names in comments are often Latin-1; they must not make the log unreadable
    return data.decode("utf-8-sig", errors="replace")


def _size_note(text: str) -> tuple[str, ...]:
    found = MAX_PROCESSORS.search(text)
    return (f"the machine has {int(found[1]):,} processors in all (MaxProcs)",) if found else ()


def _records(file: FileBytes, text: str) -> tuple[pl.DataFrame, Place]:
    """The lines of jobs as columns of text, and which line each stood on."""
    lines = pl.Series("line", text.split("\n"), dtype=pl.String).str.strip_chars()
    jobs = (~lines.str.starts_with(COMMENT) & (lines != "")).arg_true()
    if not len(jobs):
        raise TraceError(f"{file.path}: no jobs, only comments; give a log with at least one line of 18 numbers")
    # fields stand in columns padded by blanks, one separator is wanted
    rows = lines.gather(jobs).str.replace_all(r"\s+", " ")
    counts = rows.str.count_matches(" ", literal=True) + 1
    wrong = (counts != len(FIELDS)).arg_true()
    if len(wrong):
        at = int(wrong[0])
        raise TraceError(
            f"{file.path}, row {jobs[at] + FIRST_LINE}: {counts[at]} fields where SWF has {len(FIELDS)}; "
            f"correct the line"
        )
    frame = pl.read_csv(
        io.BytesIO("\n".join(rows.to_list()).encode()),
        has_header=False,
        new_columns=list(FIELDS),
        separator=" ",
        infer_schema=False,
        quote_char=None,
    )
    return frame, Place(file.path, lambda index: f"row {jobs[index] + FIRST_LINE}")


def _number(values: pl.Series, place: Place) -> pl.Series:
    """A field as numbers; -1 is null."""
    numbers = numbers_of(values, place)
    place.refuse(~numbers.is_finite(), values, "must be a finite number", "correct the line")
    # all of SWF's unknowns are -1, and no field of it is negative
    return numbers.set(numbers < 0, None)


def _canonical(frame: pl.DataFrame, fields: dict[str, pl.Series], start_s: float) -> pl.DataFrame:
    submit_s = fields["submit"] + start_s
    began_s = submit_s + fields["wait"]
    allocated, run_s, limit_s = fields["allocated_processors"], fields["run_time"], fields["requested_time"]
    # 0 allocated is unknown too: the request tells
    gpus = allocated.set(allocated <= 0, None).fill_null(fields["requested_processors"])
    # of the two the partition is the hardware, a queue is a policy
    pools = fields["partition"] if fields["partition"].is_not_null().any() else fields["queue"]
    columns = {
        "job_id": frame["job_number"],
        "pool": _names(pools).fill_null("unknown"),
        "submit_time": submit_s,
        "duration": run_s,
        "gpus": gpus,
        "user": _names(fields["user_id"]),
        "tag": _names(fields["executable"]),
        "start_time": began_s,
        "end_time": began_s + run_s,
        "state": fields["status"].replace_strict(STATES, default=None, return_dtype=pl.String),
        "account": _names(fields["group_id"]),
        "partition": _names(fields["partition"]),
        "time_limit_s": limit_s.set(limit_s <= 0, None),
        # the archive's memory is a processor's
        "mem_gb": fields["requested_memory"] * gpus / KB_A_GB,
        "preceding_job": _names(fields["preceding_job"]),
        "think_time_s": fields["think_time"],
    }
    return pl.DataFrame([values.alias(name) for name, values in columns.items()])


def _names(numbers: pl.Series) -> pl.Series:
    """Numbers that stand for names, as text."""
    return numbers.cast(pl.Int64, strict=False).cast(pl.String)


def _unfit(table: pl.DataFrame, fields: dict[str, pl.Series]) -> list[Unfit]:
    never_ran = table["duration"].fill_null(0.0) <= 0.0
    return [
        # parts go first: they may well have run
        Unfit(PARTIAL_LINE, fields["status"].is_in(PARTIAL), "state", "must be a whole job"),
        Unfit(CANCELLED, never_ran & (fields["status"] == CANCELLED_STATUS), "duration", "must be > 0"),
        Unfit(NO_RUN_TIME, never_ran, "duration", "must be > 0"),
        Unfit(NO_PROCESSORS, table["gpus"].fill_null(0) < 1, "gpus", "must be >= 1"),
    ]


def _clock_note(absolute: bool, zone: str) -> str:
    if not absolute:
        return "times are seconds from the log's start, kept as seconds from the epoch: no UnixStartTime is given"
    return f"times are seconds from UnixStartTime, in UTC{f'; the site is in {zone}' if zone else ''}"
