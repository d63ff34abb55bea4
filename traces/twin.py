"""A synthetic twin of a trace: a model of who submits what when, fitted to a log, and a draw of it.

Jobs of a user in a pool are a stream, a stream is bursts, a burst is jobs. Whatever bursts and jobs have (gaps, sizes,
widths, run times) is drawn by one mechanism, `draw_like`: a smoothed quantile function says what values there are, a
Gaussian latent in which order they come. The mathematics are in `docs/twin.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter
from scipy.special import ndtri

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.traces.pools import peak_demand, put_off
from jobcast.traces.table import MICROSECONDS, Source, Trace
from jobcast.traces.trace_stats import FIRST_MONDAY_S
from jobcast.traces.words import public_states

Keys = tuple[Ints, Ints]
"""Numbers of groups, of the log's items and of the twin's."""
Levels = Sequence[Keys]
"""From the finest groups to the coarsest."""

BURST_GAP_S = 300.0
"""Five minutes, the period of SIA, Figure 3b: jobs of a stream no further apart may be one burst."""
BURST_SHARE = 0.1
"""They are if they are within this share of the stream's mean gap too: a busy stream is no single burst."""
SILENT_WEEKS = 8
"""So many weeks in a row, each with fewer than `QUIET_JOBS` and less than half of a mean week's, are a silence: nothing
is drawn in it, and what little came then comes at other times, where it is one of many."""
QUIET_JOBS = 5
PROFILE_H = 1.0
"""Standard deviation of the kernel that smooths a profile of the week, hours."""
WEEK_BURSTS, DAY_BURSTS = 1.0, 1.0
"""A week and a day of a stream count so many bursts of the profile's beside their own."""
LEAST_VALUES, LEAST_OF_ALL = 20, 10
"""A group with fewer values goes to the next coarser one, with what else is left there; the coarsest needs fewer."""
ALIKE = 10
"""Users whose jobs are drawn from one another's, at least."""
LEAST_PAIRS = 20.0
"""Correlations are shrunk as if so many pairs without one were beside those of the log."""
LEAST_BANDWIDTH, MOST_BANDWIDTH = 0.05, 0.3
"""Of the kernel that smooths the logarithms of times."""
BLOCK_VALUES = 10.0
"""The shift of a week, of a day or of a part of it is shrunk as if so many values without one were beside its own."""
WIDTH_VALUES = 1.0
"""So is that of a width: a few wide and long jobs make a pool's load."""
PART_H = 3
"""Hours of a part of the day; those of Saturdays and Sundays are others."""
MOST_CORRECTION, REACH, CORRECTIONS = 4.0, 4.0, 5
"""The longest run times of a pool are multiplied by at most this, or divided, to bring its load near the log's; one at
level u of the pool's by the factor to the power of u^4. So many steps find the factor."""
TINY = 1e-6
LEAST_GAP_S, LEAST_DURATION_S = 0.01, 1.0
RESOLUTION_S = 1.0
"""Of the instants of a log."""
NEAR = 5
"""A state and a limit are those of a job at most so many ranks away by run time."""
LIMIT_STEP_S = 60.0
WEEK_H, DAY_H, WEEKEND_H = 168, 24, 120


