"""SIA planned in time: jobs start early where sampled futures let others start as if nothing was shared.

SIA_VC (section 5.1) starts a job as early as leaves all others their virtual starts: those under `fcfs` on their pool's
quota alone. It plans with every job's future known. Here the same is done with what forecasts tell:

- The virtual clock needs no forecast. A job that started no later than virtually has run at least as long as it would
  have by now, so that who waits, runs and has ended in a pool that shares nothing is known at any instant. Whom the
  clock starts is due, and goes before all others. A job that was done early holds its virtual GPUs until it would have
  ended: its pool asks for no real ones meanwhile, and jobs queued behind it can wait without being slowed.
- What is needed from now on is sampled (`needed_gpus`): run times of all jobs that are there from the forecast's
  duration bins, given what they have run; the virtual clock of each pool with these; and loads to come by quantiles, as
  Figure 8 reserves them: all that arrives by a horizon at once, up to the quota that is virtually idle once nobody of
  the pool is queued.
- A job may start early if the minutes by which it is expected to slow others keep to a budget. With L(t) the largest
  number of GPUs expected to be lacking because of it by t, D its run time, W the mean width of jobs, and R the time
  until others give GPUs back, as in `sia_risk`, they are E[integral from 0 to D of L(t) exp(-(D - t) / R) dt] / W.
  What others leave at t is taken as normal, with the mean and variance of the samples, so that rare shortages count.
- Of those that may, the one of the least expected GPUs x run time starts first, whatever its pool.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from math import inf, nan, pi, sqrt
from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import MINUTE_S
from jobcast.domain.compiled import njit
from jobcast.domain.forecasts import UncertainForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, Grant, PoolView, View
from jobcast.domain.rounding import rounded
from jobcast.schedulers.pool_policies import SiaPlanSettings

# Columns of what is known of a job, before the chances of its duration bins: number of its pool, GPUs, submission, real
# start and end, virtual start and end, seconds from the epoch, NaN where they have not come.
POOL, GPUS, SUBMIT, START, END, BEGIN, OVER, CHANCES = range(8)
# Edges of the plan's steps, minutes from now.
STEPS_MIN = (
    *(0, 1, 3, 6, 10, 15, 22, 30, 45, 60, 80, 100, 120, 150, 180, 240, 300, 360, 480, 600, 720),
    *(900, 1080, 1440, 1920, 2880, 4320, 5760),
)  # fmt: skip
FUTURES = 16
# From the first bin's edge down and the last one's up: as from one horizon to the next in SIA, section 5.4.1.
EDGE_RATIO = 12.0
# For so long a plan serves, brought up to date by starts and ends alone.
RENEW_S = 60.0
# Of the mean width of jobs, by each that is submitted.
FORGETTING = 0.01
FIRST_ROOM = 1024
LEVELS = tuple(((np.arange(FUTURES) + 0.5) / FUTURES).tolist())


@njit("f8(f8[::1], f8[::1], f8)", cache=True)
def survival(chances: Floats, edges: Floats, time: float) -> float:
    """Chance of a run time above another: (bins,) chances of bins, log-uniform between (bins + 1,) edges."""
    left = 0.0
    for one in range(len(chances)):
        low, high = edges[one], edges[one + 1]
        if time <= low:
            left += chances[one]
        elif time < high:
            left += chances[one] * np.log(high / time) / np.log(high / low)
    return left


@njit("f8(f8[::1], f8[::1], f8, f8)", cache=True)
def run_time(chances: Floats, edges: Floats, age: float, level: float) -> float:
    """Quantile of a run time, given that it is above `age`; where no bin allows that, log-uniform beyond it."""
    left = survival(chances, edges, age)
    if left <= tolerance.SHARES:
        return float(age * EDGE_RATIO**level)
    target, above, one = left * (1.0 - level), 0.0, len(chances) - 1
    while above + chances[one] < target:  # less than all of them
        above += chances[one]
        one -= 1
    low, high = edges[one], edges[one + 1]
    return float(max(age, high * np.exp(-np.log(high / low) * (target - above) / chances[one])))


@njit("f8(i8, i8)", cache=True)
def level_of(number: int, future: int) -> float:
    """Level of a run time or load in a future: each of `FUTURES` levels once, in an order of its own by number."""
    mixed = (number * 2654435761) & 0xFFFFFFFF
    place = (future * (2 * (mixed >> 7) + 1) + (mixed >> 15)) % FUTURES
    return (place + 0.5) / FUTURES


@njit(cache=True)
def _sampled(fact: Floats, edges: Floats, now_s: float, seq: int, future: int) -> float:
    """A job's run time: as it was where that is known."""
    if not np.isnan(fact[END]):
        return float(fact[END] - fact[START])
    begin_s = now_s if np.isnan(fact[START]) else fact[START]
    return float(run_time(fact[CHANCES:], edges, now_s - begin_s, level_of(seq, future)))


