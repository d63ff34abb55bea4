"""What happened in a replay, as columns: all that metrics are computed from.

Spans in other orders, those that go on alike in one, and those of GPUs that tasks share.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.law import RUNTIME
from jobcast.domain.tasks import QUEUED


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
        return self.gpus * (self.until_s - self.from_s)


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
    law : how jobs progressed, one of the names in `domain.law`
    columns : what meters and users add, (n_jobs,) each, by the names below
    totals : what counts the whole run alone: how many `decisions` the policy was asked for, `decision_s` and
        `decision_max_s`, seconds of CPU that they and the longest of them took, which differ from run to run;
        `overloads`, servers overloaded after a decision, summed over decisions; `energy_kwh` drawn by all nodes from
        the first submission to the last completion, idle ones too, without PUE, and `energy_eur`, its cost with PUE

    Notes
    -----
    Columns that a log may have beside those of every run:

    - `due_s`: due date, seconds from the epoch, infinite without one
    - `weight`: urgency of MLFS; EUR an hour of tardiness of ANDREAS
    - `target`: accuracy that is required, NaN where none is
    - `exclusive_s`: run time alone that fairness is measured by, seconds, where other than duration_s
    - `predicted_end_s`: completion as forecast at submission, seconds from the epoch, NaN without forecast
    - `worst_case_end_s`: latest completion as promised at submission, seconds from the epoch, infinite without
      promise
    - `renewed_end_s`: the same as promised anew when the configuration changed, NaN where it was not
    - `predicted_jct_low_s`: lower end of its 90 % interval, seconds from the submission, NaN without forecast
    - `predicted_jct_high_s`: upper end, alike
    - `forecast_duration_s`: run time as it was first forecast, seconds, NaN where it was not asked for
    - `bins_off`: duration bin less the one first forecast: above 0 for a job that outlives it; NaN where none was
    - `forecast_accuracy`: accuracy after all iterations as it was first forecast, NaN where it was not
    - `final_accuracy`: that accuracy in truth
    - `epoch_time_err_pct`: error of seconds an epoch as forecast, % of the true ones, mean over GPU types and
      numbers
    - `recorded_start_s`: start in the trace, seconds from the epoch, NaN where it tells none
    - `contention_events`: mean number of active jobs over the events of the job's life
    - `gpu_s`: GPU-seconds held, where spans are not kept in full
    - `ran_s`: seconds in which all its tasks were on GPUs
    - `used_gpu_s`: GPU-seconds used by tasks, a GPU never by more than it has
    - `migrations`: moves to other GPUs without waiting
    - `lost_epochs`: done after the last snapshot, and done again
    - `energy_kwh`: share of what its nodes drew, without PUE
    - `energy_eur`: cost of that, with PUE
    - `edge_mb`: MB sent between servers by iterations
    - `moved_mb`: MB sent by tasks that moved
    - `iterations`: that the job would run
    - `done`: iterations that it ran
    - `accuracy`: at its end
    - `deadline_accuracy`: by its due date
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


def joined(spans: Spans) -> Spans:
    """The same spans in a log's order; those of a job that follow one another on as many GPUs of a node in one.

    Empty ones are left out. Of one job and node they must not overlap.

    >>> two = Spans(*(np.array(column) for column in ([0, 0], [5.0, 0.0], [9.0, 5.0], [2.0, 2.0], [1, 1])))
    >>> one = joined(two)
    >>> one.from_s.tolist(), one.until_s.tolist()
    ([0.0], [9.0])
    """
    kept = np.flatnonzero(spans.until_s > spans.from_s)
    # By job, then node, then time: neighbours that touch can be joined.
    held = _taken(spans, kept[np.lexsort((spans.from_s[kept], spans.node[kept], spans.job[kept]))])
    begins = np.ones(len(held), dtype=np.bool_)
    # Exactly equal: both are the same instant of the engine, not computed twice.
    begins[1:] = held.from_s[1:] != held.until_s[:-1]
    for column in (held.job, held.node, held.gpus):
        begins[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(held))[: len(first)] - 1
    # The first begins it, the last ends it.
    whole = replace(_taken(held, first), until_s=held.until_s[last])
    return _taken(whole, np.lexsort((whole.node, whole.job, whole.until_s)))


def by_job(spans: Spans) -> Spans:
    """The same spans by job, then by begin, then by node."""
    return _taken(spans, np.lexsort((spans.node, spans.from_s, spans.job)))


def _taken(spans: Spans, rows: Ints) -> Spans:
    return Spans(spans.job[rows], spans.from_s[rows], spans.until_s[rows], spans.gpus[rows], spans.node[rows])


class _Cells(NamedTuple):
    """Stretches cut wherever another of the same key begins or ends: (n_cells,) each.

    `row` : stretch that a cell is of; `slot` : cells of one key and time have the same; `from_s`, `until_s` : when
    """

    row: Ints
    slot: Ints
    from_s: Floats
    until_s: Floats


def _cut(key: Ints, from_s: Floats, until_s: Floats) -> _Cells:
    """Cells of stretches, none of them empty."""
    keys, at_s = np.concatenate([key, key]), np.concatenate([from_s, until_s])
    order = np.lexsort((at_s, keys))
    keys, at_s = keys[order], at_s[order]
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]) | (at_s[1:] != at_s[:-1])
    place = np.empty(len(order), dtype=np.int64)
    # Equal edges of one key share a place.
    place[order] = np.cumsum(fresh) - 1
    instants_s = at_s[fresh]
    first, count = place[: len(key)], place[len(key) :] - place[: len(key)]
    row = np.repeat(np.arange(len(key)), count)
    # Each stretch covers the places from its begin up to its end.
    slot = first[row] + np.arange(len(row)) - (np.cumsum(count) - count)[row]
    return _Cells(row, slot, instants_s[slot], instants_s[slot + 1])


def task_spans(moves: Floats, job_of: Ints, server_of: Ints, until_s: float) -> Spans:
    """GPUs of servers that jobs held, in seconds of the moves.

    A GPU that holds tasks of k jobs counts 1/k for each of them, however many tasks each has on it and however much
    of it they use; a parameter server is a task like others. A job holds GPUs while any task of it is on one.

    Parameters
    ----------
    moves : (n_moves, 3) all that ever happened, of each task in order of time: task (from the end where it is
        negative), the GPU that it is on from then on or `QUEUED`, and when
    job_of : (n_tasks,) whose task it is
    server_of : (n_gpus,) server of each GPU
    until_s : when tasks that are on GPUs at the end are seen last
    """
    task, gpu, from_s = moves[np.argsort(moves[:, 0], kind="stable")].T
    task, gpu = task.astype(np.int64), gpu.astype(np.int64)
    # A task stays until its next move; the last one of each task until the end.
    ends_s = np.append(from_s[1:], until_s)
    ends_s[:-1][task[1:] != task[:-1]] = until_s
    there = (gpu != QUEUED) & (ends_s > from_s)
    job, gpu = job_of[task[there]], gpu[there]
    on_gpu = _cut(gpu, from_s[there], ends_s[there])
    # Several tasks of a job on a GPU are one holder.
    _, one = np.unique(on_gpu.slot * len(job_of) + job[on_gpu.row], return_index=True)  # a job once a GPU
    slot, row = on_gpu.slot[one], on_gpu.row[one]
    share = 1.0 / np.bincount(slot)[slot]
    return _by_server(job[row], server_of[gpu[row]], share, on_gpu.from_s[one], on_gpu.until_s[one])


def _by_server(job: Ints, server: Ints, share: Floats, from_s: Floats, until_s: Floats) -> Spans:
    """Shares of GPUs added up by job and server; of equal sets of shares the sums are equal to the bit."""
    servers = int(server.max(initial=0)) + 1
    cells = _cut(job * servers + server, from_s, until_s)
    # Shares in ascending order: sums of equal sets do not depend on the order of tasks.
    order = np.lexsort((share[cells.row], cells.slot))
    row, slot = cells.row[order], cells.slot[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = slot[1:] != slot[:-1]
    first = np.flatnonzero(begins)
    gpus = np.add.reduceat(share[row], first) if len(first) else np.zeros(0)
    at = order[first]
    return joined(Spans(job[row[first]], cells.from_s[at], cells.until_s[at], gpus, server[row[first]]))
