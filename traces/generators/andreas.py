"""ANDREAS's campaign: training jobs with due dates for nodes of unlike GPUs (ANDREAS, section V.B).

Arrivals have a mixed rate, for which the paper refers to Saxena et al. (Effective Elastic Scaling of Deep Learning
Workloads, 2020); here it is a Poisson process whose rate is high and low by turns, given the number of jobs. Stretches
are as long as makes the offered load: the seconds that all GPUs, each with a job of its own, would work on all jobs,
over the time that arrivals take.
"""

from datetime import datetime
from typing import NamedTuple

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.hardware import Cluster
from jobcast.domain.jobs import Pool
from jobcast.traces.generators.andreas_config import JOBS_A_NODE, AndreasConfig
from jobcast.traces.generators.andreas_models import APPLICATIONS, cluster_epoch_s, fastest, profile_table

POOL = "andreas"
MICROSECONDS = 1e6
DURATION_DECIMALS = 3


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
    of_kind, of_epochs, of_arrival, of_due, of_weight = rng.spawn(5)
    kinds = job_kinds(nodes)
    kind = draw_kinds(count, of_kind)
    epochs = of_epochs.integers(config.epochs[0], config.epochs[1] + 1, count)
    span_s = float(kinds.cluster_s[kind] @ epochs) / config.load
    submit_s = arrivals_s(count, span_s, config, of_arrival)
    run_s = epochs * kinds.epoch_s[kind]
    frame = jobs_frame(
        ids=[f"{row:0{len(str(count - 1))}d}" for row in range(count)],
        pool=POOL,
        start=config.start,
        submit_s=submit_s,
        run_s=run_s,
        gpus=kinds.gpus[kind],
        model=[kinds.model[at] for at in kind.tolist()],
        batch_size=kinds.batch_size[kind],
        epochs=epochs,
        due_s=submit_s + of_due.uniform(config.due[0], config.due[1], count) * run_s,
        weight=of_weight.integers(config.weights[0], config.weights[1] + 1, count).astype(np.float64),
    )
    return frame, [Pool(POOL, nodes.gpus)]


def andreas_profiles(config: AndreasConfig) -> pl.DataFrame:
    """The profiles of all applications on the cluster's nodes. Raises ConfigError."""
    return profile_table(config.gpu_nodes())


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
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.asarray(first[application] + rng.integers(0, sizes[application]), dtype=np.int64)


def arrivals_s(count: int, span_s: float, config: AndreasConfig, rng: np.random.Generator) -> Floats:
    """(count,) ascending times of arrival in [0, span): a Poisson process of two rates by turns, given their number."""
    rate = np.where(np.arange(config.stretches) % 2 == 0, config.ratio, 1.0)
    share = np.concatenate([[0.0], np.cumsum(rate) / rate.sum()])
    ends_s = np.linspace(0.0, span_s, config.stretches + 1)
    return np.interp(np.sort(rng.random(count)), share, ends_s)


def jobs_frame(
    *,
    ids: list[str],
    pool: str,
    start: datetime,
    submit_s: Floats,
    run_s: Floats,
    gpus: Ints,
    model: list[str],
    batch_size: Ints,
    epochs: Ints,
    due_s: Floats,
    weight: Floats,
) -> pl.DataFrame:
    """Canonical table of training jobs; times are seconds from `start`, to the microsecond below."""
    origin_us = round(start.timestamp() * MICROSECONDS)

    def instants(seconds: Floats) -> pl.Series:
        since_us = np.floor(seconds * MICROSECONDS).astype(np.int64)
        return pl.Series(origin_us + since_us).cast(pl.Datetime("us", "UTC"))

    return pl.DataFrame(
        {
            "job_id": ids,
            "pool": [pool] * len(ids),
            "submit_time": instants(submit_s),
            "duration": np.round(run_s, DURATION_DECIMALS),
            "gpus": gpus,
            "model": model,
            "batch_size": batch_size,
            "epochs": epochs,
            "deadline": instants(due_s),
            "weight": weight,
        }
    )
