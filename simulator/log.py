"""What happened in a replay, as columns: all that metrics are computed from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.jobs import Pool

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Stretches of time in which jobs held their GPUs; one a job unless it was stopped. In order of their ends.

    Attributes
    ----------
    seq : (n_spans,) the job
    start_s, end_s : (n_spans,) seconds from the epoch
    gpus : (n_spans,) GPUs held, None where they are the jobs' widths; of an elastic job their mean
    """

    seq: Ints
    start_s: Floats
    end_s: Floats
    gpus: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RunLog:
    """A finished replay. Arrays have shape (n_jobs,), in order of `seq`; times in seconds from the epoch.

    Attributes
    ----------
    policy : its name
    pools : names ascending
    submit_s, start_s, end_s : submission, first start, completion; the last two NaN for a job that never ran
    duration_s : run time on the GPUs that the job asked for
    gpus : widths
    pool : index into `pools`
    preemptions : how often the job was stopped
    dedicated : whether it last started against its pool's quota, not on spare GPUs
    spans : when jobs held their GPUs
    events : arrivals, completions, stops and wake-ups that were handled
    """

    policy: str
    pools: tuple[Pool, ...]
    submit_s: Floats
    start_s: Floats
    end_s: Floats
    duration_s: Floats
    gpus: Ints
    pool: Ints
    preemptions: Ints
    dedicated: Bools
    spans: Spans
    events: int

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def span_gpus(self) -> Floats:
        """GPUs held in each span, (n_spans,)."""
        return self.gpus[self.spans.seq].astype(np.float64) if self.spans.gpus is None else self.spans.gpus

    @property
    def jct_s(self) -> Floats:
        """Job completion times: end - submission, (n_jobs,) seconds."""
        return self.end_s - self.submit_s

    @property
    def total_gpus(self) -> int:
        """GPUs of all pools."""
        return sum(pool.quota for pool in self.pools)
