"""Edges of tasks as the fields of a table: whom a task sends to, and how much, between semicolons."""

from typing import NamedTuple

import numpy as np
import polars as pl

from jobcast.domain.arrays import Bools, Ints
from jobcast.traces.check import REMEDY, Place
from jobcast.traces.table import Floats

SENDS_TO, VOLUME = "sends_to", "volume_mb"
BETWEEN = ";"


class TaskEdges(NamedTuple):
    """Edges by job and sender.

    Attributes
    ----------
    edge_of : (n_jobs + 1,) where a job's edges begin
    edge_from, edge_to : (n_edges,) tasks, counted over the whole table
    volume_mb : (n_edges,) MB an iteration
    """

    edge_of: Ints
    edge_from: Ints
    edge_to: Ints
    volume_mb: Floats


def edges_of(frame: pl.DataFrame, order: Ints, task_of: Ints, place: Place) -> TaskEdges:
    """Edges of a table's rows.

    Parameters
    ----------
    frame : columns `sends_to` (numbers of tasks of the job) and `volume_mb` (as many numbers, or one for all)
    order, task_of : rows by job and task, and (n_jobs + 1,) where a job begins among them
    place : names rows in errors

    Raises
    ------
    TraceError
        A field does not read, or names a task that is none of the job's, itself, or one twice. What goes to later tasks
        makes no cycles; what goes to earlier ones is exchanged at an iteration's end.
    """
    job = np.repeat(np.arange(len(task_of) - 1), np.diff(task_of))
    sent = _parts(frame[SENDS_TO], order)
    sender, number = sent["task"].to_numpy(), _numbers(sent["part"], _rows(sent, order), SENDS_TO, frame, place)
    counts = np.bincount(sender, minlength=len(order))
    volume_mb = _volumes(frame, order, counts, place)
    size = np.diff(task_of)[job]
    _refuse(number >= size[sender], "must name tasks of the job", sender, order, frame, place)
    own = sender - task_of[job[sender]]
    _refuse(number == own, "must not name the task itself", sender, order, frame, place)
    twice = pl.DataFrame({"s": sender, "n": number}).is_duplicated().to_numpy()
    _refuse(twice, "must name each task once", sender, order, frame, place)
    edge_of = np.searchsorted(job[sender], np.arange(len(task_of)))
    return TaskEdges(edge_of, sender, number + task_of[job[sender]], volume_mb)


def edges_text(
    task_of: Ints, job: Ints, edge_from: Ints, edge_to: Ints, volume_mb: Floats
) -> tuple[pl.Series, pl.Series]:
    """The two fields of each task, empty where it sends nothing; a volume that is the same for all stands once.

    Parameters
    ----------
    task_of, job : (n_jobs + 1,) where tasks begin, (n_tasks,) whose they are
    edge_from, edge_to, volume_mb : (n_edges,) as of `TaskEdges`, by senders
    """
    edges = pl.DataFrame({"task": edge_from, "to": edge_to - task_of[job[edge_from]], "mb": volume_mb})
    several = pl.col("mb").cast(pl.String).str.join(BETWEEN)
    texts = edges.group_by("task", maintain_order=True).agg(
        pl.col("to").cast(pl.String).str.join(BETWEEN),
        pl.when(pl.col("mb").n_unique() == 1).then(pl.col("mb").first().cast(pl.String)).otherwise(several),
    )
    tasks = pl.DataFrame({"task": np.arange(len(job))}).join(texts, on="task", how="left", maintain_order="left")
    return tasks["to"], tasks["mb"]


def _rows(parts: pl.DataFrame, order: Ints) -> Ints:
    """(n_parts,) rows of the file that parts stand in."""
    rows: Ints = order[parts["task"].to_numpy()]
    return rows


def _parts(values: pl.Series, order: Ints) -> pl.DataFrame:
    """Parts of a column's fields with the task that each belongs to, by task; empty fields have none."""
    fields = pl.DataFrame({"task": np.arange(len(order)), "part": values.cast(pl.String).gather(order)})
    return (
        fields.filter(pl.col("part").str.strip_chars() != "")
        .with_columns(pl.col("part").str.split(BETWEEN))
        .explode("part")
    )


def _numbers(parts: pl.Series, rows: Ints, name: str, frame: pl.DataFrame, place: Place) -> Ints:
    """Whole numbers of parts."""
    found = parts.str.strip_chars().cast(pl.Int64, strict=False)
    bad = (found.is_null() | (found < 0)).arg_true()
    if len(bad):
        row = int(rows[int(bad[0])])
        place.fail(row, name, "must be numbers of tasks between semicolons", frame[name][row], REMEDY)
    return found.to_numpy()


def _volumes(frame: pl.DataFrame, order: Ints, counts: Ints, place: Place) -> Floats:
    """(n_edges,) one for each that a task sends to."""
    parts = _parts(frame[VOLUME], order)
    found = parts["part"].str.strip_chars().cast(pl.Float64, strict=False)
    task = parts["task"].to_numpy()
    bad = np.flatnonzero(~(found.is_finite() & (found >= 0)).fill_null(False).to_numpy())
    if len(bad):
        row = int(order[task[bad[0]]])
        place.fail(row, VOLUME, "must be numbers >= 0 between semicolons", frame[VOLUME][row], REMEDY)
    given = np.bincount(task, minlength=len(order))
    wrong = np.flatnonzero((given != counts) & ((given != 1) | (counts == 0)))
    if len(wrong):
        row, wanted = int(order[wrong[0]]), int(counts[wrong[0]])
        what = f"must be one number or {wanted}, as many as sends_to" if wanted else "must be empty where sends_to is"
        place.fail(row, VOLUME, what, frame[VOLUME][row], REMEDY)
    begin = np.concatenate([[0], np.cumsum(given)])[:-1]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    known: Floats = found.to_numpy()[np.repeat(begin, counts) + np.where(np.repeat(given == 1, counts), 0, within)]
    return known


def _refuse(bad: Bools, what: str, sender: Ints, order: Ints, frame: pl.DataFrame, place: Place) -> None:
    if bad.any():
        row = int(order[sender[int(np.flatnonzero(bad)[0])]])
        place.fail(row, SENDS_TO, what, frame[SENDS_TO][row], REMEDY)
