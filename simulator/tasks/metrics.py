"""Figures of a replay of jobs of tasks: pure functions of its log. MLFS, section 4.1."""

import numpy as np

from jobcast.domain.tasks import Bools, Floats
from jobcast.simulator.tasks.log import TaskLog

URGENT = 8.0
"""Levels of urgency above this are urgent. MLFS, section 4.1."""
DUST_S = 1e-3
"""A deadline is met that is missed by less than this: dust of adding floats up differently is less."""
DUST = 1e-9
"""The same of a required accuracy."""
MB_PER_TB = 1e6
MS_PER_S = 1e3

TaskFigures = dict[str, float]


def task_metrics(log: TaskLog, warmup: float | None = None) -> TaskFigures:
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
    counted = log if warmup is None else log.after(warmup)
    makespan_s = float(log.end_s.max() - log.submit_s.min())
    return (
        {"jobs": len(counted), "makespan_s": makespan_s}
        | _times(counted)
        | {"utilization": float(log.gpu_s.sum()) / (log.gpus * makespan_s) if makespan_s > 0.0 else np.nan}
        | _requirements(counted)
        | _costs(counted)
        | {
            "overloads": log.overloads,
            "decisions": log.decisions,
            "decision_ms_mean": MS_PER_S * log.decision_s / log.decisions if log.decisions else np.nan,
        }
    )


def _times(log: TaskLog) -> TaskFigures:
    median, late = np.percentile(log.jct_s, (50.0, 99.0)) if len(log) else (np.nan, np.nan)
    return {
        "mean_jct_s": _mean(log.jct_s),
        "p50_jct_s": float(median),
        "p99_jct_s": float(late),
        "mean_wait_s": _mean(log.waited_s),
    }


def _requirements(log: TaskLog) -> TaskFigures:
    due, required = np.isfinite(log.deadline_s), np.isfinite(log.target)
    met = log.end_s <= log.deadline_s + DUST_S
    accurate = log.deadline_accuracy >= log.target - DUST
    return {
        "deadline_ratio": _mean(met[due]),
        "urgent_deadline_ratio": _mean(met[due & (log.urgency > URGENT)]),
        "accuracy_mean": _mean(log.deadline_accuracy),
        "accuracy_ratio": _mean(accurate[required]),
    }


def _costs(log: TaskLog) -> TaskFigures:
    saved = log.iterations - log.done
    wanted = float(log.iterations.sum())
    return {
        "bandwidth_tb": float(log.edge_mb.sum() + log.moved_mb.sum()) / MB_PER_TB,
        "migrations": int(log.migrations.sum()),
        "preemptions": int(log.preemptions.sum()),
        "stopped_early": int((saved > DUST * log.iterations).sum()),
        "iterations_saved": float(saved.sum()) / wanted if wanted > 0.0 else np.nan,
    }


def _mean(values: Floats | Bools) -> float:
    return float(values.mean()) if len(values) else np.nan
