"""A campus: pools of different character, whose users work in a closed loop and whose bots run on timers.

Arrivals follow from the calendar, from completions and from timers, so that they can be forecast in part. A job's
completion is its submission + duration here: what queueing adds is the scheduler's doing, which no trace can know.

Bots: recurring jobs on a timer, every few minutes or every night.

Users in a closed loop: launch a burst, look at it when it is done, think, launch the next.

When users are at work: sessions on local days, and the instant at which a plan can be carried out.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.clock import DAY_S, HOUR_S, MINUTE_S
from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Pool
from jobcast.traces.generators.campus_config import (
    DAY_HOURS,
    CampusConfig,
    Experiment,
    PoolPlan,
    draw_durations_s,
    draw_experiment,
    draw_gpus,
    plan_pools,
)
from jobcast.traces.generators.elastic import JobColumns, canonical_frame, concat

WEEKDAYS = 5
WEEK_DAYS = 7


@dataclass(frozen=True, slots=True)
class Sessions:
    """Stretches of work, ascending and apart. begin_s, end_s : (n,) seconds since the start of the trace."""

    begin_s: NDArray[np.float64]
    end_s: NDArray[np.float64]

    def at_or_after(self, instant_s: float) -> tuple[float, bool] | None:
        """First instant at work from `instant_s` on, and whether it begins a session; None after the last session.

        >>> week = Sessions(np.array([10.0, 30.0]), np.array([20.0, 40.0]))
        >>> week.at_or_after(15.0), week.at_or_after(20.0), week.at_or_after(40.0)
        ((15.0, False), (30.0, True), None)
        """
        index = int(np.searchsorted(self.end_s, instant_s, side="right"))
        if index == len(self.end_s):
            return None
        begin_s = float(self.begin_s[index])
        return (instant_s, False) if begin_s <= instant_s else (begin_s, True)


def draw_sessions(zone_h: float, config: CampusConfig, rng: np.random.Generator) -> Sessions:
    """One user's sessions within the trace: at most one a local day."""
    days = np.arange(-1, config.weeks * WEEK_DAYS + 1)  # local days reach over the ends of UTC days
    weekday = days % WEEK_DAYS < WEEKDAYS  # the trace starts on a Monday
    works = rng.random(len(days)) < np.where(weekday, config.attendance, config.weekend_attendance)
    begin_h = config.office_start_h + config.office_jitter_h * rng.standard_normal(len(days))
    length_h = config.office_hours + config.office_jitter_h * rng.standard_normal(len(days))
    begin_s = days * DAY_S + (begin_h - zone_h) * HOUR_S
    end_s = begin_s + np.clip(length_h, 0, DAY_HOURS) * HOUR_S
    begin_s, end_s = begin_s[works], end_s[works]
    # a long day may reach into the next: sessions stay apart
    begin_s[1:] = np.maximum(begin_s[1:], end_s[:-1])
    begin_s, end_s = np.clip(begin_s, 0, config.span_s), np.clip(end_s, 0, config.span_s)
    return Sessions(begin_s[end_s > begin_s], end_s[end_s > begin_s])


MOST_IDLE_USERS = 1000  # after whom a pool is taken to be one where nobody ever launches
EARLY_LOOK_SHARE = 1 / 3  # of a burst is done when a user who does not wait for all of it looks


def users_jobs(
    plan: PoolPlan, jobs: int, home_h: float, config: CampusConfig, rng: np.random.Generator
) -> list[JobColumns]:
    """Jobs of as many users as it takes to launch `jobs` jobs; the last one stays for a part of the trace only."""
    made: list[JobColumns] = []
    missing = jobs
    for number in range(1, jobs + MOST_IDLE_USERS):
        if missing <= 0:
            return made
        # drawn before the name, which tells the zone
        zone_h = home_h if rng.random() < config.home_share else float(rng.choice(config.zones))
        user = user_name(f"{plan.name}-u{number:02d}", zone_h)
        bursts = list(user_bursts(user, plan, draw_sessions(zone_h, config, rng), config, rng))
        launched = sum(map(len, bursts))
        # the last user would overshoot the number of jobs
        made += bursts if launched <= missing else _stretch(bursts, missing, rng)
        missing -= launched
    raise ConfigError(f"campus: users of {plan.name} hardly launch; raise attendance or lower think_median_min")


def user_name(name: str, zone_h: float) -> str:
    """Name at a site.

    >>> user_name("debug-1-u02", -8.0)
    'debug-1-u02@utc-8'
    """
    return f"{name}@utc{zone_h:+g}"


def zone_of(user: str) -> float:
    """Hours ahead of UTC of a user's site.

    >>> zone_of("debug-1-u02@utc+5.5")
    5.5
    """
    return float(user.rpartition("@utc")[2])


def user_bursts(
    user: str, plan: PoolPlan, sessions: Sessions, config: CampusConfig, rng: np.random.Generator
) -> Iterator[JobColumns]:
    """One user's bursts in order of time, until the last session is over."""
    experiments = 0
    experiment: Experiment | None = None
    instant_s = next_launch_s(0.0, sessions, config, rng)
    while instant_s is not None:
        if experiment is None or rng.random() < 1 / config.bursts_per_tag:
            experiments += 1
            experiment = draw_experiment(f"{user}/e{experiments}", plan.character, plan.widest, config, rng)
        burst = _burst(user, instant_s, experiment, plan, config, rng)
        yield burst
        instant_s = next_launch_s(_looked_at_s(burst, config, rng), sessions, config, rng)


