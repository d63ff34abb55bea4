"""Training jobs of a trace: what is known of each at submission, and the regimes that it really runs through.

Tables that tell how training jobs advance: throughputs by configuration, sizes of data sets, courses of batch sizes.

Narayanan et al., OSDI 2020 (Gavel); Zheng et al., NSDI 2023 (Shockwave).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil
from typing import NoReturn

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.domain.training import Regime, Training
from jobcast.traces.files import PathLike, replacing
from jobcast.traces.table import Trace
from jobcast.traces.table_files import counts_in, floats_in, names_in, read_plain

THROUGHPUT_COLUMNS = ("gpu_type", "model", "batch_size", "gpus", "steps_per_second")
DATASET_COLUMNS = ("model", "samples")
REGIME_COLUMNS = ("job_id", "epoch", "batch_size")
REFERENCE_GPU = "v100"
SAMPLES: Mapping[str, int] = {
    "ResNet-18": 50_000,
    "ResNet-50": 100_000,
    "LM": 59_675,
    "Recommendation": 117_907,
    "Transformer": 10_000,
}
"""Samples an epoch of Gavel's models, as Shockwave's published simulator has them."""
Starts = tuple[tuple[int, int], ...]
"""(epoch, batch size from that epoch on), epochs ascending from 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Throughputs:
    """Isolated steps per second on one type of GPU.

    Attributes
    ----------
    path : the file
    gpu_type : of its GPUs
    rates : (model, GPUs) -> {batch size: steps per second}, sizes ascending, only those that are available
    """

    path: str
    gpu_type: str
    rates: Mapping[tuple[str, int], Mapping[int, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Courses:
    """The batch sizes that jobs really run at.

    Attributes
    ----------
    path : the file
    by_job : job id as the file spells it -> where each batch size begins
    """

    path: str
    by_job: Mapping[str, Starts]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTables:
    """What makes a trace's jobs training jobs: throughputs, data sets, and the truth about batch sizes, if known.

    `planned` are courses that jobs were meant to take, where fairness is to be measured by those.
    """

    throughputs: Throughputs
    samples: Mapping[str, int] = field(default_factory=lambda: SAMPLES)
    courses: Courses | None = None
    planned: Courses | None = None


def read_throughputs(path: PathLike, gpu_type: str | None = None) -> Throughputs:
    """Read a CSV of `THROUGHPUT_COLUMNS`. Rows of other GPU types or without a batch size are checked, not kept.

    Parameters
    ----------
    path : steps per second of a job that runs alone; 0 or nothing = not available
    gpu_type : whose rows count; None: those of `REFERENCE_GPU`, or of the one type that the file has

    Raises
    ------
    TraceError
        The file cannot be read, a value cannot be used, a row is there twice, or the GPU type is not in it.
    """
    frame, place, _ = read_plain(path, THROUGHPUT_COLUMNS)
    types = frame["gpu_type"].unique().sort().drop_nulls().to_list()
    if gpu_type is None:
        # a table of one type needs no name for it
        gpu_type = types[0] if len(types) == 1 else REFERENCE_GPU
    if gpu_type not in types:
        raise TraceError(f"{place.path}: no GPU type {gpu_type}; choose from {', '.join(types) or 'none'}")
    model, batch_size = names_in(frame["model"], place, "a model"), counts_in(frame["batch_size"], place, missing=True)
    gpus, rate = counts_in(frame["gpus"], place), floats_in(frame["steps_per_second"], place, missing=True)
    mine = (frame["gpu_type"] == gpu_type) & batch_size.is_not_null()
    table = pl.DataFrame([model, batch_size, gpus, pl.Series("rate", rate, nan_to_null=True)])
    key = pl.struct("gpu_type", "model", "batch_size", "gpus")
    # repeated rows of other types do no harm, nobody reads them
    twice = table.with_columns(frame["gpu_type"]).select(key.is_duplicated()).to_series() & mine
    place.refuse(twice, model, f"is there twice for {gpu_type} with one batch size and width", "keep one row")
    rates: dict[tuple[str, int], dict[int, float]] = {}
    # sorted, since sizes are walked upwards later
    for name, size, width, steps_s in table.filter(mine & (pl.col("rate") > 0)).sort("batch_size").iter_rows():
        rates.setdefault((name, width), {})[size] = steps_s
    return Throughputs(place.path, gpu_type, rates)


def read_datasets(path: PathLike) -> Mapping[str, int]:
    """Read a CSV of `DATASET_COLUMNS`, laid over `SAMPLES`. Raises TraceError when it cannot be read."""
    frame, place, _ = read_plain(path, DATASET_COLUMNS)
    model, samples = names_in(frame["model"], place, "a model"), counts_in(frame["samples"], place)
    place.refuse(model.is_duplicated(), model, "is there twice", "keep one row a model")
    return {**SAMPLES, **dict(zip(model, samples, strict=True))}


def read_courses(path: PathLike) -> Courses:
    """Read a CSV of `REGIME_COLUMNS`: the batch size of each job from an epoch on.

    Raises TraceError when it cannot be read, or a job's epochs do not begin at 0 or do not ascend.
    """
    frame, place, _ = read_plain(path, REGIME_COLUMNS)
    ids, epochs = names_in(frame["job_id"], place, "a job"), counts_in(frame["epoch"], place, 0)
    found: dict[str, list[tuple[int, int]]] = {}
    rows = zip(ids, epochs, counts_in(frame["batch_size"], place), strict=True)
    for index, (job_id, begin, batch_size) in enumerate(rows):
        mine = found.setdefault(job_id, [])
        # first row of a job at epoch 0, then ascending
        if begin != 0 if not mine else begin <= mine[-1][0]:
            what = f"job {job_id} must begin at epoch 0" if not mine else f"epochs of job {job_id} must ascend"
            place.fail(index, "epoch", what, begin, "correct or sort the rows")
        mine.append((begin, batch_size))
    return Courses(place.path, {job_id: tuple(starts) for job_id, starts in found.items()})


def write_courses(courses: Mapping[str, Starts], path: PathLike) -> None:
    """Write a CSV that `read_courses` reads, jobs in the given order. Raises ConfigError if it cannot be written."""
    rows = [(job_id, *start) for job_id, starts in courses.items() for start in starts]
    schema = dict(zip(REGIME_COLUMNS, (pl.String, pl.Int64, pl.Int64), strict=True))
    with replacing(path) as temporary:
        pl.DataFrame(rows, schema=schema, orient="row").write_csv(temporary)


NEEDED = ("model", "batch_size")
STATIC = "static"


@dataclass(frozen=True, slots=True)
class Trainings:
    """Training jobs of a trace, in order of its rows.

    Attributes
    ----------
    trainings : (n_jobs,) what is known at submission; None for a job that names no model
    regimes : (n_jobs,) the truth; empty for such a job
    scale : (n_jobs,) seconds an epoch over those of the tables; 1 unless the trace binds durations, see `trainings_of`
    steps : (n_jobs,) steps in all, None where the trace does not say
    notes : what a reader of results should know
    """

    trainings: tuple[Training | None, ...]
    regimes: tuple[tuple[Regime, ...], ...]
    steps: tuple[int | None, ...]
    notes: tuple[str, ...]
    scale: tuple[float, ...] = ()


def trainings_of(trace: Trace, tables: TrainingTables) -> Trainings:
    """Training jobs from the columns model, batch_size, steps or epochs, adaptation, max_regimes and gpus of a trace.

    Epochs are the trace's, else ceil(steps / ceil(samples / batch size)); an epoch takes (samples / batch size) /
    (steps per second) seconds. A job without a course keeps its batch size. Where `duration_gpus` says that a duration
    holds for all its GPUs, epochs are as much longer or shorter as makes the regimes last for it.

    Raises
    ------
    TraceError
        A column is missing; a model's data set or a throughput is not known; a course does not begin at the job's
        batch size, leads to one without a throughput, or is of a job that a trace that is whole does not have.
    """
    missing = [name for name in NEEDED if name not in trace.jobs.columns]
    if missing or not {"steps", "epochs"} & set(trace.jobs.columns):
        wanted = missing or ["steps or epochs"]
        raise TraceError(
            f"{trace.source.path}: training jobs need the columns model, batch_size and steps or epochs; "
            f"{', '.join(wanted)} not found; leave throughputs away to replay nominal durations"
        )
    # first: files that do not belong together are told before a single job is
    courses = _matched(trace, tables)
    rows = _rows(trace)
    found = [_training(row, courses.get(str(row["job_id"])), trace, tables) for row in rows]
    scale = tuple(_scale(*one, run_s) for one, run_s in zip(found, _bound_s(trace), strict=True))
    steps = tuple(trace.jobs["steps"]) if "steps" in trace.jobs.columns else (None,) * len(trace)
    trainings = tuple(_scaled(training, factor) for (training, _), factor in zip(found, scale, strict=True))
    notes = _notes([str(row["job_id"]) for row in rows], trainings, courses, tables)
    return Trainings(trainings, tuple(regimes for _, regimes in found), steps, notes, scale)


def _bound_s(trace: Trace) -> list[float | None]:
    """(n_jobs,) seconds that regimes are to last on all GPUs of a job; None where the trace binds nothing."""
    # durations on fewer GPUs than the job asks for cannot be met at its width
    binds = trace.bound & trace.ended & (trace.duration_gpus == trace.gpus)
    return [run_s if bound else None for run_s, bound in zip(trace.duration_s.tolist(), binds.tolist(), strict=True)]


def _scale(training: Training | None, regimes: tuple[Regime, ...], bound_s: float | None) -> float:
    return 1.0 if training is None or bound_s is None else bound_s / training.run_time_s(regimes)


def _scaled(training: Training | None, scale: float) -> Training | None:
    # the same object, so that a trace that binds nothing costs nothing
    if training is None or scale == 1.0:
        return training
    return replace(training, epoch_s={size: seconds * scale for size, seconds in training.epoch_s.items()})


def _notes(
    ids: Sequence[str], trainings: Sequence[Training | None], courses: Mapping[str, Starts], tables: TrainingTables
) -> tuple[str, ...]:
    """What was left as it stood: jobs that do not train, those without a course, courses of other jobs."""
    plain = sum(training is None for training in trainings)
    notes = [f"jobs that name no model, batch size or steps, and keep their nominal duration: {plain}"] if plain else []
    if tables.courses is not None:
        path = tables.courses.path
        without = sum(t is not None and job_id not in courses for job_id, t in zip(ids, trainings, strict=True))
        if without:
            notes.append(f"jobs that have no course in {path}, and keep their batch size: {without}")
        if stray := len(tables.courses.by_job) - len(courses):
            notes.append(f"{stray} courses in {path} are of jobs that were cut from the trace")
    return tuple(notes)


def _rows(trace: Trace) -> list[dict[str, object]]:
    names = ("job_id", "gpus", *NEEDED, "steps", "epochs", "adaptation", "max_regimes")
    return trace.jobs.select(name for name in names if name in trace.jobs.columns).to_dicts()


def _training(
    row: Mapping[str, object], course: Starts | None, trace: Trace, tables: TrainingTables
) -> tuple[Training | None, tuple[Regime, ...]]:
    model, batch_size = row["model"], row["batch_size"]
    if model is None or batch_size is None or (row.get("steps") is None and row.get("epochs") is None):
        return None, ()
    name, first = str(model), int(str(batch_size))
    epoch_s = _epoch_s(row, name, trace, tables)
    if first not in epoch_s:
        _no_rate(row, first, trace, tables.throughputs)
    # a step that does not fill its batch is a step all the same, as in Gavel
    epochs = int(str(row.get("epochs") or ceil(int(str(row["steps"])) / ceil(tables.samples[name] / first))))
    mode = str(row.get("adaptation") or STATIC).strip().lower()
    declared = row.get("max_regimes")
    most = None if declared is None else int(str(declared))
    training = Training(name, first, epochs, mode, epoch_s, max_regimes=most, samples=tables.samples[name])
    return training, _regimes(row, training, course, trace, tables)


def _epoch_s(row: Mapping[str, object], model: str, trace: Trace, tables: TrainingTables) -> dict[int, float]:
    if model not in tables.samples:
        raise TraceError(
            f"{trace.source.path}, job {row['job_id']}: the size of the data set of model {model} is not known; "
            "give --set datasets=FILE with the columns model, samples"
        )
    rates = tables.throughputs.rates.get((model, int(str(row["gpus"]))), {})
    return {size: tables.samples[model] / size / rate for size, rate in rates.items()}


def _no_rate(row: Mapping[str, object], batch_size: int, trace: Trace, throughputs: Throughputs) -> NoReturn:
    raise TraceError(
        f"{trace.source.path}, job {row['job_id']}: no throughput of {row['model']} with batch size {batch_size} on "
        f"{row['gpus']} GPUs of type {throughputs.gpu_type} in {throughputs.path}; add the row"
    )


def _regimes(
    row: Mapping[str, object], training: Training, course: Starts | None, trace: Trace, tables: TrainingTables
) -> tuple[Regime, ...]:
    """Regimes from where batch sizes begin; those at or after the last epoch never come."""
    if course is None:
        return (Regime(training.batch_size, float(training.epochs)),)
    path = tables.courses.path if tables.courses is not None else ""
    if course[0][1] != training.batch_size:
        raise TraceError(
            f"{path}, job {row['job_id']}, column batch_size: begins with {course[0][1]}, the trace with "
            f"{training.batch_size}; give the courses of this trace"
        )
    starts = [start for start in course if start[0] < training.epochs]
    for _, size in starts:
        if size not in training.epoch_s:
            _no_rate(row, size, trace, tables.throughputs)
    # a course may name a size again, which changes nothing
    changes = [starts[0], *(later for earlier, later in pairwise(starts) if later[1] != earlier[1])]
    # the last regime ends with the job; its size is never read
    edges = [*changes, (training.epochs, 0)]
    return tuple(Regime(size, float(end - begin)) for (begin, size), (end, _) in pairwise(edges))


def _matched(trace: Trace, tables: TrainingTables) -> dict[str, Starts]:
    """Courses by the trace's job ids: as text, or as whole numbers where all ids of both sides are such.

    Raises TraceError when a course is of no job of a trace that is whole.
    """
    if tables.courses is None:
        return {}
    ids = [str(job_id) for job_id in trace.jobs["job_id"]]
    courses = tables.courses.by_job
    # published courses number jobs 0, 1, ...; traces pad them with zeros
    key: Callable[[str], int | str] = int if _are_numbers(ids) and _are_numbers(courses) else str
    by_key = {key(job_id): starts for job_id, starts in courses.items()}
    found = {job_id: by_key[key(job_id)] for job_id in ids if key(job_id) in by_key}
    # of a window, courses of jobs outside of it are no mistake, nor that none is of its jobs: not all change
    whole = len(trace) == trace.source.rows
    if whole and len(found) < len(courses):
        known = {key(job_id) for job_id in ids}
        stray = next(job_id for job_id in courses if key(job_id) not in known)
        raise TraceError(
            f"{tables.courses.path}, column job_id: {stray} is no job of {trace.source.path} ({ids[0]}, ...); "
            "give the courses of this trace"
        )
    return found


def _are_numbers(ids: Collection[str]) -> bool:
    """Whether ids are whole numbers, and no two of them the same one.

    >>> _are_numbers(["07", "8"]), _are_numbers(["07", "7"]), _are_numbers(["a7"])
    (True, False, False)
    """
    digits = all(one.isascii() and one.isdecimal() for one in ids)
    return digits and len({int(one) for one in ids}) == len(ids)
