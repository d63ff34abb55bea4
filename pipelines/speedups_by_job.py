"""Completion times of jobs against those under a baseline, of engines whose jobs all end."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PERCENTILES = (5.0, 95.0)


class EndedJobs(Protocol):
    """A log; arrays are (n_jobs,), seconds."""

    @property
    def submit_s(self) -> Floats: ...  # noqa: D102
    @property
    def end_s(self) -> Floats: ...  # noqa: D102
    @property
    def jct_s(self) -> Floats: ...  # noqa: D102


def speedups(log: EndedJobs, base: EndedJobs, warmup_until_s: float | None = None) -> dict[str, float]:
    """JCT under the baseline over JCT: mean, geometric mean and percentiles; and the share of jobs that end later.

    Jobs submitted before the end of the warm-up do not count; some job must.
    """
    counted = log.submit_s >= (-np.inf if warmup_until_s is None else warmup_until_s)
    gains = base.jct_s[counted] / log.jct_s[counted]
    low, high = np.percentile(gains, PERCENTILES)
    return {
        "speedup_mean": float(gains.mean()),
        "speedup_gmean": float(np.exp(np.log(gains).mean())),
        "speedup_p5": float(low),
        "speedup_p95": float(high),
        "slowed_pct": 100.0 * float((log.end_s > base.end_s)[counted].mean()),
    }
