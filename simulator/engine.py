"""The engine: replays a workload under a policy, event by event, and refuses impossible decisions."""

import gc
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf, nan

import numpy as np

from jobcast.domain.cluster import Decision, Policy, Start
from jobcast.domain.errors import DecisionError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.jobs import Job
from jobcast.simulator.arrival_streams import ClosedArrivals, arrivals_of
from jobcast.simulator.cluster import ClusterState
from jobcast.simulator.history import RunHistory
from jobcast.simulator.log import RunLog, flat_spans, in_trace_order
from jobcast.simulator.progress import Ledger, Milestones
from jobcast.simulator.workload import Workload

CAPACITY_TOLERANCE = 1e-9
PROGRESS_EVERY = 1000
"""Completed jobs between two calls of `progress`."""
IDLE_WAKES = 100_000
"""Wake-ups in a row that may pass with jobs pending, nothing running and nothing to arrive, before we give up."""

Progress = Callable[[int, int], None]


def replay(
    workload: Workload,
    policy: Policy,
    source: ForecastSource | None = None,
    history: RunHistory | None = None,
    progress: Progress | None = None,
) -> RunLog:
    """Run a workload to completion from an empty cluster.

    At one instant: completions, then changes of regime, then arrivals, then one call of the policy. Its `lane` and
    `key` are asked once a job, when it arrives. A start costs the job the workload's `restart_s`, one after it was
    stopped its `resume_s` too. On servers the policy says which cells a job is given.

    A workload with successions is replayed in a closed loop: a job arrives its think time after the last end, in this
    run, of the jobs that it awaits. Jobs are then numbered as they arrive; the log comes back in the trace's order.

    Parameters
    ----------
    workload : jobs, their outcomes, pools
    policy : the scheduler
    source : moved to each instant before the policy is asked anything (the policy holds its `Forecasts` side)
    history : told what happens, before the source is moved
    progress : called with (completed, all) about every thousand jobs and at the end

    Raises
    ------
    TraceError, PoolsError
        The workload cannot be run; see `Workload.check`.
    DecisionError
        The policy asked for what the cluster cannot do, or leaves jobs pending for ever.
    """
    workload.check()
    gc.freeze()  # the jobs stay until the end: the collector need not look at them again and again
    try:
        return _Replay(workload, policy, source, history).run(progress)
    finally:
        gc.unfreeze()


