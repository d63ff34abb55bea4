"""What a campus trace shows of the parameters that made it: figures read off the jobs alone.

Bots are told by their names; bursts by what a user submits under one tag without a longer pause.

    python benchmarks/campus_measures.py [seed] [key=value ...]

prints those of a draw.
"""

import sys
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.clock import DAY_S, HOUR_S, MINUTE_S
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Pool
from jobcast.traces.generators import GENERATORS, generate
from jobcast.traces.generators.campus import EARLY_LOOK_SHARE, zone_of
from jobcast.traces.generators.campus_config import CampusConfig
from jobcast.traces.table import Trace

BURST_PAUSE_S = 60.0  # far over the gaps within a burst, and far under think times
WINDOW_S = 300.0  # shortest horizon of SIA, section 5.4.1
WEEKDAYS = 5
THURSDAY = 3  # weekday of the epoch


def job_frame(trace: Trace) -> pl.DataFrame:
    """Jobs with `submit_s`, `end_s` (epoch), `bot`, and the user's `local_hour` and `local_weekday` (Monday 0)."""
    local_s = trace.submit_s + np.array([zone_of(user) for user in trace.jobs["user"]]) * HOUR_S
    return trace.jobs.with_columns(
        submit_s=trace.submit_s,
        end_s=trace.submit_s + trace.duration_s,
        bot=pl.col("user").str.contains("-bot"),
        local_hour=local_s % DAY_S / HOUR_S,
        local_weekday=(local_s // DAY_S).astype(np.int64) % 7,
    ).with_columns(local_weekday=(pl.col("local_weekday") + THURSDAY) % 7)


def burst_frame(jobs: pl.DataFrame) -> pl.DataFrame:
    """Users' bursts in order of user and time.

    Columns: pool, user, tag, size, first_s, last_s, third_s (a third of the burst has ended), all_s (all of it
    has), next_s (the user's next burst), same_day (that is on the same local day).
    """
    own = jobs.filter(~pl.col("bot")).sort("user", "submit_s")
    pause = pl.col("submit_s").diff().over("user").fill_null(np.inf) > BURST_PAUSE_S
    new = pause | (pl.col("tag") != pl.col("tag").shift(1).over("user")).fill_null(True)
    third = (pl.len() * EARLY_LOOK_SHARE).ceil().cast(pl.Int64) - 1
    day = (pl.col("first_s") + pl.col("zone_s")) // DAY_S
    return (
        own.with_columns(burst=new.cum_sum())
        .group_by("burst", maintain_order=True)
        .agg(
            pl.col("pool", "user", "tag").first(),
            size=pl.len(),
            first_s=pl.col("submit_s").min(),
            last_s=pl.col("submit_s").max(),
            third_s=pl.col("end_s").sort().gather(third).first(),
            all_s=pl.col("end_s").max(),
        )
        .with_columns(zone_s=pl.col("user").map_elements(zone_of, return_dtype=pl.Float64) * HOUR_S)
        .with_columns(next_s=pl.col("first_s").shift(-1).over("user"), day=day)
        .with_columns(same_day=pl.col("day") == pl.col("day").shift(-1).over("user"))
        .drop("burst", "zone_s", "day")
    )


def think_times_s(bursts: pl.DataFrame) -> NDArray[np.float64]:
    """Seconds from a burst's completion (all of it, else its third) to the user's next burst on the same day."""
    seen = pl.when(pl.col("next_s") >= pl.col("all_s")).then("all_s").otherwise("third_s")
    think_s = bursts.filter("same_day").select(pl.col("next_s") - pl.max_horizontal(seen, "last_s")).to_series()
    return think_s.filter(think_s > 0).to_numpy()


def tag_correlation(jobs: pl.DataFrame) -> float:
    """Share of the variance of log run times between tags: one-way ANOVA's ICC, users' whole jobs, by pool."""
    whole = jobs.filter(~pl.col("bot") & (pl.col("state") == "completed"))
    logs = whole.select("tag", x=pl.col("duration").log() - pl.col("duration").log().mean().over("pool"))
    groups = logs.group_by("tag").agg(n=pl.len(), mean=pl.col("x").mean(), ss=pl.col("x").var(ddof=0) * pl.len())
    n, mean, ss = (groups[name].to_numpy().astype(float) for name in ("n", "mean", "ss"))
    total, count = n.sum(), len(n)
    within = ss.sum() / (total - count)
    between = (n * (mean - (n * mean).sum() / total) ** 2).sum() / (count - 1)
    size = (total - (n**2).sum() / total) / (count - 1)
    level = max(0.0, (between - within) / size)
    return float(level / (level + within))


def bot_gaps_s(jobs: pl.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Seconds between launches of each bot, by its name."""
    bots = jobs.filter("bot").group_by("user").agg(pl.col("submit_s").unique().sort().diff().drop_nulls())
    return {user: gaps.to_numpy() for user, gaps in sorted(zip(bots["user"], bots["submit_s"], strict=True))}


def base_rate(submit_s: NDArray[np.float64], from_s: float, until_s: float, window_s: float = WINDOW_S) -> float:
    """Share of instants, `WINDOW_S` apart, after which a job arrives within `window_s`.

    >>> base_rate(np.array([400.0]), 0.0, 900.0)
    0.5
    """
    ticks_s = np.arange(from_s, until_s - window_s, WINDOW_S)
    upto = np.searchsorted(submit_s, ticks_s + window_s, side="right")
    return float(np.mean(upto > np.searchsorted(submit_s, ticks_s, side="right")))


def closed_loop_lift(jobs: pl.DataFrame, pool: str, within_s: float = WINDOW_S) -> float:
    """P(a user's job arrives within `within_s` of a burst's end) / P(one arrives so soon after any instant)."""
    own = jobs.filter((pl.col("pool") == pool) & ~pl.col("bot")).sort("submit_s")
    submit_s = own["submit_s"].to_numpy()
    ends_s = np.sort(burst_frame(own)["all_s"].to_numpy())
    after = np.searchsorted(submit_s, ends_s + within_s, side="right") > np.searchsorted(submit_s, ends_s, "right")
    return float(after.mean() / base_rate(submit_s, float(submit_s[0]), float(submit_s[-1]), within_s))


def fcfs_waits_s(
    submit_s: NDArray[np.float64], duration_s: NDArray[np.float64], gpus: NDArray[np.int64], quota: int
) -> NDArray[np.float64]:
    """Seconds that each job waits where a pool starts its jobs in order, and each only when it fits the quota.

    >>> fcfs_waits_s(np.array([0.0, 1.0, 2.0]), np.array([10.0, 10.0, 10.0]), np.array([1, 2, 1]), 2)
    array([ 0.,  9., 18.])
    """
    running: list[tuple[float, int]] = []
    free, now_s, waits_s = quota, -np.inf, np.zeros(len(submit_s))
    for row, (arrived_s, run_s, width) in enumerate(zip(submit_s, duration_s, gpus.tolist(), strict=True)):
        now_s = max(now_s, float(arrived_s))
        while running and (running[0][0] <= now_s or free < width):
            end_s, released = heappop(running)
            now_s, free = max(now_s, end_s), free + released
        heappush(running, (now_s + float(run_s), width))
        free -= width
        waits_s[row] = now_s - arrived_s
    return waits_s


def loads(trace: Trace, pools: list[Pool], span_s: float) -> dict[str, float]:
    """GPU-time / (quota x length) of each pool."""
    names = trace.jobs["pool"].to_numpy()
    work_s = trace.gpu_time_s
    return {pool.name: float(work_s[names == pool.name].sum() / span_s / pool.quota) for pool in pools}


def figures(trace: Trace, pools: list[Pool], config: CampusConfig) -> Mapping[str, float]:
    """One number a parameter as seen in the trace, in the parameter's unit, and what follows from them."""
    jobs = job_frame(trace)
    own, bursts = jobs.filter(~pl.col("bot")), burst_frame(jobs)
    return {
        "jobs": len(trace),
        **_calendar(own, config),
        **_loop(own, bursts),
        **_work(jobs, own),
        **_bots(jobs),
    } | {f"load_{edge.__name__}": edge(loads(trace, pools, config.span_s).values()) for edge in (min, max)}


def _mean(values: pl.Series) -> float:
    return float(np.mean(values.to_numpy()))


def _calendar(own: pl.DataFrame, config: CampusConfig) -> dict[str, float]:
    weekday = own["local_weekday"] < WEEKDAYS
    hour = own.filter(weekday)["local_hour"]
    in_hours = hour.is_between(config.office_start_h, config.office_start_h + config.office_hours)
    return {
        "users": own["user"].n_unique(),
        "weekend_job_share": 1 - _mean(weekday),
        "office_hours_job_share": _mean(in_hours),
    }


def _loop(own: pl.DataFrame, bursts: pl.DataFrame) -> dict[str, float]:
    research = bursts.filter(pl.col("pool").str.starts_with("research"))
    think_s = think_times_s(bursts)
    gaps = own.sort("user", "submit_s")["submit_s"].diff().drop_nulls()
    own_loop = [closed_loop_lift(own, pool) for pool in own["pool"].unique().sort()]
    return {
        "burst_mean": _mean(research["size"]),
        "launch_gap_s": _mean(gaps.filter((gaps > 0) & (gaps <= BURST_PAUSE_S))),
        "bursts_per_tag": len(bursts) / bursts["tag"].n_unique(),
        "wait_all_share_at_least": _mean((bursts["next_s"] >= bursts["all_s"]).drop_nulls()),
        "think_median_min": float(np.median(think_s)) / MINUTE_S,
        "think_sigma": float(np.log(think_s).std()),
        "closed_loop_lift_median": float(np.median(own_loop)),
    }


def _work(jobs: pl.DataFrame, own: pl.DataFrame) -> dict[str, float]:
    whole = own.filter(pl.col("state") == "completed", pl.col("pool").str.starts_with("research"))
    logs = whole["duration"].log()
    common = jobs.with_columns(common=pl.col("gpus").mode().min().over("tag"))
    wide = jobs.filter(pl.col("gpus") > 2)["gpus"]
    return {
        "duration_median_min": float(np.median(whole["duration"].to_numpy())) / MINUTE_S,
        "duration_sigma": float(logs.to_numpy().std()),
        "tag_correlation": tag_correlation(jobs),
        "failure_share": _mean(jobs["state"] == "failed"),
        "widest": float(jobs["gpus"].to_numpy().max()),
        "off_tag_width_share": _mean(common["gpus"] != common["common"]),
        "odd_width_share": float((np.log2(wide.to_numpy()) % 1 != 0).mean()) if len(wide) else 0.0,
    }


def _bots(jobs: pl.DataFrame) -> dict[str, float]:
    gaps = [g for user, g in bot_gaps_s(jobs).items() if user.startswith("production") and len(g)]
    if not gaps:
        return {}
    shortest = min(gaps, key=lambda g: float(np.median(g)))
    with_bots = jobs.filter(pl.col("bot").any().over("pool"))
    return {
        "bot_share": _mean(with_bots["bot"]),
        "bot_period_min": float(np.median(shortest)) / MINUTE_S,
        "bot_skip_share": float(np.mean(shortest > 1.5 * np.median(shortest))),
    }


HEADING = "pool             jobs quota  load  lift waiting wait_h  base rate at 5, 60, 720 min"


def main(arguments: list[str]) -> None:
    """Measure one draw and print it."""
    settings = dict(word.split("=", 1) for word in arguments if "=" in word)
    seeds = [int(word) for word in arguments if "=" not in word]
    config = GENERATORS["campus"].parse(settings)
    trace, pools = generate("campus", seeds[0] if seeds else 0, settings)
    lines = [f"{name:26s} {value:10.3f}" for name, value in figures(trace, pools, config).items()]
    print("\n".join([*lines, "", HEADING, *pool_lines(trace, pools, config)]))


def pool_lines(trace: Trace, pools: list[Pool], config: CampusConfig) -> Iterator[str]:
    """One line a pool: load, closed loop, waits under strict first-come-first-served, base rates of arrivals."""
    jobs, load, from_s = job_frame(trace), loads(trace, pools, config.span_s), config.start.timestamp()
    for pool in pools:
        own = jobs.filter(pl.col("pool") == pool.name)
        submit_s, duration_s, gpus = (own[name].to_numpy() for name in ("submit_s", "duration", "gpus"))
        waits_s = fcfs_waits_s(submit_s, duration_s, gpus, pool.quota)
        rates = (base_rate(submit_s, from_s, from_s + config.span_s, MINUTE_S * k) for k in DEFAULT_HORIZONS_MIN)
        yield (
            f"{pool.name:14s} {len(own):6d} {pool.quota:5d} {load[pool.name]:5.2f}"
            f" {closed_loop_lift(jobs, pool.name):5.1f} {(waits_s > MINUTE_S).mean():7.2f}"
            f" {waits_s.mean() / HOUR_S:6.1f}  {' '.join(f'{rate:.3f}' for rate in rates)}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
