"""Speedup tables: how much faster a model trains on several GPUs than on one, by number, type and locality.

The schema is that of PCS's published measurements, model, gpus, speedup, with two optional columns, gpu_type and
locality. A table of one's own is the way to bring a demand function of one's own. PCS, section 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.check import Place
from jobcast.traces.files import PathLike
from jobcast.traces.table_files import counts_in, floats_in, names_in, read_plain, write_plain

SPEEDUP_COLUMNS = ("model", "gpus", "speedup")
TYPE, LOCALITY = "gpu_type", "locality"
LOCALITIES = ("packed", "spread")
"""On as few nodes as possible, and on more: positions 0 and 1 of `Speedups.speedup`."""
ANY_TYPE = ""
"""The one type of a table that names none."""
LINEAR = "LinearModel"
"""PCS's name for a model that is g times as fast on g GPUs."""
MOST_GPUS = 65_536
"""Tables are dense; a row beyond this is taken for a mistake."""
SEPARABLE = 0.01
"""Types whose curves differ by more than this share from the first type's are told in a note."""


@dataclass(frozen=True, slots=True, eq=False)
class Speedups:
    """A dense table.

    Attributes
    ----------
    path : the file
    models : in the file's order
    speedup : (n_models, 2, most GPUs + 1) over one GPU; by `LOCALITIES` and number of GPUs, 0 for none; linear between
        rows, flat beyond the last. It need not rise, neither must speedup / GPUs fall
    gpu_types : in the file's order, `ANY_TYPE` alone where it names none
    speed : (n_models, n_types) of one GPU over one of the first type
    notes : what the dense form leaves out of the file
    """

    path: str
    models: tuple[str, ...]
    speedup: Floats
    gpu_types: tuple[str, ...]
    speed: Floats
    notes: tuple[str, ...] = ()

    def row_of(self, model: str) -> int:
        """Position of a model. Raises ConfigError where the table does not know it."""
        if model not in self.models:
            known = ", ".join(self.models)
            raise ConfigError(f"{self.path}: no row of model {model!r}; add rows for it, known models are {known}")
        return self.models.index(model)

    def speeds(self, gpu_types: Sequence[str]) -> Floats:
        """(n_models, n) of one GPU of some types over one of the table's first type; all 1 where it names no type.

        Raises ConfigError where the table names types, but not these.
        """
        # a table without types says that all GPUs are alike
        if self.gpu_types == (ANY_TYPE,):
            return np.ones((len(self.models), len(gpu_types)))
        unknown = [name for name in gpu_types if name not in self.gpu_types]
        if unknown:
            known = ", ".join(self.gpu_types)
            raise ConfigError(f"{self.path}: no row of GPU type {unknown[0]!r}; add rows, known types are {known}")
        return self.speed[:, [self.gpu_types.index(name) for name in gpu_types]]


def read_speedups(path: PathLike) -> Speedups:
    """Read a CSV or Parquet file of `SPEEDUP_COLUMNS`, and gpu_type and locality where it has them.

    `speedup` is over one GPU of the file's first type. Every model needs a row of 1 GPU for each type: it is 1 for the
    first type, and tells the speed of the others. A row without a locality stands for both; where one locality has no
    rows, it is as the other. The curve over GPUs is the first type's; other types' rows beyond 1 GPU are checked, and
    a note tells how far they depart from it.

    Raises
    ------
    TraceError
        The file cannot be read, or a row of it cannot be used; the line names the first such row.
    """
    frame, place, _ = read_plain(path, SPEEDUP_COLUMNS)
    rows = _rows(frame, place)
    models, types = (tuple(rows[name].unique(maintain_order=True).to_list()) for name in ("model", TYPE))
    _check_ones(rows, place, models, types)
    # dense over GPUs: policies index it millions of times
    most = int(rows["gpus"].max())  # type: ignore[arg-type]
    curves = np.stack([_curves(rows, types[0], model, most) for model in models])
    # one GPU of each type over one of the first: its speed
    ones = {(model, kind): up for model, kind, up in _ones(rows).select("model", TYPE, "speedup").iter_rows()}
    speed = np.array([[ones[model, kind] for kind in types] for model in models], dtype=np.float64)
    return Speedups(place.path, models, curves, types, speed, _departures(rows, models, types, curves, speed))


def linear_speedups(most_gpus: int, models: Sequence[str] = (LINEAR,)) -> Speedups:
    """A table by which every model is g times as fast on g GPUs, wherever they are.

    >>> linear_speedups(3).speedup[0].tolist()
    [[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]]
    """
    curves = np.tile(np.arange(most_gpus + 1, dtype=np.float64), (len(models), 2, 1))
    return Speedups("linear", tuple(models), curves, (ANY_TYPE,), np.ones((len(models), 1)))


