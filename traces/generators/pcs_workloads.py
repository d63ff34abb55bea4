"""PCS's workloads 1 and 2 (PCS, section 5.1).

AutoML apps of many trials: PCS's workload 1, which it takes from Themis (PCS, section 5.1 and Table 1).

The paper tells that an app has 1 to 20 trials, that a trial takes one GPU, and that service is at most 2 GPU-hours;
it leaves the distributions open, and whether the limit is an app's or a trial's. Here it is the app's. The number of
trials is log-uniform, the service of an app log-uniform between `shortest_min` a trial and the limit, arrivals are a
Poisson process. Trials of an app take equally long, so that it is a job that speeds up linearly to its trials.
`services`, `trial_counts` and `trial_gpus` name files of distribution functions to draw from in their place, such as
those that PCS publishes of Themis's workload before it was scaled down.

PCS's workload 2: jobs of a virtual cluster drawn anew, elastic and of sub-linear scaling (PCS, section 5.1).

A job of the given trace is its service, its width and its model, and is drawn as a whole, with replacement; gaps
between arrivals are exponential, or drawn from the trace's own. With neither load nor rate set the mean gap stays the
trace's, which is how PCS samples a collected workload (section 3.3).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.traces.generators.elastic import (
    DATA_VARIABLE,
    SPEEDUPS_FILE,
    data_file,
    drawn_from,
    elastic_frame,
    instants_at_load_s,
    instants_s,
    speedup_table,
    widths_speedups,
)
from jobcast.traces.generators.settings import FIRST_INSTANT, Setting, check_ranges, parse_settings, setting
from jobcast.traces.speedups import LINEAR
from jobcast.traces.stages import STAGES, Stage, stages_text
from jobcast.traces.table import Trace

POOL = "automl"
MINUTES_AN_HOUR = 60.0
HALF = 2
"""Successive halving keeps one trial in so many at each rung, and those left train so many times as long."""


@dataclass(frozen=True, slots=True)
class AutomlConfig:
    """Parameters of the workload; the defaults are PCS's testbed, sections 5.1 and 5.4."""

    apps: int = setting(200, "number of apps", 1, 1_000_000)
    gpus: int = setting(16, "GPUs of the cluster", 1, 100_000)
    load: float = setting(0.8, "offered load: sum of services / (span x GPUs)", 0.001, 100)
    start: datetime = setting(FIRST_INSTANT, "instant at which the first app arrives")  # noqa: RUF009
    trials: int = setting(20, "most trials of an app, one GPU each", 1, 10_000)
    service_h: float = setting(2.0, "longest service of an app, GPU-hours", 0.001, 1e6)
    shortest_min: float = setting(0.5, "shortest time of a trial, minutes", 0.001, 1e6)
    services: str = setting("", "CSV of the distribution function of services, seconds on one GPU")
    trial_counts: str = setting("", "the same of numbers of trials")
    trial_gpus: str = setting("", "the same of most GPUs of a trial, which is 1 without")
    halving: bool = setting(False, "successive halving: half of the trials stop at each rung")
    rungs: int = setting(3, "most stages of an app under halving; it ends with one trial at the latest", 1, 30)

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.services and self.trials * self.shortest_min > self.service_h * MINUTES_AN_HOUR:
            raise ValueError(
                f"{self.trials} trials of shortest_min {self.shortest_min:g} take longer than service_h "
                f"{self.service_h:g}; lower one of them"
            )


