"""What a policy that lends would do now on a running Slurm, and doing it: spare starts become leases.

SIA, section 5.3: spare GPUs go to jobs that are expected to end before their owners need them. What starts within a
pool's quota is Slurm's own business; only what is lent is done here.
"""

import uuid
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from jobcast.domain.bad_answers import BadAnswers
from jobcast.domain.errors import ClusterError, ConfigError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.jobs import Job, Pool
from jobcast.live.advice import Action, Advice, stopped_figures
from jobcast.live.claims import before, claimants, claimed, new_name, place_of
from jobcast.live.event_log import ADVISOR, INTENT, LEASE, OVERSTAY, REQUEUE, Event
from jobcast.live.forecasts import Asked, guarded, reasons
from jobcast.live.job_record import JobRecord
from jobcast.live.leases import (
    LENT,
    SHORTEN,
    Lease,
    Room,
    barred_tasks,
    in_part,
    leases_of,
    marked,
    on_lease,
    on_loan,
    pool_of,
    pools_of,
    unmarked,
)
from jobcast.live.news import REAL, Clock, news, past
from jobcast.live.slurm import Qos, Slurm, Snapshot
from jobcast.live.standing import standing
from jobcast.live.state import STALE_S, LogReader, State
from jobcast.simulator.engine import Simulation
from jobcast.traces.readers.slurm_queue import QueuedJob

MINUTE_S, HOUR_S, DAY_S = 60.0, 3_600.0, 86_400.0
PATIENCE_S = 30.0
"""For which a granted job may wait before its lease is taken back; Slurm starts one within seconds where it fits."""
REST_S = 600.0
"""For which a job is left alone whose grant came to nothing."""
PLAIN = frozenset({"BeginTime", "Dependency", "JobArrayTaskLimit", "JobHeldAdmin", "JobHeldUser"})
"""Reasons that Slurm tells in any QOS. Others it may tell only where the quota does not hold a job back first."""
IN_PART = "Slurm starts all parts of a job at once or none, and not all that its quota may hold can be lent to"
LONGER = 2.0
"""A job of the open bin is taken to end within so many of the longest horizon."""
HISTORY_S = 60 * DAY_S
"""Of the accounting that is read when nothing is known yet."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What an advisor keeps to.

    Attributes
    ----------
    pool_by : what names pools: account, qos or partition
    max_lent : GPUs that a pool may have on lease at once; None: no bound but its forecasts
    per_minute : grants within a minute, at most
    preempt : whether owners may stop jobs on lease
    """

    pool_by: str = "account"
    max_lent: int | None = None
    per_minute: int = 30
    preempt: bool = False


DEFAULT = Rules()


@dataclass(slots=True)
class _Attempts:
    """What is remembered from look to look; losing it costs a minute of patience, nothing else."""

    since_s: dict[str, float] = field(default_factory=dict)  # by lease, when it was first seen to wait
    rest_s: dict[str, float] = field(default_factory=dict)  # by job, until when it is left alone
    grants_s: deque[float] = field(default_factory=deque)  # as the log has them: a restart gives no more of them


@dataclass(frozen=True, slots=True)
class _Look:
    """What is lent by: the cluster as it was seen, leases that stay, forecasts, and who gets none, by id, and why."""

    snapshot: Snapshot
    pools: Sequence[Pool]
    leases: Sequence[Lease]
    forecasts: ForecastSource
    barred: Mapping[str, str]

    def room(self) -> Room:
        """Idle GPUs, but those that leases wait for."""
        return Room(self.snapshot.nodes, [one.job for one in self.leases if one.job.waits])


