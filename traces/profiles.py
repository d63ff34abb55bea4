"""Profiles: seconds an epoch of a model on so many GPUs of a type, in a table (CSV, Parquet or SQLite).

Filippini et al.: ANDREAS, FiCloud 2021, section III: "Job Profiler", whose results its scheduler reads from a database.

The table `profiles` of a SQLite file: read, written anew, or merged into in one transaction.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.check import Place, require_columns
from jobcast.traces.files import FileBytes, PathLike, read_file, reason, replacing
from jobcast.traces.table_files import SUFFIXES, counts_in, floats_in, names_in, read_plain, write_plain

SQLITE_MAGIC = b"SQLite format 3\0"
SQLITE_SUFFIXES = (".sqlite", ".db")
CREATE = """
CREATE TABLE IF NOT EXISTS profiles (
    model TEXT NOT NULL,
    batch_size INTEGER,
    gpu_type TEXT NOT NULL,
    gpus INTEGER NOT NULL CHECK (gpus >= 1),
    epoch_s REAL NOT NULL CHECK (epoch_s > 0)
)
"""
UNIQUE = """
CREATE UNIQUE INDEX IF NOT EXISTS profiles_key ON profiles (model, ifnull(batch_size, -1), gpu_type, gpus)
"""
DELETE = "DELETE FROM profiles WHERE model = ? AND batch_size IS ? AND gpu_type = ? AND gpus = ?"
INSERT = "INSERT INTO profiles (model, batch_size, gpu_type, gpus, epoch_s) VALUES (?, ?, ?, ?, ?)"


def sqlite_frame(file: FileBytes) -> pl.DataFrame:
    """The table `profiles` as text, in the file's order. Raises TraceError where it cannot be read."""
    path = file.path
    try:
        # read-only: asking must not create or lock a file
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as opened:
            asked = opened.execute("SELECT * FROM profiles ORDER BY rowid")
            names = [column[0] for column in asked.description]
            rows = asked.fetchall()
    except sqlite3.Error as error:
        raise TraceError(f"{path}: its table profiles cannot be read ({reason(error)}); write it again") from None
    columns = {
        # as text, so that the checks of CSV hold for it, too
        name: pl.Series(name, [None if row[at] is None else str(row[at]) for row in rows], dtype=pl.String)
        for at, name in enumerate(names)
    }
    return pl.DataFrame(columns)


def write_sqlite(frame: pl.DataFrame, path: PathLike) -> None:
    """Write a file that holds these rows alone. Raises ConfigError if it cannot be written.

    Parameters
    ----------
    frame : model, batch_size, gpu_type, gpus, epoch_s; checked
    path : what was there is replaced at the end
    """
    with replacing(path) as draft, _opened(draft, path) as opened:
        opened.executemany(INSERT, frame.iter_rows())


def merge_sqlite(frame: pl.DataFrame, path: PathLike) -> tuple[int, int]:
    """Lay rows over those of a file, in one transaction; its other tables stay.

    Returns
    -------
    added, replaced : how many rows are new, and how many took the place of one with the same key

    Raises ConfigError if it cannot be written; then it stays as it was.
    """
    if not Path(path).exists():
        write_sqlite(frame, path)
        return frame.height, 0
    with _opened(path, path) as opened:
        # delete and insert: an upsert cannot tell new rows from replaced ones
        replaced = sum(opened.execute(DELETE, key).rowcount for key in frame.drop("epoch_s").iter_rows())
        opened.executemany(INSERT, frame.iter_rows())
    return frame.height - replaced, replaced


@contextmanager
def _opened(place: PathLike, value: PathLike) -> Iterator[sqlite3.Connection]:
    """A transaction over a file with the table; errors name `told`."""
    try:
        with closing(sqlite3.connect(place, isolation_level=None)) as opened:
            # the write lock at once: two mergers wait for each other instead of failing late
            opened.execute("BEGIN IMMEDIATE")
            try:
                opened.execute(CREATE)
                opened.execute(UNIQUE)
                yield opened
            # an interrupt, too, must leave the file as it was
            except BaseException:
                opened.execute("ROLLBACK")
                raise
            opened.execute("COMMIT")
    except sqlite3.Error as error:
        raise ConfigError(f"{value}: cannot be written ({reason(error)}); check the file and its folder") from None


