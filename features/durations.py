"""What was known, when a job was submitted, of jobs like it: the batch way.

`finished.DurationTracker` is the live way; both fill rows by the same compiled functions.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.clock import MINUTE_S
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN, bin_labels
from jobcast.features.duration_tables import Finished, Started, SweptJobs
from jobcast.traces.history import pool_histories, rows_by_pool
from jobcast.traces.table import Trace

GROUPS: tuple[str, ...] = ("tag", "user", "user_width", "request", "pool_width", "pool", "all")
"""Finished jobs of the same tag; user; user and width; request; pool and width; pool; all. SIA, section 5.4.2.

A user is the account where no user is told; a request is all that the same user asks for: pool, GPUs, cores, memory
and time limit.
"""
STARTED: tuple[str, ...] = ("tag", "user", "request", "pool_width")
"""Groups whose started jobs are counted, too: what still runs is longer than what has finished."""
DEPTHS: tuple[int, ...] = (5, 20, 50)
"""How many of a group's last finished jobs are counted by bin; as in `duration_kernels`."""
START_DEPTHS: tuple[int, ...] = (5, 20)
"""How many of a group's last started jobs are counted; as in `duration_kernels`."""
BURST_S = 3600.0
"""Like jobs of one hour are a burst."""
NO_GROUP = -1
"""Group of a job that belongs to none: one without a tag or user."""

WIDTH = "log2 gpus"
"""Column of the job's width."""
Key = tuple[object, ...]


def duration_columns(horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN) -> tuple[str, ...]:
    """Names of the columns of a row.

    - `GROUP last N BIN`: of the group's last N finished jobs, those of a duration bin
    - `GROUP log mean s`, `GROUP log last s`: mean log run time of the last 50, log run time of the last one
    - `GROUP log since s`: log(1 + seconds since the group's last completion)
    - `GROUP started N ended BIN`, `GROUP started N running BIN`: of the last N started jobs of a group of `STARTED`,
      those that have ended by bin of how long they ran, and those that run by bin of their run time so far
    - `GROUP log since start s`, `GROUP log starts 5min`: log(1 + ...) of the time since the group's last start, and of
      how many of those N started in the last 5 minutes
    - `log limit s`, `day sin`, `day cos`: the job's time limit, and the time of day (UTC) on a circle
    - `log2 gpus`: the job's width
    - `pool ended BIN`, `pool running BIN`: of the pool's last 50 started jobs, those that have ended by bin of their
      run time, and those that run by bin of their run time so far: short jobs do not hide the long ones here
    - `pool log since arrival s`, `pool log since like s`: time since the pool's last arrival, and the last of the width
    - `pool like arrivals`: of the pool's last 20 arrivals, those of the job's width
    - `pool log arrivals 5min`, `... 60min`: log(1 + arrivals of the pool in the last 5 and 60 minutes)

    >>> len(duration_columns()), duration_columns((5, 60))[:4]
    (194, ('tag last 5 <=5min', 'tag last 5 5-60min', 'tag last 5 >60min', 'tag last 20 <=5min'))
    """
    return _columns(tuple(horizons_min))


def column_number(name: str, horizons_min: Sequence[float]) -> int:
    """Position of a column: looked up, since schedulers ask at every submission.

    >>> duration_columns((5,))[column_number("log2 gpus", (5,))]
    'log2 gpus'
    """
    return _numbers(tuple(horizons_min))[name]


@cache
def _numbers(horizons_min: tuple[float, ...]) -> dict[str, int]:
    return {name: number for number, name in enumerate(_columns(horizons_min))}


@cache
def _columns(horizons_min: tuple[float, ...]) -> tuple[str, ...]:
    bins = bin_labels(horizons_min)
    names = []
    for group in GROUPS:
        names += [f"{group} last {depth} {label}" for depth in DEPTHS for label in bins]
        names += [f"{group} log mean s", f"{group} log last s", f"{group} log since s"]
    for group in STARTED:
        names += [
            f"{group} started {depth} {how} {label}"
            for depth in START_DEPTHS
            for how in ("ended", "running")
            for label in bins
        ]
        names += [f"{group} log since start s", f"{group} log starts 5min"]
    names += ["log limit s", "day sin", "day cos", WIDTH]
    names += [f"pool {what} {label}" for what in ("ended", "running") for label in bins]
    arrivals = ("log since arrival s", "log since like s", "like arrivals", "log arrivals 5min", "log arrivals 60min")
    return (*names, *(f"pool {what}" for what in arrivals))


def group_width(n_bins: int) -> int:
    """Columns of a group: counts by depth and bin, and three more."""
    return len(DEPTHS) * n_bins + 3


def started_width(n_bins: int) -> int:
    """Columns of the started jobs of a group: counts by depth, ended or running, and bin, and two more."""
    return len(START_DEPTHS) * 2 * n_bins + 2


def group_counts(rows: Floats, group: str, depth: int, n_bins: int) -> Floats:
    """Counts by bin of a group's last finished jobs, (n_jobs, B), as a view of rows."""
    first = GROUPS.index(group) * group_width(n_bins) + DEPTHS.index(depth) * n_bins
    return rows[:, first : first + n_bins]


def edges_s(horizons_min: Sequence[float]) -> Floats:
    """Inner edges of the duration bins, (B - 1,) seconds."""
    return MINUTE_S * np.asarray(horizons_min, np.float64)


