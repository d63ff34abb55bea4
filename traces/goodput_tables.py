"""Measurements of training jobs that scale: step times by GPUs and batch size, and gradient noise over epochs."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import TraceError
from jobcast.traces.files import read_file

STEP_COLUMNS = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
CURVE_COLUMNS = ("epoch", "progress", "metric", "grad_sqr", "grad_var")


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Measured steps of one application, each (n,).

    Attributes
    ----------
    nodes, gpus : that the step ran on
    local_batch_size : samples a GPU
    step_s : seconds a step
    sync_s : seconds of it in which GPUs wait for one another's gradients
    """

    nodes: Floats
    gpus: Floats
    local_batch_size: Floats
    step_s: Floats
    sync_s: Floats

    def __len__(self) -> int:
        return len(self.step_s)

    def at(self, rows: NDArray[Any]) -> "StepTimes":
        """Some of the measurements."""
        return StepTimes(*(values[rows] for values in (getattr(self, one.name) for one in fields(self))))


@dataclass(frozen=True, slots=True, eq=False)
class StepTable:
    """Step times of a file, by application.

    Attributes
    ----------
    path, sha256 : the file, and its hash
    times : by application
    notes : what a reader of results should know
    from_s, until_s : the window whose jobs they are of, seconds from the epoch; 0 where step times have no calendar
    """

    path: str
    sha256: str
    times: Mapping[str, StepTimes]
    notes: tuple[str, ...] = ()
    from_s: float = 0.0
    until_s: float = 0.0

    @property
    def rows(self) -> int:
        """How many measurements it has."""
        return sum(map(len, self.times.values()))


@dataclass(frozen=True, slots=True)
class NoiseCurve:
    """One training of one application at one batch size, each (n_epochs,).

    Attributes
    ----------
    epoch : from 1
    progress : done at its end, in steps of the application's smallest batch size
    metric : of validation
    grad_sqr, grad_var : squared norm of the gradient, and its variance at the smallest batch size
    """

    epoch: Floats
    progress: Floats
    metric: Floats
    grad_sqr: Floats
    grad_var: Floats


def read_step_times(path: Path) -> Mapping[str, StepTimes]:
    """Step times by application, from a CSV of app and `STEP_COLUMNS`.

    Raises
    ------
    TraceError
        The file cannot be read, misses a column, or holds something else than positive numbers.
    """
    rows: dict[str, list[list[float]]] = {}
    for row, line in _rows(path, ("app", *STEP_COLUMNS)):
        # in the file's order, which fits later go by
        rows.setdefault(row["app"], []).append([_number(row, name, path, line, above=0.0) for name in STEP_COLUMNS])
    return {app: StepTimes(*np.array(values, dtype=np.float64).T) for app, values in rows.items()}


def read_step_table(path: Path) -> StepTable:
    """A file of step times with its hash. Raises as `read_step_times`."""
    return StepTable(str(path), read_file(path).sha256, read_step_times(path))


def read_noise_curves(path: Path) -> Mapping[str, Mapping[int, NoiseCurve]]:
    """Curves by application and batch size, from a CSV of app, batch_size and `CURVE_COLUMNS`.

    Raises
    ------
    TraceError
        The file cannot be read, misses a column, or holds something else than numbers; an epoch's progress is not more
        than the one's before, or a square or variance is below 0.
    """
    rows: dict[str, dict[int, list[list[float]]]] = {}
    for row, line in _rows(path, ("app", "batch_size", *CURVE_COLUMNS)):
        batch_size = _number(row, "batch_size", path, line, above=0.0)
        if batch_size != int(batch_size):
            raise TraceError(f"{path}, row {line}: batch_size must be a whole number, got {batch_size:g}; correct it")
        values = [_number(row, name, path, line) for name in CURVE_COLUMNS]
        earlier = rows.setdefault(row["app"], {}).setdefault(int(batch_size), [])
        _check_epoch(values, earlier[-1] if earlier else None, path, line)
        earlier.append(values)
    return {
        app: {size: NoiseCurve(*np.array(sizes[size], dtype=np.float64).T) for size in sorted(sizes)}
        for app, sizes in rows.items()
    }


def _check_epoch(values: list[float], before: list[float] | None, path: Path, line: int) -> None:
    result = dict(zip(CURVE_COLUMNS, values, strict=True))
    done = 0.0 if before is None else dict(zip(CURVE_COLUMNS, before, strict=True))["progress"]
    if result["progress"] <= done:
        raise TraceError(
            f"{path}, row {line}: progress must be more than {done:g}, got {result['progress']:g}; sort each curve's "
            "rows by epoch, each curve once"
        )
    for name in ("grad_sqr", "grad_var"):
        if result[name] < 0:
            raise TraceError(f"{path}, row {line}: {name} must be >= 0, got {result[name]:g}; mend or drop the row")


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[Mapping[str, str], int]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path}: column {', '.join(missing)} is missing; it needs {', '.join(columns)}")
            for row in reader:
                if not row["app"]:
                    raise TraceError(f"{path}, row {reader.line_num}: app must name one; mend or drop the row")
                yield row, reader.line_num
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path}: cannot be read ({error}); pass a CSV file of measurements") from None


def _number(row: Mapping[str, str | None], name: str, path: Path, line: int, above: float = -np.inf) -> float:
    try:
        number = float(row[name] or "")
    except ValueError:
        number = np.nan
    if not isfinite(number) or number <= above:
        wanted = "a number" if above < 0 else "a positive number"
        raise TraceError(f"{path}, row {line}: {name} must be {wanted}, got {row[name]!r}; mend or drop the row")
    return number
