"""Parameters of the campus workload.

What kinds of pools a campus has, and how big each is.

What jobs of a campus are like: run times that resemble each other within a tag, crashes, widths.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.clock import DAY_S, HOUR_S, MINUTE_S, WEEK_S
from jobcast.traces.generators.settings import check_ascending, check_ranges, setting

DAY_HOURS = 24.0
FIRST_MONDAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CampusConfig:
    """Parameters of the campus workload; `docs/generators.md` tells how each is seen in the trace."""

    weeks: int = setting(8, "length in weeks, from a Monday on", 1, 520)
    pools: int = setting(12, "number of pools; characters take turns", 1, 600)
    jobs: int = setting(60_000, "number of jobs, met within a few per cent", 1, 10_000_000)
    start: datetime = setting(FIRST_MONDAY, "first instant: midnight UTC of a Monday")  # noqa: RUF009
    pool_ratio: float = setting(0.6, "jobs of a pool relative to the previous pool of its character", 0.01, 1)

    zones: tuple[float, ...] = setting((-8.0, 1.0, 8.0), "sites: hours ahead of UTC, no daylight saving", -12, 14)
    home_share: float = setting(0.9, "share of a pool's users at the pool's home site", 0, 1)
    office_start_h: float = setting(9.0, "local hour at which sessions begin", 0, 23)
    office_hours: float = setting(9.0, "length of a session, hours", 0.5, 24)
    office_jitter_h: float = setting(0.75, "standard deviation of a session's begin and length, hours", 0, 3)
    attendance: float = setting(0.85, "probability that a user works on a weekday", 0.01, 1)
    weekend_attendance: float = setting(0.06, "probability that a user works on a day of the weekend", 0, 1)

    burst_mean: float = setting(6.0, "mean jobs of a burst (geometric), times the character's factor", 1, 1000)
    launch_gap_s: float = setting(4.0, "mean gap between jobs of a burst (exponential), seconds", 0, 60)
    bursts_per_tag: float = setting(3.0, "mean bursts of one experiment, which share a tag (geometric)", 1, 1000)
    wait_all_share: float = setting(0.6, "share of bursts of which all jobs are awaited; else a third", 0, 1)
    think_median_min: float = setting(20.0, "median think time, completion to next burst, minutes", 0.1, 10_000)
    think_sigma: float = setting(1.0, "standard deviation of the log of think times", 0, 4)
    patience_h: float = setting(16.0, "longest wait for a burst until the user goes on, hours", 0.1, 10_000)

    duration_median_min: float = setting(45.0, "median run time, minutes, times the character's factor", 0.1, 100_000)
    duration_sigma: float = setting(1.3, "standard deviation of the log of run times", 0.01, 4)
    tag_correlation: float = setting(0.6, "share of the variance of log run times that lies between tags", 0, 1)
    longest_h: float = setting(24.0, "longest run time, hours", 0.1, 10_000)
    failure_share: float = setting(0.1, "share of jobs that crash early", 0, 1)
    crash_longest_s: float = setting(120.0, "crashes happen uniformly within so many seconds", 1, 86_400)

    widest: int = setting(64, "widest job of all, GPUs", 1, 4096)
    widest_quota_share: float = setting(0.3, "widest job of a pool, share of its expected quota", 0.01, 1)
    width_change_share: float = setting(0.1, "share of jobs that depart from their tag's width", 0, 1)
    odd_width_share: float = setting(0.02, "share of jobs of 4 GPUs or more that take three quarters", 0, 1)

    bot_share: float = setting(0.75, "share of the jobs that bots launch in pools with bots, at most", 0, 1)
    bot_period_min: float = setting(10.0, "period of a timer, minutes; small pools take multiples", 0.5, 1440)
    bot_jitter_s: float = setting(5.0, "mean delay of a timer (exponential), seconds", 0, 600)
    bot_skip_share: float = setting(0.1, "share of a timer's ticks without a launch", 0, 0.99)

    load_low: float = setting(0.6, "lowest load of a pool: GPU-time / (quota x length)", 0.01, 10)
    load_high: float = setting(0.85, "highest load of a pool; drawn uniformly per pool", 0.01, 10)

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.zones:
            raise ValueError("zones must name at least one site")
        check_ascending(self, ("load_low", "load_high"))
        if self.start.weekday() != 0 or self.start.timestamp() % DAY_S:
            raise ValueError(f"start must be midnight UTC of a Monday, got {self.start.isoformat()}")
        if self.jobs < self.pools:
            raise ValueError(f"jobs must be at least one a pool, got {self.jobs} for {self.pools} pools")

    @property
    def span_s(self) -> float:
        """Length of the trace in seconds."""
        return self.weeks * WEEK_S


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


SHORTEST_S = 5.0  # neither a crash nor a run is over sooner: a container has to start
ODD_FROM_GPUS = 4


@dataclass(frozen=True, slots=True)
class Experiment:
    """What jobs of one tag share: median run time in seconds, and gang width."""

    tag: str
    median_s: float
    gpus: int


def draw_experiment(
    tag: str, character: Character, widest: int, config: CampusConfig, rng: np.random.Generator
) -> Experiment:
    """One user's experiment: its level of run times is lognormal around the pool's."""
    median_s = config.duration_median_min * character.duration_factor * MINUTE_S
    level = config.duration_sigma * np.sqrt(config.tag_correlation) * rng.standard_normal()
    return Experiment(tag, float(median_s * np.exp(level)), int(_widths(1, character, widest, rng)[0]))


def draw_durations_s(
    count: int, experiment: Experiment, config: CampusConfig, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Run times in seconds, and which of them are crashes, each of shape (count,)."""
    sigma = config.duration_sigma * np.sqrt(1 - config.tag_correlation)
    whole_s = experiment.median_s * np.exp(sigma * rng.standard_normal(count))
    whole_s = np.clip(whole_s, SHORTEST_S, config.longest_h * HOUR_S)
    crash_s = rng.uniform(min(SHORTEST_S, config.crash_longest_s), config.crash_longest_s, count)
    failed = rng.random(count) < config.failure_share
    return np.where(failed, crash_s, whole_s), failed


def draw_gpus(
    count: int,
    experiment: Experiment,
    character: Character,
    widest: int,
    config: CampusConfig,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Gang widths, shape (count,): the experiment's, but for the few jobs that depart from it."""
    changed = rng.random(count) < config.width_change_share
    gpus = np.where(changed, _widths(count, character, widest, rng), experiment.gpus)
    odd = (rng.random(count) < config.odd_width_share) & (gpus >= ODD_FROM_GPUS)
    return np.where(odd, gpus * 3 // 4, gpus).astype(np.int64)


def _widths(count: int, character: Character, widest: int, rng: np.random.Generator) -> NDArray[np.int64]:
    within = np.minimum(np.asarray(character.widths, dtype=np.int64), widest)
    return rng.choice(within, size=count, p=character.width_shares)
