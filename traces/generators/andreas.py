"""ANDREAS's campaign: training jobs with due dates for nodes of unlike GPUs (ANDREAS, section V.B).

Arrivals have a mixed rate, for which the paper refers to Saxena et al. (Effective Elastic Scaling of Deep Learning
Workloads, 2020); here it is a Poisson process whose rate is high and low by turns, given the number of jobs. Stretches
are as long as makes the offered load: the seconds that all GPUs, each with a job of its own, would work on all jobs,
over the time that arrivals take.

What may be set of ANDREAS's workloads.

The applications of ANDREAS and how long an epoch of each takes: our assumptions, for the paper prints none.

    epoch_s = serial_s + ceil(samples / b) (step_s + reduce_s (g - 1)) + samples sample_s slower / g

for batches of b samples on g GPUs of one node. What is done once an epoch (evaluation, snapshot) and once a step
(input, launches of kernels) does not get faster with GPUs, and a step waits for the exchange of gradients, so that
speedups are below g and grow with the batch. `slower` is 1 on a V100. With the watts assumed of V100 nodes an epoch
costs the more the more GPUs work on it, as section IV.B supposes.

The eight jobs of ANDREAS's validation (section V.C and Table V), due dates counted from their submissions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import ConfigError, PoolsError
from jobcast.domain.hardware import GPU_TYPES, HOST_W, Cluster, NodeGroup, known_type, linear_power_w
from jobcast.domain.jobs import Pool
from jobcast.traces.cluster_file import read_cluster
from jobcast.traces.generators.elastic import instants, plain_frame
from jobcast.traces.generators.settings import FIRST_INSTANT, check_pairs, check_ranges, setting

JOBS_A_NODE = 10
SCENARIOS: Mapping[int, Mapping[str, int]] = {1: {"v100": 2, "t4": 1}, 2: {"v100": 4, "t4": 2}}
"""GPUs of a node by scenario, and jobs a node: ANDREAS, section V.B."""


@dataclass(frozen=True, slots=True)
class AndreasConfig:
    """Parameters of the campaign. Nodes, jobs a node and scenarios are those of ANDREAS, section V.B."""

    nodes: int = setting(
        10, "nodes, the first half with V100, the others with T4 GPUs: 10 to 100 in the paper", 1, 100_000
    )
    jobs: int = setting(0, f"number of jobs; 0: {JOBS_A_NODE} a node", 0, 10_000_000)
    scenario: int = setting(1, "1: two V100 or one T4 a node; 2: four V100 or two T4", 1, 2)
    cluster: str = setting("", "a cluster file (YAML, or openb's list of nodes as CSV) instead of nodes and scenario")
    load: float = setting(0.9, "offered load: work of the jobs, each on one GPU, over what the cluster does", 0.01, 100)
    ratio: float = setting(4.0, "arrivals a second in a high stretch over those in a low one", 1, 1000)
    stretches: int = setting(6, "stretches of equal length, high and low by turns, high first", 1, 10_000)
    epochs: tuple[int, ...] = setting((20, 160), "fewest and most epochs of a job, uniform", 1, 100_000)
    due: tuple[float, ...] = setting((1.2, 3.0), "due dates, as multiples of the fastest run time, uniform", 1, 1000)
    weights: tuple[int, ...] = setting((1, 5), "least and greatest weight, uniform whole numbers, EUR an hour", 0, 1000)
    host_w: float = setting(HOST_W, "watts of a node with any GPU in use, beside its GPUs", 0, 100_000)
    start: datetime = setting(FIRST_INSTANT, "instant at which the first stretch begins")  # noqa: RUF009

    def __post_init__(self) -> None:
        check_ranges(self)
        check_pairs(self, "epochs", "due", "weights")

    def gpu_nodes(self) -> Cluster:
        """The nodes. Raises ConfigError where `cluster` cannot be read."""
        if self.cluster:
            try:
                return read_cluster(Path(self.cluster))
            except PoolsError as error:
                raise ConfigError(f"andreas: cluster: {error}") from None
        # of an odd number the V100 nodes are one more
        fast = -(-self.nodes // 2)
        groups: list[NodeGroup] = []
        for gpu_type, first, count in (("v100", 0, fast), ("t4", fast, self.nodes - fast)):
            gpus = SCENARIOS[self.scenario][gpu_type]
            power_w = linear_power_w(gpus, self.host_w, GPU_TYPES[gpu_type].power_w)
            names = tuple(f"node-{first + at}" for at in range(1, count + 1))
            groups += [NodeGroup(gpu_type, gpus, power_w, names)] if count else []
        return Cluster(tuple(groups))


@dataclass(frozen=True, slots=True)
class ArmidaConfig:
    """Parameters of the validation. ANDREAS, section V.C and Table V."""

    host_w: float = setting(HOST_W, "watts of a node with any GPU in use, beside its GPUs", 0, 100_000)
    start: datetime = setting(FIRST_INSTANT, "instant at which the first job is submitted")  # noqa: RUF009

    def __post_init__(self) -> None:
        check_ranges(self)

    def gpu_nodes(self) -> Cluster:
        """armida-05, -06 and -07. ANDREAS, Table II."""
        held = (("armida-05", "v100", 1), ("armida-06", "v100", 2), ("armida-07", "t4", 1))
        return Cluster(
            tuple(
                NodeGroup(kind, gpus, linear_power_w(gpus, self.host_w, GPU_TYPES[kind].power_w), (name,))
                for name, kind, gpus in held
            )
        )


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


APPLICATIONS: Mapping[str, Application] = {
    "EfficientNet": Application(50_000, 5.5, 0.08, 0.025, 0.66e-3, 3.3, (512, 1024, 2048, 4096)),
    "ConvNet": Application(60_000, 2.0, 0.06, 0.020, 0.158e-3, 2.7, (1024, 2048, 4096, 8192)),
    "LSTM-big": Application(100_000, 10.0, 0.30, 0.080, 0.711e-3, 2.3, (1024, 2048, 4096, 8192)),
    "LSTM-small": Application(100_000, 7.0, 0.10, 0.020, 0.217e-3, 1.9, (1024, 2048, 4096, 8192)),
}
"""Names and largest batch sizes: ANDREAS, Table V; all else is ours, such that Table V's due dates can be met."""


