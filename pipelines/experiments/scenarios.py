"""What a simulation replays: the jobs of a window as the engine of their kind takes them, and how they came about."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Generic, TypeVar

import polars as pl

from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import TraceError
from jobcast.domain.hardware import Cluster
from jobcast.pipelines.experiments.recorded_state import beginning_of, with_recorded
from jobcast.pipelines.report.formatting import counted, iso
from jobcast.simulator.workload import Beginning
from jobcast.traces.table import NO_GPUS, NOT_ENDED, Trace

W = TypeVar("W")
F = TypeVar("F")
NewW = TypeVar("NewW")
NewF = TypeVar("NewF")


@dataclass(frozen=True, slots=True, eq=False)
class Scenario(Generic[W, F]):
    """The jobs of a window and where they run, whatever their kind. Jobs are in order of submission.

    Attributes
    ----------
    workload : as the engine takes it
    facts : what else is known of the jobs, where forecasts or figures ask for it
    trace : the window, before the builder leaves any job out
    whole : the trace that it was cut out of
    place : where the jobs run, as they meet it
    from_s, until_s : the window, seconds from the epoch
    listed : `job_table.LISTED` of each job of the workload
    notes : decisions that a reader of the result should know
    dropped : reason -> number of rows or jobs left out, by the reader or here
    inputs : what is read beside the trace, and else is told of this kind alone
    begin : where jobs stand when runs begin; None: with an empty cluster
    """

    workload: W
    facts: F
    trace: Trace
    whole: Trace
    place: Cluster
    from_s: float
    until_s: float
    listed: pl.DataFrame
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    begin: Beginning | None = None

    def __len__(self) -> int:
        return len(self.listed)

    @property
    def job_ids(self) -> tuple[str, ...]:
        """(n_jobs,) names."""
        return tuple(self.listed["job_id"].to_list())

    @property
    def earlier(self) -> Trace:
        """The trace before the window, for features only: jobs that ask for GPUs, but those that runs begin with."""
        earlier = self.whole.between(None, self.from_s).on_gpus
        if self.begin is None:
            return earlier
        return replace(earlier, jobs=earlier.jobs.filter(~pl.col("job_id").is_in(self.listed["job_id"].implode())))

    def of(
        self,
        workload: NewW,
        facts: NewF,
        *notes: str,
        listed: pl.DataFrame | None = None,
        dropped: Mapping[str, int] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> "Scenario[NewW, NewF]":
        """The same window with a workload; notes and counts come after those that there are, empty notes are none."""
        same: Scenario[Any, Any] = self  # or what is replaced would have to be of its types
        return replace(
            same,
            workload=workload,
            facts=facts,
            listed=self.listed if listed is None else listed,
            # Builders pass "" where there is nothing to say.
            notes=(*self.notes, *(note for note in notes if note)),
            dropped={**self.dropped, **(dropped or {})},
            inputs={**self.inputs, **(inputs or {})},
        )

    def provenance(self) -> dict[str, Any]:
        """Inputs of the simulation, for results: the same whatever the kind, and `inputs`."""
        place = self.place
        return {
            "trace": asdict(self.trace.source),
            "window": {"from": iso(self.from_s), "until": iso(self.until_s)},
            "cluster": place.origin,
            "pools": {pool.name: pool.quota for pool in place.pools},
            "gpus": place.gpus,
            "gpu_types": place.by_type,
            "nodes": len(place.names),
            "pue": place.pue,
            "tariff": {str(hour * HOUR_S): price for hour, price in place.tariff},
            **self.inputs,
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
        }


Bare = Scenario[None, None]
"""A window of which nothing is made yet."""


def cut_scenario(
    trace: Trace,
    place: Cluster,
    *,
    from_s: float | None = None,
    until_s: float | None = None,
    limit: int | None = None,
    recorded: bool = False,
) -> Bare:
    """Cut the window out of a trace; what its jobs are, the builder of their kind says. Raises as `cut_window`."""
    window = cut_window(trace, from_s, until_s, limit, recorded)
    begin_s = float(window.submit_s[0]) if from_s is None else from_s
    # Windows exclude their end.
    end_s = max(float(window.submit_s[-1]), begin_s) + 1.0 if until_s is None else until_s
    amid = beginning_of(window, begin_s) if recorded else None
    dropped, notes = dict(window.dropped), (*window.notes, *_gone(window, place, end_s))
    return Scenario(None, None, window, trace, place, begin_s, end_s, window.jobs, notes, dropped, begin=amid)


def _gone(window: Trace, place: Cluster, end_s: float) -> tuple[str, ...]:
    """A note on pools of the beginning that are gone before jobs of theirs come, which a replay still serves."""
    pools, submit_s = window.jobs["pool"].to_numpy().astype(str), window.submit_s
    gone = place.quotas.gone_between(place.at_s, end_s)
    late = {name: int(((pools == name) & (submit_s >= since_s)).sum()) for name, since_s in gone.items()}
    told = [
        f"{name} from {iso(gone[name])} on ({counted(count, 'job')} after that)"
        for name, count in late.items()
        if count
    ]
    if not told:
        return ()
    return (
        f"warning: pools that are gone within the window keep the GPUs of its beginning: {', '.join(told)}; --until "
        "ends a replay before, --from begins one without them",
    )


def untold(window: Trace, taken: Mapping[str, str]) -> list[str]:
    """What jobs are taken to be where the trace does not say: notes of the columns that it lacks."""
    return [note for column, note in taken.items() if column not in window.jobs.columns]


def cut_window(
    trace: Trace, from_s: float | None, until_s: float | None, limit: int | None = None, recorded: bool = False
) -> Trace:
    """The first `limit` jobs submitted in [from_s, until_s) that can be replayed; the others are counted in `dropped`.

    `recorded`: with the jobs that run or wait at `from_s`, which then is told.

    No law says how a job of cores alone gets on, or when one ends whose run time is not known.

    Raises TraceError where there is none.
    """
    begin_s = from_s if recorded else None
    window = trace.between(from_s, until_s) if begin_s is None else with_recorded(trace, begin_s, until_s)
    known = window.on_gpus
    # Before the limit: so many jobs are wanted that can be replayed.
    known = known.without(~known.ended, NOT_ENDED)
    if limit is not None:
        there = 0 if begin_s is None else int((known.submit_s < begin_s).sum())
        known = replace(known, jobs=known.jobs.head(min(there + limit, len(known))))
    if not len(known):
        where = f"[{iso(from_s) or 'the beginning'}, {iso(until_s) or 'the end'})"
        # Jobs there were, but none to replay: that is told apart from an empty window.
        if len(window):
            plain = int((window.gpus == 0).sum())
            counts = {NO_GPUS: plain, NOT_ENDED: len(window) - plain}
            why = ", ".join(f"{count:,} have {reason}" for reason, count in counts.items() if count)
            raise TraceError(f"{trace.source.path}: no job of {where} can be replayed: {why}; widen --from and --until")
        raise TraceError(f"{trace.source.path}: no job was submitted in {where}; widen --from and --until")
    return known
