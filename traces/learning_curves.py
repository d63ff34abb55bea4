"""Training curves: a run's validation metric by epoch, read from CSV.

Curves of jobs: the accuracy that each job really has after each epoch.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import TraceError
from jobcast.traces.check import REMEDY, Place, shown_columns
from jobcast.traces.column_types import numbers_of
from jobcast.traces.csv_table import read_csv
from jobcast.traces.files import FileBytes, PathLike, read_file
from jobcast.traces.table import Trace
from jobcast.traces.table_files import counts_in, floats_in, is_parquet, names_in, read_plain, write_plain

COLUMNS = ("job_id", "epoch", "metric")


@dataclass(frozen=True, slots=True, eq=False)
class JobCurves:
    """Metric by epoch, higher is better.

    Attributes
    ----------
    path, sha256 : the file
    job_ids : (n_jobs,) in the file's order
    begin : (n_jobs + 1,) where a job's epochs begin
    metric : by epoch, each job from epoch 0 on, which is before training
    row_of : job id -> its number
    """

    path: str
    sha256: str
    job_ids: tuple[str, ...]
    begin: Ints
    metric: Floats
    row_of: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_of", {name: row for row, name in enumerate(self.job_ids)})

    def of_job(self, job_id: str) -> Floats:
        """Metric of a job from epoch 0 on. Raises TraceError for a job without a curve."""
        known = self.row_of.get(job_id)
        if known is None:
            raise TraceError(f"{self.path}: no curve of job {job_id}; add rows {', '.join(COLUMNS)} of it")
        return self.metric[self.begin[known] : self.begin[known + 1]]

    def padded(self, job_ids: Sequence[str], epochs: Ints) -> Floats:
        """(n_jobs, longest + 1) metrics of these jobs by epoch, NaN after each job's last.

        Parameters
        ----------
        job_ids : whose
        epochs : (n_jobs,) how many each job trains for

        Raises
        ------
        TraceError
            A job has no curve, or one of fewer epochs.
        """
        # epoch 0, before training, is a column, too
        table = np.full((len(job_ids), int(epochs.max()) + 1), np.nan)
        for row, (job_id, count) in enumerate(zip(job_ids, epochs.tolist(), strict=True)):
            metric = self.of_job(job_id)
            if len(metric) < count + 1:
                raise TraceError(
                    f"{self.path}: the curve of job {job_id} ends at epoch {len(metric) - 1}, the job trains for "
                    f"{count}; add the epochs or lower the job's"
                )
            table[row, : count + 1] = metric[: count + 1]
        return table


def read_job_curves(path: PathLike) -> JobCurves:
    """Read a CSV or Parquet file of job_id, epoch, metric: rows in any order, epochs 0, 1, 2, ... of each job.

    Raises
    ------
    TraceError
        The file cannot be read, misses a column, or a row of it cannot be used; the line names the first such row.
    """
    frame, place, file = read_plain(path, COLUMNS)
    job_id = names_in(frame["job_id"], place, "a job")
    epoch, metric = counts_in(frame["epoch"], place, 0).to_numpy(), floats_in(frame["metric"], place, -np.inf)
    ids = job_id.unique(maintain_order=True)
    job = numbers_by(job_id, ids)
    # lexsort's last key is its first: by job, then epoch
    order = np.lexsort((epoch, job))
    # where each job begins, and one end more
    begin = np.searchsorted(job[order], np.arange(len(ids) + 1))
    refuse_gaps(epoch, "epoch", order, begin, ids, place)
    return JobCurves(file.path, file.sha256, tuple(ids.to_list()), begin, metric[order])


def write_job_curves(curves: JobCurves, path: PathLike) -> None:
    """Write a file that `read_job_curves` reads. Raises ConfigError if it cannot be written."""
    counts = np.diff(curves.begin)
    epoch = np.arange(len(curves.metric)) - np.repeat(curves.begin[:-1], counts)
    ids = pl.Series("job_id", curves.job_ids, dtype=pl.String)
    job_id = ids.gather(np.repeat(np.arange(len(counts)), counts))
    write_plain(pl.DataFrame([job_id, pl.Series("epoch", epoch), pl.Series("metric", curves.metric)]), path)


def numbers_by(names: pl.Series, known: pl.Series) -> Ints:
    """(n_rows,) where each name stands among those that are known, which hold all of them once.

    >>> numbers_by(pl.Series(["b", "a", "b"]), pl.Series(["b", "a"])).tolist()
    [0, 1, 0]
    """
    return names.replace_strict(known, np.arange(len(known)), return_dtype=pl.Int64).to_numpy()


def refuse_gaps(values: Ints, name: str, order: Ints, begin: Ints, ids: pl.Series, place: Place) -> None:
    """Refuse numbers that are not 0, 1, 2, ... within each job.

    Parameters
    ----------
    values, name : (n_rows,) of a column
    order, begin : rows by job and value, and (n_jobs + 1,) where a job begins among them
    ids, place : of the jobs and the file
    """
    # rebuilt from the boundaries: epochs are 0, 1, 2, ... without gaps
    counts = np.diff(begin)
    # position within the job
    wanted = np.arange(len(order)) - np.repeat(begin[:-1], counts)
    wrong = np.flatnonzero(values[order] != wanted)
    if len(wrong):
        at = int(wrong[0])
        job_id = ids[int(np.searchsorted(begin, at, side="right")) - 1]
        what = f"{name}s of job {job_id} must be 0, 1, 2, ... each once, {wanted[at]} is expected here"
        place.fail(int(order[at]), name, what, int(values[order[at]]), "add or drop rows")


NEEDED = ("app", "batch_size", "epoch", "metric")
EXTRA = ("progress", "iteration", "grad_sqr", "grad_var")
"""Columns that a file may have: samples and iterations done, squared norm and variance of the gradient."""
MILESTONES = "lr_milestones"
WHOLE = "epochs"
"""Column of how many epochs a run is to have in all, where its rows are only the first of them."""
ROW = "row"
MOST_EPOCHS = 100_000
"""Larger numbers count steps, not epochs."""
BETWEEN = re.compile(r"[\s,;]+")
"""Between milestones."""


@dataclass(frozen=True, slots=True, eq=False)
class LearningCurve:
    """Validation metric of one training run by epoch.

    Attributes
    ----------
    app : what is trained
    batch_size : samples a step
    epoch : (n,) ascending from 1 or later, with gaps where the metric was not measured
    metric : (n,) of validation; accuracies rise, error rates and losses fall
    lr_milestones : epochs after which the learning rate is cut, known in advance
    grad_sqr, grad_var : (n,) squared norm and variance of the gradient
    progress : (n,) samples done, scaled by what a step of that batch size is worth
    iteration : (n,) steps done
    """

    app: str
    batch_size: int
    epoch: Ints
    metric: Floats
    lr_milestones: tuple[int, ...] = ()
    grad_sqr: Floats | None = None
    grad_var: Floats | None = None
    progress: Floats | None = None
    iteration: Floats | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.epoch)

    @property
    def epochs(self) -> int:
        """The last epoch that was measured."""
        return int(self.epoch[-1])

    def prefix(self, seen: int) -> "LearningCurve":
        """The first `seen` rows; all of them where there are no more.

        >>> curve = LearningCurve("LM", 32, np.array([1, 2, 4]), np.array([0.1, 0.4, 0.5]))
        >>> curve.prefix(2).metric.tolist(), curve.prefix(9).epochs
        ([0.1, 0.4], 4)
        """
        extra: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[:seen] for name in EXTRA
        }
        return replace(self, epoch=self.epoch[:seen], metric=self.metric[:seen], **extra)


@dataclass(frozen=True, slots=True, eq=False)
class CurveTable:
    """Training curves of a file, by app and batch size.

    Attributes
    ----------
    path, sha256, rows : the file, its hash and how many rows it has
    curves : one a pair of app and batch size
    epochs : (n_curves,) epochs that each run is to have in all, None where the file does not say
    notes : what a reader of results should know
    from_s, until_s : the window whose jobs they are of, seconds from the epoch; 0 where curves have no calendar
    of_jobs : (n_curves,) positions in their trace of the jobs that they are of; empty for a file of curves
    """

    path: str
    sha256: str
    rows: int
    curves: tuple[LearningCurve, ...]
    epochs: tuple[int | None, ...]
    notes: tuple[str, ...] = ()
    from_s: float = 0.0
    until_s: float = 0.0
    of_jobs: tuple[int, ...] = ()


def read_learning_curves(path: PathLike) -> CurveTable:
    """Read a CSV of app, batch_size, epoch, metric, and if there progress, iteration, grad_sqr, grad_var,
    lr_milestones and epochs; one curve for each pair of app and batch size, rows in any order.

    Milestones stand between spaces, commas or semicolons, or as a JSON list, the same on all rows of a curve.

    Raises
    ------
    TraceError
        The file cannot be read, misses a column, or a row of it cannot be used; the line names the first such row.
    """
    file = read_file(path)
    if is_parquet(file.data):
        raise TraceError(
            f"{file.path}: is a Parquet file; give training curves as CSV ({', '.join(NEEDED)}), or a trace of "
            "jobs with their curves: `jobcast trace enrich --facts tasks` writes one, --set curves=FILE names them"
        )
    frame, place = read_csv(file)
    _require_columns(frame, place)
    table, notes = _typed(frame, place)
    return _table(file, table, place, notes)


def curves_of_jobs(trace: Trace, curves: JobCurves) -> CurveTable:
    """Curves of a trace's jobs from their first epoch on, as a file of learning curves would tell them.

    A job's application is its `model`, its batch size that at its start, 1 where the trace does not say.

    Raises TraceError for a job without a curve.
    """
    found, rows = [], []
    columns = (trace.values(name) for name in ("job_id", "model", "batch_size"))
    for row, (job_id, model, batch_size) in enumerate(zip(*columns, strict=True)):
        # epoch 0 was measured before any training
        metric = curves.of_job(job_id)[1:]
        if len(metric):
            rows.append(row)
            # plots and fits group by model and batch size, so both need a value
            found.append(LearningCurve(model or "", int(batch_size or 1), np.arange(1, len(metric) + 1), metric))
    source = trace.source
    epochs = tuple(map(len, found))
    return CurveTable(source.path, source.sha256, source.rows, tuple(found), epochs, trace.notes, of_jobs=tuple(rows))


def _require_columns(frame: pl.DataFrame, place: Place) -> None:
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise TraceError(
            f"{place.path}: no training curves, {'columns' if len(missing) > 1 else 'column'} {', '.join(missing)} "
            f"missing, found {shown_columns(frame.columns)}; give a row an epoch with {', '.join(NEEDED)}"
        )
    if frame.is_empty():
        raise TraceError(f"{place.path}: only a header, no rows; give a row an epoch with {', '.join(NEEDED)}")


def _typed(frame: pl.DataFrame, place: Place) -> tuple[pl.DataFrame, list[str]]:
    """The columns that are read, as numbers, in the file's order."""
    app, batch_size = names_in(frame["app"], place, "an application"), counts_in(frame["batch_size"], place)
    epoch = counts_in(frame["epoch"], place, most=MOST_EPOCHS)
    columns = [app, batch_size, epoch, pl.Series("metric", floats_in(frame["metric"], place, -np.inf))]
    for name in EXTRA:
        if name in frame.columns:
            # measuring programs write nan for "not measured"
            values = numbers_of(frame[name], place).fill_nan(None)
            place.refuse(values.is_infinite(), values, "must be a finite number or empty", REMEDY)
            columns.append(values)
    if WHOLE in frame.columns:
        whole = counts_in(frame[WHOLE], place, most=MOST_EPOCHS, missing=True)
        place.refuse(whole < epoch, whole, "must not be less than the row's epoch", REMEDY)
        columns.append(whole)
    if MILESTONES in frame.columns:
        given = frame[MILESTONES].to_list()
        found = [_milestones(text, index, place) for index, text in enumerate(given)]
        columns.append(pl.Series(MILESTONES, found, dtype=pl.List(pl.Int64)))
    unread = [name for name in frame.columns if name not in (*NEEDED, *EXTRA, WHOLE, MILESTONES)]
    return pl.DataFrame(columns), [f"columns not read: {', '.join(unread)}"] if unread else []


