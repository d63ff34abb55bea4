"""What a simulation replays: jobs of a window, quotas, and what came before as history for features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.hardware import FLAT_POOL
from jobcast.domain.jobs import Outcome, Pool
from jobcast.pipelines.job_table import listed
from jobcast.pipelines.scaling_jobs import ScalingJobs
from jobcast.pipelines.times import iso
from jobcast.pipelines.training_jobs import planned_run_times, training_workload
from jobcast.simulator.workload import Workload, drop_too_wide, pools_only
from jobcast.traces.successors import find_successors
from jobcast.traces.table import Trace
from jobcast.traces.throughputs import TrainingTables
from jobcast.traces.trainings import Trainings

LOOP_NOTE = "closed loop"
"""How a note about who follows whom begins."""


@dataclass(frozen=True, slots=True)
class TrainingWindow:
    """A window of training jobs: its trace, the tables that told of them, and what they told."""

    trace: Trace
    tables: TrainingTables
    trainings: Trainings


@dataclass(frozen=True, slots=True)
class Scene:
    """A workload, the trace before it, and how both came about.

    Attributes
    ----------
    workload : jobs submitted in [from_s, until_s), their durations, and the quotas
    earlier : the trace before from_s, for features only
    from_s, until_s : the window, seconds from the epoch
    notes : decisions that a reader of the result should know
    dropped : reason -> number of rows or jobs left out, by the reader or here
    training : of the window's training jobs, where tables told of them
    preemptible_told : whether the trace says which jobs may be stopped
    planned_s : job id -> seconds that a training job would take alone as planned, where courses were planned
    nodes : (nodes, GPUs of each) by group, empty where GPUs are known by number alone
    cells : by pool, GPUs of each cell that its quota is made of, where that is told
    scaling : of jobs that run on any number of GPUs, where tables told of them
    """

    workload: Workload
    earlier: Trace
    from_s: float
    until_s: float
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    training: TrainingWindow | None = None
    preemptible_told: bool = False
    planned_s: Mapping[str, float] = field(default_factory=dict)
    nodes: tuple[tuple[int, int], ...] = ()
    cells: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    scaling: ScalingJobs | None = None

    @property
    def closed(self) -> bool:
        """Whether jobs arrive after those that they follow, not when the trace says."""
        return self.workload.successions is not None

    def listed(self) -> pl.DataFrame:
        """What a table of jobs takes from the trace: `job_table.LISTED`."""
        return listed(self.workload)

    def provenance(self) -> dict[str, Any]:
        """Inputs of the simulation, for results."""
        source = self.earlier.source
        return {
            "trace": {"path": source.path, "sha256": source.sha256, "rows": source.rows},
            "window": {"from": iso(self.from_s), "until": iso(self.until_s)},
            "pools": {pool.name: pool.quota for pool in self.workload.pools},
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
        }


def cut_window(trace: Trace, from_s: float | None, until_s: float | None, limit: int | None = None) -> Trace:
    """The first `limit` jobs submitted in [from_s, until_s). Raises TraceError where there is none."""
    window = trace.between(from_s, until_s)
    if limit is not None:
        window = replace(window, jobs=window.jobs.head(min(limit, len(window))))
    if not len(window):
        where = f"[{iso(from_s) or 'the beginning'}, {iso(until_s) or 'the end'})"
        raise TraceError(f"{trace.source.path}: no job was submitted in {where}; widen --from and --until")
    return window


def window_told(window: Trace) -> dict[str, Any]:
    """A trace and the stretch of submissions that was replayed of it, for results."""
    source, submit_s = window.source, window.submit_s
    return {
        "trace": {"path": source.path, "sha256": source.sha256, "rows": source.rows},
        "window": {"from": iso(float(submit_s[0])), "until": iso(float(submit_s[-1]) + 1.0)},
    }


def build_scene(
    trace: Trace,
    pools: Sequence[Pool],
    *,
    origin: str = "",
    flat: bool = False,
    from_s: float | None = None,
    until_s: float | None = None,
    limit: int | None = None,
    drop_wide: bool = False,
    only_pools: bool = False,
    tables: TrainingTables | None = None,
    nodes: tuple[tuple[int, int], ...] = (),
    max_think_s: float | None = None,
) -> Scene:
    """Cut the window out of a trace and check it against the quotas.

    With `max_think_s` jobs follow others where somebody thought no longer than that; see `find_successors`.

    Raises TraceError when the window holds no job, a job is wider than its pool, or a pool has no capacity.
    """
    as_told, loop = trace, ""
    if flat:
        trace = replace(trace, jobs=trace.jobs.with_columns(pool=pl.lit(FLAT_POOL)))
    window = cut_window(trace, from_s, until_s, limit)
    jobs, durations = window.to_jobs()
    workload = Workload(jobs, [Outcome(float(d)) for d in durations], list(pools))
    trainings, planned_s = None, {}
    if tables is not None:
        workload, trainings = training_workload(workload, window, tables)
        planned_s = planned_run_times(window, tables)
    dropped = dict(trace.dropped)
    for asked, rule, reason in (
        (only_pools, pools_only, "of pools without capacity"),
        (drop_wide, drop_too_wide, "wider than their pool"),
    ):
        if asked:
            workload, count = rule(workload)
            dropped[reason] = count
    _check(workload, trace)
    if not workload.jobs:
        raise TraceError(f"{trace.source.path}: no job of the window is left to replay; check the pools file")
    if max_think_s is not None:
        workload, loop = _closed(workload, cut_window(as_told, from_s, until_s, limit), max_think_s)
    begin = from_s if from_s is not None else float(window.submit_s[0])
    end = until_s if until_s is not None else float(window.submit_s[-1]) + 1.0
    told = trainings.notes if trainings is not None else ()
    notes = tuple(note for note in (*trace.notes, *told, origin and f"quotas: {origin}", loop) if note)
    return Scene(
        workload,
        trace.between(None, begin),
        begin,
        end,
        notes,
        dropped,
        None if trainings is None or tables is None else TrainingWindow(window, tables, trainings),
        preemptible_told="preemptible" in window.jobs.columns,
        planned_s=planned_s,
        nodes=nodes,
    )


def _closed(workload: Workload, window: Trace, max_think_s: float) -> tuple[Workload, str]:
    """The workload with who follows whom among its jobs, and that in words; pools are those of the trace."""
    kept = [job.job_id for job in workload.jobs]
    found = find_successors(replace(window, jobs=window.jobs.filter(pl.col("job_id").is_in(kept))), max_think_s)
    told = (
        f"{LOOP_NOTE}: {len(found.successions):,} of {len(kept):,} jobs follow others, after at most {max_think_s:g} s "
        f"of thought; {found.timers} users keep to a timer"
    )
    return replace(workload, successions=found.successions), told


def _check(workload: Workload, trace: Trace) -> None:
    """Refuse jobs that can never run, naming the trace that they come from."""
    try:
        workload.check()
    except (PoolsError, TraceError) as error:
        raise type(error)(f"{trace.source.path}: {error}") from None