PROFILE_SCHEMA = {
    "model": pl.String,
    "batch_size": pl.Int64,
    "gpu_type": pl.String,
    "gpus": pl.Int64,
    "epoch_s": pl.Float64,
}
PROFILE_COLUMNS = tuple(PROFILE_SCHEMA)
KEY = PROFILE_COLUMNS[:-1]
MOST_GPUS = 65_536
"""Of a job on one node; a row beyond this is taken for a mistake."""
ProfileRow = tuple[str, int | None, str, int, float]
"""Model, batch size (None: any), GPU type, GPUs, seconds an epoch."""


@dataclass(frozen=True, slots=True, eq=False)
class ProfileTable:
    """Seconds an epoch, by model, batch size, GPU type and number of GPUs of one node.

    Attributes
    ----------
    path : the file
    sha256 : of its bytes, in hex; empty for a table that was made
    frame : `PROFILE_COLUMNS`, typed, one row a key; no batch size: any
    notes : what a user should know of it
    from_s, until_s : the window whose jobs were profiled, seconds from the epoch; 0 where profiles have no calendar
    """

    path: str
    sha256: str
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()
    from_s: float = 0.0
    until_s: float = 0.0

    def __len__(self) -> int:
        return self.frame.height

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.frame.height

    @property
    def models(self) -> tuple[str, ...]:
        """Names, in the table's order."""
        return tuple(self.frame["model"].unique(maintain_order=True).to_list())

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """Names, in the table's order."""
        return tuple(self.frame["gpu_type"].unique(maintain_order=True).to_list())

    def of_jobs(self, models: Sequence[str], batch_sizes: Sequence[int | None]) -> pl.DataFrame:
        """The rows that some jobs go by, in the table's order; see `epoch_s`."""
        pairs = dict.fromkeys(zip(models, batch_sizes, strict=True))
        # clear() first: there may be no pair at all, and concat needs a frame
        its = [_rows_of(self.frame.filter(pl.col("model") == model), batch_size) for model, batch_size in pairs]
        return self.frame.join(pl.concat([self.frame.clear(), *its]), on=KEY, how="semi", nulls_equal=True)

    def gpu_types_of(self, model: str, batch_size: int | None) -> tuple[str, ...]:
        """Types that a job of a model and batch size is profiled on, in the table's order; see `epoch_s`."""
        its = _rows_of(self.frame.filter(pl.col("model") == model), batch_size)
        return tuple(its["gpu_type"].unique(maintain_order=True).to_list())

    def epoch_s_of(self, model: str, batch_size: int | None, gpus: int) -> float:
        """Seconds an epoch on GPUs of the table's first type; infinite where that is not profiled."""
        its = self.frame.filter((pl.col("model") == model) & (pl.col("gpu_type") == self.gpu_types[0]))
        here = _rows_of(its, batch_size).filter(pl.col("gpus") == gpus)["epoch_s"]
        return float(here[-1]) if len(here) else float("inf")

    def epoch_s(
        self, models: Sequence[str], batch_sizes: Sequence[int | None], gpu_types: Sequence[str], most_gpus: int
    ) -> Floats:
        """Seconds an epoch of jobs wherever they are profiled.

        A row of the job's own batch size comes before one of any. A job without a batch size takes the rows of any,
        else those of the smallest batch size of its model.

        Parameters
        ----------
        models, batch_sizes : (n_jobs,)
        gpu_types : (n_types,) names; one may be there twice
        most_gpus : columns: 1, 2, ... GPUs

        Returns
        -------
        (n_jobs, n_types, most_gpus) infinite where nothing is profiled
        """
        pairs = list(zip(models, batch_sizes, strict=True))
        distinct = {pair: row for row, pair in enumerate(dict.fromkeys(pairs))}
        # split once: a filter for each of many jobs would scan the table each time
        its_model = {model: part for (model,), part in self.frame.partition_by("model", as_dict=True).items()}
        known = np.full((len(distinct), len(gpu_types), most_gpus), np.inf)
        for (model, batch_size), row in distinct.items():
            if model in its_model:
                _lay(_rows_of(its_model[model], batch_size), gpu_types, known[row])
        # jobs of one kind share a row until here
        return known[[distinct[pair] for pair in pairs]]


