"""Tasks of jobs that are split over servers: a row a task, what it uses and whom it sends to in an iteration.

Edges of tasks as the fields of a table: whom a task sends to, and how much, between semicolons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.errors import TraceError
from jobcast.domain.tasks import ALL_ITERATIONS, OPT_STOP, TARGET_ONLY
from jobcast.traces.check import REMEDY, Place
from jobcast.traces.column_types import FLAGS
from jobcast.traces.files import PathLike
from jobcast.traces.learning_curves import numbers_by, refuse_gaps
from jobcast.traces.table_files import counts_in, floats_in, names_in, read_plain, write_plain

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
    # (n_tasks,) whose each task is
    job = np.repeat(np.arange(len(task_of) - 1), np.diff(task_of))
    sent = _parts(frame[SENDS_TO], order)
    sender, number = sent["task"].to_numpy(), _numbers(sent["part"], order[sent["task"]], frame, place)
    counts = np.bincount(sender, minlength=len(order))
    volume_mb = _volumes(frame, order, counts, place)
    # numbers of tasks are within a job, so its size is the bound
    size = np.diff(task_of)[job]
    _refuse(number >= size[sender], "must name tasks of the job", sender, order, frame, place)
    own = sender - task_of[job[sender]]
    _refuse(number == own, "must not name the task itself", sender, order, frame, place)
    # the pair must be unique, not the receiver
    twice = pl.DataFrame({"s": sender, "n": number}).is_duplicated().to_numpy()
    _refuse(twice, "must name each task once", sender, order, frame, place)
    # senders are in order of jobs
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
        # equal volumes are written once, which keeps files small
        pl.when(pl.col("mb").n_unique() == 1).then(pl.col("mb").first().cast(pl.String)).otherwise(several),
    )
    tasks = pl.DataFrame({"task": np.arange(len(job))}).join(texts, on="task", how="left", maintain_order="left")
    return tasks["to"], tasks["mb"]


def _parts(values: pl.Series, order: Ints) -> pl.DataFrame:
    """Parts of a column's fields with the task that each belongs to, by task; empty fields have none."""
    fields = pl.DataFrame({"task": np.arange(len(order)), "part": values.cast(pl.String).gather(order)})
    return (
        fields.filter(pl.col("part").str.strip_chars() != "")
        .with_columns(pl.col("part").str.split(BETWEEN))
        .explode("part")
    )


def _numbers(parts: pl.Series, rows: Ints, frame: pl.DataFrame, place: Place) -> Ints:
    """Whole numbers of parts; `rows` of the file that they stand in."""
    found = parts.str.strip_chars().cast(pl.Int64, strict=False)
    bad = (found.is_null() | (found < 0)).arg_true()
    if len(bad):
        row = int(rows[int(bad[0])])
        place.fail(row, SENDS_TO, "must be numbers of tasks between semicolons", frame[SENDS_TO][row], REMEDY)
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
    # how many volumes each task names: as many as edges, or one for all
    given = np.bincount(task, minlength=len(order))
    wrong = np.flatnonzero((given != counts) & ((given != 1) | (counts == 0)))
    if len(wrong):
        row, wanted = int(order[wrong[0]]), int(counts[wrong[0]])
        what = f"must be one number or {wanted}, as many as sends_to" if wanted else "must be empty where sends_to is"
        place.fail(row, VOLUME, what, frame[VOLUME][row], REMEDY)
    # where a task's volumes begin
    begin = np.concatenate([[0], np.cumsum(given)])[:-1]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    # one volume for all: always the first; else edge by edge
    return np.asarray(found.to_numpy()[np.repeat(begin, counts) + np.where(np.repeat(given == 1, counts), 0, within)])


def _refuse(bad: Bools, what: str, sender: Ints, order: Ints, frame: pl.DataFrame, place: Place) -> None:
    if bad.any():
        row = int(order[sender[int(np.flatnonzero(bad)[0])]])
        place.fail(row, SENDS_TO, what, frame[SENDS_TO][row], REMEDY)


DEMANDS = ("gpu", "cpu", "memory_gb", "bandwidth_mb_s")
OF_TASK = ("job_id", "task", "server", *DEMANDS, "compute_s", "size_share", "sends_to", "volume_mb")
OF_JOB = ("model_mb", "epoch_iterations", "iteration_s")
"""The same on all rows of a job, as are the two columns of options, which may be missing."""
OPTION, MAY_BECOME = "option", "may_become"
OPTIONS = {"all": ALL_ITERATIONS, "opt_stop": OPT_STOP, "target": TARGET_ONLY}