@njit("void(f8[:, ::1], f8[::1], f8[::1], f8[::1], f8, i8, f8)", cache=True)
def hold(left: Floats, fact: Floats, edges: Floats, mids: Floats, now_s: float, seq: int, gpus: float) -> None:
    """A job takes GPUs from what is left, (futures, steps), as long as it runs; it gives them back if negative."""
    begin_s = now_s if np.isnan(fact[START]) else min(now_s, fact[START])
    for future in range(len(left)):
        run_s = run_time(fact[CHANCES:], edges, now_s - begin_s, level_of(seq, future))
        left[future, : np.searchsorted(mids, begin_s + run_s - now_s)] -= gpus


@njit(cache=True)
def _spend(use: Floats, mids: Floats, begin_s: float, end_s: float, gpus: float) -> None:
    """GPUs are in use from one instant to another: as changes by step, (steps + 1,)."""
    use[np.searchsorted(mids, begin_s)] += gpus
    use[np.searchsorted(mids, max(begin_s, end_s))] -= gpus


@njit(cache=True)
def _queued(ends: Any, room: Floats, clock: Floats, pool: int, gpus: float) -> None:
    """Move a pool's clock on until its next job fits."""
    while room[pool] < gpus and ends[pool]:
        over_s, given = heappop(ends[pool])
        room[pool] += given
        clock[pool] = max(clock[pool], over_s)


@njit(cache=True)
def _played(
    seqs: Ints, facts: Floats, edges: Floats, mids: Floats, now_s: float, quotas: Floats, future: int
) -> tuple[Floats, Floats, Floats]:
    """A future without arrivals: changes of what is needed, and of virtual use by pool; when pools' queues are over."""
    real, virtual = np.zeros(len(mids) + 1), np.zeros((len(quotas), len(mids) + 1))
    room, clock = quotas.copy(), np.zeros(len(quotas))
    ends = [[(0.0, 0.0) for _ in range(0)] for _ in quotas]
    for row in range(len(seqs)):
        fact = facts[row]
        pool, gpus, waits, queued = int(fact[POOL]), fact[GPUS], np.isnan(fact[START]), np.isnan(fact[BEGIN])
        # Nobody behind starts within the plan.
        if queued and waits and clock[pool] > mids[-1]:
            continue
        run_s = _sampled(fact, edges, now_s, seqs[row], future)
        begin_s, end_s = 0.0, run_s if waits else fact[START] + run_s - now_s
        if not waits and np.isnan(fact[END]):
            _spend(real, mids, 0.0, end_s, gpus)
        if queued:
            _queued(ends, room, clock, pool, gpus)
            begin_s = clock[pool]
            end_s = begin_s + run_s
        elif not waits:
            # Late jobs end virtually when they do, which is when it is known.
            end_s = max(0.0, end_s + max(0.0, fact[BEGIN] - fact[START]))
        room[pool] -= gpus
        heappush(ends[pool], (end_s, gpus))
        _spend(virtual[pool], mids, begin_s, end_s, gpus)
        if waits:
            _spend(real, mids, begin_s, end_s, gpus)
    return real, virtual, clock


