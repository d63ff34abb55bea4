"""The engine: one loop for jobs of every kind, which refuses impossible decisions.

How jobs progress, and what changes cost, the law of the world says (`simulator.laws`); what counts beside it, meters.
At one instant: what was reached, then who arrives, then one call of the policy. Events apart by less than
`tolerance.EVENT_S` are one instant, the last of theirs: two ends that coincide do so on every machine.
"""

import gc
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from math import floor, inf, isfinite, isnan, nan, ulp
from typing import Any, NamedTuple, Protocol

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.errors import DecisionError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.horizons import duration_bin
from jobcast.domain.jobs import Job
from jobcast.domain.policy import EVENTS, Decision, Grant, Policy, RunningJob, Service, Trigger
from jobcast.domain.scheduling_rules import SchedulingRules
from jobcast.simulator.arrival_streams import AnyArrivals, ClosedArrivals, ForeseenArrivals, Later, arrivals_of
from jobcast.simulator.cluster import ClusterState, Starts
from jobcast.simulator.history import RunHistory
from jobcast.simulator.law import Law, Milestone, by_start
from jobcast.simulator.laws.run_time import RunTime
from jobcast.simulator.log import RunLog, facts_of, in_trace_order, spans_of
from jobcast.simulator.workload import Workload

PROGRESS_PARTS = 100
"""Calls of `progress` in a run, at most."""
FROZEN_FROM = 5_000
"""Jobs of a run from which on looking at all of them again and again is what the collector of garbage costs."""

MOST_COMING = 4_000
"""Jobs that arrive in a future of a run, at most; after them nobody does."""
Progress = Callable[[int, int], None]


class Meter(Protocol):
    """What counts beside progress: energy, contention, bandwidth. As a law, it may have `pass_time` and `count`.

    One that watches has `watch(run)`, called when all of an instant has happened; it may fork the run.
    """

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """A job holds something else from now on."""

    def report(self, run: "Simulation") -> Mapping[str, Any]:
        """`columns` and `totals` of the log."""

    def fork(self) -> "Meter":
        """A copy that goes its own way."""


class Stand(NamedTuple):
    """Where a job stands when a run begins amid things.

    Attributes
    ----------
    done : work done, in the units of its law
    grant : what it holds, None where it waits
    since_s : since when, seconds from the epoch; NaN: from the beginning on
    """

    done: float = 0.0
    grant: Grant | None = None
    since_s: float = nan


