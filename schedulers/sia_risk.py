"""SIA by risk: lend idle GPUs to a job while the slowdown that is to be expected of it keeps to a budget.

SIA, section 5.3, tells a job's duration and a pool's load as single numbers, and lends where those fit into a window.
Here both are distributions. Let T be the instant at which the owners come for the GPUs that a job would borrow, and D
its run time. It keeps them for D - T longer, if T < D; but others may end meanwhile, which is taken to happen at a
constant rate, once in `relief`. The job is started if the expected time until one or the other is at most the budget:

    E[min(max(0, D - T), R)], R exponential of mean relief
      = sum over duration bins k of P(k) x E[integral from 0 to D of P(T <= t) exp(-(D - t) / relief) dt, given k]

- P(k) are the forecast's probabilities of the duration bins. Within a bin D is log-uniform; the first bin begins, and
  the last one ends, a factor `EDGE_RATIO` from its edge.
- P(T <= w) for a horizon w is the probability that sum over pools of min(pending + load(w), unused quota), what Figure
  8 reserves, exceeds the idle GPUs less the job's. Loads of different pools are taken as independent, their quantiles
  as atoms at `LEVELS`. At once (w = 0) it is pending jobs alone; between horizons it is linear; beyond the last one
  it is 1, since nothing is known of the load there.
- Not counted: that several jobs may wait in turn for the same GPUs.

With exact forecasts and a budget of 0 it lends exactly what SIA lends, and slows nobody. With forecasts that always
expect the worst it equals `fcfs` at any budget below the relief (or the run times of the last bin, if shorter).

How soon lent GPUs may be missed, and the first job that may borrow them, is worked out by compiled code.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F1, F2, F3, I1, njit, types
from jobcast.domain.forecasts import UncertainForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import View
from jobcast.schedulers.pool_policies import SiaRiskSettings
from jobcast.schedulers.sia import Sia
from jobcast.schedulers.tentative_allocation import Loads, TentativeAllocation

FIRST_ROOM = 64


class Candidates:
    """Jobs in order of submission, as columns; those that are gone are cut out when they are half of it.

    Parameters
    ----------
    bins : duration bins that a job has probabilities of
    """

    __slots__ = ("_begin", "_chances", "_gpus", "_jobs", "_lanes", "_rows", "_widths")

    def __init__(self, bins: int) -> None:
        self._gpus, self._lanes = np.zeros(FIRST_ROOM, np.int64), np.zeros(FIRST_ROOM, np.int64)
        self._chances = np.zeros((FIRST_ROOM, bins))
        self._jobs: list[Job | None] = []  # by row; columns have room for more
        self._rows: dict[int, int] = {}  # seq -> row
        self._widths: dict[int, int] = {}  # width -> jobs
        self._begin = 0

    @property
    def narrowest(self) -> float:
        """Smallest width, infinite without jobs."""
        return min(self._widths, default=inf)

    def add(self, job: Job, lane: int, chances: Sequence[float]) -> None:
        """File a job behind all others."""
        if len(self._jobs) == len(self._gpus):
            self._make_room()
        row = self._rows[job.seq] = len(self._jobs)
        self._jobs.append(job)
        self._gpus[row], self._lanes[row], self._chances[row] = job.gpus, lane, chances
        self._widths[job.gpus] = self._widths.get(job.gpus, 0) + 1

    def take(self, job: Job) -> None:
        """Take out a job, if it is in."""
        row = self._rows.pop(job.seq, None)
        if row is None:
            return
        self._gpus[row], self._jobs[row] = 0, None
        self._widths[job.gpus] -= 1
        if not self._widths[job.gpus]:
            del self._widths[job.gpus]
        # Jobs leave mostly from the front: skipping the gap there keeps the search short.
        while self._begin < len(self._jobs) and self._jobs[self._begin] is None:
            self._begin += 1

    def first(self, max_lane: int, overstay: Floats, budget_min: float) -> Job | None:
        """First job in lanes up to `max_lane` whose expected overstay keeps to the budget; see the kernel."""
        end = len(self._jobs)
        row = first_within(self._begin, end, self._gpus, self._lanes, self._chances, max_lane, overstay, budget_min)
        return None if row == end else self._jobs[row]

    def _make_room(self) -> None:
        """Close the gaps, and make room for as many again."""
        # A width of 0 marks who is gone.
        kept = np.flatnonzero(self._gpus)
        room = FIRST_ROOM + 2 * len(kept)
        for name in ("_gpus", "_lanes", "_chances"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), old.dtype)
            new[: len(kept)] = old[kept]
            setattr(self, name, new)
        self._jobs = [self._jobs[row] for row in kept.tolist()]
        self._rows = {job.seq: row for row, job in enumerate(self._jobs) if job is not None}
        self._begin = 0


@njit([F1(F1, types.float64, types.float64, F1, F1)], cache=True)
def with_pool(chances: Floats, pending: float, unused: float, loads: Floats, weights: Floats) -> Floats:
    """Distribution of the GPUs needed by some pools and one more, independent of them; both (free + 2,).

    Position n holds the chance of n GPUs, the last one that of any number beyond what is free. The pool needs
    min(pending + load, unused) with the load's `weights`; `loads` ascend.
    """
    # More than what is free is one case: somebody misses GPUs.
    last, more = len(chances) - 1, np.zeros_like(chances)
    i = 0
    while i < len(loads):
        need, weight = min(pending + loads[i], unused), 0.0
        j = i
        # Loads ascend, so that equal needs lie side by side and are added up once.
        while j < len(loads) and min(pending + loads[j], unused) == need:
            weight += weights[j]
            j += 1
        if i == 0 and j == len(loads):
            weight = 1.0  # without rounding: a certain need stays certain
        # GPUs are whole; dust of sums must not ask for one more.
        shift = min(int(np.ceil(need - tolerance.GPUS)), last)
        for n in range(last + 1):
            if chances[n]:
                more[min(n + shift, last)] += weight * chances[n]
        i = j
    return more


@njit([F2(F1, F1, F3, F1, types.int64, F2)], cache=True)
def overstays(pending: Floats, unused: Floats, loads: Floats, weights: Floats, free: int, minutes: Floats) -> Floats:
    """Expected overstay in minutes by the job's width and duration bin, (free + 1, bins).

    Parameters
    ----------
    pending, unused : (pools,) GPUs that pending jobs ask for, and quota that is not in use
    loads : (pools, horizons, atoms) GPUs to arrive within each horizon, ascending by atom
    weights : (atoms,) chance of each atom
    free : idle GPUs
    minutes : (bins, horizons + 2) minutes at risk for a chance of 1 of being missed at once, within each horizon,
        and later
    """
    horizons, bins = loads.shape[1], minutes.shape[0]
    # By horizon and GPUs left to others: chance that these need more; beyond the last horizon they do for certain.
    missed = np.ones((horizons + 2, free + 1))
    nothing, certain = np.array([0.0]), np.array([1.0])
    for step in range(horizons + 1):
        # Pools are independent: one convolution a pool.
        chances = np.zeros(free + 2)
        chances[0] = 1.0
        for pool in range(len(pending)):
            if step == 0:
                chances = with_pool(chances, pending[pool], unused[pool], nothing, certain)
            else:
                chances = with_pool(chances, pending[pool], unused[pool], loads[pool, step - 1], weights)
        beyond = chances[free + 1]
        # From the top down, so that `beyond` gathers the chances of all larger needs.
        for left in range(free, -1, -1):
            # A chance never falls with the horizon, although forecasts of two horizons may say so.
            missed[step, left] = beyond if step == 0 else max(beyond, missed[step - 1, left])
            beyond += chances[left]
    found = np.empty((free + 1, bins))
    for gpus in range(free + 1):
        for one in range(bins):
            total = 0.0
            for step in range(horizons + 2):
                total += minutes[one, step] * missed[step, free - gpus]
            found[gpus, one] = total
    return found


@njit(
    [types.int64(types.int64, types.int64, I1, I1, F2, types.int64, F2, types.float64)],
    cache=True,
)
def first_within(
    begin: int, end: int, gpus: Ints, lanes: Ints, chances: Floats, max_lane: int, overstay: Floats, budget: float
) -> int:
    """Position in [begin, end) of the first job of the lanes whose expected overstay keeps to the budget, else the end.

    Parameters
    ----------
    gpus, lanes : (n,) widths, 0 for jobs that are gone, and duration bins
    chances : (n, bins) of each duration bin
    overstay : as `overstays` gives it; wider jobs than it has rows do not fit
    """
    widest = overstay.shape[0] - 1
    for i in range(begin, end):
        if 0 < gpus[i] <= widest and lanes[i] <= max_lane:
            expected = 0.0
            for one in range(overstay.shape[1]):
                expected += chances[i, one] * overstay[gpus[i], one]
            if expected <= budget + tolerance.GPUS:
                return i
    return end


# From the first bin's edge down and the last one's up: as from one horizon to the next in SIA, section 5.4.1.
EDGE_RATIO = 12.0
# Of the midpoint rule, for run times and for instants.
STEPS = 128
# Longest run times after which relief that never comes would come.
ENDLESS = 1e6
# Shares of the load's distribution, denser where little is likely to be missed.
EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
# Level that stands for each share.
LEVELS = tuple((low + high) / 2 for low, high in pairwise(EDGES))


class SiaRisk(Sia):
    """Serve each pool from its quota in order of submission; lend where the expected slowdown keeps to a budget.

    Jobs borrow as in SIA: those of short bins first (a job is filed under the median of its bins), of the pool with
    the smallest share first, in order of submission among those of a pool that may be lent to.

    Parameters
    ----------
    forecasts : tells probabilities of duration bins and quantiles of loads
    budget_min : minutes of slowdown that a borrower may be expected to cause; 0: only where forecasts are certain
    relief_min : mean time until others give GPUs back, minutes; infinite: nobody does before the borrower
    tick_s, switches : see `Sia`; where sharing is off, the owners come for all of a pool's unused quota

    Notes
    -----
    Keeps its own record of pending jobs by their probabilities, and so serves one run.
    """

    name = "sia_risk"

    def __init__(self, forecasts: UncertainForecasts, **settings: Any) -> None:
        own = SiaRiskSettings(**settings)
        super().__init__(forecasts, tick_s=own.tick_s, switches=own.switches)
        self._uncertain, self._budget_min = forecasts, own.budget_min
        self._risks = minutes_at_risk(forecasts.horizons_min, own.relief_min)
        self._weights = np.array([high - low for low, high in pairwise(EDGES)])
        self._candidates: dict[str, Candidates] = {}
        self._known: dict[tuple[str, float], Sequence[float]] = {}
        self._loads = np.zeros(0)  # by pool, horizon and level, once pools are known

    def lane(self, job: Job) -> int:
        """The median of its duration bins; asked once, when the job is submitted."""
        chances = self._uncertain.duration_probabilities(job)
        lane = median_bin(chances)
        # Jobs beyond the last horizon never borrow, so they are not kept.
        if lane < len(self._horizons_s):
            if job.pool not in self._candidates:
                self._candidates[job.pool] = Candidates(len(chances))
            self._candidates[job.pool].add(job, lane, chances)
        return lane

    def _started(self, job: Job) -> None:
        if job.pool in self._candidates:
            self._candidates[job.pool].take(job)

    def _allocate_spare(self, draft: TentativeAllocation, view: View) -> None:
        """Another AllocateSpareResources."""
        if not self._anybody(draft):
            return
        overstay = self._overstay(draft, view)
        for lane in range(len(self._horizons_s)):
            while (job := self._next_borrower(draft, view, lane, overstay)) is not None:
                # On servers there may be GPUs enough and no cell: then the risks are of no use any more.
                if not draft.lend(job, self._expected(lane, view.now_s)):
                    break
                self._started(job)
                if not self._anybody(draft):
                    return
                overstay = self._overstay(draft, view)

    def _expected(self, lane: int, now_s: float) -> Iterator[Loads]:
        """Loads of a window, from the highest level down."""
        for level in reversed(range(len(LEVELS))):
            yield Loads(self._horizons_s[lane], partial(self._load, level, now_s))

    def _load(self, level: int, now_s: float, pool: str, horizon_s: float) -> float:
        shares = self._switches.shares(pool, horizon_s, now_s)
        return self._uncertain.load_quantiles(pool, horizon_s, LEVELS)[level] if shares else inf

    def _anybody(self, draft: TentativeAllocation) -> bool:
        """Whether any job could borrow what is idle if nobody came for it."""
        return any(
            jobs.narrowest <= draft.free
            for pool in draft.waiting()
            if (jobs := self._candidates.get(pool.name)) is not None
        )

    def _next_borrower(self, draft: TentativeAllocation, view: View, lane: int, overstay: Floats) -> Job | None:
        """First job within the budget, of the pool with the smallest share."""
        for _, name in sorted((draft.share(pool), pool.name) for pool in draft.waiting()):
            jobs = self._candidates.get(name)
            while jobs is not None and (job := jobs.first(lane, overstay, self._budget_min)) is not None:
                if job.seq in view.active and job.seq not in view.running:
                    return job
                # It held GPUs when the run began, and was started by nobody here.
                jobs.take(job)
        return None

    def _overstay(self, draft: TentativeAllocation, view: View) -> Floats:
        """Expected overstay, minutes, by width and duration bin: (idle GPUs + 1, bins)."""
        pools = list(view.pools.values())
        if len(self._loads) != len(pools):
            self._loads = np.zeros((len(pools), len(self._horizons_s), len(LEVELS)))
            self._known.clear()
        free, costs = draft.left()
        pending, unused, loads = np.zeros(len(pools)), np.zeros(len(pools)), np.zeros_like(self._loads)
        for i, pool in enumerate(pools):
            pending[i], unused[i], _ = draft.claims(pool, self._loads[i])
            # Where pending jobs take the whole quota no forecast changes the need.
            if pending[i] < unused[i]:
                self._ask(i, pool.name, view.now_s)
                loads[i] = draft.claims(pool, self._loads[i])[2]

        table: Floats = overstays(pending, unused, loads, self._weights, free, self._risks)
        return table if isinstance(costs, range) else table[costs]

    def _ask(self, number: int, pool: str, now_s: float) -> None:
        """Quantiles of a pool's loads; without bound where sharing is switched off."""
        for i, horizon_s in enumerate(self._horizons_s):
            if not self._switches.shares(pool, horizon_s, now_s):
                self._known.pop((pool, horizon_s), None)
                self._loads[number, i] = inf
                continue
            result = self._uncertain.load_quantiles(pool, horizon_s, LEVELS)
            # Forecasts hand out the same tuple until it changes: identity saves the copy.
            if result is not self._known.get((pool, horizon_s)):
                self._known[pool, horizon_s] = result
                self._loads[number, i] = result