@njit("f8[:, ::1](i8[::1], f8[:, ::1], f8[::1], f8[::1], f8, f8[::1], f8[:, :, ::1], i8[::1])", cache=True)
def needed_gpus(
    seqs: Ints, facts: Floats, edges: Floats, mids: Floats, now_s: float, quotas: Floats, loads: Floats, until: Ints
) -> Floats:
    """GPUs that jobs hold or must have if none is to start later than virtually, by sampled future, (futures, steps).

    Parameters
    ----------
    seqs : (n,) of the jobs that have not virtually ended, ascending
    facts : (n, CHANCES + bins) what is known of them
    edges : (bins + 1,) of the duration bins, seconds
    mids : (steps,) middles of the plan's steps, seconds from now
    quotas : (pools,) GPUs
    loads : (pools, horizons, levels) GPUs to arrive within each horizon
    until : (steps,) number of the first horizon that a step is within, the last one for steps beyond
    """
    needed = np.zeros((FUTURES, len(mids)))
    for future in range(FUTURES):
        real, virtual, clock = _played(seqs, facts, edges, mids, now_s, quotas, future)
        needed[future] = np.cumsum(real)[:-1]
        for pool in range(len(quotas)):
            level = int(level_of(pool, future) * FUTURES)
            used = 0.0
            for step in range(len(mids)):
                used += virtual[pool, step]
                if mids[step] >= clock[pool]:
                    needed[future, step] += max(0.0, min(quotas[pool] - used, loads[pool, until[step], level]))
    return needed


@njit("i8(i8[::1], f8[:, ::1], f8[:, ::1], f8)", cache=True)
def first_within(order: Ints, facts: Floats, costs: Floats, budget: float) -> int:
    """Place in `order` of the first job whose cost, (widths, bins) by the chances of its bins, keeps to the budget."""
    for place in range(len(order)):
        fact = facts[order[place]]
        gpus = int(fact[GPUS])
        if gpus < len(costs) and np.isnan(fact[BEGIN]):
            cost = 0.0
            for one in range(costs.shape[1]):
                cost += fact[CHANCES + one] * costs[gpus, one]
            if cost <= budget:
                return place
    return -1


def lacking(left: Floats, gpus: Floats) -> Floats:
    """GPUs that others are expected to lack because of (n,) widths, (n, steps), of those left, (futures, steps)."""
    mean, spread = left.mean(axis=0), left.std(axis=0) + tolerance.GPUS

    def short(width: Floats | float) -> Floats:
        from scipy.special import ndtr

        over = (width - mean) / spread
        result: Floats = spread * (np.exp(-over * over / 2.0) / sqrt(2.0 * pi) + over * ndtr(over))
        return result

    return np.maximum(short(gpus[:, None]) - short(0.0), 0.0)


def minutes_at_risk(edges: Floats, steps_s: Floats, relief_min: float) -> Floats:
    """Minutes by duration bin and step, (bins, steps), for which GPUs that are lacking from the step on are."""
    levels = (np.arange(64) + 0.5) / 64
    ends = edges[:-1, None] * (edges[1:] / edges[:-1])[:, None] ** levels
    relief_s = MINUTE_S * relief_min
    gone = np.exp(-np.maximum(ends[:, :, None] - steps_s, 0.0) / relief_s)
    result: Floats = relief_min * np.diff(gone, axis=2).mean(axis=1)
    return result


class VirtualClock:
    """A pool that shares nothing: who would run in it, and who would wait.

    Parameters
    ----------
    number : of the pool
    quota : its GPUs
    """

    def __init__(self, number: int, quota: int) -> None:
        self.number, self.quota = number, quota
        self.queue: deque[int] = deque()
        self._free, self._latest_s = float(quota), -inf
        self._ends: list[tuple[float, float]] = []  # heap of virtual ends that are known, and GPUs

    def begin(self, fact: Floats, at_s: float) -> None:
        """A job starts virtually."""
        fact[BEGIN] = at_s
        self._free -= fact[GPUS]
        if not np.isnan(fact[END]):
            self.ended(fact)

    def ended(self, fact: Floats) -> None:
        """A job has really ended that has virtually started: its virtual end is known."""
        fact[OVER] = fact[BEGIN] + fact[END] - fact[START]
        heappush(self._ends, (float(fact[OVER]), float(fact[GPUS])))

    def advance(self, facts: Floats, now_s: float) -> Iterator[int]:
        """Let time pass up to an instant; `seq` of those that start virtually, in order."""
        while self.queue:
            fact = facts[self.queue[0]]
            while self._ends and self._free < fact[GPUS] and self._ends[0][0] <= now_s + tolerance.INSTANT_S:
                over_s, given = heappop(self._ends)
                self._free += given
                self._latest_s = max(self._latest_s, over_s)
            if self._free < fact[GPUS]:
                return
            # Strict order: nobody of the pool starts before who came earlier.
            self._latest_s = max(self._latest_s, float(fact[SUBMIT]))
            self.begin(fact, self._latest_s)
            yield self.queue.popleft()

    def next_s(self, facts: Floats) -> float:
        """When the head starts virtually if no more ends become known; infinite where it does not."""
        free, ends = self._free, sorted(self._ends) if self.queue else []
        for over_s, given in ends:
            free += given
            if free >= facts[self.queue[0], GPUS]:
                return over_s
        return inf


