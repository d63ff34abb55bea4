"""Parameters of the campus workload."""

from dataclasses import dataclass
from datetime import UTC, datetime

from jobcast.traces.generators.settings import check_ranges, setting

DAY_S = 86400.0
WEEK_S = 7 * DAY_S
HOUR_S = 3600.0
MINUTE_S = 60.0
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
        if self.load_low > self.load_high:
            raise ValueError(f"load_low must not exceed load_high, got {self.load_low:g} > {self.load_high:g}")
        if self.start.weekday() != 0 or self.start.timestamp() % DAY_S:
            raise ValueError(f"start must be midnight UTC of a Monday, got {self.start.isoformat()}")
        if self.jobs < self.pools:
            raise ValueError(f"jobs must be at least one a pool, got {self.jobs} for {self.pools} pools")

    @property
    def span_s(self) -> float:
        """Length of the trace in seconds."""
        return self.weeks * WEEK_S
