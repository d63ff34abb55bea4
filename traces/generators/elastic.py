"""What generators of elastic jobs share: arrivals at a rate or to a load, and the canonical table."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.traces.generators.job_columns import JobColumns, canonical_frame

HOUR_S = 3600.0
LEAST_GPUS = 0
"""Elastic jobs may be left without GPUs at any time, as in PCS's published traces."""


def instants_s(gaps: Floats, mean_s: float) -> Floats:
    """(n_jobs,) arrivals, the first at 0, from n_jobs - 1 gaps of mean 1.

    >>> instants_s(np.array([0.5, 1.5]), 60.0).tolist()
    [0.0, 30.0, 120.0]
    """
    return np.concatenate([[0.0], np.cumsum(gaps)]) * mean_s


def instants_at_load_s(gaps: Floats, service_s: Floats, gpus: int, load: float) -> Floats:
    """(n_jobs,) arrivals, the first at 0, at which services / (span x GPUs) is `load` but for microseconds.

    Exponential gaps so stretched are a Poisson process, given that a job arrives at either end.

    Parameters
    ----------
    gaps : (n_jobs - 1,) relative to one another
    service_s : (n_jobs,) seconds on one GPU
    gpus, load : as said, > 0
    """
    total = float(gaps.sum())
    if total <= 0.0:
        return np.zeros(len(service_s))
    return instants_s(gaps, float(service_s.sum()) / (load * gpus) / total)


def elastic_frame(
    pool: str, start: datetime, submit_s: Floats, service_s: Floats, most: NDArray[np.int64], told: Mapping[str, Any]
) -> pl.DataFrame:
    """Canonical table of elastic jobs, ids by submission.

    Parameters
    ----------
    pool, start : of all; the instant from which `submit_s` counts
    submit_s : (n_jobs,) ascending, so that rows stay in place
    service_s : (n_jobs,) seconds on one GPU
    most : (n_jobs,) GPUs
    told : further columns by name, each (n_jobs,)
    """
    text, no = np.full(len(most), ""), np.zeros(len(most), dtype=np.bool_)
    jobs = JobColumns(submit_s, service_s, most, no, np.full(len(most), pool), text, text)
    least = pl.Series("min_gpus", np.full(len(most), LEAST_GPUS), dtype=pl.Int64)
    columns = [least, *(pl.Series(name, values) for name, values in told.items())]
    return canonical_frame(jobs, start).drop("user", "tag", "state").with_columns(columns)