def read_profiles(path: PathLike) -> ProfileTable:
    """Read a table of `PROFILE_COLUMNS`: CSV, Parquet, or the table `profiles` of a SQLite file.

    Raises
    ------
    TraceError
        The file cannot be read, a column is missing, a value cannot be used, or a key is there twice; the line names
        file, row, column and value.
    """
    file = read_file(path)
    if file.data.startswith(SQLITE_MAGIC):
        frame, place = sqlite_frame(file), Place(file.path)
        require_columns(frame.columns, place, PROFILE_COLUMNS)
        if frame.is_empty():
            raise TraceError(f"{place.path}: the table profiles has no rows; give at least one")
    else:
        frame, place, file = read_plain(path, PROFILE_COLUMNS)
    return ProfileTable(place.path, file.sha256, _checked(frame, place))


def profile_table(
    rows: pl.DataFrame | Iterable[ProfileRow], path: str = "profiles", sha256: str = "", notes: tuple[str, ...] = ()
) -> ProfileTable:
    """A table of rows at hand, checked as those of a file are. Raises TraceError, which names `path`."""
    frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(list(rows), schema=PROFILE_SCHEMA, orient="row")
    place = Place(path)
    require_columns(frame.columns, place, PROFILE_COLUMNS)
    return ProfileTable(path, sha256, _checked(frame, place), notes)


def write_profiles(rows: pl.DataFrame | Iterable[ProfileRow], path: PathLike) -> None:
    """Write a table that `read_profiles` reads, by the suffix: .csv, .parquet, .sqlite or .db.

    Raises ConfigError if it cannot be written, TraceError for rows that cannot be used.
    """
    frame, suffix = profile_table(rows, str(path)).frame, Path(path).suffix.lower()
    if suffix not in (*SUFFIXES, *SQLITE_SUFFIXES):
        known = " or ".join((*SUFFIXES, *SQLITE_SUFFIXES))
        raise ConfigError(f"{path}: the suffix must be {known}; rename the file")
    if suffix in SQLITE_SUFFIXES:
        write_sqlite(frame, path)
    else:
        write_plain(frame, path)


def _checked(frame: pl.DataFrame, place: Place) -> pl.DataFrame:
    """Typed columns. Raises TraceError for the first row that cannot be used."""
    made = {name: names_in(frame[name], place, "one").str.strip_chars() for name in ("model", "gpu_type")}
    sizes = frame["batch_size"]
    if sizes.dtype == pl.String:
        # an empty field means any batch size
        sizes = sizes.str.strip_chars().replace("", None)
    made["batch_size"] = counts_in(sizes, place, missing=True)
    made["gpus"] = counts_in(frame["gpus"], place, most=MOST_GPUS)
    made["epoch_s"] = pl.Series("epoch_s", floats_in(frame["epoch_s"], place, above=True))
    table = pl.DataFrame(made).select(PROFILE_COLUMNS)
    again = table.select(pl.struct(KEY).is_first_distinct().not_()).to_series()
    parts = [pl.col(name).cast(pl.String).fill_null("any") for name in KEY]
    shown = table.select(pl.concat_str(parts, separator=", ").alias("model")).to_series()
    place.refuse(again, shown, "model, batch size, GPU type and GPUs are there twice", "keep one row")
    return table


def _rows_of(its: pl.DataFrame, batch_size: int | None) -> pl.DataFrame:
    """Of one model's rows those that a job goes by, the ones that count last."""
    anyhow = its.filter(pl.col("batch_size").is_null())
    if batch_size is None:
        return anyhow if len(anyhow) else its.filter(pl.col("batch_size") == pl.col("batch_size").min())
    # later rows win: the job's own batch size over any
    return pl.concat([anyhow, its.filter(pl.col("batch_size") == batch_size)])


def _lay(its: pl.DataFrame, gpu_types: Sequence[str], known: Floats) -> None:
    """Write rows into (n_types, most_gpus), later ones over earlier ones."""
    gpus = its["gpus"].to_numpy()
    fits = gpus <= known.shape[1]
    for column, name in enumerate(gpu_types):
        here = fits & (its["gpu_type"] == name).to_numpy()
        # columns count from 1 GPU
        known[column, gpus[here] - 1] = its["epoch_s"].to_numpy()[here]
