"""Users in a closed loop: launch a burst, look at it when it is done, think, launch the next.

When users are at work: sessions on local days, and the instant at which a plan can be carried out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import ConfigError
from jobcast.traces.generators.campus_config import (
    DAY_HOURS,
    DAY_S,
    HOUR_S,
    MINUTE_S,
    CampusConfig,
    Experiment,
    PoolPlan,
    draw_durations_s,
    draw_experiment,
    draw_gpus,
)
from jobcast.traces.generators.elastic import JobColumns

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
        zone_h = home_h if rng.random() < config.home_share else float(rng.choice(config.zones))
        user = user_name(f"{plan.name}-u{number:02d}", zone_h)
        bursts = list(user_bursts(user, plan, draw_sessions(zone_h, config, rng), config, rng))
        launched = sum(map(len, bursts))
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
    awaited_s = float(done_s[int(np.ceil(share * len(done_s))) - 1])
    launched_s = float(burst.submit_s[-1])
    return max(launched_s, min(awaited_s, launched_s + config.patience_h * HOUR_S))


def _stretch(bursts: list[JobColumns], jobs: int, rng: np.random.Generator) -> list[JobColumns]:
    """Consecutive bursts, at least one, that hold about `jobs` of the more jobs that there are.

    A user who joins late or leaves early launches such a stretch; the loop within it is whole.
    """
    upto = np.cumsum([len(burst) for burst in bursts])
    first = int(rng.integers(0, np.searchsorted(upto, upto[-1] - jobs, side="right") + 1))
    before = int(upto[first - 1]) if first else 0
    last = int(np.argmin(np.abs(upto - before - jobs)))
    return bursts[first : max(last, first) + 1]
