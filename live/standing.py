"""A run that stands where a cluster stands: what policies decide on beside a running cluster, and futures fork from."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Grant
from jobcast.live.event_log import START, Event
from jobcast.live.recorded_jobs import recorded_jobs
from jobcast.simulator.engine import Simulation, Stand
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.simulator.workload import Workload

LEAST_S = 1.0
"""How much longer a job runs that has outlived what is believed of it."""


def standing(
    events: Iterable[Event],
    now_s: float,
    pools: Sequence[Pool],
    policy: Any,
    source: ForecastSource | None,
    believed_s: Callable[[Job], float],
) -> Simulation:
    """A run at an instant, before its policy is asked: `look()` tells the view, `fork()` gives futures.

    Of events that were not known by then, and of jobs that were known to have ended, no trace is left but in its
    history. The same events make the same run, in whatever order jobs' submissions and ends stand; starts of one
    instant keep theirs.

    Parameters
    ----------
    events : of the cluster; a start whose facts have `dedicated` False holds spare GPUs
    now_s : seconds from the epoch
    pools : with their quotas as of now
    believed_s : how long a job runs in all, seconds

    Raises
    ------
    PoolsError, TraceError
        A job's pool has no quota, or a smaller one than the job is wide.
    DecisionError
        Jobs hold more GPUs than there are. More than their pool's quota they may hold: it may have been lowered.
    """
    known = [event for event in events if event.known_s <= now_s]
    jobs = recorded_jobs(known)
    # An end is known or it is not: NaN where nobody told of one.
    ended = np.isfinite(jobs.known_s)
    since_s = {job.job_id: min(start_s, now_s) for job, start_s in zip(jobs.jobs, jobs.start_s.tolist(), strict=True)}
    there = [job for job, over in zip(jobs.jobs, ended.tolist(), strict=True) if not over and job.submit_s <= now_s]
    outcomes = [Outcome(_run_s(believed_s(job), now_s - since_s[job.job_id])) for job in there]
    workload = Workload(there, outcomes, pools)
    workload.check()
    history = RunHistory([pool.name for pool in pools], _only(jobs, ended))
    held = {job.job_id: job for job in workload.jobs if not np.isnan(since_s[job.job_id])}
    stands = {
        held[name].seq: Stand(now_s - since_s[name], Grant(held[name].gpus, dedicated=dedicated), since_s[name])
        for name, dedicated in sorted(_dedicated(known).items(), key=lambda row: since_s.get(row[0], now_s))
        if name in held
    }
    return Simulation(workload, policy, source, history).begin(now_s, stands)


def _run_s(believed_s: float, ran_s: float) -> float:
    """Run time of a job that has run so long, NaN where it waits."""
    # A comparison with NaN is false: who waits runs as believed.
    return ran_s + LEAST_S if believed_s < ran_s + LEAST_S else believed_s


def _dedicated(events: Sequence[Event]) -> dict[str, bool]:
    """By job, whether its GPUs count against its pool's quota, by the last start that is known."""
    starts = sorted((one for one in events if one.kind == START), key=lambda one: (one.known_s, one.at_s))
    return {event.job_id: event.facts.get("dedicated", True) for event in starts}


def _only(jobs: EarlierJobs, wanted: np.ndarray) -> EarlierJobs:
    """Some of the jobs, by a mask."""
    kept = [jobs.jobs[row] for row in np.flatnonzero(wanted).tolist()]
    return EarlierJobs(kept, jobs.start_s[wanted], jobs.known_s[wanted], jobs.duration_s[wanted])
