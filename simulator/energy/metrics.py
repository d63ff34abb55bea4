"""Figures of a replay of jobs with due dates on unlike nodes: pure functions of its log. ANDREAS, section V."""

import numpy as np

from jobcast.domain.energy import HOUR_S, Floats
from jobcast.simulator.log import RunLog

LATE_DUST_S = 1e-3
"""A due date is met that is missed by less than this: dust of adding floats up differently is less."""
MS_PER_S = 1e3

EnergyFigures = dict[str, float]


def energy_metrics(log: RunLog, warmup_until_s: float | None = None) -> EnergyFigures:
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
    whole, totals = warmup_until_s is None, log.totals
    energy_kwh, energy_eur = (
        totals[name] if whole else float(log.columns[name][counted].sum()) for name in ("energy_kwh", "energy_eur")
    )
    late_eur = float(tardiness_eur(log)[counted].sum())
    late_s = tardiness_s(log)[counted & np.isfinite(log.columns["due_s"])]
    return (
        {"jobs": int(counted.sum())}
        | _times(log, np.flatnonzero(counted))
        | {
            "events": log.events,
            "energy_kwh": energy_kwh,
            "energy_eur": energy_eur,
            "tardiness_eur": late_eur,
            "total_eur": energy_eur + late_eur,
            "late_pct": 100.0 * _mean((late_s > LATE_DUST_S).astype(np.float64)),
            "tardiness_mean_s": _mean(late_s),
            "preemptions": int(log.preemptions[counted].sum()),
            "migrations": int(log.columns["migrations"][counted].sum()),
            "decision_ms_mean": MS_PER_S * totals["decision_s"] / log.events if log.events else np.nan,
            "decision_ms_max": MS_PER_S * totals["decision_max_s"],
        }
    )


def tardiness_s(log: RunLog) -> Floats:
    """tau_j: by how much jobs end after their due dates, (n_jobs,) seconds; 0 without a due date."""
    late_s: Floats = np.maximum(0.0, log.end_s - log.columns["due_s"])
    return late_s


def tardiness_eur(log: RunLog) -> Floats:
    """omega_j tau_j: what being late costs, (n_jobs,) EUR. ANDREAS, equation 1."""
    cost_eur: Floats = log.columns["weight"] * (tardiness_s(log) / HOUR_S)
    return cost_eur


_TIMES = ("makespan_s", "mean_jct_s", "p50_jct_s", "p99_jct_s", "mean_wait_s", "utilization")


def _times(log: RunLog, jobs: np.ndarray) -> EnergyFigures:
    if not len(jobs):
        return dict.fromkeys(_TIMES, np.nan)
    begin_s, end_s = float(log.submit_s[jobs].min()), float(log.end_s[jobs].max())
    jct_s, spans, makespan_s = log.jct_s[jobs], log.spans, end_s - begin_s
    held_s = np.clip(spans.until_s, begin_s, end_s) - np.clip(spans.from_s, begin_s, end_s)
    median, tail = np.percentile(jct_s, (50.0, 99.0))
    values = (
        makespan_s,
        jct_s.mean(),
        median,
        tail,
        (log.start_s - log.submit_s)[jobs].mean(),
        held_s @ spans.gpus / (log.total_gpus * makespan_s) if makespan_s > 0.0 else np.nan,
    )
    return dict(zip(_TIMES, map(float, values), strict=True))


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else np.nan
