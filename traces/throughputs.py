"""Tables that tell how training jobs advance: throughputs by configuration, sizes of data sets, courses of batch sizes.

Narayanan et al., OSDI 2020 (Gavel); Zheng et al., NSDI 2023 (Shockwave).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import polars as pl

from jobcast.domain.errors import TraceError
from jobcast.traces.check import Place, require_columns
from jobcast.traces.csv_table import read_csv
from jobcast.traces.files import PathLike, read_file, replacing
from jobcast.traces.typed import LARGEST_COUNT, numbers_of

THROUGHPUT_COLUMNS = ("gpu_type", "model", "batch_size", "gpus", "steps_per_second")
DATASET_COLUMNS = ("model", "samples")
REGIME_COLUMNS = ("job_id", "epoch", "batch_size")
REFERENCE_GPU = "v100"
SAMPLES: Mapping[str, int] = MappingProxyType(
    {"ResNet-18": 50_000, "ResNet-50": 100_000, "LM": 59_675, "Recommendation": 117_907, "Transformer": 10_000}
)
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
    frame, place, numbers = _read(path, THROUGHPUT_COLUMNS, ("batch_size", "gpus", "steps_per_second"))
    types = frame["gpu_type"].unique().sort().drop_nulls().to_list()
    if gpu_type is None:
        gpu_type = types[0] if len(types) == 1 else REFERENCE_GPU
    if gpu_type not in types:
        raise TraceError(f"{place.path}: no GPU type {gpu_type}; choose from {', '.join(types) or 'none'}")
    rate = numbers["steps_per_second"]
    place.refuse(~(rate.is_finite() & (rate >= 0)), rate, "must be a number >= 0", "correct the value")
    _refuse_nameless(frame["model"], place)
    _refuse_fractions(numbers["batch_size"], place, missing=True)
    _refuse_fractions(numbers["gpus"], place)
    mine = (frame["gpu_type"] == gpu_type) & numbers["batch_size"].is_not_null()
    table = pl.DataFrame([frame["model"], *numbers.values()])
    key = pl.struct("gpu_type", "model", "batch_size", "gpus")
    twice = table.with_columns(frame["gpu_type"]).select(key.is_duplicated()).to_series() & mine
    place.refuse(twice, frame["model"], f"is there twice for {gpu_type} with one batch size and width", "keep one row")
    rates: dict[tuple[str, int], dict[int, float]] = {}
    kept = table.filter(mine & (rate > 0)).sort("batch_size")
    for model, batch_size, gpus, steps_s in kept.iter_rows():
        rates.setdefault((model, int(gpus)), {})[int(batch_size)] = steps_s
    return Throughputs(place.path, gpu_type, rates)


def read_datasets(path: PathLike) -> Mapping[str, int]:
    """Read a CSV of `DATASET_COLUMNS`, laid over `SAMPLES`. Raises TraceError when it cannot be read."""
    frame, place, numbers = _read(path, DATASET_COLUMNS, ("samples",))
    _refuse_nameless(frame["model"], place)
    _refuse_fractions(numbers["samples"], place)
    place.refuse(frame["model"].is_duplicated(), frame["model"], "is there twice", "keep one row a model")
    return {**SAMPLES, **{model: int(size) for model, size in zip(frame["model"], numbers["samples"], strict=True)}}


def read_courses(path: PathLike) -> Courses:
    """Read a CSV of `REGIME_COLUMNS`: the batch size of each job from an epoch on.

    Raises TraceError when it cannot be read, or a job's epochs do not begin at 0 or do not ascend.
    """
    frame, place, numbers = _read(path, REGIME_COLUMNS, ("epoch", "batch_size"))
    place.refuse(frame["job_id"].is_null(), frame["job_id"], "must name a job", "correct the row")
    _refuse_fractions(numbers["epoch"], place, least=0)
    _refuse_fractions(numbers["batch_size"], place)
    found: dict[str, list[tuple[int, int]]] = {}
    begins, sizes = (numbers[name].cast(pl.Int64) for name in ("epoch", "batch_size"))
    rows = zip(frame["job_id"], begins, sizes, strict=True)
    for index, (job_id, begin, batch_size) in enumerate(rows):
        mine = found.setdefault(job_id, [])
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


def _read(
    path: PathLike, columns: tuple[str, ...], numeric: tuple[str, ...]
) -> tuple[pl.DataFrame, Place, dict[str, pl.Series]]:
    frame, place = read_csv(read_file(path))
    require_columns(frame.columns, place, columns)
    if frame.is_empty():
        raise TraceError(f"{place.path}: only a header, no rows; give at least one")
    return frame, place, {name: numbers_of(frame[name], place) for name in numeric}


def _refuse_nameless(models: pl.Series, place: Place) -> None:
    place.refuse(models.is_null(), models, "must name a model", "correct the row")


def _refuse_fractions(values: pl.Series, place: Place, least: int = 1, missing: bool = False) -> None:
    """Refuse what is no whole number from `least` to the largest exact one; nothing passes where it may be missing."""
    whole = values.is_finite() & (values >= least) & (values <= LARGEST_COUNT) & (values == values.floor())
    place.refuse(~whole.fill_null(missing), values, f"must be a whole number >= {least}", "correct the value")
