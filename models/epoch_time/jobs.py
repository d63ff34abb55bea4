"""Profiled jobs as arrays, and as steps of one GPU: whether a batch size is one a GPU or one over all GPUs.

Which configurations of a job to profile: rules that can be followed before anything is measured.

What is known of step times before a job is profiled: learned from other jobs, starting from our own guess.

How long a step takes: gradients, synchronisation, and how far they overlap. Pollux (OSDI 2021), section 3.2.

With b the samples a GPU takes, g the GPUs, and b_0 a batch size in the middle of those that are known:

    gradients(b, g)     = s (a + (1 - a) b / b_0) g^c
    synchronisation(g)  = s r (g / 2)^q             from 2 GPUs on
    step(b, g)          = (gradients^gamma + synchronisation^gamma)^(1 / gamma)

Beside Pollux's model c is new: GPUs of one node share its memory and its processors. Parameters are on scales on which
a normal distribution is a fair prior.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

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
    return tuple(_job(part) for part in rows_of_jobs(table, by_batch_size))


def rows_of_jobs(table: ProfileTable, by_batch_size: bool = False) -> list[pl.DataFrame]:
    """Rows behind each of `jobs_of`, in its order."""
    key = ["model", "batch_size"] if by_batch_size else ["model"]
    parts = table.frame.partition_by(key, maintain_order=True)
    # Rows of any batch size tell nothing beside those of one.
    sized = [part.filter(pl.col("batch_size").is_not_null()) for part in parts]
    return [with_size if len(with_size) else part for with_size, part in zip(sized, parts, strict=True)]


def places_of(frame: pl.DataFrame, gpu_types: Sequence[str]) -> Places:
    """Configurations of rows with gpu_type, batch_size, gpus."""
    kind = np.array([gpu_types.index(name) for name in frame["gpu_type"]], np.int64)
    sizes = frame["batch_size"].cast(pl.Float64).fill_null(1.0).to_numpy()
    return Places(kind, sizes, frame["gpus"].cast(pl.Float64).to_numpy())


def _job(part: pl.DataFrame) -> ProfiledJob:
    sized = part["batch_size"].null_count() < len(part)
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
        # Numbers that the type was measured on, whatever they are.
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
    # Both axes count alike; one that does not vary is left as it is.
    where /= np.where(span > 0, span, 1.0)
    distance = np.linalg.norm(where[rows][:, None] - where[picked], axis=-1).min(axis=1)
    return int(rows[int(np.argmax(distance))])


PARAMETERS = ("log_scale", "logit_fixed", "log_sync", "sync_growth", "contention", "log_gamma_less_1")
"""log s, logit a, log r, q, c, log(gamma - 1)."""
COUNT = len(PARAMETERS)
SCALE = 0
"""Position of log s."""
MOST_LOG_LESS = 5.0
"""Beyond it the longer of the two hides the other, whatever gamma is."""


def log_step_s(parameters: Floats, log_size: Floats, gpus: Floats) -> tuple[Floats, Floats]:
    """Log of seconds a step, and its derivatives.

    Parameters
    ----------
    parameters : (n, COUNT) on the scales of `PARAMETERS`
    log_size : (n,) log of b / b_0
    gpus : (n,) of one node, from 1 on

    Returns
    -------
    value : (n,)
    slope : (n, COUNT) by parameter

    >>> at = np.array([[0.0, 0.0, -1.0, 0.5, 0.0, 0.0]])
    >>> log_step_s(at, np.zeros(1), np.ones(1))[0].tolist()
    [0.0]
    """
    scale, logit, log_sync, growth, contention, log_less = np.moveaxis(parameters, -1, 0)
    # The logistic function, which cannot overflow in this form.
    fixed, size = 0.5 + 0.5 * np.tanh(0.5 * logit), np.exp(log_size)
    mixed = fixed + (1.0 - fixed) * size
    several = gpus > 1
    log_gpus, log_half = np.log(gpus), np.log(gpus / 2.0)
    gradients = scale + np.log(mixed) + contention * log_gpus
    # One GPU does not synchronise: log 0.
    sync = np.where(several, scale + log_sync + growth * log_half, -np.inf)
    # Bounded, or the powers below overflow.
    less = np.exp(np.minimum(log_less, MOST_LOG_LESS))
    value = np.logaddexp((1.0 + less) * gradients, (1.0 + less) * sync) / (1.0 + less)
    of_gradients = np.exp((1.0 + less) * (gradients - value))
    of_sync = np.where(several, np.exp((1.0 + less) * (np.where(several, sync, 0.0) - value)), 0.0)
    # How much of the step is each of the two; they sum to 1.
    shares = np.stack([of_gradients, of_sync])
    entropy = -(shares * np.log(np.maximum(shares, np.finfo(float).tiny))).sum(axis=0)
    slope = np.stack(
        [
            np.ones_like(value),
            of_gradients * fixed * (1.0 - fixed) * (1.0 - size) / mixed,
            of_sync,
            of_sync * log_half,
            of_gradients * log_gpus,
            -entropy * less / (1.0 + less) ** 2,
        ],
        axis=-1,
    )
    return value, slope


ANY_SCALE = 5.0
"""Standard deviation of log seconds among jobs: nothing is assumed of it."""
MEAN = (0.0, -1.0, -1.5, 0.6, 0.05, -2.0)
SD_JOB = (ANY_SCALE, 1.5, 1.2, 0.4, 0.06, 0.7)
SD_TYPE = (0.6, 0.7, 0.7, 0.3, 0.05, 0.3)
"""Our guess before any job is seen, on the scales of `shape.PARAMETERS`: a quarter of a middle step does not depend on
the batch size, two GPUs synchronise for a fifth of it, eight for 2.3 times as long, little of which overlaps. It and
the numbers of `Residual` were set with the tables of docs/profiles.md in sight, which tells what that is worth."""


@dataclass(frozen=True, slots=True, eq=False)
class StepPrior:
    """Normal, independent by parameter: a job departs from the mean, and on each GPU type from itself.

    Attributes
    ----------
    mean : (COUNT,) of jobs; that of log s is 0, for nothing is assumed of it
    sd_job : (COUNT,) among jobs
    sd_type : (COUNT,) among the GPU types of a job
    log_slower : GPU type -> mean log of seconds there over seconds on other types
    """

    mean: Floats = field(default_factory=lambda: np.array(MEAN))
    sd_job: Floats = field(default_factory=lambda: np.array(SD_JOB))
    sd_type: Floats = field(default_factory=lambda: np.array(SD_TYPE))
    log_slower: Mapping[str, float] = field(default_factory=dict)

    def means(self, gpu_types: tuple[str, ...]) -> Floats:
        """(n_types, COUNT)."""
        made = np.tile(self.mean, (len(gpu_types), 1))
        made[:, SCALE] += [self.log_slower.get(name, 0.0) for name in gpu_types]
        return made

    def covariance(self, n_types: int) -> Floats:
        """(n_types x COUNT, n_types x COUNT) of a job's parameters, type by type."""
        # What a job departs by is the same on all of its types.
        shared = np.kron(np.ones((n_types, n_types)), np.diag(self.sd_job**2))
        return shared + np.kron(np.eye(n_types), np.diag(self.sd_type**2))

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "mean": self.mean.tolist(),
            "sd_job": self.sd_job.tolist(),
            "sd_type": self.sd_type.tolist(),
            "log_slower": dict(sorted(self.log_slower.items())),
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """What `told` wrote."""
        arrays = {name: np.array(saved[name], np.float64) for name in ("mean", "sd_job", "sd_type")}
        return cls(**arrays, log_slower=dict(saved["log_slower"]))


