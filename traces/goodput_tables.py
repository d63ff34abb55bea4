"""Measurements of training jobs that scale: step times by GPUs and batch size, and gradient noise over epochs."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.traces.check import Place
from jobcast.traces.files import read_file
from jobcast.traces.table_files import counts_in, floats_in, names_in, read_plain

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
    """Step times by application, from a table of app and `STEP_COLUMNS`.

    Raises
    ------
    TraceError
        The file cannot be read, misses a column, or holds something else than positive numbers.
    """
    frame, place, _ = read_plain(path, ("app", *STEP_COLUMNS))
    columns = [pl.Series(name, floats_in(frame[name], place, above=True)) for name in STEP_COLUMNS]
    # in the file's order, which fits later go by
    apps = _by_app(frame, place).with_columns(columns).partition_by("app", maintain_order=True)
    return {rows["app"][0]: StepTimes(*rows.select(STEP_COLUMNS).to_numpy().T) for rows in apps}


def read_step_table(path: Path) -> StepTable:
    """A file of step times with its hash. Raises as `read_step_times`."""
    return StepTable(str(path), read_file(path).sha256, read_step_times(path))


def read_noise_curves(path: Path) -> Mapping[str, Mapping[int, NoiseCurve]]:
    """Curves by application and batch size, from a table of app, batch_size and `CURVE_COLUMNS`.

    Raises
    ------
    TraceError
        The file cannot be read, misses a column, or holds something else than numbers; an epoch's progress is not more
        than the one's before, or a square or variance is below 0.
    """
    frame, place, _ = read_plain(path, ("app", "batch_size", *CURVE_COLUMNS))
    least = {"grad_sqr": 0.0, "grad_var": 0.0}
    columns = [pl.Series(name, floats_in(frame[name], place, least.get(name, -np.inf))) for name in CURVE_COLUMNS]
    table = _by_app(frame, place).with_columns(counts_in(frame["batch_size"], place), *columns)
    before = pl.col("progress").shift().over("app", "batch_size").fill_null(0.0)
    stays = table.select(pl.col("progress") <= before).to_series()
    remedy = "sort each curve's rows by epoch, each curve once"
    place.refuse(stays, frame["progress"], "must be more than the epoch before, and above 0", remedy)
    found: dict[str, dict[int, NoiseCurve]] = {}
    for rows in table.partition_by("app", "batch_size", maintain_order=True):
        curve = NoiseCurve(*rows.select(CURVE_COLUMNS).to_numpy().T)
        found.setdefault(rows["app"][0], {})[rows["batch_size"][0]] = curve
    return {app: dict(sorted(sizes.items())) for app, sizes in found.items()}


def _by_app(frame: pl.DataFrame, place: Place) -> pl.DataFrame:
    return pl.DataFrame(names_in(frame["app"], place, "an application"))