class _Replay:
    """One run: its clock, its events, its record."""

    def __init__(
        self, workload: Workload, policy: Policy, source: ForecastSource | None, history: RunHistory | None
    ) -> None:
        count = len(workload.jobs)
        self._workload = workload
        self._stream = arrivals_of(workload)
        self._jobs, self._outcomes = self._stream.jobs, self._stream.outcomes  # by seq; they grow in a closed loop
        self._policy, self._source, self._history = policy, source, history
        self._name: str = getattr(policy, "name", type(policy).__name__)
        self._ledger = Ledger()
        self._milestones = Milestones(workload.jobs, workload.outcomes)
        self._cluster = ClusterState(workload.pools, self._ledger, workload.servers)
        self._completed = self._events = self._sequence = self._idle_wakes = 0
        self._ends: list[tuple[float, int, Job]] = []  # heap of (end, sequence of the start, job)
        self._changes: list[tuple[float, int, Job]] = []  # the same of changes of regime
        self._current = [-1] * count  # by job: sequence of the start that still runs; ends of others are stale
        self._wake_at = inf
        self._start_s, self._end_s = [nan] * count, [nan] * count
        self._preemptions, self._dedicated = [0] * count, [False] * count
        self._spans: list[tuple[int, float, float]] = []

    def run(self, progress: Progress | None) -> RunLog:
        count, reported = len(self._workload.jobs), 0
        while self._completed < count:
            self._step()
            if progress is not None and self._completed >= reported + PROGRESS_EVERY:
                reported = self._completed
                progress(reported, count)
        if progress is not None and reported < count:
            progress(count, count)
        return self._log()

    def _step(self) -> None:
        now_s = self._next_instant()
        self._cluster.advance(now_s)
        if self._history is not None:
            self._history.advance(now_s)
        self._complete(now_s)
        if self._changes:
            self._change_regimes(now_s)
        arrivals = self._arrivals(now_s)
        if self._source is not None:
            self._source.advance(now_s)
        for job in arrivals:
            self._cluster.submit(job, self._policy.lane(job), self._policy.key(job))
        if self._wake_at <= now_s:
            self._wake_at = inf
            self._events += 1
        decision = self._policy.decide(self._cluster)
        self._cluster.settle()
        self._apply(decision, now_s)

    def _next_instant(self) -> float:
        event_s = min(self._first(self._ends), self._stream.next_s)
        if self._changes:
            event_s = min(event_s, self._first(self._changes))
        if event_s == inf:
            self._check_idle()
        return min(event_s, self._wake_at)

    def _first(self, events: list[tuple[float, int, Job]]) -> float:
        """Instant of the first event that still holds, infinite without any; those of past starts are thrown away."""
        while events and self._current[events[0][2].seq] != events[0][1]:
            heappop(events)
        return events[0][0] if events else inf

    def _check_idle(self) -> None:
        """Refuse to wait for ever: jobs are pending, nothing runs, nothing will arrive."""
        self._idle_wakes += 1
        if self._wake_at < inf and self._idle_wakes <= IDLE_WAKES:
            return
        heads = [head for pool in self._cluster.pools.values() if (head := pool.pending.head()) is not None]
        first = min(heads, key=lambda job: job.seq)
        waiting = sum(len(pool.pending) for pool in self._cluster.pools.values())
        raise DecisionError(
            f"policy {self._name} at {self._cluster.now_s:.6f} s: {waiting} jobs are pending, job {first.job_id} "
            "first, while nothing runs and nothing will arrive; it must start one or ask to be woken"
        )

    def _complete(self, now_s: float) -> None:
        ends = self._ends
        while ends and ends[0][0] <= now_s:
            _, sequence, job = heappop(ends)
            if self._current[job.seq] != sequence:
                continue
            run = self._cluster.finish(job)
            self._current[job.seq] = -1
            self._spans.append((job.seq, run.start_s, now_s))
            self._end_s[job.seq] = now_s
            self._completed += 1
            self._events += 1
            if self._history is not None:
                self._history.completed(job, self._outcomes[job.seq].duration_s)
            if self._stream.waits_for_ends:
                self._stream.completed(job, now_s)

    def _change_regimes(self, now_s: float) -> None:
        changes = self._changes
        while self._first(changes) <= now_s:
            _, sequence, job = heappop(changes)
            self._ledger.adapt(job, *self._milestones.reach(job))
            self._events += 1
            self._expect_change(job, sequence)

    def _expect_change(self, job: Job, sequence: int) -> None:
        run_s = self._milestones.next_s(job)
        if run_s < inf:
            heappush(self._changes, (self._ledger.reaches_s(job, run_s), sequence, job))

    def _arrivals(self, now_s: float) -> Sequence[Job]:
        if self._stream.next_s > now_s:
            return ()
        jobs = self._stream.due(now_s)
        if self._history is not None:
            for job in jobs:
                self._history.arrived(job)
        self._events += len(jobs)
        return jobs

    def _apply(self, decision: Decision, now_s: float) -> None:
        for job in decision.stop:
            self._stop(job, now_s)
        for job in decision.promote:
            self._promote(job, now_s)
        for start in decision.start:
            self._start(start, now_s)
        if decision.wake_at is not None:
            if not decision.wake_at > now_s:
                raise DecisionError(
                    f"policy {self._name} at {now_s:.6f} s: asks to be woken at {decision.wake_at:.6f} s, "
                    "which is not later than now"
                )
            self._wake_at = decision.wake_at

    def _start(self, start: Start, now_s: float) -> None:
        job, cluster = start.job, self._cluster
        seq = self._known(job, "start", now_s)
        if job not in cluster.pools[job.pool].pending:
            raise self._refusal("start", job, now_s, self._why_not_pending(job, now_s))
        if job.gpus > cluster.free_gpus + CAPACITY_TOLERANCE:
            raise self._refusal("start", job, now_s, f"it needs {job.gpus} GPUs, {cluster.free_gpus:g} are free")
        misplaced = cluster.why_not_on(job, start.cells)
        if misplaced is not None:
            raise self._refusal("start", job, now_s, misplaced)
        lost_s = self._workload.restart_s + (self._workload.resume_s if self._preemptions[seq] else 0.0)
        cluster.start(job, start.dedicated, lost_s, start.cells)
        self._current[seq] = self._sequence
        end_s = self._ledger.reaches_s(job, self._outcomes[seq].duration_s)
        heappush(self._ends, (end_s, self._sequence, job))
        if job.training is not None:
            self._expect_change(job, self._sequence)
        self._sequence += 1
        self._idle_wakes = 0
        self._dedicated[seq] = start.dedicated
        if self._start_s[seq] != self._start_s[seq]:
            self._start_s[seq] = now_s
        if self._history is not None:
            self._history.started(job)

    def _stop(self, job: Job, now_s: float) -> None:
        seq = self._known(job, "stop", now_s)
        if seq not in self._cluster.running:
            raise self._refusal("stop", job, now_s, "it is not running")
        if not job.preemptible:
            raise self._refusal("stop", job, now_s, "it is not preemptible")
        run = self._cluster.stop(job)
        self._current[seq] = -1
        self._spans.append((seq, run.start_s, now_s))
        self._preemptions[seq] += 1
        self._events += 1
        if self._history is not None:
            self._history.stopped(job)

    def _promote(self, job: Job, now_s: float) -> None:
        run = self._cluster.running.get(self._known(job, "promote", now_s))
        if run is None or run.dedicated:
            why = "it is not running" if run is None else "it counts against its pool's quota already"
            raise self._refusal("promote", job, now_s, why)
        self._cluster.promote(job)
        self._dedicated[job.seq] = True

    def _known(self, job: Job, verb: str, now_s: float) -> int:
        if not 0 <= job.seq < len(self._jobs) or self._jobs[job.seq] is not job:
            raise self._refusal(verb, job, now_s, "it is none of this run's jobs")
        return job.seq

    def _why_not_pending(self, job: Job, now_s: float) -> str:
        if job.submit_s > now_s:
            return f"it is submitted only at {job.submit_s:.6f} s"
        return "it is running already" if job.seq in self._cluster.running else "it has finished"

    def _refusal(self, verb: str, job: Job, now_s: float, why: str) -> DecisionError:
        return DecisionError(f"policy {self._name} at {now_s:.6f} s: cannot {verb} job {job.job_id}: {why}")

    def _log(self) -> RunLog:
        jobs, pools = self._jobs, tuple(self._workload.pools)
        index = {pool.name: position for position, pool in enumerate(pools)}
        spans = np.array(self._spans, dtype=np.float64).reshape(-1, 3)
        gpus = np.array([job.gpus for job in jobs], dtype=np.int64)
        held = spans[:, 0].astype(np.int64)
        log = RunLog(
            policy=self._name,
            pools=pools,
            submit_s=np.array([job.submit_s for job in jobs], dtype=np.float64),
            start_s=np.array(self._start_s, dtype=np.float64),
            end_s=np.array(self._end_s, dtype=np.float64),
            duration_s=np.array([outcome.duration_s for outcome in self._outcomes], dtype=np.float64),
            gpus=gpus,
            pool=np.array([index[job.pool] for job in jobs], dtype=np.int64),
            preemptions=np.array(self._preemptions, dtype=np.int64),
            dedicated=np.array(self._dedicated, dtype=np.bool_),
            spans=flat_spans(held, spans[:, 1], spans[:, 2], gpus[held]),
            events=self._events,
        )
        if not isinstance(self._stream, ClosedArrivals):
            return log
        trace_submit_s = np.array([job.submit_s for job in self._workload.jobs], dtype=np.float64)
        return in_trace_order(log, np.array(self._stream.places, dtype=np.int64), trace_submit_s)