@dataclass(frozen=True, slots=True)
class Residual:
    """What measured log step times do beside the shape: a Gaussian process, and noise.

    Libraries choose their kernels by the samples a GPU takes, so steps of like batch sizes depart from the shape
    together, whatever the number of GPUs; a smaller part changes with the number of GPUs.

    Attributes
    ----------
    by_size, size_width : standard deviation, and width in log samples, of what does not depend on the GPUs
    by_place, place_width, gpus_width : of what does; widths in log samples and log2 GPUs
    other_type : correlation between GPU types
    noise : standard deviation of one measurement
    """

    by_size: float = 0.2
    size_width: float = 0.7
    by_place: float = 0.05
    place_width: float = 2.0
    gpus_width: float = 1.0
    other_type: float = 0.1
    noise: float = 0.05

    def covariance(self, these: Places, those: Places, spread: str) -> Floats:
        """(n, m) between configurations, without noise."""
        size = these.log_local(spread)[:, None] - those.log_local(spread)
        gpus = np.log2(these.gpus)[:, None] - np.log2(those.gpus)
        by_size = self.by_size**2 * np.exp(-0.5 * (size / self.size_width) ** 2)
        nearness = (size / self.place_width) ** 2 + (gpus / self.gpus_width) ** 2
        by_place = self.by_place**2 * np.exp(-0.5 * nearness)
        # Other types use other kernels, so that departures hardly go together.
        alike = np.where(these.kind[:, None] == those.kind, 1.0, self.other_type)
        return alike * (by_size + by_place)


assert len(MEAN) == len(SD_JOB) == len(SD_TYPE) == COUNT
