"""A campus: pools of different character, whose users work in a closed loop and whose bots run on timers.

Arrivals follow from the calendar, from completions and from timers, so that they can be forecast in part. A job's
completion is its submission + duration here: what queueing adds is the scheduler's doing, which no trace can know.
"""

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from jobcast.domain.jobs import Pool
from jobcast.traces.generators.campus_bots import bots_jobs
from jobcast.traces.generators.campus_characters import PoolPlan, plan_pools
from jobcast.traces.generators.campus_config import CampusConfig
from jobcast.traces.generators.campus_users import users_jobs
from jobcast.traces.generators.job_columns import JobColumns, canonical_frame, concat
from jobcast.traces.generators.settings import Setting, parse_settings


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
