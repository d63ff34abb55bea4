"""Finish-time fairness of a replay. Shockwave, section 2.1 and appendix G.2; Themis (NSDI 2020)."""

import numpy as np

from jobcast.simulator.log import Bools, Floats, RunLog
from jobcast.simulator.metrics import Figures, after_warmup

UNFAIR_ABOVE = (1.00, 1.05, 1.10)
"""Thresholds of unfair jobs; the published fractions of Shockwave match its own data at the last."""


def static_contention(log: RunLog) -> float:
    """Jobs / GPUs of the whole run, at least 1: nobody's fair share is more than what it asks for."""
    return max(1.0, len(log) / log.total_gpus)


def lifetime_contention(log: RunLog) -> Floats:
    """Jobs pending or running / GPUs, averaged over each job's own life, at least 1, (n_jobs,). Appendix G.2.

    NaN for a job that never ran.
    """
    ran = np.isfinite(log.end_s)
    instants = np.unique(np.concatenate([log.submit_s, log.end_s[ran]]))
    present = np.searchsorted(np.sort(log.submit_s), instants, side="right")
    present = present - np.searchsorted(np.sort(log.end_s[ran]), instants, side="right")
    summed = np.concatenate([[0.0], np.cumsum(present[:-1] * np.diff(instants))])  # job-seconds up to each instant
    lived = np.interp(log.end_s, instants, summed) - np.interp(log.submit_s, instants, summed)
    means: Floats = np.maximum(1.0, lived / log.jct_s / log.total_gpus)
    return means


def finish_time_fairness(log: RunLog, contention: float | Floats, exclusive_s: Floats | None = None) -> Floats:
    """JCT / (run time alone on the GPUs that it asks for x contention), (n_jobs,); above 1 is unfair.

    Parameters
    ----------
    log : a finished replay
    contention : jobs that share a GPU, one for all or (n_jobs,)
    exclusive_s : (n_jobs,) run times alone, where they are other than those that the replay executed
    """
    rho: Floats = log.jct_s / ((log.duration_s if exclusive_s is None else exclusive_s) * contention)
    return rho


def fairness(log: RunLog, warmup_until_s: float | None = None, exclusive_s: Floats | None = None) -> Figures:
    """Worst and mean finish-time fairness, and the percentages of jobs above each of `UNFAIR_ABOVE`.

    By the static contention factor, and with the suffix `_lifetime` by each job's own. NaN where no job ran.
    """
    counted = after_warmup(log, warmup_until_s) & np.isfinite(log.end_s)
    static = finish_time_fairness(log, static_contention(log), exclusive_s)
    lifetime = finish_time_fairness(log, lifetime_contention(log), exclusive_s)
    return _figures(static, counted, "") | _figures(lifetime, counted, "_lifetime")


def _figures(rho: Floats, counted: Bools, suffix: str) -> Figures:
    of = rho[counted]
    if not len(of):
        worst = mean = np.nan
    else:
        worst, mean = float(of.max()), float(of.mean())
    unfair = {
        f"unfair_pct_{round(100 * limit)}{suffix}": float(100.0 * (of > limit).mean()) if len(of) else np.nan
        for limit in UNFAIR_ABOVE
    }
    return {f"worst_ftf{suffix}": worst, f"mean_ftf{suffix}": mean} | unfair