@dataclass(frozen=True, slots=True)
class Items:
    """Gaps, bursts or jobs in order of stream and time: the pool, the stream and the burst of each, (n_items,)."""

    pool: Ints
    stream: Ints
    burst: Ints

    def at(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Items":
        """Some of the items."""
        return Items(self.pool[rows], self.stream[rows], self.burst[rows])

    def repeated(self, times: Ints) -> "Items":
        """Each item so many times."""
        return Items(*(np.repeat(column, times) for column in (self.pool, self.stream, self.burst)))

    @property
    def first(self) -> NDArray[np.bool_]:
        """Whether an item is the first of its burst."""
        return np.asarray(np.diff(self.burst, prepend=-1) != 0)


def levels(old: Items, new: Items, *more: tuple[Ints, Ints]) -> Levels:
    """Streams, pools and all; before them streams and pools parted further by each more key."""
    base = [(old.stream, new.stream), (old.pool, new.pool)]
    size = [1 + int(max(x.max(initial=0), y.max(initial=0))) for x, y in more]
    parted = [(a * n + x, b * n + y) for n, (x, y) in zip(size, more, strict=True) for a, b in base]
    return [*parted, *base, (np.zeros_like(old.pool), np.zeros_like(new.pool))]


def draw_like(
    values: Floats,
    old: Items,
    new: Items,
    groups: Levels,
    rng: np.random.Generator,
    smooth: bool = False,
    shifts: Sequence[tuple[Keys, float]] = (),
) -> Floats:
    """Values for new items: distributed as those of their group, as alike within bursts and from burst to burst.

    Parameters
    ----------
    values : (n_old,) of the log's items
    old, new : the log's items and the twin's
    groups : whose values an item draws from; see `_grouped`
    rng : of the draws
    smooth : whether values lie on a line (logarithms of times), so that those in between are drawn too
    shifts : blocks (days, parts of the day, widths) whose values are shifted as the log's are, and by how many values
        without a shift each is shrunk; a later one tells what earlier ones left

    Returns
    -------
    (n_new,) values. Each group is drawn at stratified levels, so that its distribution is met closely.
    """
    its, ours = _grouped(groups, rng)
    rest = ndtri(_stratified(values, its, rng))
    shift = np.zeros(len(ours))
    for (of_log, of_twin), prior in shifts:
        size = 1 + max(int(of_log.max(initial=0)), int(of_twin.max(initial=0)))
        mean = np.bincount(of_log, rest, size) / (np.bincount(of_log, minlength=size) + prior)
        rest, shift = rest - mean[of_log], shift + mean[of_twin]
    # what is left to chance, by group: shifts are part of the scores' variance of 1
    size = 1 + max(int(its.max(initial=0)), int(ours.max(initial=0)))
    left = np.sqrt(np.bincount(its, rest**2, size) / np.maximum(np.bincount(its, minlength=size), 1)).clip(TINY, 1.0)
    latent = shift + left[ours] * _latent(rest / left[its], old, new, rng)
    return _quantiles(values, its, ours, _stratified(latent, ours, rng), rng, smooth)


def _grouped(groups: Levels, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Numbers of the groups that the log's items and the twin's belong to, (n_old,) and (n_new,).

    It is the finest that has `LEAST_VALUES` which no finer one has: who submits seldom is like others who do, not like
    the busiest of the pool.
    """
    its, ours = (np.full(len(keys), -1, dtype=np.int64) for keys in groups[0])
    numbers = 0
    for level, (old_key, new_key) in enumerate(groups, 1):
        least = LEAST_VALUES if level < len(groups) else LEAST_OF_ALL
        size = 1 + int(max(old_key.max(initial=0), new_key.max(initial=0)))
        enough = np.bincount(old_key[its < 0], minlength=size) >= least
        for group, key in ((its, old_key), (ours, new_key)):
            here = (group < 0) & enough[key]
            group[here] = numbers + key[here]
        numbers += size
    known = its[its >= 0]
    for group in (its, ours):
        # Too few are left to stand for one another: they are like anybody.
        none = group < 0
        group[none] = rng.choice(known, int(none.sum())) if len(known) else 0
    every = np.unique(np.concatenate((its, ours)), return_inverse=True)[1].reshape(-1)
    return every[: len(its)], every[len(its) :]


def _stratified(values: Floats, key: Ints, rng: np.random.Generator) -> Floats:
    """Levels in (0, 1), (n_items,): ranks within groups, each at random within its stratum; ties by chance."""
    order = np.lexsort((rng.random(len(values)), values, key))
    count = np.bincount(key)
    first = np.cumsum(count) - count
    rank = np.empty(len(values))
    rank[order] = np.arange(len(values)) - first[key[order]]
    return (rank + rng.uniform(0.001, 0.999, len(values))) / count[key]


def _latent(scores: Floats, old: Items, new: Items, rng: np.random.Generator) -> Floats:
    """Gaussian latents, (n_new,): a burst's part goes from burst to burst as AR(1), the rest is each item's own.

    By pool, `within` is the correlation of neighbours in a burst, and `onwards` that of bursts, which is that of the
    neighbours between two bursts over `within`. Items that are bursts by themselves have no rest.
    """
    pairs = scores[:-1] * scores[1:]
    same = np.diff(old.burst) == 0
    within = _mean_by(pairs[same], old.pool[1:][same], new.pool) if same.any() else np.ones(len(new.pool))
    across = ~same & (np.diff(old.stream) == 0)
    onwards = np.clip(_mean_by(pairs[across], old.pool[1:][across], new.pool) / np.maximum(within, 0.05), 0.0, 0.98)
    starts = np.flatnonzero(new.first)
    of_burst = np.cumsum(new.first) - 1
    burst = rng.standard_normal(len(starts))
    pools = new.pool[starts]
    for pool in np.unique(pools):
        its = np.flatnonzero(pools == pool)
        rho = float(onwards[starts[its[0]]])
        burst[its] = lfilter([np.sqrt(1.0 - rho * rho)], [1.0, -rho], burst[its])
    own = rng.standard_normal(len(of_burst))
    return np.asarray(np.sqrt(within) * burst[of_burst] + np.sqrt(1.0 - within) * own)


def _mean_by(pairs: Floats, pool: Ints, at: Ints) -> Floats:
    """Mean products of scores of a pool, shrunk, within [0, 0.99], for the pool of each new item."""
    size = 1 + max(int(pool.max(initial=0)), int(at.max(initial=0)))
    mean = np.bincount(pool, pairs, size) / (np.bincount(pool, minlength=size) + LEAST_PAIRS)
    return np.clip(mean, 0.0, 0.99)[at]


def _quantiles(values: Floats, its: Ints, key: Ints, level: Floats, rng: np.random.Generator, smooth: bool) -> Floats:
    """Values at levels of the distributions of groups, (n_new,)."""
    order = np.lexsort((values, its))
    ordered = values[order]
    count = np.bincount(its, minlength=int(key.max(initial=0)) + 1)
    first = (np.cumsum(count) - count)[key]
    n = count[key]
    if not smooth:
        return np.asarray(ordered[first + np.minimum((level * n).astype(np.int64), n - 1)])
    place = np.clip(level * n - 0.5, 0.0, n - 1.0)
    low = place.astype(np.int64)
    part = place - low
    drawn = ordered[first + low] * (1.0 - part) + ordered[first + np.minimum(low + 1, n - 1)] * part
    mean = np.bincount(its, values, len(count)) / np.maximum(count, 1)
    spread = np.sqrt(np.maximum(np.bincount(its, values**2, len(count)) / np.maximum(count, 1) - mean**2, 0.0))
    # Silverman's rule; the kernel's variance is taken back from the values' own
    width = np.clip(0.9 * spread * np.maximum(count, 1) ** -0.2, LEAST_BANDWIDTH, MOST_BANDWIDTH)
    # a group of equal values is not repeated either
    shrink = np.where(spread > TINY, spread / np.sqrt(spread**2 + width**2), 1.0)
    noise = np.clip(rng.standard_normal(len(key)), -3.0, 3.0)
    return np.asarray(mean[key] + shrink[key] * (drawn - mean[key] + width[key] * noise))


@dataclass(frozen=True, slots=True)
class Log:
    """A trace as streams. Times in seconds from `from_s`, a full hour; jobs in order of stream and time.

    Attributes
    ----------
    rows : (n_jobs,) positions in the trace
    items : pool, stream and burst of the jobs
    submit_s, gpus, log_s : (n_jobs,) submissions, widths, logarithms of run times (NaN where not known)
    hours : length
    """

    rows: Ints
    items: Items
    submit_s: Floats
    gpus: Ints
    log_s: Floats
    from_s: float
    hours: int

    @classmethod
    def of(cls, trace: Trace) -> "Log":
        """Streams are jobs of one user in one pool; where users are not told, of one pool."""
        user = trace.jobs["user"] if "user" in trace.jobs.columns else pl.repeat(None, len(trace), eager=True)
        pool = trace.jobs["pool"].rank("dense").to_numpy().astype(np.int64) - 1
        who = user.cast(pl.String).fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
        stream = np.unique(pool * (int(who.max()) + 1) + who, return_inverse=True)[1].reshape(-1)
        from_s = float(np.floor(trace.submit_s[0] / HOUR_S) * HOUR_S)
        submit_s = trace.submit_s - from_s
        rows = np.lexsort((submit_s, stream))
        pool, stream, submit_s = pool[rows], stream[rows].astype(np.int64), submit_s[rows]
        items = Items(pool, stream, _bursts(stream, submit_s))
        hours = int(submit_s.max() // HOUR_S) + 1
        with np.errstate(invalid="ignore"):
            log_s = np.log(trace.duration_s[rows])
        return cls(rows, items, submit_s, trace.gpus[rows], log_s, from_s, hours)

    def kinds(self, old: Items, new: Items) -> Levels:
        """`levels`, in which all streams of a kind are one."""
        kinds = _kinds(self.items.pool, self.items.stream)
        return levels(replace(old, stream=kinds[old.stream]), replace(new, stream=kinds[new.stream]))

    def source_hours(self, weeks: int | None) -> Ints:
        """The log's hour that stands behind each hour of the twin: the same, or going round through whole weeks."""
        if weeks is None:
            return np.arange(self.hours)
        whole = next(length for length in (self.hours // WEEK_H * WEEK_H, self.hours // 24 * 24, self.hours) if length)
        return np.arange(weeks * WEEK_H) % whole

    def hour_of_week(self, hours: Ints) -> Ints:
        """Hours of the week, Monday first, of hours of the log."""
        return (hours + round((self.from_s - FIRST_MONDAY_S) / HOUR_S)) % WEEK_H


def _kinds(pool: Ints, stream: Ints) -> Ints:
    """(n_streams,) kinds: at least `ALIKE` of a pool that are next to one another by how many jobs they have.

    Pools with fewer streams are one kind.
    """
    first = np.flatnonzero(np.diff(stream, prepend=-1))
    of_pool, jobs = pool[first], np.bincount(stream)
    kinds = np.empty(len(first), dtype=np.int64)
    made = 0
    for number in np.unique(of_pool):
        its = np.flatnonzero(of_pool == number)
        its = its[np.argsort(jobs[its], kind="stable")]
        groups = max(len(its) // ALIKE, 1)
        kinds[its] = made + np.arange(len(its)) * groups // len(its)
        made += groups
    return kinds


def _bursts(stream: Ints, submit_s: Floats) -> Ints:
    """(n_jobs,) numbers of bursts, ascending."""
    gaps_s = np.diff(submit_s, prepend=0.0)
    new = np.diff(stream, prepend=-1) != 0
    count = np.bincount(stream)
    mean_s = np.bincount(stream, np.where(new, 0.0, gaps_s)) / np.maximum(count - 1, 1)
    return np.cumsum(new | (gaps_s > np.minimum(BURST_GAP_S, BURST_SHARE * mean_s)[stream])) - 1


def _shares(counts: Floats, expected: Floats, block: Ints, prior: float) -> Floats:
    """By how much more came than expected, block by block, shrunk towards 1; for each hour."""
    came, awaited = np.bincount(block, counts), np.bincount(block, expected)
    return ((came + prior) / (awaited + prior))[block]


def _busy(log: Log) -> Floats:
    """1 for each hour of the log, 0 for those of its silences: (hours,)."""
    week = np.bincount((log.submit_s // (WEEK_H * HOUR_S)).astype(np.int64))
    quiet = week < min(QUIET_JOBS, week[week > 0].mean() / 2.0)
    ends = np.flatnonzero(np.diff(quiet, prepend=False, append=False))
    for begin, end in zip(ends[::2], ends[1::2], strict=True):
        quiet[begin:end] = end - begin >= SILENT_WEEKS
    return np.where(quiet, 0.0, 1.0)[np.arange(log.hours) // WEEK_H]


def _intensity(log: Log, starts_s: Floats, profile: Floats, busy: Floats) -> Floats:
    """Bursts that a stream is expected to begin in each hour of the log, (hours,).

    The profile of the week is the pool's, not the stream's: at what hours somebody works tells who it is.
    """
    hours = np.arange(log.hours)
    of_week = log.hour_of_week(hours)
    counts = np.bincount((starts_s // HOUR_S).astype(np.int64), minlength=log.hours).astype(np.float64)
    expected = busy * profile[of_week] / np.bincount(of_week, minlength=WEEK_H)[of_week]
    expected *= len(starts_s) / expected.sum()
    expected *= _shares(counts, expected, hours // WEEK_H, WEEK_BURSTS)
    expected *= _shares(counts, expected, hours // DAY_H, DAY_BURSTS)
    return np.asarray(expected * len(starts_s) / expected.sum())


def _arrivals(log: Log, source: Ints, same: bool, rng: np.random.Generator) -> tuple[Items, Floats]:
    """Bursts of the twin and when they begin, seconds from `log.from_s`.

    In a clock of its own, which goes by its intensity, a stream's bursts come once a unit of time on average. Gaps are
    drawn in that clock, and read on the wall's.
    """
    first = np.flatnonzero(log.items.first)
    old, begin_s = log.items.at(first), log.submit_s[first]
    of_week = log.hour_of_week((begin_s // HOUR_S).astype(np.int64))
    profiles = np.zeros((int(old.pool.max()) + 1, WEEK_H))
    np.add.at(profiles, (old.pool, of_week), 1.0)
    profiles = gaussian_filter1d(profiles, PROFILE_H, axis=1, mode="wrap")
    bounds = np.searchsorted(old.stream, np.arange(int(old.stream[-1]) + 2))
    # single precision: a log of thousands of streams has as many clocks
    clocks: list[NDArray[np.float32]] = []
    gaps: list[Floats] = []
    counts: list[int] = []
    edges_h, busy = np.arange(len(source) + 1) * HOUR_S, _busy(log)
    for low, high in pairwise(bounds):
        rate = _intensity(log, begin_s[low:high], profiles[old.pool[low]], busy)
        ticks = np.concatenate(([0.0], np.cumsum(rate)))
        gaps.append(np.diff(np.interp(begin_s[low:high], np.arange(log.hours + 1) * HOUR_S, ticks)))
        drawn = float(rate[source].sum())
        counts.append(high - low if same else int(drawn + rng.random()))
        clocks.append(np.concatenate(([0.0], np.cumsum(rate[source]))).astype(np.float32))
    inner = np.ones(len(begin_s), dtype=bool)
    inner[bounds[:-1]] = False
    known = old.at(inner)
    # one gap more than bursts: the last one ends after the twin does
    wanted = np.array(counts, dtype=np.int64)
    heads = old.at(bounds[:-1])
    new = heads.repeated(wanted + 1)
    new = replace(new, burst=np.arange(len(new.burst)))
    if inner.any():
        logs = np.log(np.maximum(np.concatenate(gaps), 1e-6))
        drawn_gaps = np.exp(draw_like(logs, known, new, levels(known, new), rng, smooth=True))
    else:
        drawn_gaps = rng.exponential(size=len(new.burst))
    starts: list[Floats] = []
    at = 0
    for clock, count in zip(clocks, wanted, strict=True):
        place = np.cumsum(drawn_gaps[at : at + count + 1])
        at += count + 1
        starts.append(np.interp(place[:-1] / place[-1] * clock[-1], clock, edges_h))
    bursts = heads.repeated(wanted)
    return replace(bursts, burst=np.arange(len(bursts.burst))), np.concatenate(starts)


def _members(
    log: Log, bursts: Items, begin_s: Floats, source_h: Ints, rng: np.random.Generator
) -> tuple[Items, Floats]:
    """Jobs of the twin's bursts and their submissions, seconds from `log.from_s`."""
    first = log.items.first
    old = log.items.at(first)
    times = log.submit_s[first], begin_s
    shifts = [
        (_blocks(log, (old, bursts), times, source_h, DAY_H), BLOCK_VALUES),
        (_parts(log, (old, bursts), times, source_h), BLOCK_VALUES),
    ]
    sizes = np.bincount(log.items.burst)
    kinds = log.kinds(old, bursts)
    count = draw_like(sizes.astype(np.float64), old, bursts, kinds, rng, shifts=shifts).astype(np.int64)
    for pool in np.unique(bursts.pool):
        here = bursts.pool == pool
        wanted = round(sizes[old.pool == pool].mean() * here.sum())
        count[here] = _in_sum(count[here], wanted, rng)
    jobs = bursts.repeated(count)
    waits_s = np.where(jobs.first, np.repeat(begin_s, count), 0.0)
    if not first.all() and not jobs.first.all():
        inner = log.items.at(~first)
        gaps = np.log(np.maximum(np.diff(log.submit_s, prepend=0.0)[~first], LEAST_GAP_S))
        within = jobs.at(~jobs.first)
        waits_s[~jobs.first] = np.exp(draw_like(gaps, inner, within, log.kinds(inner, within), rng, smooth=True))
    run = np.cumsum(waits_s)
    # a running sum, begun anew with each burst
    before = np.where(jobs.first, run - waits_s, 0.0)
    return jobs, run - np.maximum.accumulate(before)


def _in_sum(count: Ints, wanted: int, rng: np.random.Generator) -> Ints:
    """Sizes of bursts with so many jobs in all: what is missing goes to the large, what is too much leaves them."""
    missing = wanted - int(count.sum())
    if missing >= 0:
        return count + rng.multinomial(missing, count / count.sum())
    return count - rng.multivariate_hypergeometric(count - 1, -missing, method="marginals")


def _blocks(log: Log, items: tuple[Items, Items], times_s: tuple[Floats, Floats], source_h: Ints, block_h: int) -> Keys:
    """Keys of (pool, block of so many hours of the log) of the log's items and the twin's."""
    blocks = log.hours // block_h + 1
    old_h, new_h = _hours(times_s, source_h)
    return items[0].pool * blocks + old_h // block_h, items[1].pool * blocks + new_h // block_h


def _parts(log: Log, items: tuple[Items, Items], times_s: tuple[Floats, Floats], source_h: Ints) -> Keys:
    """Keys of (pool, part of the day, weekend) of the log's items and the twin's."""
    hours = [log.hour_of_week(hour) for hour in _hours(times_s, source_h)]
    old, new = (hour % DAY_H // PART_H + DAY_H // PART_H * (hour >= WEEKEND_H) for hour in hours)
    parts = 2 * DAY_H // PART_H
    return items[0].pool * parts + old, items[1].pool * parts + new


def _hours(times_s: tuple[Floats, Floats], source_h: Ints) -> tuple[Ints, Ints]:
    """Hours of the log of its items and of those that stand behind the twin's."""
    old, new = ((at_s // HOUR_S).astype(np.int64) for at_s in times_s)
    return old, source_h[np.minimum(new, len(source_h) - 1)]


def _run_times(log: Log, jobs: Items, submit_s: Floats, gpus: Ints, source_h: Ints, rng: np.random.Generator) -> Floats:
    """(n_jobs,) run times in seconds, by stream and width, week by week; the load of each pool as the log's."""
    known = ~np.isnan(log.log_s)
    old = log.items.at(known)
    weeks = log.hours // WEEK_H + 1
    times = log.submit_s[known], submit_s
    widths = (log.gpus[known], gpus)
    groups = levels(old, jobs, widths)
    week = _blocks(log, (old, jobs), times, source_h, WEEK_H)
    parts = _parts(log, (old, jobs), times, source_h)
    shifts = [(groups[1], WIDTH_VALUES), (week, BLOCK_VALUES), (parts, BLOCK_VALUES)]
    logs = draw_like(log.log_s[known], old, jobs, groups, rng, smooth=True, shifts=shifts)
    pools = int(log.items.pool.max()) + 1
    longest = np.full(pools, np.nanmax(log.log_s))
    for pool in np.unique(old.pool):
        longest[pool] = log.log_s[known][old.pool == pool].max()
    # reflected at the longest, not cut, which would repeat it
    over = np.maximum(logs - longest[jobs.pool], 0.0)
    drawn_s = np.exp(logs - 2.0 * over)
    # GPU-seconds of a pool in a week of the log, there and in the twin, where hours of it come `turns` times
    length = np.bincount(np.arange(log.hours) // WEEK_H, minlength=weeks)
    turns = np.bincount(source_h // WEEK_H, minlength=weeks) / np.maximum(length, 1)
    cells = pools * weeks
    asked = np.bincount(week[0], log.gpus[known] * np.exp(log.log_s[known]), cells) * np.tile(turns, pools)
    # the long make the load; the short stay nearly as they are
    reach = _stratified(logs, jobs.pool, rng) ** REACH
    factor, corrected = np.ones(cells), drawn_s
    for _ in range(CORRECTIONS):
        made = np.bincount(week[1], gpus * corrected, cells)
        factor *= np.divide(asked, made, out=np.ones(cells), where=(asked > 0) & (made > 0))
        factor = np.clip(factor, 1 / MOST_CORRECTION, MOST_CORRECTION)
        corrected = np.maximum(drawn_s * factor[week[1]] ** reach, LEAST_DURATION_S)
    return corrected


def _with_room(
    log: Log, jobs: Items, submit_s: Floats, duration_s: Floats, gpus: Ints, rng: np.random.Generator
) -> Floats:
    """(n_jobs,) submissions that never ask for more of a pool at a time than the log's did."""
    moved_s = submit_s.copy()
    # a job that has not ended holds its GPUs up to the end of the log
    lasted_s = np.where(np.isnan(log.log_s), log.submit_s.max() - log.submit_s, np.exp(log.log_s))
    for pool in np.unique(jobs.pool):
        its, ours = log.items.pool == pool, jobs.pool == pool
        # rounded instants overlap where one job ended as another began
        room = peak_demand(log.submit_s[its], np.maximum(lasted_s[its] - RESOLUTION_S, 0.0), log.gpus[its])
        moved_s[ours] = put_off(submit_s[ours], duration_s[ours], gpus[ours], room, rng)
    return moved_s


def _beside(trace: Trace, log: Log, jobs: Items, duration_s: Floats, rng: np.random.Generator) -> dict[str, pl.Series]:
    """States and time limits: those of a job of the pool whose run time is near, above the run time where that was."""
    names = [name for name in ("state", "time_limit_s") if name in trace.jobs.columns]
    if not names:
        return {}
    lasted_s = np.exp(log.log_s)
    donor = np.zeros(len(duration_s), dtype=np.int64)
    for pool in np.unique(jobs.pool):
        its = np.flatnonzero((log.items.pool == pool) & np.isfinite(lasted_s))
        if not len(its):
            its = np.flatnonzero(np.isfinite(lasted_s))
        here, its = jobs.pool == pool, its[np.argsort(lasted_s[its], kind="stable")]
        place = np.searchsorted(lasted_s[its], duration_s[here]) + rng.integers(-NEAR, NEAR + 1, int(here.sum()))
        donor[here] = its[np.clip(place, 0, len(its) - 1)]
    taken = trace.jobs[log.rows[donor]].select(names)
    if "time_limit_s" in names:
        limit, within = taken["time_limit_s"], pl.Series(trace.duration_s[log.rows[donor]]) <= taken["time_limit_s"]
        above = pl.Series(np.ceil(duration_s / LIMIT_STEP_S) * LIMIT_STEP_S)
        taken = taken.with_columns(time_limit_s=pl.when(within & (limit < above)).then(above).otherwise(limit))
    return {name: public_states(taken[name]) if name == "state" else taken[name] for name in names}


def rigid(trace: Trace) -> Trace:
    """The log with each job on all its GPUs, for its work over their number: a twin has no other jobs.

    Notes of the result say how many were of another kind.
    """
    other = (trace.duration_gpus != trace.gpus) & trace.ended
    if not other.any():
        return trace
    lasts_s = np.where(other, trace.gpu_time_s / np.maximum(trace.gpus, 1), trace.duration_s)
    jobs = trace.jobs.with_columns(duration=pl.when(pl.col("duration").is_not_null()).then(pl.Series(lasts_s)))
    note = (
        f"duration: {int(other.sum()):,} of {len(trace):,} hold on fewer GPUs; drawn as on all, for the same GPU time"
    )
    return replace(trace, jobs=jobs.drop("min_gpus", "duration_gpus", strict=False), notes=(*trace.notes, note))


def twin_of(trace: Trace, *, weeks: int | None = None, seed: int = 0) -> Trace:
    """Draw a twin of a log. No job of it is a job of the log.

    Parameters
    ----------
    trace : the log; jobs whose run time is not known count as arrivals, and are drawn one; others as `rigid` has them
    weeks : length of the twin, going round through the log's weeks; None = the log's own
    seed : of all draws

    Returns
    -------
    The twin, with job_id, pool, submit_time, duration, gpus and, where the log has them, user, state and time_limit_s;
    its pools and users bear the log's names (`words.renamed` replaces them).

    Raises
    ------
    TraceError
        The log holds no job whose run time is known.
    ConfigError
        `weeks` is below 1.
    """
    if weeks is not None and weeks < 1:
        raise ConfigError(f"weeks must be 1 or more, got {weeks}; leave it out for the length of the trace")
    if not trace.ended.any():
        raise TraceError(
            f"{trace.source.path}: no job has a duration, so none can be drawn; give a trace of ended jobs"
        )
    trace, rng = rigid(trace), np.random.default_rng(seed)
    log = Log.of(trace)
    source_h = log.source_hours(weeks)
    bursts, begin_s = _arrivals(log, source_h, weeks is None, rng)
    jobs, submit_s = _members(log, bursts, begin_s, source_h, rng)
    widths = log.gpus.astype(np.float64)
    parts = [(_parts(log, (log.items, jobs), (log.submit_s, submit_s), source_h), BLOCK_VALUES)]
    gpus = draw_like(widths, log.items, jobs, log.kinds(log.items, jobs), rng, shifts=parts).astype(np.int64)
    duration_s = np.round(_run_times(log, jobs, submit_s, gpus, source_h, rng), 3)
    submit_s = _with_room(log, jobs, submit_s, duration_s, gpus, rng)
    # one job of each stream tells its names
    example = log.rows[np.searchsorted(log.items.stream, jobs.stream)]
    names = [name for name in ("pool", "user") if name in trace.jobs.columns]
    submit_s = as_finely(submit_s, log.submit_s)
    stamps = np.round((log.from_s + submit_s) * MICROSECONDS).astype(np.int64)
    frame = (
        trace.jobs[example]
        .select(names)
        .with_columns(
            submit_time=pl.Series(stamps).cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
            duration=pl.Series(duration_s),
            gpus=pl.Series(gpus),
            **_beside(trace, log, jobs, duration_s, rng),
        )
    )
    return numbered(frame, "twin", trace)


def as_finely(times_s: Floats, log_s: Floats) -> Floats:
    """Times in whole seconds where all of a log are, so that jobs of one second stay jobs of one second.

    >>> as_finely(np.array([2.9, 3.1]), np.array([1.0, 8.0])), as_finely(np.array([2.9, 3.1]), np.array([1.5, 8.0]))
    (array([2., 3.]), array([2.9, 3.1]))
    """
    return np.floor(times_s) if np.array_equal(log_s, np.floor(log_s)) else times_s


def numbered(frame: pl.DataFrame, name: str, origin: Trace) -> Trace:
    """A trace of rows without job ids: they are numbers in order of submission, zero-padded."""
    ordered = frame.sort("submit_time", maintain_order=True)
    digits = len(str(max(len(ordered) - 1, 0)))
    ids = pl.Series("job_id", np.arange(len(ordered))).cast(pl.String).str.zfill(digits)
    return Trace.from_frame(
        ordered.insert_column(0, ids), name=name, source=Source(name, origin.source.sha256, len(origin))
    )
