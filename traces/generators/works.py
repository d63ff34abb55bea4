"""Run times at a width as work on one GPU, by a table of speedups or linearly."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.traces.speedups import Speedups, linear_speedups, read_speedups

DATA_VARIABLE = "JOBCAST_DATA"
SPEEDUPS_FILE = Path("pcs", "speedups.csv")


def data_speedups() -> str:
    """PCS's published table under the folder that JOBCAST_DATA names, empty where there is none."""
    folder = os.environ.get(DATA_VARIABLE)
    path = Path(folder, SPEEDUPS_FILE) if folder else None
    return str(path) if path is not None and path.is_file() else ""


def speedup_table(path: str, models: Sequence[str], most: NDArray[np.int64]) -> Speedups:
    """Table of a file, else a linear one for these models up to the widest job. Raises TraceError."""
    return read_speedups(path) if path else linear_speedups(int(most.max()), models)


def widths_speedups(models: Sequence[str], most: NDArray[np.int64], table: Speedups) -> Floats:
    """(n_jobs,) speedup of each job over one GPU on all its GPUs, packed.

    Raises ConfigError where the table does not know a model.
    """
    row = {model: table.row_of(model) for model in dict.fromkeys(models)}
    rows = np.array([row[model] for model in models])
    speedups: Floats = table.speedup[rows, 0, np.minimum(most, table.speedup.shape[2] - 1)]
    return speedups
