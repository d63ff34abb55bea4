"""A shareable export of a trace: each job of it is there, under other names, at other times.

Users are k-anonymous: what a user looks like by `signatures` is shared with at least k - 1 others, or the user is one
of at least k who became one common user.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from jobcast.domain.clock import DAY_S, HOUR_S, MINUTE_S, WEEK_S
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import PoolsTable
from jobcast.traces.table import Trace
from jobcast.traces.trace_stats import FIRST_MONDAY_S
from jobcast.traces.twin import numbered
from jobcast.traces.words import NAMES, public_states, renamed, secret_seed

JITTER_S = 7200.0
"""Two hours: ranks of schedulers stay, and the membership attack finds less than with half an hour (`docs/twin.md`)."""
SHIFTS = {"weeks": WEEK_S, "days": DAY_S, "hours": HOUR_S}
"""Units of the secret shift of all times. Whole weeks leave the hour and the weekday as they are."""
MOST_SHIFT_S = 5 * 365 * DAY_S
DURATION_SHARE = 0.5
"""A run time is jittered by at most this share of itself, and of what lies between start and end."""
ROUNDED = ("cores", "mem_gb")
"""Columns that are rounded up to powers of two."""
TIMES = ("eligible_time", "start_time", "end_time", "known_time", "deadline")
"""Columns that move with the submission, those after the start with the run time too."""
KEPT = (
    "submit_time",
    "duration",
    "gpus",
    "min_gpus",
    "duration_gpus",
    "time_limit_s",
    "preemptible",
    "weight",
    "state",
)
SHARED = (*KEPT, *NAMES, *TIMES, *ROUNDED)
"""All other columns are dropped."""
COMMON = "\0common "
"""Begins the names of common users until words replace them; no name that a file holds begins so."""


@dataclass(frozen=True, slots=True)
class Export:
    """An export, and what only its owner should read.

    Attributes
    ----------
    trace, pools : to share
    key : the secret: seed, shift in seconds, words by column
    done : what was done, column by column, and to how many users
    """

    trace: Trace
    pools: PoolsTable | None
    key: Mapping[str, Any]
    done: Mapping[str, Any]


def anonymised(
    trace: Trace,
    pools: PoolsTable | None = None,
    *,
    k: int = 5,
    jitter_s: float = JITTER_S,
    shift: str = "weeks",
    seed: int | None = None,
) -> Export:
    """Export a trace.

    Parameters
    ----------
    trace, pools : the log, and its quotas
    k : fewest users who look alike
    jitter_s : most that a submission moves beyond the shift, and a run time changes, seconds
    shift : the unit of the shift, a key of `SHIFTS`
    seed : of all draws, a secret as the key is; None = of the system's entropy

    Raises
    ------
    ConfigError
        `k` is below 2, the jitter below 0 or no number, or the shift unknown.
    TraceError
        The trace holds no jobs.
    """
    _check(trace, k, jitter_s, shift)
    seed = secret_seed() if seed is None else seed
    rng = np.random.default_rng(seed)
    most = int(MOST_SHIFT_S // SHIFTS[shift])
    # never 0: a shift by nothing is none
    shift_s = SHIFTS[shift] * int(rng.integers(1, most + 1)) * (1 if rng.random() < 0.5 else -1)
    # moved first: what users look like is what the export shows of them
    grouped, merged = _with_common_users(_moved(trace, shift_s, jitter_s, rng), k)
    frame, dropped = _known_columns(grouped)
    named, table, words = renamed(numbered(frame, "export", trace), _shifted(pools, shift_s), rng)
    if "user" in words:
        common = {word: f"common-{word}" for name, word in words["user"].items() if name.startswith(COMMON)}
        named = replace(named, jobs=named.jobs.with_columns(user=pl.col("user").replace(common)))
    told = {name: len(made) for name, made in words.items() if name in frame.columns}
    done = {"names": told, "dropped_columns": dropped, "k": k, "jitter_s": jitter_s, "shift": shift, **merged}
    shown = {name: {old.replace("\0", ""): new for old, new in made.items()} for name, made in words.items()}
    return Export(named, table, {"seed": seed, "shift_s": shift_s, "words": shown}, done)


def _check(trace: Trace, k: int, jitter_s: float, shift: str) -> None:
    if k < 2:
        raise ConfigError(f"k must be 2 or more, got {k}; one user alone is not anonymous")
    if not (np.isfinite(jitter_s) and jitter_s >= 0.0):
        raise ConfigError(f"jitter must be 0 or more seconds, got {jitter_s:g}; 0 moves no job against another")
    if shift not in SHIFTS:
        raise ConfigError(f"shift must be one of {', '.join(SHIFTS)}, got {shift!r}")
    if not len(trace):
        raise TraceError(f"{trace.source.path}: no jobs to export; give a trace with some")


def signatures(trace: Trace) -> pl.DataFrame:
    """What each user looks like: one row a user, columns user, pool, width, weeks, hours and jobs.

    `pool`: the one with most of the user's jobs; `width`: of the widest job, as a power of two (its exponent);
    `weeks`: in how many weeks of the calendar there are jobs, as a power of two; `hours`: the quarter of the day (UTC,
    0 to 3) that most jobs are submitted in. Ties go to the pool of the first job, whatever the pools are called, and to
    the first number.
    """
    at_s = trace.submit_s - FIRST_MONDAY_S
    jobs = trace.jobs.select("user", "pool", "gpus").with_columns(
        week=pl.Series(np.floor(at_s / WEEK_S)),
        quarter=pl.Series(np.floor(at_s % DAY_S / (6 * HOUR_S)).astype(np.int64)),
        in_pool=pl.len().over("user", "pool"),
    )
    # moved jobs do not stand in order; by names an export would break ties otherwise than its log
    jobs = jobs[np.argsort(at_s, kind="stable")]
    log2 = pl.max_horizontal(pl.lit(1), pl.col("gpus").max()).log(2).floor().cast(pl.Int64)
    return (
        jobs.drop_nulls("user")
        .group_by("user")
        .agg(
            pool=pl.col("pool").sort_by("in_pool", descending=True, maintain_order=True).first(),
            width=log2,
            weeks=pl.col("week").n_unique().log(2).floor().cast(pl.Int64),
            hours=pl.col("quarter").mode().min(),
            jobs=pl.len(),
        )
        .sort("user")
    )


SIGNATURE = ("pool", "width", "weeks", "hours")


def _with_common_users(trace: Trace, k: int) -> tuple[Trace, dict[str, Any]]:
    """The trace with users whose signature fewer than k share made common users, and how many were."""
    if "user" not in trace.jobs.columns or not trace.jobs["user"].drop_nulls().len():
        return trace, {"users": 0, "users_merged": 0, "common_users": 0, "k_reached": True}
    looks = signatures(trace).with_columns(alike=pl.len().over(SIGNATURE))
    rare = looks.filter(pl.col("alike") < k)
    of_pools = {str(pool): those["user"].to_list() for (pool,), those in rare.group_by("pool", maintain_order=True)}
    left = [user for names in of_pools.values() if len(names) < k for user in names]
    of_pools = {pool: names for pool, names in of_pools.items() if len(names) >= k}
    # too few to be a group: whole groups of others join them, the smallest first
    groups = looks.filter(pl.col("alike") >= k).sort("alike", *SIGNATURE)
    for _, those in groups.group_by(SIGNATURE, maintain_order=True):
        if 0 < len(left) < k:
            left += those["user"].to_list()
    # where no such group is left, all of a pool's common user do: one of fewer than k would be known by being common
    for pool in sorted(of_pools, key=lambda pool: len(of_pools[pool])):
        if 0 < len(left) < k:
            left += of_pools.pop(pool)
    common = {user: f"{COMMON}{pool}" for pool, names in of_pools.items() for user in names}
    common |= dict.fromkeys(left, COMMON)
    sizes = np.unique(list(common.values()), return_counts=True)[1]
    frame = _unparted(trace.jobs, common, k).with_columns(user=pl.col("user").replace(common))
    told = {
        "users": looks.height,
        "users_merged": len(common),
        "common_users": len(sizes),
        "k_reached": not len(sizes) or int(sizes.min()) >= k,
    }
    return replace(trace, jobs=frame), told


def _unparted(jobs: pl.DataFrame, common: Mapping[str, str], k: int) -> pl.DataFrame:
    """Jobs without the names that would part a common user again.

    By the accounts, tags and the like that stay, all together, a common user falls into parts of at least k users each.

    Parameters
    ----------
    common : user -> common user, of those who became one
    """
    if not common:
        return jobs
    frame, parts = jobs.with_columns(_part=pl.col("user").replace_strict(dict(common), default=None)), ["_part"]
    alone = pl.col("_part").is_null()
    for name in [name for name in jobs.columns if name in NAMES and name not in ("user", "pool", "gpu_type")]:
        users = pl.col("user").n_unique().over(*parts, name)
        frame = frame.with_columns(pl.when(alone | (users >= k)).then(name).alias(name))
        # what was left out is a part as well: where that is of few users, the rest goes too
        frame = frame.with_columns(_fewest=users).with_columns(pl.col("_fewest").min().over(parts))
        frame = frame.with_columns(pl.when(alone | (pl.col("_fewest") >= k)).then(name).alias(name))
        parts.append(name)
    return frame.select(jobs.columns)


def _moved(trace: Trace, shift_s: float, jitter_s: float, rng: np.random.Generator) -> Trace:
    """The trace with all times shifted, submissions and run times jittered; the order of each pool's jobs stays."""
    submit_s = trace.submit_s
    pool = trace.jobs["pool"].rank("dense").to_numpy()
    wanted_s = submit_s + rng.uniform(-jitter_s, jitter_s, len(trace))
    # the n-th job of a pool takes the n-th of its pool's new times: none moves by more than the jitter
    rows = np.argsort(pool, kind="stable")
    new_s = np.empty(len(trace))
    new_s[rows] = wanted_s[np.lexsort((wanted_s, pool))]
    move_us = np.round((new_s - submit_s + shift_s) * 1e6).astype(np.int64)
    lasted_s = trace.duration_s
    # an elastic job's duration is longer than it ran: its end, which moves along, must not come before its start
    shorter_s = np.nan_to_num(np.minimum(lasted_s, trace.end_s - trace.start_s))
    change_s = rng.uniform(-1.0, 1.0, len(trace)) * np.minimum(jitter_s, DURATION_SHARE * shorter_s)
    change_us = np.round(change_s * 1e6).astype(np.int64)
    moves = dict.fromkeys(("submit_time", *TIMES), move_us)
    for name in ("end_time", "known_time", "deadline"):
        moves[name] = move_us + change_us
    columns = [
        (pl.col(name) + pl.Series(moves[name]).cast(pl.Duration("us"))).alias(name)
        for name in moves
        if name in trace.jobs.columns
    ]
    new_duration = pl.Series("duration", lasted_s + change_us / 1e6)
    columns.append(pl.when(pl.col("duration").is_not_null()).then(new_duration).alias("duration"))
    if "time_limit_s" in trace.jobs.columns:
        # whoever kept to a limit still does
        whole, kept = (pl.col("time_limit_s") / MINUTE_S).ceil(), pl.col("time_limit_s") >= pl.col("duration")
        least = pl.when(kept).then((new_duration / MINUTE_S).ceil())
        columns.append((pl.max_horizontal(whole, least) * MINUTE_S).alias("time_limit_s"))
    return replace(trace, jobs=trace.jobs.with_columns(columns))


def _known_columns(trace: Trace) -> tuple[pl.DataFrame, list[str]]:
    """Columns that may be shared, without job ids, and the names of those that may not."""
    names = [name for name in trace.jobs.columns if name in SHARED]
    frame = trace.jobs.select(names)
    powers: list[pl.Expr | pl.Series] = [
        pl.lit(2.0).pow(pl.col(name).log(2).ceil()).alias(name) for name in ROUNDED if name in names
    ]
    if "state" in names:
        powers.append(public_states(frame["state"]))
    return frame.with_columns(powers), [name for name in trace.jobs.columns if name not in (*names, "job_id")]


def _shifted(pools: PoolsTable | None, shift_s: float) -> PoolsTable | None:
    return pools and PoolsTable(tuple(replace(quota, from_s=quota.from_s + shift_s) for quota in pools.quotas))
