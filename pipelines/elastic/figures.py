"""Figures of a run of elastic jobs: errors of forecasts made at submission, unfairness, and those of any run."""

from typing import Any

import numpy as np

from jobcast.domain.elastic import Floats
from jobcast.domain.jobs import Pool
from jobcast.simulator.elastic.run import ElasticLog
from jobcast.simulator.log import SPEEDUP, RunLog, flat_spans
from jobcast.simulator.metrics import summary

FLAT = "all"


def errors_pct(log: ElasticLog) -> Floats:
    """Errors of forecasts, % of the forecast: |predicted JCT - JCT| / predicted JCT, (n_jobs,). PCS, section 2.2."""
    predicted_s = log.predicted_end_s - log.submit_s
    return 100.0 * np.abs(log.end_s - log.predicted_end_s) / predicted_s


def fair_finish_s(log: ElasticLog, *, over_time: bool = False) -> Floats:
    """Run time on a fair share: size / min(GPUs / mean number of active jobs, most), (n_jobs,) seconds.

    The mean is over events, as in the published runs, or over time, which does not depend on how often others come.
    """
    contention = log.contention_time if over_time else log.contention_events
    return log.size_s / np.minimum(log.gpus / contention, log.most)


def unfairness_pct(log: ElasticLog, *, over_time: bool = False) -> Floats:
    """By how much a job exceeds its fair finish time, % of that, 0 where it does not; (n_jobs,). PCS, section 5.1."""
    fair_s = fair_finish_s(log, over_time=over_time)
    return 100.0 * np.maximum(log.end_s - log.submit_s - fair_s, 0.0) / fair_s


def elastic_figures(log: ElasticLog) -> dict[str, Any]:
    """The figures of PCS, section 5.1: errors where forecasts were made, unfairness by both means."""
    errors = errors_pct(log)[np.isfinite(log.predicted_end_s)]
    figures = {}
    if len(errors):
        figures = {
            "pred_err_mean_pct": float(errors.mean()),
            "pred_err_p50_pct": float(np.percentile(errors, 50)),
            "pred_err_p90_pct": float(np.percentile(errors, 90)),
            "pred_err_p99_pct": float(np.percentile(errors, 99)),
        }
    for name, over_time in (("", False), ("_over_time", True)):
        unfair = unfairness_pct(log, over_time=over_time)
        figures |= {
            f"unfairness_mean_pct{name}": float(unfair.mean()),
            f"unfairness_p99_pct{name}": float(np.percentile(unfair, 99)),
        }
    return figures


def run_log(log: ElasticLog, policy: str, origin_s: float = 0.0) -> RunLog:
    """As a log of the kind that all metrics read: a job's GPUs are their mean between its start and its end."""
    count = len(log)
    held_s = np.maximum(log.end_s - log.start_s, 1e-12)
    return RunLog(
        policy=policy,
        pools=(Pool(FLAT, round(log.gpus)),),
        submit_s=log.submit_s + origin_s,
        start_s=log.start_s + origin_s,
        end_s=log.end_s + origin_s,
        duration_s=log.size_s,
        gpus=log.most.astype(np.int64),
        pool=np.zeros(count, dtype=np.int64),
        preemptions=log.preemptions,
        dedicated=np.ones(count, dtype=np.bool_),
        spans=flat_spans(np.arange(count), log.start_s + origin_s, log.end_s + origin_s, log.gpu_s / held_s),
        events=log.events,
        law=SPEEDUP,
    )


def all_figures(log: ElasticLog, policy: str, warmup_until_s: float | None = None) -> dict[str, Any]:
    """The figures of any run, then those of elastic ones; `warmup_until_s` from the run's beginning."""
    counted = log if warmup_until_s is None else log.after(warmup_until_s)
    return {**summary(run_log(log, policy), warmup_until_s), **elastic_figures(counted)}
