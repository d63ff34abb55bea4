"""Checks of job tables: the first bad row is named as a person finds it, the others are counted.

Lists of nodes as Slurm writes them: gpu[01-04,7],login1.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NoReturn

import polars as pl
from polars.exceptions import PanicException

from jobcast.domain.errors import TraceError
from jobcast.traces.columns import COLUMNS, REQUIRED, Column, Kind
from jobcast.traces.files import hushed

MOST_NODES = 1_000_000
PART = re.compile(r"([^\[\],]*(?:\[[0-9,\-]+\][^\[\],]*)*)(?:,|$)")
RANGES = re.compile(r"\[([0-9,\-]+)\]")


def node_names(text: str) -> list[str] | None:
    """Names in a list of nodes; None where it is none, or too long to be one.

    >>> node_names("gpu[08-10,12],n1")
    ['gpu08', 'gpu09', 'gpu10', 'gpu12', 'n1']
    >>> node_names("r[1-2]n[1-2]"), node_names("a[1"), node_names("")
    (['r1n1', 'r1n2', 'r2n1', 'r2n2'], None, [])
    """
    # Slurm's own lists stay far below the limit; a slip of a range would fill the memory
    names: list[str] = []
    place = 0
    while place < len(text):
        found = PART.match(text, place)
        if not found or found.end() == place:
            return None
        expanded = _expanded(found[1])
        if expanded is None or len(names) + len(expanded) > MOST_NODES:
            return None
        names += expanded
        place = found.end()
    return names


def _expanded(part: str) -> list[str] | None:
    names = [""]
    # split with a group returns the ranges, too, at odd places
    fixed, ranges = RANGES.split(part)[::2], RANGES.findall(part)
    for index, text in enumerate(fixed):
        names = [name + text for name in names]
        if index < len(ranges):
            numbers = _numbers(ranges[index])
            if numbers is None or len(names) * len(numbers) > MOST_NODES:
                return None
            # several ranges in one name multiply
            names = [name + number for name in names for number in numbers]
    return names


def _numbers(ranges: str) -> list[str] | None:
    """The numbers of 01-03,7, with their leading zeros."""
    numbers: list[str] = []
    for one in ranges.split(","):
        low, dash, high = one.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()) or len(low) > 9 or len(high) > 9:
            return None
        last = int(high) if dash else int(low)
        # measured before it is expanded
        if last < int(low) or last - int(low) > MOST_NODES:
            return None
        # 01-03 keeps its leading zeros
        numbers += [str(number).zfill(len(low)) for number in range(int(low), last + 1)]
    return numbers


REMEDY = "correct it or drop the row"
MOST_SHOWN = 80
"""Characters of a value that a message shows."""
MOST_COLUMNS, LONGEST_NAME = 16, 40
"""Columns, and characters of each name, that a message shows."""
LIFE = (
    ("submit_time", "snapshot_time"),
    ("snapshot_time", "start_time"),
    ("submit_time", "start_time"),
    ("start_time", "end_time"),
    ("submit_time", "end_time"),
    ("end_time", "known_time"),
)
"""Times of a job, of which the first does not lie after the second."""


def by_index(index: int) -> str:
    """Name of a row in a file without lines."""
    return f"row index {index}"


@dataclass(frozen=True, slots=True)
class Place:
    """A table that errors point into.

    Attributes
    ----------
    path : the file
    row : name of a row by its position, from 0
    columns : what the file calls columns that are not under their canonical names
    """

    path: str
    row: Callable[[int], str] = by_index
    columns: Mapping[str, str] = field(default_factory=dict)

    def fail(self, index: int, column: str, what: str, value: Any, remedy: str, others: int = 0) -> NoReturn:
        """Raise a TraceError about one row, counting the others that are bad in the same way."""
        also = f" ({others} more {'row' if others == 1 else 'rows'} like it)" if others else ""
        shown = shown_value(value)
        where = f"{self.path}, {self.row(index)}, column {self.columns.get(column, column)}"
        raise TraceError(f"{where}: {what}, got {shown}{also}; {remedy}")

    def refuse_type(self, column: str, wanted: str, found: str) -> NoReturn:
        """Raise a TraceError about a column of the wrong type."""
        column = self.columns.get(column, column)
        raise TraceError(f"{self.path}, column {column}: must hold {wanted}, got {found}; convert the column")

    def refuse(self, bad: pl.Series, values: pl.Series, what: str, remedy: str) -> None:
        """Raise a TraceError that names the first row where `bad` is true, if there is one."""
        # a comparison with null says nothing against the row
        rows = bad.fill_null(False).arg_true()
        if len(rows):
            first = int(rows[0])
            self.fail(first, values.name, what, _value(values, first), remedy, len(rows) - 1)


def stacked_place(places: Sequence[Place], heights: Sequence[int]) -> Place:
    """Where the rows of several tables stand, one below another; columns are named as the first table names them."""
    if len(places) == 1:
        return places[0]
    # found by bisection: errors are rare, but `row` is also called for each of many
    ends = list(accumulate(heights))

    def row(index: int) -> str:
        which = bisect_right(ends, index)
        return f"{places[which].path} {places[which].row(index - (ends[which - 1] if which else 0))}"

    columns = {name: written for place in reversed(places) for name, written in place.columns.items()}
    return Place(" + ".join(place.path for place in places), row, columns)


def _value(values: pl.Series, index: int) -> Any:
    """A value to show: a time that Python has no year for is told as the number that it is."""
    try:
        # polars prints a panic of its own beside the exception
        with hushed():
            return values[index]
    except (ValueError, OverflowError, PanicException):
        # a year that Python cannot hold is shown as its number
        return values.to_physical()[index]


def check_jobs(frame: pl.DataFrame, place: Place) -> None:
    """Check a table of typed canonical columns.

    Raises
    ------
    TraceError
        There are no rows, or one of them holds what a trace cannot; the line names the first such row.
    """
    if frame.is_empty():
        raise TraceError(f"{place.path}: no jobs, only a header; give a trace with at least one row")
    for name in frame.columns:
        if name in COLUMNS:
            _check_column(frame[name], COLUMNS[name], place)
    # the second of two is named: it is the one to rename
    repeated = frame["job_id"].is_first_distinct().not_()
    place.refuse(repeated, frame["job_id"], "must be unique", "rename or drop the repeated rows")
    _check_together(frame, place)


def shown_value(value: Any) -> str:
    """A value of a file for a message, however long it is: an open quote may have swallowed half the file.

    >>> shown_value("two"), shown_value(None), len(shown_value("a" * 1000))
    ("'two'", 'nothing', 83)
    """
    shown = "nothing" if value is None else repr(value) if isinstance(value, str) else f"{value}"
    return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}..."


def shown_columns(found: Sequence[str]) -> str:
    """Names of columns for a message, however many and long they are.

    >>> shown_columns(["a", "b" * 50]), shown_columns([])
    ('a, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb...', 'none')
    """
    names = [name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..." for name in found[:MOST_COLUMNS]]
    more = f" and {len(found) - MOST_COLUMNS} more" if len(found) > MOST_COLUMNS else ""
    return ", ".join(names) + more or "none"


def require_columns(found: list[str], place: Place, needed: Sequence[str] = REQUIRED) -> None:
    """Raise a TraceError unless all the columns that a trace needs are there."""
    missing = [name for name in needed if name not in found]
    if missing:
        raise TraceError(
            f"{place.path}: {'columns' if len(missing) > 1 else 'column'} {', '.join(missing)} missing, "
            f"found {shown_columns(found)}; rename or add them"
        )


def _check_column(values: pl.Series, column: Column, place: Place) -> None:
    # presence first, or an empty field would be told as out of range
    if column.required and not column.may_be_empty:
        place.refuse(values.is_null(), values, "a value is needed", "fill it in or drop the row")
        if column.kind is Kind.TEXT:
            place.refuse(values.str.strip_chars() == "", values, "must not be empty", "fill it in or drop the row")
    if column.nodes:
        # each list once: thousands of jobs run on few of them
        wrong = [text for text in values.drop_nulls().unique() if node_names(text) is None]
        place.refuse(values.is_in(wrong), values, "must be a list of nodes such as gpu[01-04,7]", REMEDY)
    if column.kind is Kind.NUMBER:
        place.refuse(~values.is_finite(), values, "must be a finite number", REMEDY)
    if column.above is not None:
        place.refuse(values <= column.above, values, f"must be > {column.above:g}", REMEDY)
    if column.at_least is not None:
        place.refuse(values < column.at_least, values, f"must be >= {column.at_least:g}", REMEDY)
    if column.at_most is not None:
        place.refuse(values > column.at_most, values, f"must be <= {column.at_most:.10g}", REMEDY)


def _check_together(frame: pl.DataFrame, place: Place) -> None:
    """Checks of one column against another."""
    for earlier, later in LIFE:
        if later in frame.columns and earlier in frame.columns:
            bad = frame[later] < frame[earlier]
            place.refuse(bad, frame[later], f"must not lie before {earlier}", "correct it or empty the field")
    if "end_time" in frame.columns:
        # a job that ended ran for a time, else metrics would count it as running
        bad = frame["duration"].is_null() & frame["end_time"].is_not_null()
        place.refuse(bad, frame["duration"], "a value is needed where end_time has one", "fill it in or empty end_time")
    for name in ("min_gpus", "duration_gpus"):
        if name in frame.columns:
            bad = frame[name] > frame["gpus"]
            place.refuse(bad, frame[name], "must not be more than gpus", "correct it or empty the field")
