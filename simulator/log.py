"""What happened in a replay, as columns: all that metrics are computed from."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.law import EPOCHS as EPOCHS
from jobcast.domain.law import GOODPUT as GOODPUT
from jobcast.domain.law import RUNTIME
from jobcast.domain.law import SPEEDUP as SPEEDUP
from jobcast.domain.law import TASKS as TASKS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Stretches of time in which jobs held GPUs: (n_spans,) each, in order of their ends, then of jobs and nodes.

    Of one job they may lie side by side, on several nodes.

    Attributes
    ----------
    job : position in the log
    from_s, until_s : seconds from the epoch
    gpus : held, a share of one where tasks of several jobs share it
    node : where, -1 where GPUs are known by number alone
    """

    job: Ints
    from_s: Floats
    until_s: Floats
    gpus: Floats
    node: Ints

    def __len__(self) -> int:
        return len(self.job)

    @property
    def gpu_s(self) -> Floats:
        """GPU-seconds held, (n_spans,)."""
        held: Floats = self.gpus * (self.until_s - self.from_s)
        return held


def flat_spans(job: Ints, from_s: Floats, until_s: Floats, gpus: Floats | Ints) -> Spans:
    """Spans on GPUs that are known by number alone."""
    return Spans(job, from_s, until_s, np.asarray(gpus, dtype=np.float64), np.full(len(job), -1, dtype=np.int64))


def spans_of(rows: "array[float]") -> Spans:
    """Spans of rows of job, begin, end, GPUs, node, one after the other."""
    # Copied by column, so that each is contiguous.
    job, from_s, until_s, gpus, node = np.array(rows).reshape(-1, 5).T.copy()
    return Spans(job.astype(np.int64), from_s, until_s, gpus, node.astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class RunLog:
    """A finished replay, whatever engine made it. Arrays have shape (n_jobs,), in the workload's order; times in
    seconds from the epoch.

    Attributes
    ----------
    policy : its name
    pools : names ascending; one of all GPUs where quotas are ignored
    submit_s, start_s, end_s : submission, first start, completion; the last two NaN for a job that never ran
    duration_s : run time alone on the GPUs that the job asked for
    gpus : widths asked for; of a job that scales the most that it uses
    pool : index into `pools`
    preemptions : how often the job was stopped, or held fewer GPUs than before
    dedicated : whether it last started against its pool's quota, not on spare GPUs
    spans : who held what, where, when
    events : arrivals, completions, stops, decisions and wake-ups that were handled
    trace_submit_s : submissions in the trace where the replay was closed-loop, so that its own differ; else None
    begin_s : when the run began amid things; None: with the first submission
    law : how jobs progressed, one of the names above
    columns : what meters and users add, (n_jobs,) each, by the names of `COLUMNS`
    totals : what counts the whole run alone, by the names of `TOTALS`
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
    begin_s: float | None = None
    law: str = RUNTIME
    columns: Mapping[str, Floats] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.submit_s)

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


def facts_of(jobs: Sequence[Job], outcomes: Sequence[Outcome], pools: Sequence[Pool]) -> dict[str, Any]:
    """Fields of a log that do not depend on the run."""
    index = {pool.name: position for position, pool in enumerate(pools)}
    return {
        "pools": tuple(pools),
        "submit_s": np.array([job.submit_s for job in jobs], dtype=np.float64),
        "duration_s": np.array([outcome.duration_s for outcome in outcomes], dtype=np.float64),
        "gpus": np.array([job.gpus for job in jobs], dtype=np.int64),
        "pool": np.array([index[job.pool] for job in jobs], dtype=np.int64),
    }


def in_trace_order(log: RunLog, places: Ints, trace_submit_s: Floats) -> RunLog:
    """The log of a closed-loop replay, brought from the order of arrival into the trace's.

    Parameters
    ----------
    log : in order of arrival
    places : (n_jobs,) position of each of its jobs in the trace
    trace_submit_s : (n_jobs,) submissions in the trace, in its order
    """
    # Places is a permutation: sorting it inverts it.
    order = np.argsort(places)
    columns = ("submit_s", "start_s", "end_s", "duration_s", "gpus", "pool", "preemptions", "dedicated")
    return replace(
        log,
        **{name: getattr(log, name)[order] for name in columns},
        spans=replace(log.spans, job=places[log.spans.job]),
        columns={name: column[order] for name, column in log.columns.items()},
        trace_submit_s=trace_submit_s,
    )


COLUMNS = {
    "due_s": "due date, seconds from the epoch, infinite without one",
    "weight": "urgency of MLFS; EUR an hour of tardiness of ANDREAS",
    "target": "accuracy that is required, NaN where none is",
    "exclusive_s": "run time alone that fairness is measured by, seconds, where other than duration_s",
    "predicted_end_s": "completion as forecast at submission, seconds from the epoch, NaN without forecast",
    "worst_case_end_s": "latest completion as promised at submission, seconds from the epoch, infinite without promise",
    "renewed_end_s": "the same as promised anew when the configuration changed, NaN where it was not",
    "predicted_jct_low_s": "lower end of its 90 % interval, seconds from the submission, NaN without forecast",
    "predicted_jct_high_s": "upper end, alike",
    "forecast_duration_s": "run time as it was first forecast, seconds, NaN where it was not asked for",
    "bins_off": "duration bin less the one first forecast: above 0 for a job that outlives it; NaN where none was",
    "forecast_accuracy": "accuracy after all iterations as it was first forecast, NaN where it was not",
    "final_accuracy": "that accuracy in truth",
    "epoch_time_err_pct": "error of seconds an epoch as forecast, % of the true ones, mean over GPU types and numbers",
    "recorded_start_s": "start in the trace, seconds from the epoch, NaN where it tells none",
    "contention_events": "mean number of active jobs over the events of the job's life",
    "gpu_s": "GPU-seconds held, where spans are not kept in full",
    "ran_s": "seconds in which all its tasks were on GPUs",
    "used_gpu_s": "GPU-seconds used by tasks, a GPU never by more than it has",
    "migrations": "moves to other GPUs without waiting",
    "lost_epochs": "done after the last snapshot, and done again",
    "energy_kwh": "share of what its nodes drew, without PUE",
    "energy_eur": "cost of that, with PUE",
    "edge_mb": "MB sent between servers by iterations",
    "moved_mb": "MB sent by tasks that moved",
    "iterations": "that the job would run",
    "done": "iterations that it ran",
    "accuracy": "at its end",
    "deadline_accuracy": "by its due date",
}
"""Columns that a log may have beside those of every run: name -> meaning and unit."""
TOTALS = {
    "decisions": "that the policy was asked for",
    "decision_s": "seconds of CPU that they took; differs from run to run",
    "decision_max_s": "seconds of CPU of the longest; differs from run to run",
    "overloads": "servers overloaded after a decision, summed over decisions",
    "energy_kwh": "drawn by all nodes from the first submission to the last completion, idle ones too, without PUE",
    "energy_eur": "cost of that, with PUE",
}
"""Figures of a whole run that a log may have: name -> meaning and unit."""
