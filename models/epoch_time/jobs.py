"""Profiled jobs as arrays, and as steps of one GPU: whether a batch size is one a GPU or one over all GPUs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.traces.profiles import ProfileTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PER_GPU, IN_ALL = "gpu", "job"
"""Whether each GPU takes as many samples as the batch size says, or all GPUs of the job together."""
SPREADS = (PER_GPU, IN_ALL)


class Places(NamedTuple):
    """Configurations of one job, each (n,).

    Attributes
    ----------
    kind : position of the GPU type among the job's
    batch_size : as the table has it, 1 where it names none
    gpus : of one node
    """

    kind: Ints
    batch_size: Floats
    gpus: Floats

    def at(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "Places":
        """Some of them."""
        return Places(self.kind[rows], self.batch_size[rows], self.gpus[rows])

    def log_local(self, spread: str) -> Floats:
        """(n,) log of the samples that each GPU takes in a step."""
        return np.log(self.batch_size if spread == PER_GPU else self.batch_size / self.gpus)

    def log_samples(self, spread: str) -> Floats:
        """(n,) log of the samples of a step over all GPUs."""
        return np.log(self.batch_size * self.gpus if spread == PER_GPU else self.batch_size)


class ProfiledJob(NamedTuple):
    """What was measured of a job.

    Attributes
    ----------
    model : its application
    gpu_types : names
    places : (n,) configurations
    epoch_s : (n,) seconds an epoch
    sized : whether its batch sizes are known; where not, times are those of any
    """

    model: str
    gpu_types: tuple[str, ...]
    places: Places
    epoch_s: Floats
    sized: bool = True

    def at(self, rows: NDArray[np.intp]) -> "ProfiledJob":
        """Some of its configurations."""
        return self._replace(places=self.places.at(rows), epoch_s=self.epoch_s[rows])


def jobs_of(table: ProfileTable, by_batch_size: bool = False) -> tuple[ProfiledJob, ...]:
    """A table's jobs, in its order.

    Parameters
    ----------
    table : profiles
    by_batch_size : whether a model at each batch size is a job of its own, or a model is one
    """
    key = ["model", "batch_size"] if by_batch_size else ["model"]
    parts = table.frame.partition_by(key, maintain_order=True)
    return tuple(_job(part) for part in parts)


def places_of(frame: pl.DataFrame, gpu_types: Sequence[str]) -> Places:
    """Configurations of rows with gpu_type, batch_size, gpus."""
    kind = np.array([gpu_types.index(name) for name in frame["gpu_type"]], np.int64)
    sizes = frame["batch_size"].cast(pl.Float64).fill_null(1.0).to_numpy()
    return Places(kind, sizes, frame["gpus"].cast(pl.Float64).to_numpy())


def _job(part: pl.DataFrame) -> ProfiledJob:
    sized = part["batch_size"].null_count() < len(part)
    if sized:  # rows of any batch size tell nothing beside those of one
        part = part.filter(pl.col("batch_size").is_not_null())
    types = tuple(part["gpu_type"].unique(maintain_order=True).to_list())
    return ProfiledJob(part["model"][0], types, places_of(part, types), part["epoch_s"].to_numpy(), sized)
