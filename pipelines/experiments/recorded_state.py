"""Runs that begin amid things: with the jobs that a trace has running and waiting at an instant.

A job that runs there holds its GPUs since its recorded start, one that waits has waited since its submission; the
policy decides from that instant on. How long a job runs that has no end yet nobody knows: replays assume something.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.law import RUNTIME
from jobcast.pipelines.report.formatting import iso
from jobcast.schedulers.policies import KINDS, POOLS, PolicySpec
from jobcast.simulator.workload import Beginning
from jobcast.traces.table import OPEN_NOTE, Trace

if TYPE_CHECKING:
    from jobcast.pipelines.experiments.experiment import Experiment

ASSUMED = "run times of jobs without an end are assumed"
"""How the note on them begins."""
RULE = (
    "the median of the ended jobs of their pool that ran longer than they have by the trace's end (of all pools where "
    "it has none, twice what they have run where nobody has), at most their time limit"
)
HELD = "held (waiting with priority 0)"
LEAST_S = 1.0
"""How much longer a job runs that has reached its limit."""


def check_beginning(experiment: "Experiment", rule: PolicySpec) -> None:
    """Refuse a policy whose runs cannot begin amid things. Raises ConfigError that says why."""
    if experiment.recorded and rule.kind != POOLS:
        who = KINDS[rule.kind].title
        raise ConfigError(f"policy {rule.name}: policies {who} begin with an empty cluster; leave it out, or --begin")


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