def next_launch_s(seen_s: float, sessions: Sessions, config: CampusConfig, rng: np.random.Generator) -> float | None:
    """When a user who could look at results at `seen_s` launches the next burst; None if never within the trace.

    Results are looked at when they are there, or when the next session begins; the launch follows a think time
    later, or a think time into the session after, if this one is over by then.
    """
    present = sessions.at_or_after(seen_s)
    while present is not None:
        think_s = config.think_median_min * MINUTE_S * float(np.exp(config.think_sigma * rng.standard_normal()))
        thought_s = present[0] + think_s
        present = sessions.at_or_after(thought_s)
        if present is not None and not present[1]:
            return thought_s
    return None


def _burst(
    user: str,
    instant_s: float,
    experiment: Experiment,
    plan: PoolPlan,
    config: CampusConfig,
    rng: np.random.Generator,
) -> JobColumns:
    # geometric of mean burst_mean
    count = int(rng.geometric(1 / max(1.0, config.burst_mean * plan.character.burst_factor)))
    gaps_s = rng.exponential(config.launch_gap_s, count)
    gaps_s[0] = 0
    submit_s = instant_s + np.cumsum(gaps_s)
    submit_s = submit_s[submit_s < config.span_s]  # the trace ends, even within a burst
    count = len(submit_s)
    duration_s, failed = draw_durations_s(count, experiment, config, rng)
    return JobColumns(
        submit_s=submit_s,
        duration_s=duration_s,
        gpus=draw_gpus(count, experiment, plan.character, plan.widest, config, rng),
        failed=failed,
        pool=np.full(count, plan.name),
        user=np.full(count, user),
        tag=np.full(count, experiment.tag),
    )


def _looked_at_s(burst: JobColumns, config: CampusConfig, rng: np.random.Generator) -> float:
    """When a user's results are there: all of the burst's, or its first third's, or patience is at an end."""
    done_s = np.sort(burst.submit_s + burst.duration_s)
    share = 1.0 if rng.random() < config.wait_all_share else EARLY_LOOK_SHARE
    # of a third of one job there is still that one to wait for
    awaited_s = float(done_s[int(np.ceil(share * len(done_s))) - 1])
    launched_s = float(burst.submit_s[-1])
    return max(launched_s, min(awaited_s, launched_s + config.patience_h * HOUR_S))


def _stretch(bursts: list[JobColumns], jobs: int, rng: np.random.Generator) -> list[JobColumns]:
    """Consecutive bursts, at least one, that hold about `jobs` of the more jobs that there are.

    A user who joins late or leaves early launches such a stretch; the loop within it is whole.
    """
    upto = np.cumsum([len(burst) for burst in bursts])
    # only starts from which enough jobs are left
    first = int(rng.integers(0, np.searchsorted(upto, upto[-1] - jobs, side="right") + 1))
    before = int(upto[first - 1]) if first else 0
    last = int(np.argmin(np.abs(upto - before - jobs)))
    return bursts[first : max(last, first) + 1]


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
    # daily bots launch several jobs a tick, others one
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
    # local time of the site, brought to UTC modulo a day
    local_h = FIRST_NIGHT_H + rng.uniform(0, NIGHT_HOURS)
    return float((local_h - home_h) % DAY_HOURS * HOUR_S)


def _ticks_s(first_s: float, period_s: float, config: CampusConfig, rng: np.random.Generator) -> NDArray[np.float64]:
    """Launches of a timer within the trace: some ticks are skipped, each is a little late."""
    ticks_s = np.arange(first_s, config.span_s, period_s)
    # all ticks are drawn, then skipped: skipping shifts nothing
    kept = rng.random(len(ticks_s)) >= config.bot_skip_share
    late_s = rng.exponential(config.bot_jitter_s, len(ticks_s))
    launched_s = (ticks_s + late_s)[kept]
    return launched_s[launched_s < config.span_s]


def generate_campus(config: CampusConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw with users, tags and states, and its pools, names ascending."""
    plans = sorted(plan_pools(config), key=lambda plan: plan.name)
    made, pools = [], []
    # a stream a pool: a pool's jobs do not hang on the pools beside it
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
    # rounding up may leave the range of loads for small pools
    fitting = most if most >= mean_gpus / config.load_high else math.ceil(mean_gpus / config.load_high)
    return max(int(jobs.gpus.max()), min(math.ceil(mean_gpus / load), fitting))


def _pool_jobs(plan: PoolPlan, config: CampusConfig, rng: np.random.Generator) -> JobColumns:
    home_h = float(rng.choice(config.zones))
    bots = bots_jobs(plan, home_h, config, rng)
    missing = plan.jobs - sum(map(len, bots))
    users = users_jobs(plan, missing, home_h, config, rng)
    return concat([*bots, *users])