class Advisor:
    """Looks at a cluster again and again: `advise` says what to do, `carry_out` does it.

    Parameters
    ----------
    cluster : a running Slurm
    known : of the cluster, with the log of events; an empty one is filled from the accounting first
    forecasts : of an instant, from all that is known of the cluster
    make_policy : a policy from its forecasts
    clock : of forecasts against the cluster's
    """

    def __init__(
        self,
        cluster: Slurm,
        known: LogReader,
        forecasts: Callable[[State, Sequence[Pool], float], Asked],
        make_policy: Callable[[ForecastSource], Any],
        rules: Rules = DEFAULT,
        clock: Clock = REAL,
    ) -> None:
        self._cluster, self._known, self._forecasts = cluster, known, forecasts
        self._make_policy, self.rules, self.clock = make_policy, rules, clock
        # One of others' threads may be ahead meanwhile: all of an advice is of one state.
        self.state, self._number, self._name = known.state, 0, ""
        self._place = place_of(known.log.file)
        self._attempts = _Attempts()
        self._catch_up()

    def _catch_up(self) -> None:
        """Read what the log has beyond what is known."""
        self._known.read()
        self.state = self._known.state
        for number, event in self._known.log.since(self._number):
            self._number = number
            # A copy of the log brings along what it was called where it was copied from.
            if event.kind == ADVISOR and event.job_id.startswith(self._place):
                self._name = self._name or event.job_id
            elif event.kind == INTENT:
                self._attempts.grants_s.append(self.clock.real(event.at_s))

    def _keep(self, events: Sequence[Event]) -> None:
        self._known.log.append(events)
        self._catch_up()

    def look(self, now_s: float) -> Snapshot:
        """See the cluster and keep what is new of it. Raises ClusterError, LedgerError."""
        # To the millisecond, which a trace can hold: what is learnt from it later was known at the same instants.
        snapshot = self._cluster.look(round(now_s, 3))
        # What came and ended while nobody looked the controller may have forgotten; the accounting has it.
        missed_s = self.clock.real(self.state.known_s)
        if not self.state.jobs or now_s - missed_s > STALE_S:
            trace = self._cluster.history(max(missed_s, now_s - HISTORY_S), self.rules.pool_by)
            if trace is not None:
                self._keep(past(trace, self.state, now_s, self.clock))
        self._keep(news(snapshot, self.state, pools_of(snapshot.qos), self.rules.pool_by, self.clock))
        return snapshot

    def advise(self, snapshot: Snapshot) -> Advice:
        """What to do about a cluster that was seen: leases first that are over or came to nothing, then new ones."""
        pools, now_s = pools_of(snapshot.qos), snapshot.at_s
        leases = leases_of(snapshot, self.rules.pool_by)
        back = self._back(leases, now_s)
        kept = [lease for lease in leases if lease.name not in back]
        asked = self._forecasts(self.state, pools, self.clock.model(now_s))
        lent, left, bad = self._lent(snapshot, pools, kept, asked)
        wanted = on_loan(kept)
        for action in lent:
            wanted[action.pool] += action.gpus or 0
        returned = [_returned(one, back[one.name]) for one in leases if one.name in back]
        # Who goes back first, then the limits, then who starts under them.
        actions = [*returned, *self._limits(snapshot.qos, wanted), *self._preempts(snapshot.qos, pools), *lent]
        seen = self._seen(snapshot, pools, leases)
        stopped = stopped_figures(self.state.stopped, self.clock.model(now_s))
        trouble = [*asked.trouble, *bad]
        if self.rules.preempt and not self._cluster.stops_by_qos():
            trouble.append("owners cannot stop jobs on lease: PreemptType of slurm.conf is not preempt/qos")
        return Advice(now_s, seen, leases, actions, trouble, asked.versions, left, stopped)

    def _back(self, leases: Sequence[Lease], now_s: float) -> dict[str, str]:
        """By lease why its job goes back to its own QOS: it waits still, or again because the owner stopped it."""
        waiting = [lease for lease in leases if lease.job.waits]
        before_s = self._attempts.since_s
        self._attempts.since_s = {lease.name: before_s.get(lease.name, now_s) for lease in waiting}
        result = {}
        for lease in waiting:
            if lease.job.held:
                known = self.state.active.get(lease.job.job_id, JobRecord())
                stopped = known.last is not None and known.last.kind == REQUEUE
                why = "it was stopped, as by an owner, and waits again" if stopped else "it may not start now"
                result[lease.name] = f"{why} ({lease.job.reason})"
                # Back in its own QOS it would look as if only its quota held it, and be lent to again for ever.
                if lease.job.reason not in PLAIN:
                    self._attempts.rest_s[lease.job.job_id] = now_s + REST_S
            elif now_s - self._attempts.since_s[lease.name] > PATIENCE_S:
                result[lease.name] = f"not started within {PATIENCE_S:g} s"
                self._attempts.rest_s[lease.job.job_id] = now_s + REST_S
        return result

    def _lent(
        self, snapshot: Snapshot, pools: Sequence[Pool], leases: Sequence[Lease], asked: Asked
    ) -> tuple[list[Action], list[tuple[str, str]], list[str]]:
        """What the policy lends, as far as rules, nodes and limits allow it, what not and why, and bad answers."""
        now_s, tally = self.clock.model(snapshot.at_s), BadAnswers()
        barred = barred_tasks(snapshot.jobs, snapshot.qos, self.rules.pool_by, self.rules.preempt)
        seen = _Look(snapshot, pools, leases, guarded(asked, pools, now_s, tally), barred)
        lent, left = self._without((), seen)
        stuck = self._stuck(seen) | barred.keys() | {name for name, why in left if why == IN_PART}
        if not stuck.isdisjoint(name for name, _ in left):
            # What they cannot take now others may.
            lent, more = self._without(stuck, seen)
            granted = {one.what for one in lent}
            left = [one for one in {**dict(left), **dict(more)}.items() if one[0] not in granted]
        return lent, left, reasons(tally) if asked.source is not None else []

    def _stuck(self, seen: _Look) -> set[str]:
        """Jobs that would start on no grant: none of their nodes has room, or one came to nothing just before."""
        room = seen.room()
        waiting = [job for job in seen.snapshot.jobs if job.waits and not on_lease(job)]
        # Thousands wait and ask for a few things: nodes are looked through once for each of these.
        alike = {(job.gpus, job.nodes, job.asks): job for job in waiting}
        stuck = {asked for asked, job in alike.items() if room.stuck(job)}
        return {job.job_id for job in waiting if (job.gpus, job.nodes, job.asks) in stuck} | {*self._attempts.rest_s}

    def _without(self, stuck: Collection[str], seen: _Look) -> tuple[list[Action], list[tuple[str, str]]]:
        """As `_allowed`, of what the policy would start if some jobs did not wait."""
        now_s, forecasts, state = self.clock.model(seen.snapshot.at_s), seen.forecasts, self.state
        policy = self._make_policy(forecasts)
        run = standing(state.active, state.gpus, now_s, seen.pools, policy, forecasts, lambda _: HOUR_S, stuck)
        view = run.look()
        spare = [] if view is None else _spare(run, run.policy.decide(view).change)
        return self._allowed(spare, seen)

    def _allowed(self, spare: Sequence[Job], seen: _Look) -> tuple[list[Action], list[tuple[str, str]]]:
        snapshot, room, lent = seen.snapshot, seen.room(), on_loan(seen.leases)
        queued = {job.job_id: job for job in snapshot.jobs}
        self._forget(snapshot.at_s)
        result: list[Action] = []
        left: list[tuple[str, str]] = []
        for job in spare:
            known = queued[job.job_id]
            why = seen.barred.get(job.job_id) or self._why_not(job, known, lent, len(result), snapshot.at_s)
            if LENT + job.pool not in snapshot.qos:
                why = f"it would be lent to, but Slurm has no QOS {LENT}{job.pool}"
            if not why and not room.take(known):
                why = f"no {known.nodes} node(s) that it may use with so many idle GPUs"
            if why:
                left.append((job.job_id, why))
                continue
            lent[job.pool] += job.gpus
            horizons_min, bin_ = seen.forecasts.horizons_min, seen.forecasts.duration_bin(job)
            # The last bin is open: who is lent to beyond all horizons is looked at again when so much has passed.
            horizon_s = 60.0 * (horizons_min[bin_] if bin_ < len(horizons_min) else LONGER * horizons_min[-1])
            until_s = self.clock.real(self.clock.model(snapshot.at_s) + horizon_s)
            told = f"expected to end within {horizon_s / 60:g} min, while no pool is expected to need these GPUs"
            result.append(Action("lend", job.job_id, told, job.pool, job.gpus, until_s, known))
        vain = dict.fromkeys(in_part(snapshot.jobs, [one.what for one in result]), IN_PART)
        return [one for one in result if one.what not in vain], list({**dict(left), **vain}.items())

    def _why_not(self, job: Job, queued: QueuedJob, lent: Counter[str], grants: int, now_s: float) -> str:
        most, rest_s = self.rules.max_lent, self._attempts.rest_s.get(job.job_id, -inf)
        if not queued.waits or queued.qos.startswith(LENT):
            return "its state has changed"
        if rest_s > now_s:
            return f"a grant came to nothing; left alone for {rest_s - now_s:.0f} s more"
        if most is not None and lent[job.pool] + job.gpus > most:
            return f"its pool would have more than {most} GPUs on lease"
        if len(self._attempts.grants_s) + grants >= self.rules.per_minute:
            return f"more than {self.rules.per_minute} grants within a minute"
        return ""

    def _forget(self, now_s: float) -> None:
        attempts = self._attempts
        while attempts.grants_s and attempts.grants_s[0] <= now_s - MINUTE_S:
            attempts.grants_s.popleft()
        attempts.rest_s = {name: until_s for name, until_s in attempts.rest_s.items() if until_s > now_s}

    def _limits(self, qos: Mapping[str, Qos], wanted: Counter[str]) -> list[Action]:
        """Limits that are other than what is on lease, those of pools that have no quota any more among them."""
        names = (name.removeprefix(LENT) for name in sorted(qos) if name.startswith(LENT))
        most = inf if self.rules.max_lent is None else self.rules.max_lent
        limits = {name: int(min(wanted[name], most)) for name in names if name in qos}
        return [
            Action("limit", LENT + name, "as many as are on lease", name, gpus)
            for name, gpus in limits.items()
            if qos[LENT + name].gpus != gpus
        ]

    def _preempts(self, qos: Mapping[str, Qos], pools: Sequence[Pool]) -> list[Action]:
        """Where owners may take GPUs back each may stop all that is on lease: nobody knows whose GPUs a job holds."""
        if not self.rules.preempt:
            return []
        lent = [LENT + pool.name for pool in pools if LENT + pool.name in qos]
        told, there = "owners may stop jobs on lease", {pool.name: qos[pool.name].preempts for pool in pools}
        return [
            # Each name once, those that were there first.
            Action("preempt", name, told, name, others=tuple(dict.fromkeys((*preempts, *lent))))
            for name, preempts in there.items()
            if not set(lent) <= set(preempts)
        ]

    def _seen(self, snapshot: Snapshot, pools: Sequence[Pool], leases: Sequence[Lease]) -> dict[str, dict[str, int]]:
        lent, held, waiting = on_loan(leases), Counter[str](), Counter[str]()
        for job in snapshot.jobs:
            count = held if job.runs else waiting if job.waits else Counter[str]()
            count[pool_of(job, self.rules.pool_by)] += job.gpus or 0
        return {
            pool.name: {
                "quota": pool.quota,
                "held": held[pool.name],
                "on_lease": lent[pool.name],
                "waiting_gpus": waiting[pool.name],
            }
            for pool in pools
        }

    def carry_out(self, advice: Advice, snapshot: Snapshot) -> list[str]:
        """Do what was advised, in order; what failed comes back, in words, and what hangs on it is left undone.

        Intent is kept before, and what is read back after. Raises LedgerError, and ConfigError where another advisor
        lends on this cluster.
        """
        name = self._named(self.clock.model(advice.at_s))
        if others := claimants(snapshot.qos) - {name}:
            raise ConfigError(
                f"advise --apply: another advisor, {min(others)}, lends on this Slurm; end one of the two, or where "
                "that one is gone for good put back what it changed: jobcast advise --slurm --undo"
            )
        if not advice.actions:
            return []
        failed: dict[str, str] = {}
        granted: list[str] = []
        for action in advice.actions:
            # What cannot be held under a limit is not moved there.
            if action.do == "lend" and LENT + action.pool in failed:
                continue
            try:
                self._do(action, advice, snapshot)
                granted += [action.what] if action.do == "lend" else []
            except ClusterError as error:
                failed[action.what] = str(error)
        return [*failed.values(), *self._read_back(granted)]

    def _named(self, at_s: float) -> str:
        """What this advisor is called, and those of its home that come after it."""
        if not self._name:
            self._keep([Event(at_s, ADVISOR, new_name(self._place), at_s)])
        return self._name

    def _do(self, action: Action, advice: Advice, snapshot: Snapshot) -> None:
        if action.do == "limit":
            told = claimed(snapshot.qos[action.what], self._name, True)
            self._cluster.limit(action.what, action.gpus, told)
        elif action.do == "preempt":
            told = claimed(snapshot.qos[action.what], self._name, False)
            self._cluster.preempts(action.what, action.others, told)
        elif action.do == "return" and action.job is not None:
            self._cluster.move(action.job.job_id, action.qos, unmarked(action.job), action.limit_s)
        elif action.job is not None:
            self._grant(action, action.job, advice)

    def _grant(self, action: Action, job: QueuedJob, advice: Advice) -> None:
        name, at_s = uuid.uuid4().hex[:12], self.clock.model(advice.at_s)
        versions = ",".join(f"{key}:{number}" for key, number in advice.versions.items())
        facts = {"lease": name, "pool": action.pool, "gpus": action.gpus, "until_s": action.until_s}
        self._keep([Event(at_s, INTENT, job.job_id, at_s, facts)])
        runs_s = action.until_s - advice.at_s
        cut = bool(SHORTEN.search(job.comment)) and runs_s < job.limit_s
        mark = marked(job, name, action.until_s, versions, cut)
        self._cluster.move(job.job_id, LENT + action.pool, mark, runs_s if cut else None)

    def _read_back(self, granted: Sequence[str]) -> list[str]:
        """Keep the leases that Slurm has; those that it has not are told."""
        if not granted:
            return []
        try:
            there = {job.job_id: job for job in self._cluster.queue()}
        except ClusterError as error:
            return [f"grants cannot be read back: {error}"]
        found = [name for name in granted if name in there and there[name].qos.startswith(LENT)]
        at_s = self.state.known_s
        self._keep([Event(at_s, LEASE, name, at_s, {"mark": there[name].mark}) for name in found])
        return [f"job {name}: the grant was not found when it was read back" for name in set(granted) - set(found)]

    def overstayed(self, advice: Advice) -> list[Lease]:
        """Leases whose jobs have outlived their forecast; each is kept in the log once, as a miss."""
        over = [lease for lease in advice.leases if lease.job.runs and lease.until_s < advice.at_s]
        rows = ((self.clock.model(lease.until_s), lease) for lease in over)
        self._keep([Event(at_s, OVERSTAY, lease.job.job_id, at_s, {"lease": lease.name}) for at_s, lease in rows])
        return over

    def undo(self, now_s: float) -> list[str]:
        """Put back what an advisor changed, and jobs that wait on a grant into their QOS; what was done, in words.

        Limits of QOS of leases are as their claims tell again; other QOS may stop no jobs on lease that they might not
        stop before. All else is the administrators', who may have changed it since. Running jobs go on. A step that
        fails, as of a job that has gone meanwhile, keeps no other from being taken. Raises ConfigError where there is
        nothing to do, ClusterError.
        """
        snapshot, steps = self._cluster.look(now_s), list[tuple[str, Callable[[], None]]]()
        for lease in leases_of(snapshot, self.rules.pool_by):
            if lease.job.waits:
                back = partial(self._cluster.move, lease.job.job_id, lease.qos, unmarked(lease.job), lease.limit_s)
                steps.append((f"job {lease.job.job_id} is back in {lease.qos}", back))
        for name, is_now in snapshot.qos.items():
            lends = name.startswith(LENT)
            was = before(is_now, lends)
            if was is not None and lends:
                gpus = "no limit" if was.gpus is None else f"{was.gpus} GPUs"
                steps.append((f"{name}: {gpus} again", partial(self._cluster.limit, name, was.gpus, was.told)))
            elif was is not None:
                others = [one for one in is_now.preempts if one in was.preempts or not one.startswith(LENT)]
                words = f"{name}: preempts {', '.join(others) or 'nobody'} again"
                steps.append((words, partial(self._cluster.preempts, name, others, was.told)))
        if not steps:
            raise ConfigError("advise --undo: no QOS tells that an advisor changed it; there is nothing to put back")
        done, failed = _each(steps)
        if failed:
            raise ClusterError(
                f"advise --undo: {len(failed)} of {len(steps)} steps failed, {failed[0]}; ask again for these"
            )
        return done


def _returned(lease: Lease, why: str) -> Action:
    job, limit_s = lease.job, lease.limit_s
    return Action("return", job.job_id, why, lease.pool, lease.gpus, job=job, qos=lease.qos, limit_s=limit_s)


def _each(steps: Iterable[tuple[str, Callable[[], None]]]) -> tuple[list[str], list[str]]:
    """Take all steps; in words those that were taken, and why others failed."""
    done, failed = list[str](), list[str]()
    for words, step in steps:
        try:
            step()
            done.append(words)
        except ClusterError as error:
            failed.append(str(error))
    return done, failed


def _spare(run: Simulation, change: Mapping[int, Any]) -> list[Job]:
    """Jobs that a policy starts on GPUs that other pools pay for, in its order."""
    return [run.jobs[seq] for seq, grant in change.items() if grant is not None and not grant.dedicated]
