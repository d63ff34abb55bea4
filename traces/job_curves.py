"""Curves of jobs: the accuracy that each job really has after each epoch."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from jobcast.domain.arrays import Ints
from jobcast.domain.errors import TraceError
from jobcast.traces.check import REMEDY, Place
from jobcast.traces.files import PathLike
from jobcast.traces.plain_tables import counts_in, names_in, read_plain, write_plain
from jobcast.traces.table import Floats
from jobcast.traces.typed import numbers_of

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
    job_id = names_in(frame["job_id"], place)
    epoch = counts_in(frame["epoch"], place, 0)
    metric = numbers_of(frame["metric"], place)
    place.refuse(~metric.is_finite().fill_null(False), frame["metric"], "must be a finite number", REMEDY)
    ids = job_id.unique(maintain_order=True)
    job = numbers_by(job_id, ids)
    order = np.lexsort((epoch, job))
    begin = np.searchsorted(job[order], np.arange(len(ids) + 1))
    refuse_gaps(epoch, "epoch", order, begin, ids, place)
    return JobCurves(file.path, file.sha256, tuple(ids.to_list()), begin, metric.to_numpy()[order])


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
    counts = np.diff(begin)
    wanted = np.arange(len(order)) - np.repeat(begin[:-1], counts)
    wrong = np.flatnonzero(values[order] != wanted)
    if len(wrong):
        at = int(wrong[0])
        job_id = ids[int(np.searchsorted(begin, at, side="right")) - 1]
        what = f"{name}s of job {job_id} must be 0, 1, 2, ... each once, {wanted[at]} is expected here"
        place.fail(int(order[at]), name, what, int(values[order[at]]), "add or drop rows")
