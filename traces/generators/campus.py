"""A campus: pools of different character, whose users work in a closed loop and whose bots run on timers.

Arrivals follow from the calendar, from completions and from timers, so that they can be forecast in part. A job's
completion is its submission + duration here: what queueing adds is the scheduler's doing, which no trace can know.

Bots: recurring jobs on a timer, every few minutes or every night.
"""

import math
from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.jobs import Pool
from jobcast.traces.generators.campus_config import (
    DAY_HOURS,
    DAY_S,
    HOUR_S,
    MINUTE_S,
    CampusConfig,
    Experiment,
    PoolPlan,
    draw_durations_s,
    draw_gpus,
    plan_pools,
)
from jobcast.traces.generators.campus_users import user_name, users_jobs
from jobcast.traces.generators.elastic import JobColumns, canonical_frame, concat
from jobcast.traces.generators.settings import Setting, parse_settings

FIRST_NIGHT_H, NIGHT_HOURS = 20.0, 8.0  # nightly timers are set to local hours from 20:00 to 4:00


def bots_jobs(plan: PoolPlan, home_h: float, config: CampusConfig, rng: np.random.Generator) -> list[JobColumns]:
    """Jobs of the pool's bots, together at most about `bot_share` of the pool's jobs; may be none."""
    bots = plan.character.bots
    if not bots:
        return []
    budget = config.bot_share * plan.jobs / bots
    made = [_bot_jobs(number, budget, plan, home_h, config, rng) for number in range(1, bots + 1)]
    return [jobs for jobs in made if jobs is not None and len(jobs)]


def timer(budget: float, base_s: float, most: int, config: CampusConfig) -> tuple[float, int] | None:
    """Period in seconds and jobs a tick with which a bot launches at most `budget` jobs; None if it cannot.

    As many jobs as fit are launched every `base_s` seconds, up to `most`; where not even one fits, the period is
    the least multiple of `base_s` at which one does.

    >>> week = CampusConfig(weeks=1, bot_skip_share=0.0)
    >>> timer(100, 86400.0, 20, week), timer(21, 86400.0, 2, week)
    ((86400.0, 14), (86400.0, 2))
    >>> timer(336, 600.0, 1, week), timer(0.5, 600.0, 1, week)
    ((1800.0, 1), None)
    """
    ticks = (1 - config.bot_skip_share) * config.span_s / base_s
    if budget < 1:
        return None
    return base_s * max(1, int(np.ceil(ticks / budget))), int(np.clip(budget // ticks, 1, most))


def _bot_jobs(
    number: int, budget: float, plan: PoolPlan, home_h: float, config: CampusConfig, rng: np.random.Generator
) -> JobColumns | None:
    daily = plan.character.bot_daily
    setting = timer(budget, DAY_S if daily else config.bot_period_min * MINUTE_S, plan.character.bot_burst, config)
    if setting is None:
        return None
    period_s, burst = setting
    first_s = _night_s(home_h, rng) if daily else float(rng.uniform(0, period_s))
    return _launched(number, np.repeat(_ticks_s(first_s, period_s, config, rng), burst), plan, home_h, config, rng)


def _launched(
    number: int, submit_s: NDArray[np.float64], plan: PoolPlan, home_h: float, config: CampusConfig,
    rng: np.random.Generator,
) -> JobColumns:  # fmt: skip
    """Jobs of one bot, all of one tag, at given instants."""
    character, count = plan.character, len(submit_s)
    user = user_name(f"{plan.name}-bot{number}", home_h)
    gpus = int(min(rng.choice(character.widths, p=character.width_shares), plan.widest))
    median_s = config.duration_median_min * character.bot_duration_factor * MINUTE_S
    routine = Experiment(f"{user}/routine", median_s, gpus)
    duration_s, failed = draw_durations_s(count, routine, config, rng)
    return JobColumns(
        submit_s=submit_s,
        duration_s=duration_s,
        gpus=draw_gpus(count, routine, character, plan.widest, config, rng),
        failed=failed,
        pool=np.full(count, plan.name),
        user=np.full(count, user),
        tag=np.full(count, routine.tag),
    )


def _night_s(home_h: float, rng: np.random.Generator) -> float:
    """A nightly timer's first tick, seconds since the start of the trace."""
    local_h = FIRST_NIGHT_H + rng.uniform(0, NIGHT_HOURS)
    return float((local_h - home_h) % DAY_HOURS * HOUR_S)


def _ticks_s(first_s: float, period_s: float, config: CampusConfig, rng: np.random.Generator) -> NDArray[np.float64]:
    """Launches of a timer within the trace: some ticks are skipped, each is a little late."""
    ticks_s = np.arange(first_s, config.span_s, period_s)
    kept = rng.random(len(ticks_s)) >= config.bot_skip_share
    late_s = rng.exponential(config.bot_jitter_s, len(ticks_s))
    launched_s = (ticks_s + late_s)[kept]
    return launched_s[launched_s < config.span_s]


def parse_campus(settings: Mapping[str, Setting]) -> CampusConfig:
    """Read settings. Raises ConfigError."""
    return parse_settings(CampusConfig, settings, "campus")


def generate_campus(config: CampusConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw with users, tags and states, and its pools, names ascending."""
    plans = sorted(plan_pools(config), key=lambda plan: plan.name)
    made, pools = [], []
    for plan, own in zip(plans, rng.spawn(len(plans)), strict=True):
        jobs = _pool_jobs(plan, config, own)
        made.append(jobs)
        load = float(own.uniform(config.load_low, config.load_high))
        pools.append(Pool(plan.name, quota_for(jobs, load, config)))
    return canonical_frame(concat(made), config.start), pools


def quota_for(jobs: JobColumns, load: float, config: CampusConfig) -> int:
    """GPUs of which the jobs fill the share `load` over the trace, rounded up unless that leaves the loads' range.

    No less than the widest job needs, even where that makes the load lower.
    """
    mean_gpus = float(jobs.gpus @ jobs.duration_s) / config.span_s
    most = math.floor(mean_gpus / config.load_low)
    fitting = most if most >= mean_gpus / config.load_high else math.ceil(mean_gpus / config.load_high)
    return max(int(jobs.gpus.max()), min(math.ceil(mean_gpus / load), fitting))


def _pool_jobs(plan: PoolPlan, config: CampusConfig, rng: np.random.Generator) -> JobColumns:
    home_h = float(rng.choice(config.zones))
    bots = bots_jobs(plan, home_h, config, rng)
    missing = plan.jobs - sum(map(len, bots))
    users = users_jobs(plan, missing, home_h, config, rng)
    return concat([*bots, *users])
