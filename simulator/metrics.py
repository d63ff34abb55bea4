"""Figures of a replay: pure functions of its log, and of the log of a baseline on the same workload."""

import numpy as np

from jobcast.simulator.log import Bools, Floats, RunLog

SLOWED_TOLERANCE_S = 1e-3
"""A job counts as slowed when its JCT is longer by more than this: dust of adding floats up differently is less."""
MINUTE_S = 60.0
SPEEDUP_TAILS = (5.0, 95.0)  # percentiles; SIA, table 17

Figures = dict[str, float]


def after_warmup(log: RunLog, warmup_until_s: float | None) -> Bools:
    """Jobs submitted at or after the end of the warm-up, (n_jobs,); all of them without one. SIA, section 6.1.

    In a closed-loop run the trace's submissions decide, so that the same jobs count whatever the policy.
    """
    return np.ones(len(log), dtype=np.bool_) if warmup_until_s is None else log.told_submit_s >= warmup_until_s


def summary(log: RunLog, warmup_until_s: float | None = None) -> Figures:
    """Figures of a run alone, over the jobs submitted after the warm-up.

    `jobs` counts them; `makespan_s` is from the first submission to the last completion, `utilization` the share of
    all GPU time in that stretch that was used (by any job); `events` counts those of the whole run. Jobs that never
    ran are left out of times. NaN where no job is left.
    """
    counted = after_warmup(log, warmup_until_s)
    ran = counted & np.isfinite(log.end_s)
    begin_s, end_s = _stretch(log, ran)
    return (
        {"jobs": int(counted.sum())}
        | _job_figures(log, ran)
        | {
            "makespan_s": end_s - begin_s,
            "utilization": _used_gpu_s(log, begin_s, end_s) / (log.total_gpus * (end_s - begin_s)),
            "events": log.events,
        }
    )


def pool_summaries(log: RunLog, warmup_until_s: float | None = None) -> dict[str, Figures]:
    """Figures by pool, names ascending: jobs, JCT and wait; `utilization` is use by its jobs / its quota."""
    counted = after_warmup(log, warmup_until_s)
    begin_s, end_s = _stretch(log, counted & np.isfinite(log.end_s))
    figures = {}
    for index, pool in enumerate(log.pools):
        mine = counted & (log.pool == index)
        used = _used_gpu_s(log, begin_s, end_s, log.pool == index)
        share = used / (pool.quota * (end_s - begin_s)) if pool.quota else np.nan
        ran = mine & np.isfinite(log.end_s)
        figures[pool.name] = {"jobs": int(mine.sum())} | _job_figures(log, ran) | {"utilization": float(share)}
    return figures


def against_baseline(log: RunLog, base: RunLog, warmup_until_s: float | None = None) -> Figures:
    """Speedups and slowdowns of the jobs against a baseline. SIA, sections 4.1 and 6.1, table 17.

    A job's speedup is JCT under the baseline / JCT. `slowed_pct` is the share of jobs that take longer from submission
    to completion by any second (`SLOWED_TOLERANCE_S`), the slowdowns are by how much, in minutes. In closed-loop runs
    a job's two submissions differ; each JCT counts from its own.

    Raises
    ------
    ValueError
        The logs are not of the same jobs.
    """
    counted = after_warmup(log, warmup_until_s) & same_jobs(log, base)
    jct_s, base_s = log.jct_s[counted], base.jct_s[counted]
    if not len(jct_s):
        return dict.fromkeys(_AGAINST, np.nan)
    speedups, later_s = base_s / jct_s, jct_s - base_s
    slowed = later_s > SLOWED_TOLERANCE_S
    low, high = np.percentile(speedups, SPEEDUP_TAILS)
    values = (
        speedups.mean(),
        np.exp(np.log(speedups).mean()),
        low,
        high,
        100.0 * slowed.mean(),
        later_s[slowed].sum() / MINUTE_S,
        later_s[slowed].max(initial=0.0) / MINUTE_S,
    )
    return dict(zip(_AGAINST, map(float, values), strict=True))


_AGAINST = (
    "speedup_mean",
    "speedup_gmean",
    "speedup_p5",
    "speedup_p95",
    "slowed_pct",
    "slowdown_total_min",
    "slowdown_max_min",
)


