"""What kinds of pools a campus has, and how big each is."""

import math
from dataclasses import dataclass

import numpy as np

from jobcast.traces.generators.campus_config import HOUR_S, MINUTE_S, CampusConfig


@dataclass(frozen=True, slots=True)
class Character:
    """What sets a pool's work apart; factors multiply the parameters of the same name.

    Attributes
    ----------
    name : pools are called by it and a number
    weight : jobs relative to other characters
    burst_factor, duration_factor : on mean burst and median run time
    widths, width_shares : gang widths of tags
    bots : number of bots; 0 = all jobs are users' own
    bot_daily : bots run once a night instead of every `bot_period_min`
    bot_burst : most jobs that a bot launches at a tick
    bot_duration_factor : on the median run time of bots' jobs
    """

    name: str
    weight: float
    burst_factor: float
    duration_factor: float
    widths: tuple[int, ...]
    width_shares: tuple[float, ...]
    bots: int = 0
    bot_daily: bool = False
    bot_burst: int = 1
    bot_duration_factor: float = 1.0


CHARACTERS: tuple[Character, ...] = (
    Character("research", 1.0, 1.0, 1.0, (1, 2, 4, 8), (0.55, 0.2, 0.15, 0.1)),
    Character("production", 1.7, 0.5, 0.8, (1, 2, 4), (0.4, 0.4, 0.2), bots=1),
    Character("wide", 0.5, 0.25, 3.2, (8, 16, 32, 64), (0.45, 0.3, 0.17, 0.08)),
    Character("debug", 1.0, 0.33, 0.5, (1, 2, 4), (0.6, 0.3, 0.1)),
    Character(
        "nightly", 0.7, 0.5, 1.6, (1, 2, 4), (0.5, 0.3, 0.2),
        bots=3, bot_daily=True, bot_burst=20, bot_duration_factor=1.8,
    ),
    Character("sweep", 1.3, 2.0, 1.6, (1, 2, 4), (0.7, 0.2, 0.1)),
)  # fmt: skip
"""In the order in which pools take them; with more pools than characters they start anew, `pool_ratio` as big."""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """One pool before its jobs are drawn: how many they should be, and the widest that one may be."""

    name: str
    character: Character
    jobs: int
    widest: int


def plan_pools(config: CampusConfig) -> list[PoolPlan]:
    """Pools with their numbers of jobs, at least one each, which add up to `config.jobs`."""
    characters = [CHARACTERS[index % len(CHARACTERS)] for index in range(config.pools)]
    rounds = [index // len(CHARACTERS) for index in range(config.pools)]
    weights = np.array([c.weight * config.pool_ratio**r for c, r in zip(characters, rounds, strict=True)])
    upto = np.round(np.cumsum(weights) / weights.sum() * (config.jobs - config.pools)).astype(int)
    jobs = (1 + np.diff(upto, prepend=0)).tolist()
    return [
        PoolPlan(f"{character.name}-{number + 1}", character, count, widest_job(character, count, config))
        for character, number, count in zip(characters, rounds, jobs, strict=True)
    ]


def widest_job(character: Character, jobs: int, config: CampusConfig) -> int:
    """Widest job of a pool, GPUs: the greatest power of two within its share of the expected quota, or 1."""
    load = (config.load_low + config.load_high) / 2
    jobs_at_once = jobs * mean_duration_s(character, config) / config.span_s / load
    widest = 1 << (config.widest.bit_length() - 1)
    while widest > 1:
        mean_gpus = float(np.minimum(character.widths, widest) @ np.asarray(character.width_shares))
        if widest <= config.widest_quota_share * jobs_at_once * mean_gpus:
            break
        widest //= 2
    return widest


def mean_duration_s(character: Character, config: CampusConfig) -> float:
    """Expected run time of a user's job: lognormal up to `longest_h`, or a crash."""
    median_s = config.duration_median_min * character.duration_factor * MINUTE_S
    whole_s = mean_capped_lognormal(median_s, config.duration_sigma, config.longest_h * HOUR_S)
    return (1 - config.failure_share) * whole_s + config.failure_share * config.crash_longest_s / 2


def mean_capped_lognormal(median: float, sigma: float, cap: float) -> float:
    """E[min(X, cap)] where log X is normal around log(median) with standard deviation sigma.

    >>> round(mean_capped_lognormal(1.0, 1.0, 1e9), 4) == round(math.exp(0.5), 4)
    True
    >>> round(mean_capped_lognormal(1.0, 1.0, 1e-3), 4)
    0.001
    """
    above = (math.log(cap / median)) / sigma
    return median * math.exp(sigma**2 / 2) * _normal_cdf(above - sigma) + cap * (1 - _normal_cdf(above))


def _normal_cdf(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2
