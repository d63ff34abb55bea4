"""Figures of a replay of jobs with due dates on unlike nodes: pure functions of its log. ANDREAS, section V."""

import numpy as np

from jobcast.domain.energy import Floats
from jobcast.simulator.energy.log import EnergyLog

LATE_DUST_S = 1e-3
"""A due date is met that is missed by less than this: dust of adding floats up differently is less."""
MS_PER_S = 1e3

EnergyFigures = dict[str, float]


def energy_metrics(log: EnergyLog, warmup_until_s: float | None = None) -> EnergyFigures:
    """Figures of a run, over the jobs submitted at or after the end of the warm-up (seconds from the epoch).

    Of these jobs: `jobs`; `makespan_s` from the first submission to the last completion; `mean_jct_s`, `p50_jct_s`,
    `p99_jct_s`; `mean_wait_s` until the first start; `utilization`, the share of all GPU time in the makespan that was
    held by any job; `energy_kwh`, what nodes drew, without PUE, and `energy_eur`, its cost with PUE: all of it without
    a warm-up, the jobs' shares with one; `tardiness_eur`; `total_eur`, both; `late_pct` of the jobs with a due date
    and their `tardiness_mean_s`, the jobs in time counting 0; `preemptions`, `migrations`.

    Of the whole run: `events`, the decisions asked for; `decision_ms_mean`, `decision_ms_max` milliseconds of CPU for
    one. NaN where there is nothing to take the mean of.
    """
    counted = np.ones(len(log), dtype=np.bool_) if warmup_until_s is None else log.submit_s >= warmup_until_s
    whole = warmup_until_s is None
    energy_kwh = float((log.node_energy_kwh if whole else log.energy_kwh[counted]).sum())
    energy_eur = float((log.node_energy_eur if whole else log.energy_eur[counted]).sum())
    tardiness_eur = float(log.tardiness_eur[counted].sum())
    due = counted & np.isfinite(log.due_s)
    tardiness_s = log.tardiness_s[due]
    return (
        {"jobs": int(counted.sum())}
        | _times(log, np.flatnonzero(counted))
        | {
            "events": log.decisions,
            "energy_kwh": energy_kwh,
            "energy_eur": energy_eur,
            "tardiness_eur": tardiness_eur,
            "total_eur": energy_eur + tardiness_eur,
            "late_pct": 100.0 * _mean((tardiness_s > LATE_DUST_S).astype(np.float64)),
            "tardiness_mean_s": _mean(tardiness_s),
            "preemptions": int(log.preemptions[counted].sum()),
            "migrations": int(log.migrations[counted].sum()),
            "decision_ms_mean": MS_PER_S * log.decision_s / log.decisions if log.decisions else np.nan,
            "decision_ms_max": MS_PER_S * log.decision_max_s,
        }
    )


_TIMES = ("makespan_s", "mean_jct_s", "p50_jct_s", "p99_jct_s", "mean_wait_s", "utilization")


def _times(log: EnergyLog, jobs: np.ndarray) -> EnergyFigures:
    if not len(jobs):
        return dict.fromkeys(_TIMES, np.nan)
    begin_s, end_s = float(log.submit_s[jobs].min()), float(log.end_s[jobs].max())
    jct_s, segments, makespan_s = log.jct_s[jobs], log.segments, end_s - begin_s
    held_s = np.clip(segments.until_s, begin_s, end_s) - np.clip(segments.from_s, begin_s, end_s)
    median, tail = np.percentile(jct_s, (50.0, 99.0))
    values = (
        makespan_s,
        jct_s.mean(),
        median,
        tail,
        (log.start_s - log.submit_s)[jobs].mean(),
        held_s @ segments.gpus / (log.gpus * makespan_s) if makespan_s > 0.0 else np.nan,
    )
    return dict(zip(_TIMES, map(float, values), strict=True))


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else np.nan