def epoch_s(application: Application, batch_size: int, gpu_type: str, gpus: int) -> float:
    """Seconds of an epoch. Raises ConfigError for a type of GPU of which nothing is assumed.

    >>> round(epoch_s(APPLICATIONS["EfficientNet"], 4096, "v100", 2), 1)
    23.4
    """
    # the last batch of an epoch may be short, and is a step all the same
    steps = -(-application.samples // batch_size)
    overhead_s = application.serial_s + steps * (application.step_s + application.reduce_s * (gpus - 1))
    return overhead_s + application.samples * application.sample_s * slower(application, gpu_type) / gpus


def slower(application: Application, gpu_type: str) -> float:
    """How many times as long a sample takes as on a V100. Raises ConfigError as `epoch_s`."""
    # each application has a factor of its own for the paper's second type
    if gpu_type.lower() == T4:
        return application.t4_slower
    known = known_type(gpu_type)
    if known is None:
        raise ConfigError(f"andreas: nothing is assumed of GPUs {gpu_type!r}; profile jobs on them instead")
    return 1.0 / known.speed


def andreas_profiles(config: AndreasConfig | ArmidaConfig) -> pl.DataFrame:
    """Seconds of an epoch of every application, batch size, type and number of GPUs that a node has.

    Raises ConfigError as `gpu_nodes`.
    """
    nodes = config.gpu_nodes()
    rows = [
        (name, batch_size, gpu_type, gpus, epoch_s(application, batch_size, gpu_type, gpus))
        for name, application in APPLICATIONS.items()
        for batch_size in application.batch_sizes
        for gpu_type, most in nodes.widest.items()
        # jobs never span nodes, so a node's GPUs are the limit
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
    # ties go to fewer GPUs, which cost less
    return min(options, key=lambda one: (one.epoch_s, one.gpus))


def cluster_epoch_s(application: Application, batch_size: int, nodes: Cluster) -> float:
    """Seconds in which the whole cluster does one epoch for every epoch's worth of it: each GPU works for itself.

    The inverse of the epochs a second of all GPUs, one job on each.
    """
    rate = sum(group.count * group.gpus / epoch_s(application, batch_size, group.gpu_type, 1) for group in nodes.groups)
    return 1.0 / rate


POOL = "andreas"


class Kinds(NamedTuple):
    """The kinds of jobs, a row for each application and batch size.

    Attributes
    ----------
    model, batch_size : lists of them
    gpus, epoch_s : of the fastest configuration
    cluster_s : seconds of the whole cluster for an epoch
    """

    model: list[str]
    batch_size: Ints
    gpus: Ints
    epoch_s: Floats
    cluster_s: Floats


def generate_andreas(config: AndreasConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw, each quantity from a stream of its own, and one pool. Raises ConfigError."""
    nodes = config.gpu_nodes()
    count = config.jobs or JOBS_A_NODE * len(nodes.names)
    # streams of their own: a change of due dates leaves the jobs alone
    of_kind, of_epochs, of_arrival, of_due, of_weight = rng.spawn(5)
    kinds = job_kinds(nodes)
    kind = draw_kinds(count, of_kind)
    epochs = of_epochs.integers(config.epochs[0], config.epochs[1] + 1, count)
    span_s = float(kinds.cluster_s[kind] @ epochs) / config.load
    submit_s = arrivals_s(count, span_s, config, of_arrival)
    run_s = epochs * kinds.epoch_s[kind]
    due_s = submit_s + of_due.uniform(config.due[0], config.due[1], count) * run_s
    frame = plain_frame(POOL, config.start, submit_s, run_s, kinds.gpus[kind]).with_columns(
        model=pl.Series([kinds.model[at] for at in kind.tolist()]),
        batch_size=pl.Series(kinds.batch_size[kind]),
        epochs=pl.Series(epochs),
        deadline=instants(config.start, due_s),
        weight=pl.Series(of_weight.integers(config.weights[0], config.weights[1] + 1, count).astype(np.float64)),
    )
    return frame, [Pool(POOL, nodes.gpus)]


def andreas_notes(config: AndreasConfig) -> tuple[str, ...]:
    """The cluster, and the load that the jobs offer."""
    nodes = config.gpu_nodes()
    types = ", ".join(f"{group.count} of {group.gpus} {group.gpu_type}" for group in nodes.groups)
    high = 2.0 * config.ratio / (1.0 + config.ratio)
    return (
        f"{len(nodes.names):,} nodes: {types}",
        f"offered load: {config.load:.3g}, {config.load * high:.3g} in high stretches and "
        f"{config.load * high / config.ratio:.3g} in low ones",
    )


def job_kinds(nodes: Cluster) -> Kinds:
    """Kinds of jobs and what each takes on some nodes. Raises ConfigError for a type of which nothing is assumed."""
    pairs = [(name, batch_size) for name, one in APPLICATIONS.items() for batch_size in one.batch_sizes]
    quick = [fastest(APPLICATIONS[name], batch_size, nodes) for name, batch_size in pairs]
    return Kinds(
        [name for name, _ in pairs],
        np.array([batch_size for _, batch_size in pairs], dtype=np.int64),
        np.array([one.gpus for one in quick], dtype=np.int64),
        np.array([one.epoch_s for one in quick]),
        np.array([cluster_epoch_s(APPLICATIONS[name], batch_size, nodes) for name, batch_size in pairs]),
    )


def draw_kinds(count: int, rng: np.random.Generator) -> Ints:
    """(count,) rows of `Kinds`: applications are equally likely, and so are the batch sizes of one."""
    sizes = np.array([len(one.batch_sizes) for one in APPLICATIONS.values()])
    application = rng.integers(0, len(sizes), count)
    # applications are equally likely, not their batch sizes
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.asarray(first[application] + rng.integers(0, sizes[application]), dtype=np.int64)


def arrivals_s(count: int, span_s: float, config: AndreasConfig, rng: np.random.Generator) -> Floats:
    """(count,) ascending times of arrival in [0, span): a Poisson process of two rates by turns, given their number."""
    rate = np.where(np.arange(config.stretches) % 2 == 0, config.ratio, 1.0)
    share = np.concatenate([[0.0], np.cumsum(rate) / rate.sum()])
    # inverse of the cumulative rate, linear within a stretch
    ends_s = np.linspace(0.0, span_s, config.stretches + 1)
    return np.interp(np.sort(rng.random(count)), share, ends_s)


VALIDATION_POOL = "armida"


class PrintedJob(NamedTuple):
    """A row of Table V: due dates are printed in seconds from the submission."""

    job_id: str
    model: str
    epochs: int
    batch_size: int
    submit_s: float
    due_s: float
    weight: float


TABLE_V = (
    PrintedJob("J6", "EfficientNet", 80, 4096, 0.0, 3600.0, 4.0),
    PrintedJob("J9", "ConvNet", 160, 8192, 1200.0, 2600.0, 2.0),
    PrintedJob("J10", "ConvNet", 80, 8192, 2400.0, 7600.0, 3.0),
    PrintedJob("J7", "LSTM-big", 160, 8192, 3600.0, 17600.0, 3.0),
    PrintedJob("J8", "LSTM-small", 160, 8192, 4800.0, 7600.0, 3.0),
    PrintedJob("J1", "LSTM-big", 60, 8192, 6000.0, 5600.0, 5.0),
    PrintedJob("J2", "LSTM-small", 60, 8192, 7200.0, 12600.0, 2.0),
    PrintedJob("J3", "EfficientNet", 60, 4096, 8400.0, 11600.0, 1.0),
)


def generate_armida(config: ArmidaConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of the eight jobs, nothing of which is drawn, and one pool of the three nodes' GPUs."""
    nodes = config.gpu_nodes()
    quick = [fastest(APPLICATIONS[job.model], job.batch_size, nodes) for job in TABLE_V]
    printed = pl.DataFrame(TABLE_V, schema=PrintedJob._fields, orient="row")
    submit_s, due_s = (printed[name].to_numpy() for name in ("submit_s", "due_s"))
    run_s = printed["epochs"].to_numpy() * np.array([one.epoch_s for one in quick])
    gpus = np.array([one.gpus for one in quick], dtype=np.int64)
    frame = plain_frame(VALIDATION_POOL, config.start, submit_s, run_s, gpus).with_columns(
        printed.select("job_id", "model", "batch_size", "epochs"),
        deadline=instants(config.start, submit_s + due_s),
        weight=printed["weight"],
    )
    return frame, [Pool(VALIDATION_POOL, nodes.gpus)]


def armida_notes(config: ArmidaConfig) -> tuple[str, ...]:
    """What is the paper's and what is assumed."""
    return ("jobs of ANDREAS, Table V; seconds an epoch and watts are assumptions of jobcast's",)