@dataclass(frozen=True, slots=True, eq=False)
class TaskTable:
    """Tasks of jobs by column, jobs in the file's order, tasks of a job by number.

    Attributes
    ----------
    path, sha256 : the file
    job_ids : (n_jobs,)
    task_of, edge_of : (n_jobs + 1,) where a job's tasks and edges begin
    demand : (n_tasks, 4) share of a GPU, cores, GB, MB/s
    compute_s : (n_tasks,) seconds an iteration where nothing holds it up
    size_share : (n_tasks,) share of the model's parameters
    is_server : (n_tasks,) whether it is a parameter server
    edge_from, edge_to : (n_edges,) tasks, counted over the whole table
    volume_mb : (n_edges,) MB an iteration
    model_mb : (n_jobs,) size of the model
    epoch_iterations : (n_jobs,) iterations an epoch
    iteration_s : (n_jobs,) estimate of an iteration's seconds
    option, may_become : (n_jobs,) as of `domain.tasks.TaskJobs`
    row_of : job id -> its number
    """

    path: str
    sha256: str
    job_ids: tuple[str, ...]
    task_of: Ints
    edge_of: Ints
    demand: Floats
    compute_s: Floats
    size_share: Floats
    is_server: Bools
    edge_from: Ints
    edge_to: Ints
    volume_mb: Floats
    model_mb: Floats
    epoch_iterations: Ints
    iteration_s: Floats
    option: Ints
    may_become: Ints
    row_of: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_of", {name: row for row, name in enumerate(self.job_ids)})

    def of_jobs(self, job_ids: Sequence[str]) -> "TaskTable":
        """The rows of these jobs, in this order. Raises TraceError for a job that has none."""
        for job_id in job_ids:
            if job_id not in self.row_of:
                raise TraceError(f"{self.path}: no tasks of job {job_id}; add a row for each of them")
        rows = np.array([self.row_of[job_id] for job_id in job_ids], dtype=np.int64)
        tasks, task_of = _ranges(self.task_of, rows)
        edges, edge_of = _ranges(self.edge_of, rows)
        # tasks are counted over the table, so edges move with their jobs
        moved = np.repeat(task_of[:-1] - self.task_of[rows], np.diff(edge_of))
        parts: dict[str, Any] = {
            **{name: getattr(self, name)[tasks] for name in ("demand", "compute_s", "size_share", "is_server")},
            **{name: getattr(self, name)[rows] for name in (*OF_JOB, OPTION, MAY_BECOME)},
        }
        return replace(
            self,
            job_ids=tuple(job_ids),
            task_of=task_of,
            edge_of=edge_of,
            edge_from=self.edge_from[edges] + moved,
            edge_to=self.edge_to[edges] + moved,
            volume_mb=self.volume_mb[edges],
            **parts,
        )


def read_tasks(path: PathLike) -> TaskTable:
    """Read a CSV or Parquet file of tasks, rows in any order; see `docs/tasks.md` for the columns.

    Raises
    ------
    TraceError
        The file cannot be read, misses a column, or a row of it cannot be used; the line names the first such row.
    """
    frame, place, file = read_plain(path, (*OF_TASK, *OF_JOB))
    job_id = names_in(frame["job_id"], place, "a job")
    ids = job_id.unique(maintain_order=True)
    job, task = numbers_by(job_id, ids), counts_in(frame["task"], place, 0).to_numpy()
    # rows may come in any order in the file
    order = np.lexsort((task, job))
    task_of = np.searchsorted(job[order], np.arange(len(ids) + 1))
    refuse_gaps(task, "task", order, task_of, ids, place)
    # before demands, whose bounds differ for servers
    server = _worded(frame["server"], FLAGS, "true or false", place)
    _refuse_servers(server, job, frame["server"], place)
    demand = _demands(frame, server, place)
    compute_s = floats_in(frame["compute_s"], place)
    place.refuse(pl.Series(~server & (compute_s == 0)), frame["compute_s"], "must be above 0 for a worker", REMEDY)
    size_share = floats_in(frame["size_share"], place, 0.0, 1.0)
    edges = edges_of(frame, order, task_of, place)
    _refuse_silent(edges, demand[order], order, frame, place)
    known = _of_jobs(frame, order, task_of, ids, place)
    return TaskTable(
        path=file.path,
        sha256=file.sha256,
        job_ids=tuple(ids.to_list()),
        task_of=task_of,
        demand=demand[order],
        compute_s=compute_s[order],
        size_share=size_share[order],
        is_server=server[order],
        **edges._asdict(),
        **known,
    )


