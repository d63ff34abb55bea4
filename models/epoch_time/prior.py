"""What is known of step times before a job is profiled: learned from other jobs, starting from our own guess.

How long a step takes: gradients, synchronisation, and how far they overlap. Pollux (OSDI 2021), section 3.2.

With b the samples a GPU takes, g the GPUs, and b_0 a batch size in the middle of those that are known:

    gradients(b, g)     = s (a + (1 - a) b / b_0) g^c
    synchronisation(g)  = s r (g / 2)^q             from 2 GPUs on
    step(b, g)          = (gradients^gamma + synchronisation^gamma)^(1 / gamma)

Beside Pollux's model c is new: GPUs of one node share its memory and its processors. Parameters are on scales on which
a normal distribution is a fair prior.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.models.epoch_time.jobs import Places

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
    fixed, size = 0.5 + 0.5 * np.tanh(0.5 * logit), np.exp(log_size)
    mixed = fixed + (1.0 - fixed) * size
    several = gpus > 1
    log_gpus, log_half = np.log(gpus), np.log(gpus / 2.0)
    gradients = scale + np.log(mixed) + contention * log_gpus
    sync = np.where(several, scale + log_sync + growth * log_half, -np.inf)
    less = np.exp(np.minimum(log_less, MOST_LOG_LESS))
    value = np.logaddexp((1.0 + less) * gradients, (1.0 + less) * sync) / (1.0 + less)
    of_gradients = np.exp((1.0 + less) * (gradients - value))
    of_sync = np.where(several, np.exp((1.0 + less) * (np.where(several, sync, 0.0) - value)), 0.0)
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
        shared = np.kron(np.ones((n_types, n_types)), np.diag(self.sd_job**2))
        whole: Floats = shared + np.kron(np.eye(n_types), np.diag(self.sd_type**2))
        return whole

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "mean": self.mean.tolist(),
            "sd_job": self.sd_job.tolist(),
            "sd_type": self.sd_type.tolist(),
            "log_slower": dict(sorted(self.log_slower.items())),
        }

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Self:
        """What `told` wrote."""
        arrays = {name: np.array(told[name], np.float64) for name in ("mean", "sd_job", "sd_type")}
        return cls(**arrays, log_slower=dict(told["log_slower"]))


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
        alike = np.where(these.kind[:, None] == those.kind, 1.0, self.other_type)
        made: Floats = alike * (by_size + by_place)
        return made


assert len(MEAN) == len(SD_JOB) == len(SD_TYPE) == COUNT