class SiaPlan:
    """Start who would have started without sharing; others early where others are expected to lack nothing for it.

    Parameters
    ----------
    forecasts : tells probabilities of duration bins and quantiles of loads
    budget_min : minutes by which an early start may be expected to slow others
    relief_min : mean time until others give GPUs back, minutes
    tick_s, switches : see `Sia`; where sharing is off, the owners come for all of a pool's quota

    Notes
    -----
    Keeps its own record of who has run, and so serves one run. Where it is first asked amid a run it knows nobody who
    has ended, and takes who runs on spare GPUs to be queued virtually.
    """

    name = "sia_plan"

    def __init__(self, forecasts: UncertainForecasts, **settings: Any) -> None:
        self._forecasts, own = forecasts, SiaPlanSettings(**settings)
        self._budget_min, self._tick_s, self._switches = own.budget_min, own.tick_s, own.switches
        self._horizons_s = MINUTE_S * np.array(forecasts.horizons_min, dtype=np.float64)
        self._edges = np.concatenate(
            [self._horizons_s[:1] / EDGE_RATIO, self._horizons_s, self._horizons_s[-1:] * EDGE_RATIO]
        )
        steps_s = MINUTE_S * np.array(STEPS_MIN, dtype=np.float64)
        self._mids, bins = (steps_s[1:] + steps_s[:-1]) / 2.0, len(self._horizons_s) + 1
        self._minutes = minutes_at_risk(self._edges, steps_s, own.relief_min)
        self._until = np.minimum(np.searchsorted(self._horizons_s, self._mids), bins - 2)
        self._typical_s = np.sqrt(self._edges[1:] * self._edges[:-1])
        self._width = 0.0
        self._facts = np.full((FIRST_ROOM, CHANCES + bins), nan)
        self._jobs: dict[int, Job] = {}  # not ended
        self._arrived: list[Job] = []
        self._clocks: dict[str, VirtualClock] = {}
        self._waiting: list[tuple[float, int]] = []  # (expected service, seq), ascending
        self._due: list[tuple[float, int]] = []  # (virtual start, seq) of those of them that have virtually started
        self._held: set[int] = set()
        self._live: Ints = np.array([], dtype=np.int64)  # not virtually ended
        self._left, self._at_s = np.empty((FUTURES, 0)), -inf  # the plan, and since when it serves

    def key(self, job: Job) -> float:
        """Expected service, GPU-seconds; asked once, when the job is submitted."""
        while job.seq >= len(self._facts):
            self._facts = np.concatenate([self._facts, np.full_like(self._facts, nan)])
        chances = np.array(self._forecasts.duration_probabilities(job), dtype=np.float64)
        self._facts[job.seq] = (nan, job.gpus, job.submit_s, *[nan] * 4, *chances)
        self._arrived.append(job)
        self._width += FORGETTING * (job.gpus - self._width) if self._width else job.gpus
        return self._service(job.seq)

    def _service(self, seq: int) -> float:
        return rounded(float(self._facts[seq, GPUS] * (self._facts[seq, CHANCES:] @ self._typical_s)))

    def decide(self, view: View) -> Decision:
        """Who is due first, then who may be early."""
        self._catch_up(view)
        change: dict[int, Grant | None] = {}
        room = self._start_due(view, change)
        own = {pool.name: pool.quota - pool.dedicated for pool in view.pools.values()}
        while room > 0 and (job := self._next_early(view, int(room))) is not None:
            # Of its pool's quota as long as that is unused.
            own[job.pool] -= job.gpus
            change[job.seq] = Grant(job.gpus, (), own[job.pool] >= 0)
            self._start(job.seq, view.now_s)
            room -= job.gpus
        wake_s = min(clock.next_s(self._facts) for clock in self._clocks.values())
        if self._tick_s is not None and self._waiting:
            wake_s = min(wake_s, view.now_s + self._tick_s)
        return Decision(change, wake_s)

    def _catch_up(self, view: View) -> None:
        """Bring the record to the view, and the virtual clocks to its instant."""
        if not self._clocks:
            pools = view.pools.values()
            self._clocks = {pool.name: VirtualClock(number, pool.quota) for number, pool in enumerate(pools)}
        for seq in self._held - view.running.keys():
            self._leave(seq, view)
        for job in self._arrived:
            clock = self._clocks[job.pool]
            self._facts[job.seq, POOL] = clock.number
            self._jobs[job.seq] = job
            insort(self._waiting, (self._service(job.seq), job.seq))
            held = view.running.get(job.seq)
            if held is not None:
                self._start(job.seq, held.start_s)
            if held is not None and held.dedicated:
                clock.begin(self._facts[job.seq], held.start_s)
            else:
                clock.queue.append(job.seq)
        self._live = np.append(self._live, np.array([job.seq for job in self._arrived], dtype=np.int64))
        self._arrived = []
        for clock in self._clocks.values():
            for seq in clock.advance(self._facts, view.now_s):
                if np.isnan(self._facts[seq, START]):
                    insort(self._due, (float(self._facts[seq, BEGIN]), seq))

    def _leave(self, seq: int, view: View) -> None:
        """A job runs no more: it has ended, or waits again."""
        self._held.remove(seq)
        fact = self._facts[seq]
        self._hold(seq, -float(fact[GPUS]))
        if seq in view.active:
            fact[START] = nan
            insort(self._waiting, (self._service(seq), seq))
            if not np.isnan(fact[BEGIN]):
                insort(self._due, (float(fact[BEGIN]), seq))
            return
        fact[END] = view.now_s
        clock = self._clocks[self._jobs.pop(seq).pool]
        if not np.isnan(fact[BEGIN]):
            clock.ended(fact)

    def _start(self, seq: int, at_s: float) -> None:
        entry = (self._service(seq), seq)
        del self._waiting[bisect_left(self._waiting, entry)]
        self._facts[seq, START] = at_s
        self._held.add(seq)

    def _start_due(self, view: View, change: dict[int, Grant | None]) -> float:
        """Start who is due and fits, by virtual start; GPUs that idle then, less those that late jobs wait for."""
        free, late = view.free_gpus, []
        for entry in self._due:
            gpus = self._jobs[entry[1]].gpus
            if gpus <= free:
                change[entry[1]] = Grant(gpus)
                self._start(entry[1], view.now_s)
                free -= gpus
            else:
                late.append(entry)
        self._due = late
        return free - sum(self._jobs[seq].gpus for _, seq in late)

    def _next_early(self, view: View, room: int) -> Job | None:
        """Of the jobs that keep to the budget that of the least expected service, taken into the plan."""
        order = np.array([seq for _, seq in self._waiting], dtype=np.int64)
        widths = np.unique(self._facts[order, GPUS])
        widths = widths[widths <= room]
        if not len(widths):
            return None
        if view.now_s - self._at_s >= RENEW_S:
            self._renew(view)
        short = np.maximum.accumulate(lacking(self._left, widths), axis=1)
        costs = np.full((room + 1, len(self._typical_s)), inf)
        costs[widths.astype(np.int64)] = short @ self._minutes.T / self._width
        place = first_within(order, self._facts, costs, self._budget_min)
        if place < 0:
            return None
        seq = int(order[place])
        self._hold(seq, float(self._facts[seq, GPUS]))
        return self._jobs[seq]

    def _hold(self, seq: int, gpus: float) -> None:
        hold(self._left, self._facts[seq], self._edges, self._mids, self._at_s, seq, gpus)

    def _renew(self, view: View) -> None:
        """Make the plan anew."""
        live, facts = self._live, self._facts
        self._live = live = live[~(facts[live, OVER] <= view.now_s)]
        pools = list(view.pools.values())
        loads = np.array(
            [[self._load(pool, horizon_s, view.now_s) for horizon_s in self._horizons_s] for pool in pools], np.float64
        )
        quotas = np.array([pool.quota for pool in pools], dtype=np.float64)
        needed = needed_gpus(live, facts[live], self._edges, self._mids, view.now_s, quotas, loads, self._until)
        self._left, self._at_s = view.total_gpus - needed, view.now_s

    def _load(self, pool: PoolView, horizon_s: float, now_s: float) -> Sequence[float]:
        if not self._switches.shares(pool.name, horizon_s, now_s):
            return [float(pool.quota)] * FUTURES
        return self._forecasts.load_quantiles(pool.name, float(horizon_s), LEVELS)
