"""AutoML apps of many trials: PCS's workload 1, which it takes from Themis (PCS, section 5.1 and Table 1).

The paper tells that an app has 1 to 20 trials, that a trial takes one GPU, and that service is at most 2 GPU-hours;
it leaves the distributions open, and whether the limit is an app's or a trial's. Here it is the app's. The number of
trials is log-uniform, the service of an app log-uniform between `shortest_min` a trial and the limit, arrivals are a
Poisson process. Trials of an app take equally long, so that it is a job that speeds up linearly to its trials.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.jobs import Pool
from jobcast.traces.generators.elastic import HOUR_S, elastic_frame, instants_at_load_s
from jobcast.traces.generators.settings import Setting, check_ranges, parse_settings, setting
from jobcast.traces.speedups import LINEAR
from jobcast.traces.stages import STAGES, Stage, stages_text

FIRST_INSTANT = datetime(2024, 1, 1, tzinfo=UTC)
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
    halving: bool = setting(False, "successive halving: half of the trials stop at each rung")
    rungs: int = setting(3, "most stages of an app under halving; it ends with one trial at the latest", 1, 30)

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.trials * self.shortest_min > self.service_h * MINUTES_AN_HOUR:
            raise ValueError(
                f"{self.trials} trials of shortest_min {self.shortest_min:g} take longer than service_h "
                f"{self.service_h:g}; lower one of them"
            )


def parse_automl(settings: Mapping[str, Setting]) -> AutomlConfig:
    """Read settings. Raises ConfigError."""
    return parse_settings(AutomlConfig, settings, "automl")


def generate_automl(config: AutomlConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw, with `stages` under halving, and its one pool.

    Trials, services and arrivals are drawn from streams of their own: halving, say, leaves the rest as it was.
    """
    of_trials, of_service, of_arrival = rng.spawn(3)
    trials = _log_uniform_counts(config.apps, config.trials, of_trials)
    low, high = trials * config.shortest_min * MINUTES_AN_HOUR, config.service_h * HOUR_S
    service_s = np.round(low * (high / low) ** of_service.random(config.apps), 3)
    submit_s = instants_at_load_s(of_arrival.exponential(size=config.apps - 1), service_s, config.gpus, config.load)
    told: dict[str, list[str]] = {"model": [LINEAR] * config.apps}
    if config.halving:
        told[STAGES] = [stages_text(halved(count, config.rungs)) for count in trials.tolist()]
    return elastic_frame(POOL, config.start, submit_s, service_s, trials, told), [Pool(POOL, config.gpus)]


def halved(trials: int, rungs: int) -> tuple[Stage, ...]:
    """Stages of successive halving: rung k trains trials // 2^k of them up to 2^k times as long as rung 0.

    >>> halved(16, 3), halved(1, 3)
    (((0.5, 16), (0.25, 8), (0.25, 4)), ((1.0, 1),))
    """
    alive = [trials // HALF**rung for rung in range(min(rungs, int(math.log2(trials)) + 1))]
    longer = [1, *(HALF ** (rung - 1) for rung in range(1, len(alive)))]
    work = [count * more for count, more in zip(alive, longer, strict=True)]
    return tuple((one / sum(work), count) for one, count in zip(work, alive, strict=True))


def automl_notes(config: AutomlConfig) -> tuple[str, ...]:
    """What the workload's source leaves open."""
    return ("numbers of trials and services are log-uniform: PCS tells their limits only",)


def _log_uniform_counts(count: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(count,) whole numbers 1 .. most, the floor of log-uniform ones: each k has weight log((k + 1) / k)."""
    drawn = np.floor(np.exp(rng.random(count) * math.log(most + 1))).astype(np.int64)
    return np.clip(drawn, 1, most)