def generate_automl(config: AutomlConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw, with `stages` under halving, and its one pool.

    Trials, services and arrivals are drawn from streams of their own: halving, say, leaves the rest as it was.
    """
    of_trials, of_service, of_arrival, of_gpus = rng.spawn(4)
    trials = _trials(config, of_trials, of_gpus)
    low, high = trials * config.shortest_min * MINUTES_AN_HOUR, config.service_h * HOUR_S
    if config.services:
        service_s = np.round(drawn_from(config.services, config.apps, of_service), 3)
    else:
        service_s = np.round(low * (high / low) ** of_service.random(config.apps), 3)
    submit_s = instants_at_load_s(of_arrival.exponential(size=config.apps - 1), service_s, config.gpus, config.load)
    rows: dict[str, list[str]] = {"model": [LINEAR] * config.apps}
    if config.halving:
        rows[STAGES] = [stages_text(halved(count, config.rungs)) for count in trials.tolist()]
    return elastic_frame(POOL, config.start, submit_s, service_s, trials, rows), [Pool(POOL, config.gpus)]


def halved(trials: int, rungs: int) -> tuple[Stage, ...]:
    """Stages of successive halving: rung k trains trials // 2^k of them up to 2^k times as long as rung 0.

    >>> halved(16, 3), halved(1, 3)
    (((0.5, 16), (0.25, 8), (0.25, 4)), ((1.0, 1),))
    """
    # until one trial is left, or the rungs are at an end
    alive = [trials // HALF**rung for rung in range(min(rungs, int(math.log2(trials)) + 1))]
    # time since the rung before: the budget doubles, and half of it was spent
    longer = [1, *(HALF ** (rung - 1) for rung in range(1, len(alive)))]
    work = [count * more for count, more in zip(alive, longer, strict=True)]
    return tuple((one / sum(work), count) for one, count in zip(work, alive, strict=True))


def automl_notes(config: AutomlConfig) -> tuple[str, ...]:
    """What the workload's source leaves open, or where its distributions come from."""
    files = [name for name in (config.services, config.trial_counts, config.trial_gpus) if name]
    if files:
        return (f"distributions: {', '.join(files)}",)
    return ("numbers of trials and services are log-uniform: PCS tells their limits only",)


def _trials(config: AutomlConfig, rng: np.random.Generator, of_gpus: np.random.Generator) -> NDArray[np.int64]:
    """(apps,) the GPUs that all trials of an app can use together."""
    if config.trial_counts:
        counts = drawn_from(config.trial_counts, config.apps, rng).astype(np.int64)
    else:
        counts = _log_uniform_counts(config.apps, config.trials, rng)
    if not config.trial_gpus:
        return counts
    wide = drawn_from(config.trial_gpus, int(counts.sum()), of_gpus).astype(np.int64)
    return np.add.reduceat(wide, np.concatenate([[0], np.cumsum(counts)[:-1]]))


def _log_uniform_counts(count: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(count,) whole numbers 1 .. most, the floor of log-uniform ones: each k has weight log((k + 1) / k)."""
    # float dust may lift the last one over the limit, hence the clip
    drawn = np.floor(np.exp(rng.random(count) * math.log(most + 1))).astype(np.int64)
    return np.clip(drawn, 1, most)


EXPONENTIAL, RESAMPLED = "exponential", "resampled"
SUBLINEAR = (
    "VggnetModel256", "GooglenetModel128", "Inception4Model256", "Resnet50Model128", "DcganModel256",
    "VideopredictionModel64", "ChatbotModel256", "DeepspeechModel64", "TransformerModel256",
)  # fmt: skip
"""Models of PCS's traces, which occur there about equally often."""


@dataclass(frozen=True, slots=True)
class PhillyElasticConfig:
    """Parameters of the workload; GPUs and number of jobs are PCS's, sections 3.3 and 5.1."""

    trace: str = setting("", "a trace: elastic, or rigid as of a virtual cluster; needed")
    pool: str = setting("", "the pool of it to draw from; default: all jobs")
    jobs: int = setting(1000, "number of jobs", 1, 1_000_000)
    gpus: int = setting(64, "GPUs of the cluster", 1, 100_000)
    load: float = setting(0.0, "offered load: sum of services / (span x GPUs); 0: the trace's mean gap", 0, 100)
    gaps: str = setting(EXPONENTIAL, f"{EXPONENTIAL}, or {RESAMPLED}: drawn from the trace's")
    start: datetime = setting(FIRST_INSTANT, "instant at which the first job arrives")  # noqa: RUF009
    models: str = setting("", "models of a trace that names none, between commas; default: the nine of PCS's traces")
    speedups: str = setting("", f"table for rigid jobs; default: {SPEEDUPS_FILE} under {DATA_VARIABLE}, or linear")

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.trace:
            raise ValueError("trace is needed; give --set trace=FILE")
        if self.gaps not in (EXPONENTIAL, RESAMPLED):
            raise ValueError(f"gaps must be {EXPONENTIAL} or {RESAMPLED}, got {self.gaps}")


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """What is drawn from: a job is (service_s, most, model), each (n,); gaps_s (n - 1,)."""

    name: str
    service_s: Floats
    most: np.ndarray[tuple[int], np.dtype[np.int64]]
    models: list[str]
    gaps_s: Floats


def parse_philly_elastic(settings: Mapping[str, Setting]) -> PhillyElasticConfig:
    """Read settings; the table of speedups that is not named is looked for under JOBCAST_DATA. Raises ConfigError."""
    config = parse_settings(PhillyElasticConfig, settings, "philly-elastic")
    return config if config.speedups else replace(config, speedups=data_file(SPEEDUPS_FILE))


def generate_philly_elastic(config: PhillyElasticConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw, and its one pool. Raises ConfigError and TraceError.

    Rows, gaps and models are drawn from streams of their own. A job that can use more GPUs than the cluster has is
    drawn nevertheless: it holds fewer.
    """
    of_row, of_gap, of_model = rng.spawn(3)
    source = _source(config, of_model)
    rows = of_row.integers(0, len(source.most), config.jobs)
    # a job of 0 s is none
    service_s = np.maximum(np.round(source.service_s[rows], 3), 0.001)
    gaps = _gaps(source.gaps_s, config, of_gap)
    submit_s = instants_at_load_s(gaps, service_s, config.gpus, config.load) if config.load else instants_s(gaps, 1.0)
    result = {"model": [source.models[row] for row in rows.tolist()]}
    frame = elastic_frame(source.name, config.start, submit_s, service_s, source.most[rows], result)
    return frame, [Pool(source.name, config.gpus)]


def philly_elastic_notes(config: PhillyElasticConfig) -> tuple[str, ...]:
    """Where a draw's jobs come from, and the work of those that are rigid there."""
    return f"jobs drawn from {config.trace}", f"work of rigid jobs by speedups: {config.speedups or 'linear'}"


def _source(config: PhillyElasticConfig, rng: np.random.Generator) -> Source:
    """Jobs to draw from. A rigid job's run time becomes work on one GPU by its model's speedup at its width."""
    # here, since readers are looked up by entry points, which most kinds never need
    from jobcast.traces.readers import read_trace

    trace = _of_pool(read_trace(config.trace), config.pool)
    models = _models(trace, config, rng)
    most, elastic = trace.gpus, trace.elastic
    service_s = trace.duration_s
    if not elastic.all():
        table = speedup_table(config.speedups, list(dict.fromkeys(models)), most)
        service_s = np.where(elastic, service_s, service_s * widths_speedups(models, most, table))
    name = trace.pools[0] if len(trace.pools) == 1 else trace.name
    return Source(name, service_s, most, models, np.diff(trace.submit_s))


def _of_pool(trace: Trace, pool: str) -> Trace:
    if not pool:
        return trace
    if pool not in trace.pools:
        raise ConfigError(f"philly-elastic: {trace.source.path} has no pool {pool!r}; it has {', '.join(trace.pools)}")
    return replace(trace, jobs=trace.jobs.filter(pl.col("pool") == pool))


def _models(trace: Trace, config: PhillyElasticConfig, rng: np.random.Generator) -> list[str]:
    """Models of the trace's jobs; those that it does not name are drawn evenly."""
    names = [name.strip() for name in config.models.split(",")] if config.models else list(SUBLINEAR)
    drawn = [names[at] for at in rng.integers(0, len(names), len(trace)).tolist()]
    if "model" not in trace.jobs.columns:
        return drawn
    return [known or other for known, other in zip(trace.jobs["model"].to_list(), drawn, strict=True)]


def _gaps(known_s: Floats, config: PhillyElasticConfig, rng: np.random.Generator) -> Floats:
    """(jobs - 1,) seconds between arrivals."""
    if not len(known_s) or not known_s.sum():
        raise ConfigError(f"philly-elastic: {config.trace} tells no gaps between arrivals; give a longer trace")
    if config.gaps == RESAMPLED:
        return known_s[rng.integers(0, len(known_s), config.jobs - 1)]
    return rng.exponential(float(known_s.mean()), config.jobs - 1)