def _milestones(text: str | None, index: int, place: Place) -> list[int]:
    """Epochs in a field, ascending, each once."""
    stripped = (text or "").strip()
    try:
        # pandas writes lists as JSON, people write 30 60 90
        given: Sequence[object] = json.loads(stripped) if stripped.startswith("[") else BETWEEN.split(stripped)
        numbers = [float(str(part)) for part in given if part != ""]
    except ValueError:
        # out of range on purpose: what is no number fails the check below
        numbers = [0.0]
    if any(not 1 <= number <= MOST_EPOCHS or number != int(number) for number in numbers):
        what = "must be whole epochs >= 1 between spaces, commas or semicolons"
        place.fail(index, MILESTONES, what, text, "correct it or empty the field")
    return sorted({int(number) for number in numbers})


def _table(file: FileBytes, table: pl.DataFrame, place: Place, notes: list[str]) -> CurveTable:
    """Curves of the typed rows; only what concerns several rows of a curve is left to check."""
    table = table.with_row_index(ROW)
    repeated = table.select(pl.struct("app", "batch_size", "epoch").is_first_distinct().not_()).to_series()
    remedy = "keep one row an epoch, and tell runs at one batch size apart by app"
    place.refuse(repeated, table["epoch"], "is there twice for one app and batch size", remedy)
    # a curve a pair; sorted, so that the order of rows does not matter
    runs = table.sort("app", "batch_size", "epoch").partition_by("app", "batch_size", maintain_order=True)
    curves = tuple(_curve(rows, place) for rows in runs)
    whole = tuple(_one_of(rows, WHOLE, place) for rows in runs)
    for name in EXTRA:
        holes = sum(0 < rows[name].null_count() < rows.height for rows in runs) if name in table.columns else 0
        if holes:
            notes.append(f"{name}: left out of {holes} curves, which have it on some of their rows only")
    return CurveTable(file.path, file.sha256, table.height, curves, whole, tuple(notes))


def _curve(rows: pl.DataFrame, place: Place) -> LearningCurve:
    """The curve of its rows, which are in order of epochs."""
    # a column with holes is left out, fits cannot use it
    extra = {name: np.array(rows[name]) for name in EXTRA if name in rows.columns and not rows[name].null_count()}
    milestones = tuple(_one_of(rows, MILESTONES, place) or ())
    epoch, metric = np.array(rows["epoch"]), np.array(rows["metric"])
    return LearningCurve(str(rows["app"][0]), int(rows["batch_size"][0]), epoch, metric, milestones, **extra)


def _one_of(rows: pl.DataFrame, name: str, place: Place) -> Any:
    """What a column holds on all rows of a curve; None where there is no such column."""
    if name not in rows.columns:
        return None
    first: Any = rows[name].to_list()[0]
    for index, value in zip(rows[ROW], rows[name].to_list(), strict=True):
        if value != first:
            shown = " ".join(map(str, value)) if isinstance(value, list) else value
            place.fail(index, name, "must be the same on all rows of a curve", shown or None, "repeat it on each row")
    return first
