"""Figures of a replay of jobs of tasks: pure functions of its log. MLFS, section 4.1."""

import numpy as np

from jobcast.domain.tasks import Bools, Floats
from jobcast.simulator.log import RunLog

URGENT = 8.0
"""Levels of urgency above this are urgent. MLFS, section 4.1."""
DUST_S = 1e-3
"""A deadline is met that is missed by less than this: dust of adding floats up differently is less."""
DUST = 1e-9
"""The same of a required accuracy."""
MB_PER_TB = 1e6
MS_PER_S = 1e3

TaskFigures = dict[str, float]


def task_metrics(log: RunLog, warmup: float | None = None) -> TaskFigures:
    """Figures of a run, over the jobs submitted at or after the end of the warm-up (seconds from the epoch).

    Of these jobs: `jobs`; `mean_jct_s`, `p50_jct_s`, `p99_jct_s`; `mean_wait_s`, with no task on a GPU;
    `deadline_ratio` and `urgent_deadline_ratio`, shares of those with a deadline (and urgency above 8) that end by it;
    `accuracy_mean` by the deadline, `accuracy_ratio` the share of those with a required accuracy that have it by then;
    `bandwidth_tb` between servers; `migrations` of tasks, `preemptions`; `stopped_early` counts those with iterations
    left, `iterations_saved` is their share of all iterations.

    Of the whole run: `makespan_s` from the first submission to the last completion, `utilization` the share of all
    GPU time in it that was used, `overloads` servers overloaded after a decision, `decisions`, `decision_ms_mean`
    milliseconds of CPU for one. NaN where there is nothing to take the mean of.
    """
    counted = np.ones(len(log), dtype=np.bool_) if warmup is None else log.submit_s >= warmup
    makespan_s = float(log.end_s.max() - log.submit_s.min())
    used_gpu_s, decisions = float(log.columns["used_gpu_s"].sum()), log.totals["decisions"]
    return (
        {"jobs": int(counted.sum()), "makespan_s": makespan_s}
        | _times(log, counted)
        | {"utilization": used_gpu_s / (log.total_gpus * makespan_s) if makespan_s > 0.0 else np.nan}
        | _requirements(log, counted)
        | _costs(log, counted)
        | {
            "overloads": int(log.totals["overloads"]),
            "decisions": int(decisions),
            "decision_ms_mean": MS_PER_S * log.totals["decision_s"] / decisions if decisions else np.nan,
        }
    )


def queued_s(log: RunLog) -> Floats:
    """Seconds from submission to completion in which a job held nothing, (n_jobs,)."""
    spans = log.spans
    job, at_s = np.concatenate([spans.job, spans.job]), np.concatenate([spans.from_s, spans.until_s])
    change = np.repeat([1, -1], len(spans))
    order = np.lexsort((at_s, job))
    holds = np.cumsum(change[order]) > 0  # each job's changes add up to 0: the sum starts anew
    lasted_s = np.diff(at_s[order], append=0.0)
    return log.jct_s - np.bincount(job[order], np.where(holds, lasted_s, 0.0), minlength=len(log))


def _times(log: RunLog, counted: Bools) -> TaskFigures:
    jct_s = log.jct_s[counted]
    median, late = np.percentile(jct_s, (50.0, 99.0)) if len(jct_s) else (np.nan, np.nan)
    return {
        "mean_jct_s": _mean(jct_s),
        "p50_jct_s": float(median),
        "p99_jct_s": float(late),
        "mean_wait_s": _mean(queued_s(log)[counted]),
    }


def _requirements(log: RunLog, counted: Bools) -> TaskFigures:
    due_s, target, accuracy = (log.columns[name] for name in ("due_s", "target", "deadline_accuracy"))
    due, required = counted & np.isfinite(due_s), counted & np.isfinite(target)
    met = log.end_s <= due_s + DUST_S
    return {
        "deadline_ratio": _mean(met[due]),
        "urgent_deadline_ratio": _mean(met[due & (log.columns["weight"] > URGENT)]),
        "accuracy_mean": _mean(accuracy[counted]),
        "accuracy_ratio": _mean((accuracy >= target - DUST)[required]),
    }


def _costs(log: RunLog, counted: Bools) -> TaskFigures:
    kept = {name: column[counted] for name, column in log.columns.items()}
    saved = kept["iterations"] - kept["done"]
    wanted = float(kept["iterations"].sum())
    return {
        "bandwidth_tb": float(kept["edge_mb"].sum() + kept["moved_mb"].sum()) / MB_PER_TB,
        "migrations": int(kept["migrations"].sum()),
        "preemptions": int(log.preemptions[counted].sum()),
        "stopped_early": int((saved > DUST * kept["iterations"]).sum()),
        "iterations_saved": float(saved.sum()) / wanted if wanted > 0.0 else np.nan,
    }


def _mean(values: Floats | Bools) -> float:
    return float(values.mean()) if len(values) else np.nan