def ends_against_baseline(log: RunLog, base: RunLog, warmup_until_s: float | None = None) -> Figures:
    """How much earlier jobs of closed-loop runs complete than under a baseline, whenever they were submitted.

    JCTs leave out what a closed loop adds up: a job that is submitted earlier, for what it follows ended earlier, may
    take longer and still complete before. `ends_earlier_mean_s` is the mean of (completion under the baseline -
    completion), `ends_later_pct` the share of jobs that complete later by more than `SLOWED_TOLERANCE_S`. In an open
    loop they would be the difference of mean JCTs and `slowed_pct`.

    Raises
    ------
    ValueError
        The logs are not of the same jobs.
    """
    counted = after_warmup(log, warmup_until_s) & same_jobs(log, base)
    if not counted.any():
        return dict.fromkeys(("ends_earlier_mean_s", "ends_later_pct"), np.nan)
    earlier_s = (base.end_s - log.end_s)[counted]
    later = -earlier_s > SLOWED_TOLERANCE_S
    return {"ends_earlier_mean_s": float(earlier_s.mean()), "ends_later_pct": float(100.0 * later.mean())}


def same_jobs(log: RunLog, base: RunLog) -> Bools:
    """Jobs that ran in both runs, (n_jobs,).

    Raises ValueError when the logs are not of the same jobs, or one of them is of a closed-loop replay alone.
    """
    alike = (
        len(log) == len(base)
        and (log.trace_submit_s is None) == (base.trace_submit_s is None)
        and np.array_equal(log.told_submit_s, base.told_submit_s)
        and np.array_equal(log.duration_s, base.duration_s)
    )
    if not alike:
        raise ValueError(f"runs of {log.policy} and {base.policy} are not of the same jobs; replay one workload")
    return np.isfinite(log.end_s) & np.isfinite(base.end_s)


def utilization_over_time(log: RunLog, step_s: float) -> tuple[Floats, Floats]:
    """Begins of steps from the first submission on, seconds, and the mean share of GPUs in use in each; (n_steps,)."""
    begin_s, end_s = _stretch(log, np.isfinite(log.end_s))
    steps = max(1, int(np.ceil((end_s - begin_s) / step_s)))
    edges = begin_s + step_s * np.arange(steps + 1, dtype=np.float64)
    instants = np.concatenate([log.spans.from_s, log.spans.until_s])
    changes = np.concatenate([log.spans.gpus, -log.spans.gpus])
    order = np.argsort(instants, kind="stable")
    instants, busy = instants[order], np.cumsum(changes[order])
    used = np.concatenate([[0.0], np.cumsum(busy[:-1] * np.diff(instants))])
    shares: Floats = np.diff(np.interp(edges, instants, used)) / (step_s * log.total_gpus)
    return edges[:-1], shares


def _stretch(log: RunLog, ran: Bools) -> tuple[float, float]:
    if not ran.any():
        return np.nan, np.nan
    return float(log.submit_s[ran].min()), float(log.end_s[ran].max())


def _job_figures(log: RunLog, ran: Bools) -> Figures:
    if not ran.any():
        return dict.fromkeys(("mean_jct_s", "p50_jct_s", "p99_jct_s", "mean_wait_s"), np.nan)
    jct_s = log.jct_s[ran]
    p50, p99 = np.percentile(jct_s, (50, 99))
    return {
        "mean_jct_s": float(jct_s.mean()),
        "p50_jct_s": float(p50),
        "p99_jct_s": float(p99),
        "mean_wait_s": float((log.start_s - log.submit_s)[ran].mean()),
    }


def _used_gpu_s(log: RunLog, begin_s: float, end_s: float, of: Bools | None = None) -> float:
    """GPU-seconds held in [begin_s, end_s], by the jobs of a mask or by all."""
    spans = log.spans
    held_s = np.clip(spans.until_s, begin_s, end_s) - np.clip(spans.from_s, begin_s, end_s)
    gpus = spans.gpus if of is None else spans.gpus * of[spans.job]
    return float(held_s @ gpus)