def duration_rows(
    trace: Trace, horizons_min: Sequence[float] = DEFAULT_HORIZONS_MIN, wanted: Bools | None = None
) -> Floats:
    """Rows of jobs at their submission, (n_wanted, F); columns as `duration_columns` names them.

    A job sees those that ended by its submission (at one instant completions come before arrivals), by (end, row),
    and what its pool had started and been asked for before it. Nothing that happens later changes its row.

    Parameters
    ----------
    trace : all jobs: history and those asked about
    horizons_min : inner edges of the duration bins, see `domain.horizons.duration_bin`
    wanted : (n_jobs,) whose rows to give; None = all
    """
    from jobcast.features import duration_kernels as kernels

    wanted = np.ones(len(trace), np.bool_) if wanted is None else wanted
    rows_of = np.where(wanted, np.cumsum(wanted) - 1, NO_GROUP).astype(np.int64)
    rows = np.empty((int(wanted.sum()), len(duration_columns(horizons_min))))
    # One pass over all jobs: what is not wanted is history all the same.
    submit_s, start_s, edges = trace.submit_s, trace.start_s, edges_s(horizons_min)
    # A job whose end rounds to its submission ended after it all the same: it must not see itself.
    end_s = np.maximum(trace.known_s, np.nextafter(submit_s, np.inf))
    groups, n_groups = _group_numbers(trace)
    order = [np.argsort(instants, kind="stable") for instants in (submit_s, start_s, end_s)]
    seconds = submit_s, start_s, end_s, trace.duration_s, trace.numbers("time_limit_s", np.inf)
    # Copies: compiled code is told that all may be written to, a frame's own columns may not.
    columns: list[Any] = [*map(np.array, seconds), *order, groups, rows_of]
    kernels.sweep(*empty_state(len(trace), n_groups), SweptJobs(*columns), edges, rows)
    widths = trace.gpus.astype(np.float64)
    of_pool = rows_by_pool(trace)
    for pool, history in pool_histories(trace).items():
        # All jobs of a pool in one compiled call.
        its = of_pool[pool]
        events = history.start_s, history.end_s, history.arrival_s, history.arrival_gpus
        kernels.pool_rows(*events, submit_s[its], widths[its], edges, rows_of[its], NO_GROUP, rows)
    return rows


def group_keys(
    pool: str,
    gpus: int,
    user: str,
    tag: str,
    account: str = "",
    cores: float | None = None,
    mem_gb: float | None = None,
    limit_s: float = np.inf,
) -> tuple[Key | None, ...]:
    """What names a job's group of each kind, in the order of `GROUPS`; None where it belongs to none.

    >>> group_keys("a", 2, "", "x")
    (('tag', 'x'), None, None, None, ('pool_width', 'a', 2), ('pool', 'a'), ('all',))
    """
    who = user or account
    return (
        ("tag", tag) if tag else None,
        ("user", who) if who else None,
        ("user_width", who, gpus) if who else None,
        ("request", who, pool, gpus, cores, mem_gb, limit_s) if who or limit_s < np.inf else None,
        ("pool_width", pool, gpus),
        ("pool", pool),
        ("all",),
    )


def burst_key(pool: str, gpus: int, who: str, submit_s: float) -> Key:
    """What jobs of one burst share: pool, width, who submits them (user, else account), and the hour."""
    return pool, gpus, who, submit_s // BURST_S


def burst_numbers(trace: Trace) -> Ints:
    """Number of each job's burst, (n_jobs,)."""
    users, accounts = _names(trace, "user"), _names(trace, "account")
    # Any hashable key: names of users and pools are free text.
    numbers: dict[Key, int] = {}
    listed = zip(
        trace.jobs["pool"].to_list(), trace.gpus.tolist(), users, accounts, trace.submit_s.tolist(), strict=True
    )
    keys = (burst_key(pool, gpus, user or account, at_s) for pool, gpus, user, account, at_s in listed)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _group_numbers(trace: Trace) -> tuple[Ints, int]:
    """Number of each job's group of each kind, (n_jobs, G), counted through all kinds, and how many there are."""
    numbers: dict[Key, int] = {}
    names = [_names(trace, column) for column in ("user", "tag", "account")]
    asked = [trace.values(column) for column in ("cores", "mem_gb")]
    limits = trace.numbers("time_limit_s", np.inf).tolist()
    listed = zip(trace.jobs["pool"].to_list(), trace.gpus.tolist(), *names, *asked, limits, strict=True)
    groups = [
        [NO_GROUP if key is None else numbers.setdefault(key, len(numbers)) for key in group_keys(*job)]
        for job in listed
    ]
    return np.array(groups, np.int64).reshape(len(groups), len(GROUPS)), len(numbers)


def _names(trace: Trace, column: str) -> list[str]:
    if column not in trace.jobs.columns:
        return [""] * len(trace)
    return trace.jobs[column].fill_null("").to_list()


def empty_state(n_jobs: int, n_groups: int) -> tuple[Finished, Started]:
    """Room for that many finished and started jobs, and groups."""
    links, nobody = np.full((n_jobs, len(GROUPS)), NO_GROUP), np.full(n_groups, NO_GROUP)
    finished = Finished(np.zeros(n_jobs), np.zeros(n_jobs, np.int64), np.zeros(n_jobs), links, nobody)
    return finished, Started(np.zeros(n_jobs), np.full(n_jobs, np.inf), links.copy(), nobody.copy())
