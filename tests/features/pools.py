"""Pools, and the features written out plainly: a mask over all events for every number."""

import math

import numpy as np

from jobcast.domain.history import PoolHistory

HOUR, DAY, QUIET = 3600.0, 86400.0, 60 * 86400.0


def pool_of(jobs):
    """History of jobs (submit, start, end, gpus)."""
    rows = np.array(sorted(jobs), np.float64).reshape(-1, 4)
    by_start, by_end = np.argsort(rows[:, 1], kind="stable"), np.argsort(rows[:, 2], kind="stable")
    return PoolHistory(
        arrival_s=rows[:, 0].copy(),
        arrival_gpus=rows[:, 3].copy(),
        start_s=rows[by_start, 1],
        end_s=rows[by_start, 2],
        completion_s=rows[by_end, 2],
        completion_duration_s=(rows[:, 2] - rows[:, 1])[by_end],
    )


def arrived(arrival_s, gpus=1.0, run_s=None):
    """History of jobs that started at once; without run times, of their arrivals alone."""
    arrival_s, run = np.sort(np.asarray(arrival_s, np.float64)), np.empty(0)
    start_s = run
    if run_s is not None:
        start_s, run = arrival_s, np.zeros_like(arrival_s) + run_s
    return PoolHistory(arrival_s, np.zeros_like(arrival_s) + gpus, start_s, start_s + run, start_s + run, run)


def known_at(history, t):
    """What a run had seen by t: nothing later; jobs that run on have no end."""
    arrived, started, ended = history.arrival_s <= t, history.start_s <= t, history.completion_s <= t
    ends = history.end_s[started]
    return PoolHistory(
        history.arrival_s[arrived],
        history.arrival_gpus[arrived],
        history.start_s[started],
        np.where(ends > t, np.inf, ends),
        history.completion_s[ended],
        history.completion_duration_s[ended],
    )


def random_pool(seed, n_jobs, style):
    """Jobs over a few days, with ties on purpose: whole minutes, whole seconds, any instants, or bursts."""
    rng = np.random.default_rng(seed)
    submit = rng.uniform(0, rng.choice([0.2, 3.0, 9.0]) * DAY, n_jobs)
    wait = rng.exponential(600, n_jobs) * rng.integers(0, 2, n_jobs)
    duration = 1.0 + rng.lognormal(6, 2, n_jobs)
    if style == "bursts":
        submit = np.repeat(submit, 3)[:n_jobs]
    grain = {"minutes": 60.0, "seconds": 1.0, "instants": 0.0, "bursts": 0.5}[style]
    if grain:
        submit, wait, duration = (np.ceil(v / grain) * grain for v in (submit, wait, duration))
    start = submit + wait
    return pool_of(zip(submit, start, start + duration, rng.integers(1, 9, n_jobs), strict=True))


def plain_features(history, t, k):
    """The row at t for horizon k, by name."""
    a, g, c = history.arrival_s, history.arrival_gpus, history.completion_s
    row = {}
    for unit, period in (("h", HOUR), ("d", DAY)):
        for x in (1, 2, 3):
            row[f"arrivals_{x}{unit}_ago"] = np.sum((a > t - x * period) & (a <= min(t - x * period + k, t)))
    for x in (1, 10, 100):
        row[f"arrivals_last_{x}k"] = np.sum((a >= t - x * k) & (a <= t))
        row[f"completions_last_{x}k"] = np.sum((c >= t - x * k) & (c <= t))
    row["expected_completions_within_k"], row["expected_completions_later"] = _plain_running(history, t, k)
    day, week = 2 * math.pi * (t % DAY) / DAY, 2 * math.pi * ((t + 3 * DAY) % (7 * DAY)) / (7 * DAY)
    row |= {"hour_sin": math.sin(day), "hour_cos": math.cos(day)}
    row |= {"week_sin": math.sin(week), "week_cos": math.cos(week)}
    row["weekend"] = float((math.floor(t / DAY) + 3) % 7 >= 5)
    past = a[a <= t]
    waited = t - past[-1] if past.size else QUIET
    row["log_since_arrival_s"] = math.log1p(min(waited, QUIET))
    row["log_since_completion_s"] = math.log1p(min(t - c[c <= t][-1], QUIET) if np.any(c <= t) else QUIET)
    recent = np.diff(past)[-20:]
    some = recent if recent.size else np.array([QUIET])
    row["log_mean_gap_s"], row["log_median_gap_s"] = math.log1p(some.mean()), math.log1p(np.median(some))
    row["cv_gap"] = some.std() / some.mean() if some.mean() > 0 else 0.0
    row["log_last_gap_s"] = math.log1p(some[-1])
    gaps = np.diff(past)[-200:]
    mean = gaps.mean() if gaps.size else QUIET
    guess = 1 - math.exp(-k / mean) if mean > 0 else 1.0
    within = np.sum((gaps > waited) & (gaps <= waited + k))
    row["renewal_probability"] = (within + guess) / (np.sum(gaps > waited) + 1)
    row["log_arrivals_per_hour_7d"] = math.log((1 + np.sum((a > t - 7 * DAY) & (a <= t))) / 168)
    row["log_gpus_last_1k"] = math.log1p(np.sum(g[(a >= t - k) & (a <= t)]))
    return row


def _plain_running(history, t, k):
    within = later = 0
    for start, end in zip(history.start_s, history.end_s, strict=True):
        if start <= t < end:
            known = history.completion_duration_s[history.completion_s <= start][-50:]
            expected = math.exp(np.mean(np.log(known))) if known.size else HOUR
            age = t - start
            soon = (expected - age if expected > age else age) <= k
            within, later = within + soon, later + (not soon)
    return within, later
