"""Rounds: a policy that chooses the jobs of each round, made into one that the engine can ask.

Shockwave, section 7: rounds of fixed length; a job that goes on keeps its GPUs, one that comes back starts anew; GPUs
freed within a round are used again from the next one on. Its solver works while jobs run: `OneRoundLate` begins a round
by a plan that was made in the one before.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from jobcast.domain.energy import EnergyCluster, EpochTimes
from jobcast.domain.errors import DecisionError
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, Grant, RunningJob, Trigger, View
from jobcast.domain.rounds import ActiveJob, RoundPolicy, RoundState, SharePolicy
from jobcast.schedulers.packing import first_fit
from jobcast.schedulers.placement import NodePlacement

# Shockwave, section 6.1.
ROUND_S = 120.0
# What a start after an absence takes: Gavel's published simulator.
RESTART_S = 20.0
# Rounds owed that count as equal: their sums round off.
SAME_ROUNDS = 1e-6


class Rounds:
    """A policy that asks a `RoundPolicy` when a round begins and leaves everything alone in between.

    Parameters
    ----------
    policy : chooses the jobs of a round
    name : what results call it
    round_s : length of a round, seconds
    restart_s : what a start costs, as policies are told; the law charges its own
    seats : where jobs sit on nodes, kept up here; None takes all GPUs for alike. A job that is moved is stopped and
        started in the same instant

    Notes
    -----
    A running job that is not preemptible keeps its GPUs, and the policy does not see it.
    """

    def __init__(
        self,
        policy: RoundPolicy,
        name: str,
        round_s: float = ROUND_S,
        restart_s: float = RESTART_S,
        seats: NodePlacement | None = None,
    ) -> None:
        self.name = name
        self.trigger = Trigger(on_events=False, period_s=round_s)
        self.rounds = 0
        self.seats = seats
        self._policy, self._round_s, self._restart_s = policy, round_s, restart_s
        self._first_s: float | None = None
        self._seen: dict[int, int] = {}  # regimes that each job had shown when the last round began, by seq
        self._speeds: dict[int, Mapping[int, float]] = {}  # by seq

    def decide(self, view: View) -> Decision:
        """Changes of the jobs that run."""
        state, shown = self._state(view)
        stuck = state.active and state.total_gpus <= 0  # jobs that may not be stopped hold all GPUs
        chosen = () if stuck else self._policy.choose(state)
        self.rounds += 1
        # Taken after the choice: `changed` compares with what the policy saw last.
        self._seen = shown
        run_on = {job.seq for job in chosen}
        # Who is given another number of GPUs starts anew.
        starts = [job for job in chosen if job.seq not in view.running or _held(view.running[job.seq]) != job.gpus]
        stops = {seq: None for seq, run in view.running.items() if run.job.preemptible and seq not in run_on}
        if self.seats is None:
            return Decision({**stops, **{job.seq: Grant(job.gpus) for job in starts}})
        gone = stops.keys() | {job.seq for job in starts}
        staying = [run.job.on(_held(run)) for seq, run in view.running.items() if seq not in gone]
        try:
            return Decision({**stops, **self.seats.settle(staying, starts)})
        except DecisionError as error:
            raise DecisionError(f"policy {self.name} at {view.now_s:.6f} s: {error}") from None

    def figures(self) -> dict[str, float]:
        """Rounds in which somebody was active, what the policy says of its own work, and how jobs were seated."""
        seated = self.seats.figures() if self.seats is not None else {}
        return {"rounds": float(self.rounds)} | figures_of(self._policy) | seated

    def job_columns(self) -> dict[str, dict[int, float]]:
        """What the policy says of jobs: by column, by seq; nothing of one that keeps none."""
        return getattr(self._policy, "job_columns", dict)()

    def _state(self, view: View) -> tuple[RoundState, dict[int, int]]:
        """What the policy sees, and the regimes that each job has shown, by seq."""
        if self._first_s is None:
            self._first_s = view.now_s
        active, total_gpus, running, known = [], view.total_gpus, view.running, self._speeds
        for seq, job in view.active.items():
            run = running.get(seq)
            # Its GPUs are out of reach for the whole of its life, so they are not dealt out.
            if run is not None and not job.preemptible:
                total_gpus -= job.gpus
                continue
            service, gpus = view.service(job), 0 if run is None else _held(run)
            if seq not in known:
                known[seq] = speeds_of(job, view)
            active.append(ActiveJob(job, service.held_s, service.run_s, gpus > 0, service.progress, known[seq], gpus))
        shown = {one.job.seq: _shown(one) for one in active}
        adapted = any(shown[seq] != count for seq, count in self._seen.items() if seq in shown)
        state = RoundState(
            now_s=view.now_s,
            # Rounded: instants are sums of rounds, whose dust must not shift a number.
            index=round((view.now_s - self._first_s) / self._round_s),
            round_s=self._round_s,
            restart_s=self._restart_s,
            total_gpus=total_gpus,
            active=active,
            changed=adapted or shown.keys() != self._seen.keys(),
            adapted=adapted,
        )
        return state, shown


class ShareRounds:
    """Follows shares of time in rounds: jobs that are owed the most rounds run, as far as they fit.

    Gavel (OSDI 2020), section 5, ranks by share / time received; rounds promised less rounds given is the same order
    of need without a division, and it does not forget.

    Parameters
    ----------
    policy : says the shares, asked again when a job arrived, finished or changed its batch size
    """

    def __init__(self, policy: SharePolicy) -> None:
        self._policy = policy
        self._shares: dict[int, float] = {}
        self._owed: defaultdict[int, float] = defaultdict(float)  # rounds that were promised, by seq
        self._given: defaultdict[int, float] = defaultdict(float)

    def choose(self, state: RoundState) -> Sequence[Job]:
        """Jobs in order of rounds promised less rounds given, the largest first; those running first among equals."""
        if state.changed or any(one.job.seq not in self._shares for one in state.active):
            shares = self._policy.shares(state)
            self._shares = {one.job.seq: share for one, share in zip(state.active, shares, strict=True)}
        for one in state.active:
            # What is owed stays when shares are worked out anew: who waited long keeps its claim.
            self._owed[one.job.seq] += self._shares[one.job.seq]
        ranked = sorted(state.active, key=self._rank)
        chosen = first_fit([one.job for one in ranked], state.total_gpus)
        for job in chosen:
            self._given[job.seq] += 1.0
        return chosen

    def fill(self, state: RoundState) -> Sequence[Job]:
        """Jobs for GPUs that stay free beside a plan, in the same order; no round is promised or given by that."""
        return first_fit([one.job for one in sorted(state.active, key=self._rank)], state.total_gpus)

    def figures(self) -> dict[str, float]:
        """What the share policy says of its own work."""
        return figures_of(self._policy)

    def _rank(self, one: ActiveJob) -> tuple[int, bool, int]:
        seq = one.job.seq
        # Given less owed, so that the smallest comes first; in units, for sums of shares round off.
        owed = self._given[seq] - self._owed[seq]
        return round(owed / SAME_ROUNDS), not one.running, seq


def speeds_of(job: Job, view: View) -> Mapping[int, float]:
    """By numbers of GPUs that a job may have, ascending, its progress over that on the GPUs that it asks for.

    These are the one asked for, and where its law knows seconds an epoch by number, those from `min_gpus` on that are
    faster than any smaller one, as far as a kind of nodes with GPUs of the first type has so many. None of a job that
    tells no `min_gpus`, or may not be stopped: it keeps its number.
    """
    if not job.min_gpus or not job.preemptible:
        return {}
    try:
        times, cluster = view.facts(EpochTimes), view.facts(EnergyCluster)
    except LookupError:  # a law in which GPUs of a job do not change
        return {}
    there = np.bincount(cluster.kind_of, minlength=len(cluster.kind_gpus)) * cluster.kind_gpus
    counts = np.arange(1, times.epoch_s.shape[2] + 1)
    able = cluster.reference[:, None] & (counts <= there[:, None]) & (counts >= min(job.min_gpus, job.gpus))
    epoch_s = np.where(able, times.epoch_s[job.seq], np.inf).min(axis=0)
    if job.gpus > len(counts) or not np.isfinite(epoch_s[job.gpus - 1]):
        return {}
    faster = epoch_s < np.concatenate([[np.inf], np.minimum.accumulate(epoch_s)[:-1]])
    faster[job.gpus - 1] = True
    return {int(gpus): float(epoch_s[job.gpus - 1] / epoch_s[gpus - 1]) for gpus in counts[faster]}


def _held(run: RunningJob) -> int:
    return int(run.grant.gpus)


def _shown(one: ActiveJob) -> int:
    return len(one.progress.regimes) if one.progress is not None else 0


def figures_of(policy: object) -> dict[str, float]:
    """What a policy says of its own work; nothing of one that keeps no figures."""
    own: Callable[[], dict[str, float]] | None = getattr(policy, "figures", None)
    return own() if own is not None else {}


# Share of its epochs that a job is expected to have done, at most, while nobody has seen it end.
UNFINISHED = 1.0 - 1e-9

Fill = Callable[[RoundState], Sequence[Job]]


class OneRoundLate:
    """Runs in each round what was chosen from the state at the beginning of the round before.

    The policy is shown that state as it is expected to be a round later (`expected`): who runs is settled by then, and
    without their progress a plan would take all that runs for a round more urgent than it is. Jobs that finish
    meanwhile leave; jobs that arrive wait for the next plan, unless they fill GPUs that stay free. Where a plan has
    nobody left to run, at first and after idle times, the policy is asked at once, and its answer serves the next
    round too.

    Parameters
    ----------
    policy : chooses the jobs; asked once a round
    fill : chooses among the jobs that a plan leaves out, on the GPUs that it leaves free, from the present state; it
        must take an instant and leave nothing behind. None leaves those GPUs idle
    """

    def __init__(self, policy: RoundPolicy, fill: Fill | None = None) -> None:
        self._policy, self._fill = policy, fill
        self._planned: Sequence[Job] = ()

    def choose(self, state: RoundState) -> Sequence[Job]:
        """The jobs planned in the round before that are still there, and beside them whoever fills what is free."""
        here = {one.job.seq for one in state.active}
        chosen = first_fit((job for job in self._planned if job.seq in here), state.total_gpus)
        # At first, and after idle times, no plan is there: the one round is planned as if it took no time.
        if not chosen:
            chosen = list(self._policy.choose(state))
            self._planned = chosen
            return chosen
        chosen += self._filling(state, chosen)
        later = expected(state, chosen)
        # Policies divide by GPUs and jobs, and are not asked where there is neither.
        self._planned = self._policy.choose(later) if later.active and later.total_gpus > 0 else ()
        return chosen

    def figures(self) -> dict[str, float]:
        """What the policy says of its own work."""
        return figures_of(self._policy)

    def _filling(self, state: RoundState, chosen: Sequence[Job]) -> Sequence[Job]:
        taken = {job.seq for job in chosen}
        left = [one for one in state.active if one.job.seq not in taken]
        free_gpus = state.total_gpus - sum(job.gpus for job in chosen)
        if self._fill is None or not left or free_gpus <= 0:
            return ()
        return self._fill(replace(state, active=left, total_gpus=free_gpus))


def expected(state: RoundState, chosen: Sequence[Job]) -> RoundState:
    """The state a round later if these jobs run and nothing happens: no arrival, no end, no other batch size.

    Jobs that may not be stopped are left out once they run, and so are their GPUs.
    """
    runs = {job.seq: job.gpus for job in chosen}
    kept = {job.seq: job.gpus for job in chosen if not job.preemptible}
    active = [
        _advanced(one, state, runs[one.job.seq]) if one.job.seq in runs else replace(one, running=False, gpus=0)
        for one in state.active
        if one.job.seq not in kept
    ]
    return replace(
        state,
        now_s=state.now_s + state.round_s,
        index=state.index + 1,
        total_gpus=state.total_gpus - sum(kept.values()),
        active=active,
    )


def _advanced(one: ActiveJob, state: RoundState, gpus: int) -> ActiveJob:
    # Who starts, or goes on with other GPUs, pays the restart out of the round, as the law will charge it.
    run_s = state.round_s if one.holds == gpus else max(0.0, state.round_s - state.restart_s)
    run_s *= one.speeds.get(gpus, 1.0)
    training, progress = one.job.training, one.progress
    if training is not None and progress is not None:
        epoch_s, last = training.epoch_s[progress.batch_size], progress.regimes[-1]
        # Nobody has seen it end: a forecast of a job past its end would have no regime left.
        epochs = min(run_s / epoch_s, max(0.0, training.epochs * UNFINISHED - progress.epochs))
        run_s = epochs * epoch_s
        now = replace(last, epochs=last.epochs + epochs)
        progress = replace(progress, epochs=progress.epochs + epochs, regimes=(*progress.regimes[:-1], now))
    held_s, run_s = one.held_s + state.round_s, one.run_s + run_s
    return replace(one, held_s=held_s, run_s=run_s, running=True, progress=progress, gpus=gpus)
