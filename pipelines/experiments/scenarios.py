"""What a simulation replays: the jobs of a window as the engine of their kind takes them, and how they came about.

Runs may begin amid things, with the jobs that a trace has running and waiting at an instant: a job that runs there
holds its GPUs since its recorded start, one that waits has waited since its submission; the policy decides from that
instant on. How long a job runs that has no end yet nobody knows: replays assume something.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import Cluster
from jobcast.domain.law import RUNTIME
from jobcast.pipelines.report.formatting import counted, iso
from jobcast.simulator.workload import Beginning
from jobcast.traces.table import NO_GPUS, NOT_ENDED, OPEN_NOTE, Trace

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
        wider = "" if from_s is None and until_s is None else "; widen --from and --until"
        # Jobs there were, but none to replay: that is told apart from an empty window.
        if len(window):
            plain = int((window.gpus == 0).sum())
            counts = {NO_GPUS: plain, NOT_ENDED: len(window) - plain}
            why = ", ".join(f"{count:,} have {reason}" for reason, count in counts.items() if count)
            raise TraceError(f"{trace.source.path}: no job of {where} can be replayed: {why}{wider}")
        raise TraceError(f"{trace.source.path}: no job was submitted in {where}{wider}")
    return known


ASSUMED = "run times of jobs without an end are assumed"
"""How the note on them begins."""
RULE = (
    "the median of the ended jobs of their pool that ran longer than they have by the trace's end (of all pools where "
    "it has none, twice what they have run where nobody has), at most their time limit"
)
HELD = "held (waiting with priority 0)"
LEAST_S = 1.0
"""How much longer a job runs that has reached its limit."""


def check_recorded(from_s: float | None, law: str | None, max_think_s: float | None, local: bool) -> None:
    """Refuse what a run that begins amid things cannot be. Raises ConfigError."""
    if from_s is None:
        raise ConfigError("--begin recorded: needs the instant; add --from TIME")
    if law not in (None, RUNTIME):
        raise ConfigError(f"--begin recorded: a trace tells run times, no progress under --law {law}; drop one")
    if max_think_s is not None:
        raise ConfigError("--begin recorded --closed-loop: whom jobs that are there followed is past; drop one")
    if local:
        raise ConfigError("--begin recorded --set locality=true: no trace tells on which GPUs jobs lie; drop one")


def with_recorded(trace: Trace, at_s: float, until_s: float | None) -> Trace:
    """Jobs that run or wait at an instant, and those submitted from then on until another; all have run times.

    Where the trace tells when jobs became eligible, those that were not yet arrive then; held ones are left out and
    counted. Run times that are not known are `assumed_s`.

    Raises TraceError for a trace without starts.
    """
    if "start_time" not in trace.jobs.columns:
        raise TraceError(f"{trace.source.path}: tells no start_time, so that nobody knows who ran; add the column")
    before, start_s = trace.submit_s < at_s, trace.start_s
    runs, waits = before & (start_s <= at_s) & (trace.end_s > at_s), before & (start_s > at_s)
    held = waits & np.isinf(start_s) & (trace.numbers("priority", np.nan) == 0.0)
    late = pl.Series(waits & (trace.eligible_s > at_s))
    wanted = runs | waits | (~before & (trace.submit_s < (np.inf if until_s is None else until_s)))
    jobs = trace.jobs.with_columns(
        # An empty start of a job that ran stands for its submission.
        start_time=pl.when(pl.Series(runs)).then(pl.coalesce("start_time", "submit_time")).otherwise("start_time"),
        submit_time=pl.when(late).then("eligible_time").otherwise("submit_time") if late.any() else "submit_time",
        duration=pl.Series(assumed_s(trace, at_s)),
    )
    notes = [f"began with the jobs of {iso(at_s)}: {int(runs.sum()):,} running, {int((waits & ~held).sum()):,} waiting"]
    if count := int((wanted & ~held & ~trace.ended & (trace.gpus > 0)).sum()):
        notes.append(f"{ASSUMED}, those of {count:,} jobs: {RULE}")
    # Which says that replays leave them out.
    said = (note for note in trace.notes if not note.startswith(OPEN_NOTE))
    result = replace(trace, jobs=jobs, notes=(*said, *notes)).without(held, HELD)
    kept = result.jobs.filter(pl.Series(wanted[~held]))
    return replace(result, jobs=kept.sort("submit_time", "job_id", maintain_order=True))


def assumed_s(trace: Trace, at_s: float) -> Floats:
    """Run times in seconds, (n_jobs,), by `RULE` where they are not known.

    Parameters
    ----------
    at_s : what jobs have run is counted to the trace's last event, at least to this instant, seconds from the epoch
    """
    ended, run_s, start_s = trace.ended, trace.duration_s.copy(), trace.start_s
    told_s = np.concatenate([trace.submit_s, start_s, trace.end_s])
    last_s = max(at_s, float(told_s[np.isfinite(told_s)].max()))
    limit_s, pools = trace.numbers("time_limit_s", np.inf), trace.jobs["pool"].to_numpy()
    everybody = np.sort(run_s[ended])
    known = {pool: np.sort(run_s[ended & (pools == pool)]) for pool in set(pools[~ended])}
    for job in np.flatnonzero(~ended):
        ran_s = max(0.0, last_s - start_s[job])
        beyond = (_median_beyond(known[pools[job]], ran_s), _median_beyond(everybody, ran_s), 2.0 * ran_s, LEAST_S)
        assumed = next(seconds for seconds in beyond if seconds > 0.0)
        run_s[job] = max(min(assumed, limit_s[job]), ran_s + LEAST_S)
    return run_s


def _median_beyond(ascending_s: Floats, ran_s: float) -> float:
    """Median of those that are longer, NaN where none is.

    >>> _median_beyond(np.array([1.0, 5.0, 7.0, 9.0]), 5.0), _median_beyond(np.array([1.0]), 1.0)
    (8.0, nan)
    """
    longer = ascending_s[np.searchsorted(ascending_s, ran_s, side="right") :]
    # The middle of what is sorted already.
    return float(longer[(len(longer) - 1) // 2] + longer[len(longer) // 2]) / 2.0 if len(longer) else float("nan")


def beginning_of(window: Trace, at_s: float) -> Beginning:
    """Where the jobs of `with_recorded` stand. What a job has done is in proportion where it runs for less than lies
    between its start and end, for it was stopped in between, nobody knows when."""
    start_s, run_s = window.start_s, window.duration_s
    began = window.jobs["start_time"].is_not_null().to_numpy() & (start_s <= at_s) & (window.submit_s < at_s)
    jobs = np.flatnonzero(began)
    done_s = run_s[jobs] * (at_s - start_s[jobs]) / (window.end_s[jobs] - start_s[jobs])
    names = window.jobs["job_id"].gather(jobs).to_list()
    rows = zip(names, start_s[jobs].tolist(), done_s.tolist(), strict=True)
    return Beginning(at_s, {name: (since_s, done) for name, since_s, done in rows})