class Simulation:
    """A workload that runs under a policy, from an empty cluster on, or from where jobs stand: see `begin`.

    For the parameters see `replay`.

    Attributes
    ----------
    now_s : seconds from the epoch, -inf before the first event
    cluster : who waits, who runs, on what; the view that policies see
    jobs : those that have arrived at least, by seq
    decisions : how often the policy was asked
    events : arrivals, ends, changes of regime, stops, and instants at which the policy was asked without any of these
    """

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        source: ForecastSource | None = None,
        history: RunHistory | None = None,
        law: Law | None = None,
        meters: Sequence[Meter] = (),
    ) -> None:
        count = len(workload.jobs)
        self.workload, self.policy, self.source, self.history = workload, policy, source, history
        self.law: Law = RunTime(workload.restart_s, workload.resume_s) if law is None else law
        self.meters = list(meters)
        self.trigger: Trigger = getattr(policy, "trigger", EVENTS)
        # Plug-ins need bring no more than `decide`.
        self.name: str = getattr(policy, "name", type(policy).__name__)
        self.stream: AnyArrivals = arrivals_of(workload)
        self.jobs = self.stream.jobs
        self.cluster = ClusterState(workload.pools, workload.servers, *self._answers())
        self.law.bind(self)
        self.now_s = -inf
        self.begin_s: float | None = None
        self.origin_s = workload.jobs[0].submit_s if count else nan
        self.same_s = max(tolerance.EVENT_S, 2.0 * ulp(self.origin_s))  # clocks of a far future tell no microseconds
        self.completed = self.events = self.decisions = self.vain = 0
        self._on_a_clock = isfinite(min(self.trigger.period_s, self.trigger.lease_s))
        self._hook()
        self._wake_s, self._last_s = inf, -inf
        self._start_s, self._end_s, self._held_s = list[float](), list[float](), list[float]()
        self._dedicated = bytearray()
        self._make_room(count)
        # Flat doubles: millions of spans cost 40 bytes each, and are copied at once by a fork.
        self._spans = array("d")  # job, from, until, GPUs, node; one after the other

    def _make_room(self, count: int) -> None:
        """Rows for so many more jobs, none of which has started."""
        for name, empty in (("_start_s", nan), ("_end_s", nan), ("_held_s", 0.0), ("_dedicated", False)):
            getattr(self, name).extend([empty] * count)

    def _answers(self) -> tuple[Callable[[Job], Service], Callable[[type[Any]], Any]]:
        """What the view asks of the law; functions, so that from the view no way leads to the truth."""
        rules = self.workload.rules

        def facts(kind: type[Any]) -> Any:
            return rules if kind is SchedulingRules else self.law.facts(self, kind)

        return lambda job: self.law.service(self, job), facts

    def _hook(self) -> None:
        """Look up what is called at every instant."""
        # Looked up once: these are asked at every event of a run.
        self._lane: Callable[[Job], int] = getattr(self.policy, "lane", lambda job: 0)
        self._key: Callable[[Job], float] = getattr(self.policy, "key", lambda job: job.submit_s)
        self._passing = [one.pass_time for one in (self.law, *self.meters) if hasattr(one, "pass_time")]
        self._counting = [one.count for one in (self.law, *self.meters) if hasattr(one, "count")]
        self._watching = [one.watch for one in self.meters if hasattr(one, "watch")]
        self._settle = getattr(self.law, "settle", None)
        self._place = getattr(self.law, "place", None)

    @property
    def over(self) -> bool:
        """Whether all jobs have ended, or those that are there where no more arrive."""
        return not self.cluster.active and self.stream.next_s == inf

    def held_s(self, seq: int) -> float:
        """Seconds in which a job has held GPUs by now."""
        held = self.cluster.running.get(seq)
        return self._held_s[seq] + (self.now_s - held.start_s if held is not None else 0.0)

    def start_s(self, seq: int) -> float:
        """When a job was first given GPUs, seconds from the epoch; NaN before."""
        return self._start_s[seq]

    def end_s(self, seq: int) -> float:
        """When a job ended, seconds from the epoch; NaN before."""
        return self._end_s[seq]

    def peek(self) -> float:
        """Instant of the next event, seconds from the epoch; infinite where all is over or nothing will ever happen."""
        ask_s = self._next_ask_s() if self._on_a_clock else self._wake_s
        return min(self.law.next_s(), self.stream.next_s, ask_s)

    def fork(
        self,
        believed_s: Callable[[Job], float] | None = None,
        coming: Iterable[tuple[Job, float]] | None = None,
        later: Sequence[tuple[Later, float]] = (),
    ) -> "Simulation":
        """A copy that goes its own way: nothing that happens to one changes the other.

        Parameters
        ----------
        believed_s : what is believed of run times alone, in seconds by job. With it the copy plays out what is
            believed now: run times, epoch times and sizes are as forecast or declared, forecasts stand still, and
            nobody else arrives; meters that watch are left out. Without it the copy goes on in truth.
        coming : who arrives nevertheless, by submission, and how long each runs alone; goes with `believed_s`, and with
            laws that can `make_room`. A source that is asked about one of them answers what is believed of it
        later : known jobs that are no part of the run, and how long each runs alone; likewise

        Notes
        -----
        The policy is copied with all that it keeps, but for jobs, which do not change, and its source of forecasts.
        """
        fork = copy(self)
        fork.stream, fork.law = self.stream.fork(), self.law.fork()
        fork.meters = [one.fork() for one in self.meters if believed_s is None or not hasattr(one, "watch")]
        fork.jobs = fork.stream.jobs
        for name in ("_start_s", "_end_s", "_held_s", "_dedicated", "_spans"):
            setattr(fork, name, getattr(self, name)[:])
        if believed_s is None:
            fork.history = deepcopy(self.history)
        else:
            fork.source, fork.history = None if self.source is None else Standing(self.source), None
            fork.stream.next_s, fork.stream.waits_for_ends = inf, False
            if coming is not None or later:
                fork._foresee(coming or (), later)
        # Whatever the policy holds of source and history becomes the fork's, not a copy of the run's.
        shared = {id(self.source): fork.source, id(self.history): fork.history}
        fork.policy = deepcopy(self.policy, shared)
        fork.cluster = self.cluster.fork(*fork._answers())
        # After the copies: the old bound methods are those of the run.
        fork._hook()
        # Last: the law expects its milestones from the fork's own cluster.
        if believed_s is not None:
            fork.law.believe(fork, believed_s)
        return fork

    def _foresee(self, coming: Iterable[tuple[Job, float]], later: Sequence[tuple[Later, float]]) -> None:
        """Others arrive here, whom the run does not know."""
        self.stream = stream = ForeseenArrivals(self.stream, coming, MOST_COMING, later)
        self.jobs = stream.jobs
        self._make_room(MOST_COMING + len(later))
        self.law.make_room(MOST_COMING + len(later))  # type: ignore[attr-defined]
        if self.source is not None:
            self.source = Foreseeing(self.source, stream)

    def begin(self, at_s: float, known: Mapping[int, Stand]) -> "Simulation":
        """Begin amid things, where the policy is asked next.

        Parameters
        ----------
        at_s : the instant, seconds from the epoch; who is submitted by then is there
        known : by seq, where such jobs stand, running ones in the order in which they started; others wait from their
            submission on. Jobs that ended before are no part of the workload

        Raises DecisionError for what cannot be held, or jobs that are not there.
        """
        arrivals, history = self.stream.due(at_s), self.history
        if history is not None:
            history.join([(job, _since(known.get(job.seq), at_s)) for job in arrivals])
            history.advance(at_s)
        # What happened before it knows now, in the order of its times.
        self.history = None
        # Before anybody is admitted, for submissions in the past arrive now.
        self._go_to(at_s)
        self._admit(arrivals)
        for seq, stand in known.items():
            job = self.known(seq)
            if stand.grant is not None:
                self._start(job, None, stand.grant)
                self._start_s[seq] = _since(stand, at_s)
                self.cluster.since(job, self._start_s[seq])
            self.law.stand(self, job, stand.done)
        self.history, self.begin_s = history, at_s
        # No event happens here, and without a wake-up the policy would not be asked.
        self._wake_s = at_s
        return self

    def step(self) -> None:
        """Go to the next instant, and ask the policy there where it wants to be.

        Raises
        ------
        DecisionError
            The policy asks for what cannot be, or leaves jobs waiting for ever.
        """
        if self._advance():
            self.carry_out(self.policy.decide(self.cluster))
        for watch in self._watching:
            watch(self)

    def look(self) -> ClusterState | None:
        """Go to the next instant at which the policy is asked, and see what it sees; None where all is over.

        Whoever decides instead of the policy answers with `carry_out`. Raises as `step`.
        """
        while not self.over:
            if self._advance():
                return self.cluster
        return None

    def run(self, until_s: float = inf) -> "Simulation":
        """Go on until all jobs have ended, or as far as the events up to an instant; raises as `step`."""
        active, stream = self.cluster.active, self.stream
        while (active or stream.next_s < inf) and (until_s == inf or self.peek() <= until_s):
            self.step()
        return self

    def wait(self, until_s: float) -> "Simulation":
        """Go on as `run`, then let the time up to an instant pass in which nothing happens; raises as `step`."""
        self.run(until_s)
        if until_s < inf:
            self._go_to(until_s)
            if self.source is not None:
                self.source.advance(self.now_s)
        return self

    def _advance(self) -> bool:
        """Go to the next instant; whether the policy is to be asked."""
        law, stream, alone = self.law, self.stream, self.trigger.each_event
        mark_s, next_s = law.next_s(), stream.next_s
        arrival_s = next_s
        ask_s = self._next_ask_s() if self._on_a_clock else self._wake_s
        # By hand: this runs at every event, and `min` costs a call.
        if mark_s < next_s:
            next_s = mark_s
        if ask_s < next_s:
            next_s = ask_s
        if next_s == inf:
            if self.over:
                return False
            self._refuse_to_wait()
        # Events within dust of the first are of the same instant, which is that of the last of them.
        limit_s, now_s = next_s + self.same_s, next_s
        due: Sequence[Milestone] = ()
        arrivals: Sequence[Job] = ()
        if mark_s <= limit_s:
            due = law.due(limit_s, 1 if alone else None)
            now_s = due[-1][0]
        if arrival_s <= limit_s and not (alone and due):
            arrivals = stream.due(limit_s, 1 if alone else None)
            now_s = max(now_s, arrivals[-1].submit_s)
        # A wake-up or a grid point alone is no news.
        news = bool(due or arrivals)
        self._go_to(now_s)
        # Who goes on may reach a further milestone at the same instant: a phase of no length.
        while due:
            self._reach(due)
            # One by one, too, nobody is asked before all are there: who is done needs no GPUs any more.
            due = law.due(self.now_s + self.same_s, 1) if alone else law.due(now_s)
            if alone and due:
                self._go_to(due[0][0])
        if arrivals:
            self._admit(arrivals)
        # `_admit` moves it, after the history knows the arrivals.
        elif self.source is not None:
            self.source.advance(self.now_s)
        if self._on_a_clock or ask_s <= limit_s:
            return self._asked(news)
        return news and self.trigger.on_events and (len(self.cluster.active) > 0 or self.trigger.when_empty)

    def _go_to(self, now_s: float) -> None:
        """Time passes."""
        # Milestones of the past may come up after a law's rounding: time never goes back.
        before_s, now_s = self.now_s, max(now_s, self.now_s)
        self.now_s = now_s
        self.cluster.advance(now_s)
        for pass_time in self._passing:
            pass_time(self, before_s, now_s)
        if self.history is not None:
            self.history.advance(now_s)

    def _admit(self, arrivals: Sequence[Job]) -> None:
        """Jobs arrive; sources of forecasts know of all of them before any is asked about."""
        if self.history is not None:
            for job in arrivals:
                self.history.arrived(job)
        if self.source is not None:
            self.source.advance(self.now_s)
        self.events += len(arrivals)
        for job in arrivals:
            for count in self._counting:
                count(self)
            self.cluster.submit(job, self._lane(job), self._key(job))
            self.law.arrive(self, job)

    def _count(self) -> None:
        """An event."""
        self.events += 1
        for count in self._counting:
            count(self)

    def _reach(self, due: Sequence[Milestone]) -> None:
        """Jobs are at their milestones, in the order in which they started."""
        law, jobs = self.law, self.jobs
        # Nearly always: no list, no sort.
        if len(due) == 1:
            job = jobs[due[0][2]]
            if law.reach(self, job):
                self.end(job)
            else:
                self._count()
            return
        # All reach before any ends: an end changes what others hold next, in the order of starts.
        ended = [job for _, _, seq in sorted(due, key=by_start) if law.reach(self, job := jobs[seq])]
        for job in ended:
            self.end(job)
        for _ in range(len(due) - len(ended)):
            self._count()

    def end(self, job: Job) -> None:
        """A job is over: at its milestone, or by a decision that limits it to what it has done."""
        seq = job.seq
        self._count()
        held = self.cluster.finish(job)
        if held is not None:
            self._hold_until_now(held)
            for meter in self.meters:
                meter.change(self, job, held.grant, None)
        self.law.leave(self, job, None if held is None else held.grant)
        self._end_s[seq] = self.now_s
        self.completed += 1
        # An end is progress, whatever else waits.
        self.vain = 0
        if self.history is not None:
            self.history.completed(job, self.stream.outcomes[seq].duration_s)
        if self.stream.waits_for_ends:
            self.stream.completed(job, self.now_s)

    def _next_ask_s(self) -> float:
        """When the policy is asked next if nothing happens; on a grid and after a lease only while jobs are active."""
        if not self.cluster.active:
            return self._wake_s
        return min(self._wake_s, self._last_s + self.trigger.lease_s, self._next_grid_s())

    def _next_grid_s(self) -> float:
        """The next point of the grid, infinite without one."""
        period_s = self.trigger.period_s
        # From the origin each time: adding periods up would drift.
        step = floor((self.now_s - self.origin_s) / period_s) + 1.0
        at_s = self.origin_s + step * period_s
        # A grid point that is now by rounding was already taken: the very measure of `_on_grid`, or one might be lost.
        return at_s if at_s - self.now_s > self.same_s else at_s + period_s

    def _on_grid(self) -> bool:
        period_s = self.trigger.period_s
        # Without a grid this is NaN, near nothing.
        step = round((self.now_s - self.origin_s) / period_s)
        return abs(self.origin_s + step * period_s - self.now_s) <= self.same_s

    def _asked(self, news: bool) -> bool:
        """Whether the policy wants to be asked now."""
        due = self._wake_s <= self.now_s + self.same_s
        if due:
            self._wake_s = inf
        if self._on_a_clock:
            # Where nothing happened and nobody wakes, it is a grid's point, or a lease is over.
            due = due or not news or self._on_grid()
            # A lease runs from the last instant at which anything happened.
            if news or due:
                self._last_s = self.now_s
        if due and self.now_s > self.origin_s:  # a grid begins with the first submission, which counts already
            self._count()
        on_news = news and self.trigger.on_events
        return (due or on_news) and (len(self.cluster.active) > 0 or (on_news and self.trigger.when_empty))

    def _watch(self) -> None:
        """Refuse to wait for ever: decisions in a row in which no job got on, while none will arrive."""
        self.vain = 0 if self.law.got_on(self) else self.vain + 1
        if self.vain > self.law.patience:
            self._refuse_to_wait()

    def _refuse_to_wait(self) -> None:
        waiting = list(self.cluster.active.values())
        raise DecisionError(
            f"{self._where}: {len(waiting)} jobs are pending, job {waiting[0].job_id} "
            "first, while none gets on and nothing will arrive; it must start one, "
            "leave it its GPUs for longer than a start takes (longer rounds, cheaper starts), or ask to be woken"
        )

    def carry_out(self, decision: Decision) -> None:
        """Do what was decided: what is taken away comes first. Raises DecisionError for what cannot be."""
        self.decisions += 1
        self.cluster.settle()
        # While others will arrive a policy may have reason to wait.
        if self.stream.next_s == inf:
            self._watch()
        if decision.change:
            self._apply(decision.change)
        if self._settle is not None:
            self._settle(self, decision)
        if decision.wake_s != inf:
            if not decision.wake_s > self.now_s:
                raise DecisionError(
                    f"{self._where}: asks to be woken at {decision.wake_s:.6f} s, which is not later than now"
                )
            self._wake_s = decision.wake_s

    def _apply(self, change: Mapping[int, Grant | None]) -> None:
        starts: list[tuple[Job, Grant]] = []
        moved: dict[int, Grant] = {}  # by seq, what jobs held that hold something else from now on
        running, active = self.cluster.running, self.cluster.active
        for seq, grant in change.items():
            job, held = active.get(seq) or self.known(seq), running.get(seq)
            if held is None and grant is not None:
                starts.append((job, grant))
            elif held is None:
                raise self.refusal("stop", job, "it is not running")
            elif grant is None:
                self._release(job, held)
                self.law.change(self, job, held.grant, None)
            # A grant without cells leaves the job where it is, if the number is the same.
            elif grant.gpus != held.grant.gpus or (grant.cells and grant.cells != held.grant.cells):
                self._release(job, held)
                moved[seq] = held.grant
                starts.append((job, grant))
            elif grant.dedicated and not held.dedicated:
                self.cluster.promote(job, held.grant._replace(dedicated=True))
                self._dedicated[seq] = True
        for job, grant in starts if self._place is None else self._placed(self._place, starts):
            self._start(job, moved.pop(job.seq, None), grant)
        # Left over are those that were released for a move and found no place.
        for seq, old in moved.items():  # there is no place for it any more
            self.law.change(self, self.jobs[seq], old, None)

    def _placed(self, place: Callable[["Simulation", Starts], Starts], starts: Starts) -> Starts:
        """Starts for which there is a place; to the policy the pools of all others are as if somebody had arrived."""
        placed = place(self, starts)
        found = {job.seq for job, _ in placed}
        for job, _ in starts:
            if job.seq not in found:
                self.cluster.touch(job)
        return placed

    def known(self, seq: int) -> Job:
        """An active job; raises DecisionError for any other."""
        job = self.cluster.active.get(seq)
        if job is not None:
            return job
        if not 0 <= seq < len(self.jobs):
            raise DecisionError(
                f"{self._where}: cannot change job number {seq}: it is none of this run's jobs, or not submitted yet"
            )
        job = self.jobs[seq]
        early = isnan(self._end_s[seq])
        why = f"it is submitted only at {job.submit_s:.6f} s" if early else "it has finished"
        raise self.refusal("change", job, why)

    def _start(self, job: Job, old: Grant | None, grant: Grant) -> None:
        """Give a job its GPUs; `old` are those that it held until now."""
        seq, cluster = job.seq, self.cluster
        why = self.law.why_not(self, job, grant) or cluster.why_not_on(job, grant)
        if why is not None:
            raise self.refusal("start", job, why)
        cluster.start(job, grant)
        self.law.change(self, job, old, grant)
        for meter in self.meters:
            meter.change(self, job, None, grant)
        self._dedicated[seq] = grant.dedicated
        if isnan(self._start_s[seq]):
            self._start_s[seq] = self.now_s
        if self.history is not None:
            self.history.started(job)

    def _release(self, job: Job, held: RunningJob) -> None:
        """A running job gives back what it holds, and is pending again."""
        if not job.preemptible:
            raise self.refusal("stop", job, "it is not preemptible")
        self.cluster.stop(job)
        self._hold_until_now(held)
        for meter in self.meters:
            meter.change(self, job, held.grant, None)
        self.events += 1
        if self.history is not None:
            self.history.stopped(job)

    def _hold_until_now(self, held: RunningJob) -> None:
        """Note what a job held until now."""
        (job, start_s, grant), now_s = held, self.now_s
        self._held_s[job.seq] += now_s - start_s
        # -1 for the node: GPUs known by number alone.
        if not grant.cells:
            self._spans.extend((job.seq, start_s, now_s, grant.gpus, -1))
        for cell in grant.cells:
            self._spans.extend((job.seq, start_s, now_s, cell.gpus, cell.server))

    @property
    def _where(self) -> str:
        return f"policy {self.name} at {self.now_s:.6f} s"

    def refusal(self, verb: str, job: Job, why: str) -> DecisionError:
        """Why a decision about a job cannot be carried out, in one line."""
        return DecisionError(f"{self._where}: cannot {verb} job {job.job_id}: {why}")

    def log(self) -> RunLog:
        """What has happened so far, in the workload's order."""
        rows = [self.law.report(self), *(meter.report(self) for meter in self.meters)]
        # Later ones win: a meter may know better than the law.
        fields: dict[str, Any] = {key: value for one in rows for key, value in one.items()}
        fields["columns"] = {key: value for one in rows for key, value in one.get("columns", {}).items()}
        fields["totals"] = {key: value for one in rows for key, value in one.get("totals", {}).items()}
        log = RunLog(
            **{
                "policy": self.name,
                **facts_of(self.jobs, self.stream.outcomes, self.workload.pools),
                "start_s": np.array(self._start_s),
                "end_s": np.array(self._end_s),
                "dedicated": np.frombuffer(self._dedicated, dtype=np.bool_).copy(),
                "spans": spans_of(self._spans),
                "events": self.events,
                "begin_s": self.begin_s,
                "law": self.law.name,
                **fields,
            }
        )
        if not isinstance(self.stream, ClosedArrivals):
            return log
        trace_submit_s = np.array([job.submit_s for job in self.workload.jobs], dtype=np.float64)
        return in_trace_order(log, np.array(self.stream.places, dtype=np.int64), trace_submit_s)


