"""What a look at a Slurm tells that was not known: events for the log."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jobcast.domain.jobs import Pool
from jobcast.live.event_log import CHANGE, END, GPUS, LOOK, QUOTA, REQUEUE, START, SUBMIT, Event
from jobcast.live.job_record import JobRecord
from jobcast.live.leases import on_lease, pool_of
from jobcast.live.recorded_jobs import ClusterRecord
from jobcast.live.slurm import Snapshot
from jobcast.live.state import State
from jobcast.traces.readers.slurm_queue import QueuedJob
from jobcast.traces.table import Trace

TICK_S = 0.001
"""Between two jobs that were submitted within a second."""
LOOK_S = 20.0
"""Between two events that tell only that somebody looked."""
NUMBER = re.compile(r"\d+")
"""Ids are made of some: 7, 7_3 of an array, 7+1 of several parts."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time of forecasts against that of the cluster: replays of traces run many times as fast.

    Attributes
    ----------
    scale : seconds of forecasts a second of the cluster
    from_s, model_s : an instant of the cluster, and what it is to forecasts, seconds from the epoch
    """

    scale: float = 1.0
    from_s: float = 0.0
    model_s: float = 0.0

    def model(self, at_s: float) -> float:
        """An instant of the cluster as forecasts count it."""
        return self.model_s + (at_s - self.from_s) * self.scale

    def real(self, at_s: float) -> float:
        """An instant of forecasts as the cluster counts it."""
        return self.from_s + (at_s - self.model_s) / self.scale


REAL = Clock()


def news(
    snapshot: Snapshot, record: ClusterRecord | State, pools: Sequence[Pool], pool_by: str, clock: Clock = REAL
) -> list[Event]:
    """Events of the jobs that ask for GPUs, of quotas and of nodes, known from when the look began.

    A job that the controller has forgotten and that was not over has ended by now, as far as anybody can tell.
    """
    now_s = clock.model(snapshot.at_s)
    found = [
        Event(now_s, QUOTA, pool.name, now_s, {"gpus": pool.quota})
        for pool in pools
        if record.quotas.get(pool.name) != pool.quota
    ]
    if record.gpus != snapshot.gpus:
        found.append(Event(now_s, GPUS, "", now_s, {"gpus": snapshot.gpus}))
    jobs = [job for job in snapshot.jobs if job.gpus]
    after_s = _within_seconds(jobs)
    for job in jobs:
        known, pool = record.jobs.get(job.job_id, JobRecord()), pool_of(job, pool_by)
        found += _of_job(job, known, pool, now_s, clock, clock.scale * after_s[job.job_id])
    there = {job.job_id for job in jobs}
    gone = [name for name in record.active if name not in there]
    found += [Event(now_s, END, name, now_s, {"forgotten": True}) for name in gone]
    if found or now_s - record.known_s >= LOOK_S * clock.scale:
        found.append(Event(now_s, LOOK, "", now_s))
    return found


def past(trace: Trace, record: ClusterRecord | State, now_s: float, clock: Clock = REAL) -> list[Event]:
    """Events of the jobs of the accounting that have ended, and are not known to have.

    Of a cluster that nothing is known of each was known when it came; else they were missed, and are known from now on.
    """
    columns = [_column(trace, name) for name in ("job_id", "pool", "gpus", "user", "tag")]
    times = [values.tolist() for values in (trace.submit_s, trace.start_s, trace.end_s, trace.duration_s)]
    found = []
    for name, pool, gpus, user, tag, submit_s, start_s, end_s, run_s in zip(*columns, *times, strict=True):
        known = record.jobs.get(name, JobRecord())
        if known.over or not gpus or not end_s <= now_s:
            continue
        told: list[tuple[str, float, dict[str, Any]]] = []
        came_s = known.submit_s
        if came_s != came_s:
            came_s = clock.model(submit_s)
            told.append((SUBMIT, came_s, {"pool": pool, "gpus": gpus, "user": user or "", "tag": tag or ""}))
        # As in a look, nothing happens to a job before it is there.
        at_s = max(clock.model(start_s), came_s)
        if start_s <= end_s and (known.start is None or known.start.at_s != at_s):
            told.append((START, at_s, {}))
        told.append((END, max(clock.model(end_s), came_s), {"duration_s": run_s * clock.scale}))
        for kind, at_s, facts in told:
            found.append(Event(clock.model(now_s) if record.jobs else at_s, kind, name, at_s, facts))
    return found


def _column(trace: Trace, name: str) -> list[Any]:
    return trace.jobs[name].to_list() if name in trace.jobs.columns else [""] * len(trace.jobs)


def _within_seconds(jobs: Sequence[QueuedJob]) -> dict[str, float]:
    """By job, how long after the others of its second it was submitted: Slurm tells whole ones, and counts ids up."""
    counts: Counter[float] = Counter()
    found = {}
    # 86_9 came with 86_10, and before 87.
    for job in sorted(jobs, key=lambda one: ([int(part) for part in NUMBER.findall(one.job_id)], one.job_id)):
        found[job.job_id] = TICK_S * counts[job.submit_s]
        counts[job.submit_s] += 1
    return found


def _of_job(job: QueuedJob, known: JobRecord, pool: str, now_s: float, clock: Clock, after_s: float) -> Iterator[Event]:
    """What is new of one job, in the order in which it happened; `after_s`: its submission, after its second began."""
    name, submit_s, start_s, end_s = job.job_id, *(clock.model(at) for at in (job.submit_s, job.start_s, job.end_s))
    facts: dict[str, Any] = {"pool": pool, "gpus": job.gpus, "user": job.user, "tag": job.name}
    limit_s = job.limit_s * clock.scale if job.limit_s < float("inf") else None
    # One that had a limit is told that it has none any longer.
    if limit_s is not None or "time_limit_s" in known.facts:
        facts["time_limit_s"] = limit_s
    if job.waits:
        facts |= {"held": job.held, "granted": on_lease(job)}
        facts |= {"waits_for": job.reason, "after": job.after} if job.held else {}
        facts |= {"at_once": job.at_once} if job.array else {}
        facts |= {"eligible_s": clock.model(job.eligible_s)} if job.eligible_s == job.eligible_s else {}
    paused_s = job.paused_s * clock.scale
    if job.runs and (paused_s or job.suspended or "paused_s" in known.facts):
        facts |= {"paused_s": paused_s, "suspended_s": clock.model(job.pause_s) if job.suspended else None}
    again = known.over and known.end is not None and submit_s > known.end.at_s
    new = known.submit_s != known.submit_s or again
    came_s = min(submit_s + after_s, now_s) if new else known.submit_s
    # Nothing happens to a job before it is there, though Slurm's second began before that.
    start_s, end_s = max(start_s, came_s), max(end_s, came_s)
    if new:
        # A requeued job has a later submission: the first one is its arrival.
        yield Event(now_s, SUBMIT, name, came_s, facts)
    elif job.waits or job.runs:
        changed = {key: value for key, value in facts.items() if known.facts.get(key) != value}
        if changed:
            yield Event(now_s, CHANGE, name, now_s, changed)
    if job.waits:
        if known.runs and known.start is not None:
            # Slurm submits it anew when it is stopped.
            until_s = submit_s if known.start.at_s < submit_s < now_s else now_s
            yield Event(now_s, REQUEUE, name, now_s, _lost(known.start, until_s, job.gpus))
        return
    if start_s == start_s and (known.start is None or known.start.at_s != start_s):
        yield Event(now_s, START, name, min(start_s, now_s), {"dedicated": not on_lease(job)})
    if not job.runs and not known.over:
        ended_s = min(end_s, now_s) if end_s == end_s else now_s
        # As in Slurm's accounting, a job does not run while it is suspended.
        run_s = {"duration_s": ended_s - start_s - paused_s} if start_s == start_s else {}
        if job.state == "PREEMPTED" and known.start is not None:
            run_s |= _lost(known.start, ended_s, job.gpus)
        yield Event(now_s, END, name, ended_s, run_s)


def _lost(start: Event, until_s: float, gpus: int | None) -> dict[str, Any]:
    """What a job that was stopped had done."""
    return {"lost_s": until_s - start.at_s, "lent": not start.facts.get("dedicated", True), "gpus": gpus}
