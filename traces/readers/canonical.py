"""The project's own form of a trace: Parquet, or CSV with the same names."""

from collections.abc import Sequence

import polars as pl

from jobcast.traces.check import Place
from jobcast.traces.column_types import Clock, typed_columns
from jobcast.traces.columns import COLUMNS, FORMER, REQUIRED, Kind
from jobcast.traces.csv_table import header_of
from jobcast.traces.files import PathLike, read_file
from jobcast.traces.readers.queue_snapshots import QueueSnapshotsReader
from jobcast.traces.readers.reading import Reading, only_source
from jobcast.traces.table import Source, Trace
from jobcast.traces.table_files import is_parquet, table_of

SNAPSHOTS = QueueSnapshotsReader()


class CanonicalReader:
    """Reads canonical traces. Each bad row is an error: none is dropped, and nothing is half-read."""

    name = "canonical"
    needs = REQUIRED

    def recognises(self, path: PathLike, head: bytes) -> bool:
        """Whether a file that begins with `head` is Parquet, or CSV with the columns that a trace needs.

        But for a table of snapshots: its cores and memory, under names of its own, would be left aside without a word.
        """
        trace = is_parquet(head) or set(REQUIRED) <= set(header_of(head))
        return trace and not SNAPSHOTS.recognises(path, head)

    def read(self, sources: Sequence[PathLike], timezone: str | None = None, strict: bool = False) -> Reading:
        """Read a canonical CSV or Parquet file.

        Parameters
        ----------
        sources : the one file
        timezone : IANA zone of times without an offset; None reads them as UTC, and a note says so
        strict : make a missing offset an error where no zone is given

        Raises
        ------
        TraceError
            The file cannot be read, or a row of it cannot be used; the line names the first such row.
        ConfigError
            The zone is not known, or there are several files.
        """
        path = only_source(sources, self.name)
        clock = Clock(timezone, strict)
        file = read_file(path)
        frame, place = table_of(file)
        if is_parquet(file.data):
            _check_types(frame, place)
        typed = typed_columns(_renamed(frame), place, clock)
        source = Source(file.path, file.sha256, frame.height)
        return Reading(Trace.from_frame(typed.frame, name=file.name, source=source, notes=typed.notes, place=place))


def _renamed(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of earlier versions under their present names."""
    return frame.rename({old: new for old, new in FORMER.items() if old in frame.columns and new not in frame.columns})


def _check_types(frame: pl.DataFrame, place: Place) -> None:
    for values in frame.get_columns():
        if values.name in COLUMNS:
            _check_type(values, COLUMNS[values.name].kind, place)


def _check_type(values: pl.Series, kind: Kind, place: Place) -> None:
    """Refuse text where numbers or times belong: Parquet has types, and a wrong one is a mistake upstream."""
    wanted, fits = {
        Kind.TEXT: ("text", values.dtype in (pl.String, pl.Categorical, pl.Enum) or values.dtype.is_integer()),
        Kind.NUMBER: ("numbers", values.dtype.is_numeric()),
        Kind.COUNT: ("whole numbers", values.dtype.is_numeric()),
        Kind.TIME: ("timestamps", isinstance(values.dtype, pl.Datetime) or values.dtype == pl.Date),
        Kind.FLAG: ("true or false", values.dtype == pl.Boolean),
    }[kind]
    # an all-empty column has no type to be wrong
    if not fits and values.dtype != pl.Null:
        place.refuse_type(values.name, wanted, f"{values.dtype}")
