"""What happened in a replay, as columns: all that metrics are computed from."""

from dataclasses import dataclass, replace

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
    """A finished replay. Arrays have shape (n_jobs,), in the workload's order; times in seconds from the epoch.

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
    trace_submit_s : submissions in the trace where the replay was closed-loop, so that its own differ; else None
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
    trace_submit_s: Floats | None = None

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def span_gpus(self) -> Floats:
        """GPUs held in each span, (n_spans,)."""
        return self.gpus[self.spans.seq].astype(np.float64) if self.spans.gpus is None else self.spans.gpus

    @property
    def told_submit_s(self) -> Floats:
        """Submissions as the trace has them, the same in every run of a workload, (n_jobs,) seconds."""
        return self.submit_s if self.trace_submit_s is None else self.trace_submit_s

    @property
    def jct_s(self) -> Floats:
        """Job completion times: end - submission, (n_jobs,) seconds."""
        return self.end_s - self.submit_s

    @property
    def total_gpus(self) -> int:
        """GPUs of all pools."""
        return sum(pool.quota for pool in self.pools)


def in_trace_order(log: RunLog, places: Ints, trace_submit_s: Floats) -> RunLog:
    """The log of a closed-loop replay, brought from the order of arrival into the trace's.

    Parameters
    ----------
    log : in order of arrival
    places : (n_jobs,) position of each of its jobs in the trace
    trace_submit_s : (n_jobs,) submissions in the trace, in its order
    """
    order = np.argsort(places)
    columns = ("submit_s", "start_s", "end_s", "duration_s", "gpus", "pool", "preemptions", "dedicated")
    return replace(
        log,
        **{name: getattr(log, name)[order] for name in columns},
        spans=replace(log.spans, seq=places[log.spans.seq]),
        trace_submit_s=trace_submit_s,
    )
