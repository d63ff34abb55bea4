"""The applications of ANDREAS and how long an epoch of each takes: our assumptions, for the paper prints none.

    epoch_s = serial_s + ceil(samples / b) (step_s + reduce_s (g - 1)) + samples sample_s slower / g

for batches of b samples on g GPUs of one node. What is done once an epoch (evaluation, snapshot) and once a step
(input, launches of kernels) does not get faster with GPUs, and a step waits for the exchange of gradients, so that
speedups are below g and grow with the batch. `slower` is 1 on a V100. With the watts assumed of V100 nodes an epoch
costs the more the more GPUs work on it, as section IV.B supposes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.domain.gpu_types import known_type
from jobcast.domain.hardware import Cluster

T4 = "t4"


class Application(NamedTuple):
    """What an application's epochs consist of.

    Attributes
    ----------
    samples : an epoch
    serial_s : once an epoch, seconds
    step_s : once a step, seconds
    reduce_s : once a step for each GPU beyond the first, seconds
    sample_s : computing a sample on a V100, seconds
    t4_slower : how many times as long a sample takes on a T4
    batch_sizes : that its jobs use
    """

    samples: int
    serial_s: float
    step_s: float
    reduce_s: float
    sample_s: float
    t4_slower: float
    batch_sizes: tuple[int, ...]


APPLICATIONS: Mapping[str, Application] = MappingProxyType(
    {
        "EfficientNet": Application(50_000, 5.5, 0.08, 0.025, 0.66e-3, 3.3, (512, 1024, 2048, 4096)),
        "ConvNet": Application(60_000, 2.0, 0.06, 0.020, 0.158e-3, 2.7, (1024, 2048, 4096, 8192)),
        "LSTM-big": Application(100_000, 10.0, 0.30, 0.080, 0.711e-3, 2.3, (1024, 2048, 4096, 8192)),
        "LSTM-small": Application(100_000, 7.0, 0.10, 0.020, 0.217e-3, 1.9, (1024, 2048, 4096, 8192)),
    }
)
"""Names and largest batch sizes: ANDREAS, Table V; all else is ours, such that Table V's due dates can be met."""


def epoch_s(application: Application, batch_size: int, gpu_type: str, gpus: int) -> float:
    """Seconds of an epoch. Raises ConfigError for a type of GPU of which nothing is assumed.

    >>> round(epoch_s(APPLICATIONS["EfficientNet"], 4096, "v100", 2), 1)
    23.4
    """
    steps = -(-application.samples // batch_size)
    overhead_s = application.serial_s + steps * (application.step_s + application.reduce_s * (gpus - 1))
    return overhead_s + application.samples * application.sample_s * slower(application, gpu_type) / gpus


def slower(application: Application, gpu_type: str) -> float:
    """How many times as long a sample takes as on a V100. Raises ConfigError as `epoch_s`."""
    if gpu_type.lower() == T4:
        return application.t4_slower
    known = known_type(gpu_type)
    if known is None:
        raise ConfigError(f"andreas: nothing is assumed of GPUs {gpu_type!r}; profile jobs on them instead")
    return 1.0 / known.speed


def profile_table(nodes: Cluster) -> pl.DataFrame:
    """Seconds of an epoch of every application, batch size, type and number of GPUs that a node has."""
    rows = [
        (name, batch_size, gpu_type, gpus, epoch_s(application, batch_size, gpu_type, gpus))
        for name, application in APPLICATIONS.items()
        for batch_size in application.batch_sizes
        for gpu_type, most in nodes.widest.items()
        for gpus in range(1, most + 1)
    ]
    return pl.DataFrame(rows, schema=["model", "batch_size", "gpu_type", "gpus", "epoch_s"], orient="row")


class Fastest(NamedTuple):
    """A job's fastest configuration: GPUs, and seconds of an epoch on them."""

    gpus: int
    epoch_s: float


def fastest(application: Application, batch_size: int, nodes: Cluster) -> Fastest:
    """Of all nodes; fewer GPUs where two are as fast."""
    options = [
        Fastest(gpus, epoch_s(application, batch_size, gpu_type, gpus))
        for gpu_type, most in nodes.widest.items()
        for gpus in range(1, most + 1)
    ]
    return min(options, key=lambda one: (one.epoch_s, one.gpus))


def cluster_epoch_s(application: Application, batch_size: int, nodes: Cluster) -> float:
    """Seconds in which the whole cluster does one epoch for every epoch's worth of it: each GPU works for itself.

    The inverse of the epochs a second of all GPUs, one job on each.
    """
    rate = sum(group.count * group.gpus / epoch_s(application, batch_size, group.gpu_type, 1) for group in nodes.groups)
    return 1.0 / rate