def write_speedups(path: PathLike, models: Sequence[str], speedup: Floats) -> None:
    """Write a table of one GPU type that `read_speedups` reads, as CSV or Parquet by the suffix.

    Parameters
    ----------
    path : .csv or .parquet
    models : (n_models,)
    speedup : (n_models, 2, most GPUs + 1) over one GPU, by `LOCALITIES`

    Raises ConfigError if it cannot be written.
    """
    rows = [
        (model, gpus, float(speedup[row, where, gpus]), locality)
        for row, model in enumerate(models)
        for where, locality in enumerate(LOCALITIES)
        # a single GPU is packed by nature, so spread rows begin at two
        for gpus in range(1 + where, speedup.shape[2])
    ]
    schema = {"model": pl.String, "gpus": pl.Int64, "speedup": pl.Float64, LOCALITY: pl.String}
    write_plain(pl.DataFrame(rows, schema=schema, orient="row"), path)


def _rows(frame: pl.DataFrame, place: Place) -> pl.DataFrame:
    """Checked rows: model, gpus, speedup, gpu_type, where (0, 1), index; those of both localities are doubled."""
    model, kind, locality = (_text(frame, name) for name in ("model", TYPE, LOCALITY))
    names_in(frame["model"], place, "a model")
    gpus, speedup = counts_in(frame["gpus"], place, most=MOST_GPUS), floats_in(frame["speedup"], place, above=True)
    if LOCALITY in frame.columns:
        known = locality.is_in(["", *LOCALITIES])
        place.refuse(~known, frame[LOCALITY], f"must be {' or '.join(LOCALITIES)}", "correct it or empty the field")
    # a row without a locality stands for both
    wheres = [[LOCALITIES.index(one)] if one else [0, 1] for one in locality]
    table = pl.DataFrame({"model": model, "gpus": gpus, "speedup": speedup, TYPE: kind, "where": wheres})
    rows = table.with_row_index().explode("where")
    twice = rows.filter(pl.struct("model", TYPE, "gpus", "where").is_first_distinct().not_())["index"]
    # exploded rows are traced back to the rows of the file
    again = pl.Series(np.isin(np.arange(frame.height), twice.to_numpy()))
    place.refuse(again, frame["gpus"], "is there twice for its model, type and locality", "keep one row")
    return rows


def _text(frame: pl.DataFrame, name: str) -> pl.Series:
    if name not in frame.columns:
        return pl.Series(name, [""] * frame.height, dtype=pl.String)
    return frame[name].cast(pl.String).str.strip_chars().fill_null("")


def _ones(rows: pl.DataFrame) -> pl.DataFrame:
    """One row a model and type: that of one GPU, the packed one where both localities have one."""
    one = rows.filter(pl.col("gpus") == 1).sort("where", maintain_order=True)
    return one.unique(["model", TYPE], keep="first", maintain_order=True)


def _check_ones(rows: pl.DataFrame, place: Place, models: Sequence[str], types: Sequence[str]) -> None:
    """Refuse models without a row of one GPU, and such rows of the first type that are not 1."""
    ones = _ones(rows)
    known = set(ones.select("model", TYPE).iter_rows())
    for model in models:
        for kind in types:
            if (model, kind) not in known:
                of_type = f" of type {kind}" if kind else ""
                raise TraceError(f"{place.path}: model {model} has no row of 1 GPU{of_type}; add it")
    wrong = rows.filter(
        (pl.col("gpus") == 1) & (pl.col(TYPE) == types[0]) & ((pl.col("speedup") - 1).abs() > tolerance.WRITTEN_SHARES)
    )
    if len(wrong):
        what = "must be 1 for 1 GPU" + (f" of {types[0]}, the first type" if types[0] else "")
        place.fail(wrong["index"][0], "speedup", what, wrong["speedup"][0], "divide the model's rows by it")


def _curves(rows: pl.DataFrame, kind: str, model: str, most: int) -> Floats:
    """(2, most + 1) of one model on one type."""
    mine = rows.filter((pl.col("model") == model) & (pl.col(TYPE) == kind)).sort("gpus")
    curves = []
    for where in range(len(LOCALITIES)):
        its = mine.filter((pl.col("where") == where) & (pl.col("gpus") > 1))
        # one locality without rows is as the other
        its = its if len(its) else mine.filter((pl.col("where") != where) & (pl.col("gpus") > 1))
        known, values = its["gpus"].to_numpy(), its["speedup"].to_numpy()
        # np.interp is flat beyond the last row, as the docstring promises
        curves.append(np.interp(np.arange(most + 1), [0, 1, *known], [0.0, 1.0, *values]))
    return np.stack(curves)


def _departures(
    rows: pl.DataFrame, models: Sequence[str], types: Sequence[str], curves: Floats, speed: Floats
) -> tuple[str, ...]:
    """How far other types' rows lie from the first type's curve times their speed; the largest by type."""
    notes = []
    for kind, name in enumerate(types[1:], start=1):
        its = rows.filter(pl.col(TYPE) == name)
        at = np.array([models.index(model) for model in its["model"]])
        # what the dense form will say, against what the file says
        made = curves[at, its["where"].to_numpy(), its["gpus"].to_numpy()] * speed[at, kind]
        most = float(np.abs(its["speedup"].to_numpy() / made - 1).max())
        if most > SEPARABLE:
            notes.append(f"{name}: scales as {types[0]} does; its rows differ from that by up to {most:.0%}")
    return tuple(notes)
