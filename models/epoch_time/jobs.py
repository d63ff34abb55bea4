"""Profiled jobs as arrays, and as steps of one GPU: whether a batch size is one a GPU or one over all GPUs.

Which configurations of a job to profile: rules that can be followed before anything is measured.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import ConfigError
from jobcast.traces.profiles import ProfileTable

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


MOST_POINTS = 3
SMALLEST, MIDDLE, LARGEST = "smallest", "middle", "largest"
ONE, HALF, MOST = "one", "half", "most"
Plan = tuple[tuple[str, str], ...]
PLANS: Mapping[str, Plan] = {
    "middle-wide": ((LARGEST, ONE), (MIDDLE, MOST), (SMALLEST, ONE)),
    "small-wide": ((LARGEST, ONE), (SMALLEST, MOST), (MIDDLE, ONE)),
    "square": ((LARGEST, ONE), (SMALLEST, MOST), (MIDDLE, HALF)),
}
"""Name -> (batch size, GPUs) of each point, the most useful first. `one` is the fewest GPUs that there are, `half` the
middle of the numbers that there are, and batch sizes are among those that can run on so many GPUs. middle-wide shows
what the batch size does on one GPU and synchronisation where configurations are most; small-wide shows that where it
weighs most; square has each batch size and number once."""
DEFAULT_PLAN = "middle-wide"
"""One for all jobs: with as few applications to learn from as are measured, a choice by their errors is worse than
none. It was settled on with the errors of docs/profiles.md in sight, which gives those of all three."""


def pick_points(job: ProfiledJob, plan: str, points: int = MOST_POINTS) -> NDArray[np.intp]:
    """Rows of a job that a plan profiles on each GPU type, ascending.

    Where a type offers fewer batch sizes or numbers of GPUs than the plan names, so that two points fall together, the
    configuration farthest from those picked takes the place of one.

    Raises ConfigError for a plan that is not known or a number of points out of range.
    """
    if plan not in PLANS:
        raise ConfigError(f"plan {plan}: is not known; choose from {', '.join(PLANS)}")
    if not 1 <= points <= MOST_POINTS:
        raise ConfigError(f"--points {points}: must be from 1 to {MOST_POINTS}")
    picked = [_of_type(job.places, kind, PLANS[plan][:points]) for kind in range(len(job.gpu_types))]
    return np.sort(np.concatenate(picked))


def draw_points(job: ProfiledJob, rng: np.random.Generator, points: int = MOST_POINTS) -> NDArray[np.intp]:
    """Rows of a job, drawn on each GPU type, ascending."""
    rows = [np.flatnonzero(job.places.kind == kind) for kind in range(len(job.gpu_types))]
    drawn = [rng.choice(its, min(points, len(its)), replace=False) for its in rows]
    return np.sort(np.concatenate(drawn))


def _of_type(places: Places, kind: int, plan: Plan) -> NDArray[np.intp]:
    rows = np.flatnonzero(places.kind == kind)
    numbers = np.unique(places.gpus[rows])
    picked: list[int] = []
    for size, wide in plan:
        on = numbers[{ONE: 0, HALF: len(numbers) // 2, MOST: -1}[wide]]
        its = rows[places.gpus[rows] == on]
        its = its[np.argsort(places.batch_size[its], kind="stable")]
        row = int(its[{SMALLEST: 0, MIDDLE: len(its) // 2, LARGEST: -1}[size]])
        if row in picked and len(picked) < len(rows):
            row = _farthest(places, rows, picked)
        if row not in picked:
            picked.append(row)
    return np.array(picked, np.intp)


def _farthest(places: Places, rows: NDArray[np.intp], picked: list[int]) -> int:
    """The row whose nearest picked one is farthest, in log batch size and log GPUs; the first of equals."""
    where = np.stack([np.log(places.batch_size), np.log(places.gpus)], axis=-1)
    span = np.ptp(where[rows], axis=0)
    where /= np.where(span > 0, span, 1.0)
    distance = np.linalg.norm(where[rows][:, None] - where[picked], axis=-1).min(axis=1)
    return int(rows[int(np.argmax(distance))])