def _since(stand: Stand | None, at_s: float) -> float:
    """Since when a job holds its GPUs that stands so at an instant; infinite where it waits."""
    if stand is None or stand.grant is None:
        return inf
    return at_s if isnan(stand.since_s) else stand.since_s


class Standing:
    """Forecasts as of one instant, whatever time goes by; who keeps what is asked does not hear of it."""

    def __init__(self, source: ForecastSource) -> None:
        # A recording source would take a fork's questions for the run's.
        self._source: Any = getattr(source, "unheard", source)

    def advance(self, now_s: float) -> None:
        """They stand still."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class Foreseeing(Standing):
    """The same, but of jobs that are only believed to come: what is believed of these."""

    def __init__(self, source: ForecastSource, stream: ForeseenArrivals) -> None:
        super().__init__(source)
        self._stream = stream

    def duration_s(self, job: Job) -> float:
        """Its run time, seconds."""
        if job.seq < self._stream.first:
            return float(self._source.duration_s(job))
        return float(self._stream.outcomes[job.seq].duration_s)

    def duration_bin(self, job: Job) -> int:
        """The bin of its run time."""
        if job.seq < self._stream.first:
            return int(self._source.duration_bin(job))
        return duration_bin(self.duration_s(job), self._source.horizons_min)

    def duration_probabilities(self, job: Job) -> Sequence[float]:
        """1 for that bin."""
        if job.seq < self._stream.first:
            return tuple(self._source.duration_probabilities(job))
        result = self.duration_bin(job)
        return tuple(float(one == result) for one in range(len(self._source.horizons_min) + 1))


def replay(
    workload: Workload,
    policy: Policy,
    source: ForecastSource | None = None,
    history: RunHistory | None = None,
    progress: Progress | None = None,
    law: Law | None = None,
    meters: Sequence[Meter] = (),
) -> RunLog:
    """Run a workload to completion from an empty cluster, or from where its jobs stand.

    A workload with successions is replayed in a closed loop: a job arrives its think time after the last end, in this
    run, of the jobs that it awaits. Jobs are then numbered as they arrive; the log comes back in the trace's order.

    Parameters
    ----------
    workload : jobs, their outcomes, pools
    policy : the scheduler
    source : moved to each instant before the policy is asked anything (the policy holds its `Forecasts` side)
    history : told what happens, before the source is moved
    progress : called with (completed, all) about every hundredth of the jobs and at the end
    law : how jobs progress; by default run times, starts at the workload's costs
    meters : what is counted besides

    Raises
    ------
    TraceError, PoolsError
        The workload cannot be run; see `Workload.check`.
    DecisionError
        The policy asked for what the cluster cannot do, or leaves jobs pending for ever.
    """
    workload.check()
    run, count, result = Simulation(workload, policy, source, history, law, meters), len(workload.jobs), 0
    if workload.begin is not None:
        stands = ((job, *workload.begin.running[job.job_id]) for job in workload.running)
        known = {job.seq: Stand(done, Grant(job.gpus), since_s) for job, since_s, done in stands}
        run.begin(workload.begin.at_s, known)
    large = count >= FROZEN_FROM
    if large:
        # Its objects stay until the end: the collector need not look at them again and again. What an earlier run left
        # goes first, for nothing that was ever frozen is collected by itself.
        gc.collect()
        gc.freeze()
    try:
        if progress is None:
            return run.run().log()
        # By shares and not by numbers: few jobs under a slow planner take as long as many under a fast one.
        every = -(-count // PROGRESS_PARTS)
        while not run.over:
            run.step()
            if run.completed >= result + every:
                result = run.completed
                progress(result, count)
    finally:
        if large:
            gc.unfreeze()
    if result < count:
        progress(count, count)
    return run.log()