def write_tasks(table: TaskTable, path: PathLike) -> None:
    """Write a file that `read_tasks` reads. Raises ConfigError if it cannot be written."""
    counts = np.diff(table.task_of)
    job = np.repeat(np.arange(len(counts)), counts)
    words = pl.Series([*OPTIONS])
    sends_to, volume_mb = edges_text(table.task_of, job, table.edge_from, table.edge_to, table.volume_mb)
    columns = [
        pl.Series("job_id", table.job_ids, dtype=pl.String).gather(job),
        pl.Series("task", np.arange(len(job)) - table.task_of[job]),
        pl.Series("server", table.is_server),
        *(pl.Series(name, table.demand[:, at]) for at, name in enumerate(DEMANDS)),
        pl.Series("compute_s", table.compute_s),
        pl.Series("size_share", table.size_share),
        sends_to.alias("sends_to"),
        volume_mb.alias("volume_mb"),
        *(pl.Series(name, getattr(table, name)[job]) for name in OF_JOB),
        *(words.gather(getattr(table, name)[job] - 1).alias(name) for name in (OPTION, MAY_BECOME)),
    ]
    write_plain(pl.DataFrame(columns), path)


def _ranges(begin: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Entries of some jobs one after another, and (n + 1,) where each job begins among them."""
    counts = begin[rows + 1] - begin[rows]
    first = np.concatenate([[0], np.cumsum(counts)])
    return np.arange(first[-1]) + np.repeat(begin[rows] - first[:-1], counts), first


def _worded(values: pl.Series, known: Mapping[str, int], what: str, place: Place) -> NDArray[Any]:
    """What the words of a column stand for. Raises TraceError for a word that is not known, by what it must be."""
    words = values.cast(pl.String).str.strip_chars().str.to_lowercase()
    found = words.replace_strict(known, default=None)
    place.refuse(found.is_null(), values, f"must be {what}", REMEDY)
    return found.to_numpy()


def _refuse_servers(server: Bools, job: Ints, values: pl.Series, place: Place) -> None:
    """A job has a worker, and one parameter server at most."""
    seen = pl.DataFrame({"job": job, "server": server})
    # the second one is named, not the first
    second = seen.select((pl.col("server").cum_sum().over("job") > 1) & pl.col("server")).to_series()
    place.refuse(second, values, "is the job's second parameter server", "keep one")
    alone = seen.select(pl.col("server").all().over("job")).to_series()
    place.refuse(alone, values, "is the job's only task; a job needs a worker", "add its workers")


def _demands(frame: pl.DataFrame, server: Bools, place: Place) -> Floats:
    """(n_rows, 4)."""
    gpu = frame["gpu"]
    share = floats_in(gpu, place, 0.0, 1.0)
    place.refuse(pl.Series(server & (share > 0)), gpu, "must be 0 for a parameter server, which uses no GPU", REMEDY)
    place.refuse(pl.Series(~server & (share == 0)), gpu, "must be above 0 for a worker", REMEDY)
    return np.column_stack([share, *(floats_in(frame[name], place) for name in DEMANDS[1:])])


def _refuse_silent(edges: TaskEdges, demand: Floats, order: Ints, frame: pl.DataFrame, place: Place) -> None:
    """A task that sends needs bandwidth."""
    silent = edges.edge_from[demand[edges.edge_from, 3] == 0]
    if len(silent):
        row = int(order[silent[0]])
        place.fail(row, DEMANDS[3], "must be above 0 for a task that sends", frame[DEMANDS[3]][row], REMEDY)


def _of_jobs(frame: pl.DataFrame, order: Ints, task_of: Ints, ids: pl.Series, place: Place) -> dict[str, NDArray[Any]]:
    """Columns of jobs, (n_jobs,) each."""
    known = ", ".join(OPTIONS)
    option = becomes = np.full(len(order), ALL_ITERATIONS)
    if OPTION in frame.columns:
        option = becomes = _worded(frame[OPTION], OPTIONS, known, place)
    # without the column nothing may change
    if MAY_BECOME in frame.columns:
        furthest = frame[MAY_BECOME]
        becomes = _worded(furthest, OPTIONS, known, place)
        place.refuse(pl.Series(becomes < option), furthest, "must not ask for more than option", f"order is {known}")
    columns = {
        "model_mb": floats_in(frame["model_mb"], place),
        "epoch_iterations": counts_in(frame["epoch_iterations"], place).to_numpy(),
        "iteration_s": floats_in(frame["iteration_s"], place, above=True),
        OPTION: option,
        MAY_BECOME: becomes,
    }
    # each row is held against the job's first
    first = np.repeat(task_of[:-1], np.diff(task_of))
    for name, values in columns.items():
        wrong = np.flatnonzero(values[order] != values[order][first])
        if len(wrong):
            row = int(order[wrong[0]])
            place.fail(row, name, "must be the same on all rows of a job", frame[name][row], "repeat it on each row")
    # any row of a job would do, now that all agree
    return {name: values[order][task_of[:-1]] for name, values in columns.items()}
