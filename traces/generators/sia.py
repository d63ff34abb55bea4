"""The synthetic workload of SIA (appendices A.1 and C): bursts of bimodal jobs, drawn to a load per queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.clock import DAY_S, MINUTE_S
from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.traces.generators.elastic import plain_frame
from jobcast.traces.generators.settings import (
    FIRST_INSTANT,
    Setting,
    check_ascending,
    check_ranges,
    check_widths,
    parse_settings,
    setting,
)

SHORTEST_MIN = 10**0.5  # SIA, appendix A.1

VARIANTS: dict[str, dict[str, Setting]] = {
    "base": {},
    "higher_load": {"load_factor": 1.05},
    "lower_load": {"load_factor": 0.75},
    "more_queues": {"queues": 8},
    "less_queues": {"queues": 2},
    "more_skewed": {"short_share": 0.9, "long_high_min": 2000.0},
    "less_skewed": {"short_share": 1.0, "short_high_min": 300.0},
    "more_wide": {"width_shares": "0.25,0.25,0.25,0.25"},
    "fewer_wide": {"width_shares": "0.9,0.033,0.05,0.017"},
}
"""What each workload of SIA, appendix C, changes in the base workload."""


@dataclass(frozen=True, slots=True)
class SiaConfig:
    """Parameters of the workload; the defaults are the base workload of SIA, section 4.1 and appendix A.1."""

    variant: str = setting("base", f"whose values stand where nothing is set: {', '.join(VARIANTS)}")
    start: datetime = setting(FIRST_INSTANT, "first instant of the trace")  # noqa: RUF009
    days: float = setting(3.0, "length in days", 0.01, 3650)
    queues: int = setting(4, "number of queues", 1, 1000)
    queue_gpus: int = setting(8, "GPUs of each queue", 1, 100_000)
    load_low: float = setting(0.6, "lowest load of a queue: work / (quota x length)", 0.001, 10)
    load_high: float = setting(0.95, "highest load of a queue; drawn uniformly per queue", 0.001, 10)
    load_factor: float = setting(1.0, "multiplies each queue's drawn load", 0.001, 100)
    short_share: float = setting(0.8, "share of jobs of the short mode", 0, 1)
    short_low_min: float = setting(SHORTEST_MIN, "short mode from, minutes", 1e-4, 1e6)
    short_high_min: float = setting(100.0, "short mode until, minutes", 1e-4, 1e6)
    long_low_min: float = setting(100.0, "long mode from, minutes", 1e-4, 1e6)
    long_high_min: float = setting(1000.0, "long mode until, minutes", 1e-4, 1e6)
    widths: tuple[int, ...] = setting((1, 2, 4, 8), "gang widths, GPUs", 1, 100_000)
    width_shares: tuple[float, ...] = setting((0.7, 0.1, 0.15, 0.05), "share of each width; adds up to 1", 0, 1)

    def __post_init__(self) -> None:
        check_ranges(self)
        modes = ("short_low_min", "short_high_min"), ("long_low_min", "long_high_min")
        check_ascending(self, ("load_low", "load_high"), *modes)
        check_widths(self, "queue_gpus")


def parse_sia(settings: Mapping[str, Setting]) -> SiaConfig:
    """Read settings: the variant's values first, then what is set by name. Raises ConfigError."""
    variant = str(settings.get("variant", "base"))
    if variant not in VARIANTS:
        raise ConfigError(f"sia: there is no variant {variant!r}; known variants are {', '.join(VARIANTS)}")
    return parse_settings(SiaConfig, {**VARIANTS[variant], **settings}, "sia")


def generate_sia(config: SiaConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw, and its queues as pools. SIA, appendices A.1 and C.

    A burst's total width is a uniform whole number in [1, queue size]; the burst stops once its jobs reach it, so
    that it may overshoot and widths keep their shares. Bursts are drawn until the queue's work reaches
    load x quota x length; their instants are those of a Poisson process, given that many bursts.
    """
    pools = [Pool(f"q{index:0{len(str(config.queues - 1))}d}", config.queue_gpus) for index in range(config.queues)]
    # one after another from one stream: the order of draws is part of the workload
    queues = [_queue(pool, config, rng) for pool in pools]
    names, submit_s, duration_s, gpus = (np.concatenate(parts) for parts in zip(*queues, strict=True))
    return plain_frame(names, config.start, submit_s, duration_s, gpus), pools


def _queue(pool: Pool, config: SiaConfig, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
    """Of one queue's jobs, (n_jobs,) each: pool, submission, duration, width."""
    horizon_s = config.days * DAY_S
    load = rng.uniform(config.load_low, config.load_high) * config.load_factor
    widths, durations_s = _bursts(load * pool.quota * horizon_s, config, rng)
    # given their number, instants of a Poisson process are uniform
    instants_s = np.sort(rng.uniform(0, horizon_s, len(widths)))
    submit_s = np.repeat(instants_s, [len(burst) for burst in widths])
    return np.full(len(submit_s), pool.name), submit_s, np.concatenate(durations_s), np.concatenate(widths)


def _bursts(
    work_s: float, config: SiaConfig, rng: np.random.Generator
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]:
    """Widths and durations of bursts whose GPU-seconds reach `work_s`."""
    widths, durations_s, done_s = [], [], 0.0
    while done_s < work_s:
        widths.append(burst_widths(int(rng.integers(1, config.queue_gpus, endpoint=True)), config, rng))
        durations_s.append(_durations_s(len(widths[-1]), config, rng))
        done_s += float(widths[-1] @ durations_s[-1])
    return widths, durations_s


def burst_widths(target: int, config: SiaConfig, rng: np.random.Generator) -> NDArray[np.int64]:
    """Widths of one burst, shape (n_jobs,): drawn until they add up to at least `target` GPUs.

    >>> burst_widths(3, SiaConfig(widths=(2,), width_shares=(1.0,)), np.random.default_rng(0))
    array([2, 2])
    """
    # `target` draws are always enough, each is at least one GPU
    drawn = rng.choice(np.asarray(config.widths, dtype=np.int64), size=target, p=config.width_shares)
    return drawn[: int(np.searchsorted(np.cumsum(drawn), target)) + 1]


def _durations_s(count: int, config: SiaConfig, rng: np.random.Generator) -> NDArray[np.float64]:
    short = rng.random(count) < config.short_share
    low = np.where(short, config.short_low_min, config.long_low_min)
    high = np.where(short, config.short_high_min, config.long_high_min)
    return rng.uniform(low, high) * MINUTE_S