def median_bin(chances: Sequence[float]) -> int:
    """First duration bin by whose upper edge a job is as likely as not to have ended.

    >>> median_bin((0.3, 0.3, 0.2, 0.2)), median_bin((0.0, 0.0, 0.0, 1.0))
    (1, 3)
    """
    below = 0.0
    for number, chance in enumerate(chances[:-1]):
        below += chance
        if below >= 0.5:
            return number
    return len(chances) - 1


def minutes_at_risk(horizons_min: Sequence[float], relief_min: float) -> Floats:
    """Expected slowdown by duration bin, per chance of being missed at once, within each horizon, and later.

    The rows are E[integral over t from 0 to D of P(T <= t) exp(-(D - t) / relief)] for D log-uniform in a bin, as a
    linear function of P(T <= 0), P(T <= w) for each horizon w, and 1 for all later; by the midpoint rule.

    Parameters
    ----------
    horizons_min : (H,) ascending, minutes
    relief_min : mean time until others give GPUs back, minutes

    Returns
    -------
    (H + 1, H + 2) minutes; without relief a row sums to the mean run time in its bin.

    >>> minutes_at_risk((5, 60), inf).round(4).tolist()
    [[1.3449, 0.4995, 0.0, 0.0], [2.4997, 14.8794, 4.7542, 0.0], [2.4631, 30.0358, 27.5234, 205.5771]]
    >>> minutes_at_risk((5, 60), 10).sum(axis=1).round(6).tolist()
    [1.620187, 7.748773, 9.998552]
    """
    knots = [0.0, *horizons_min]
    edges = [horizons_min[0] / EDGE_RATIO, *horizons_min, horizons_min[-1] * EDGE_RATIO]
    # Infinite relief would make the integral 0 x inf.
    relief_min = min(relief_min, ENDLESS * edges[-1])
    shares = (np.arange(STEPS) + 0.5) / STEPS
    made = np.zeros((len(knots), len(knots) + 1))
    for number, (low, high) in enumerate(pairwise(edges)):
        end = low * (high / low) ** shares[:, None]
        reach = -np.expm1(-end / relief_min)  # the integral over t of the exponential alone, per relief
        at = np.maximum(0.0, end + relief_min * np.log1p(-reach * shares))  # instants of equal shares of it
        weight = relief_min * reach / STEPS**2
        for i, hat in enumerate(np.eye(len(knots) + 1)):
            made[number, i] = (weight * np.interp(at, knots, hat[:-1], right=hat[-1])).sum()
    return made
