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
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.forecasts import UncertainForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import View
from jobcast.domain.switches import ALL_SHARE, Switches
from jobcast.schedulers.candidates import Candidates
from jobcast.schedulers.sia import Sia
from jobcast.schedulers.tentative_allocation import Loads, TentativeAllocation

BUDGET_MIN = 6.0
"""Chosen with `RELIEF_MIN` on 16 October to 5 November 2017 of Philly, the predictors trained on the two weeks before,
with quotas at loads 0.8, 0.9 and 1.0: of the pairs that slowed under 0.1 % of the jobs at each load and came within
1 % of the largest speedup over the three, the one that slowed least; `benchmarks/choose_sia_risk.py`."""
EDGE_RATIO = 12.0
"""From the first bin's edge down and the last one's up: as from one horizon to the next in SIA, section 5.4.1."""
RELIEF_MIN = 60.0
"""Mean time until others give back the GPUs that somebody misses; see `BUDGET_MIN`."""
STEPS = 128
"""Of the midpoint rule, for run times and for instants."""
ENDLESS = 1e6
"""Longest run times after which relief that never comes would come."""
EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Shares of the load's distribution, denser where little is likely to be missed."""
LEVELS = tuple((low + high) / 2 for low, high in pairwise(EDGES))
"""Level that stands for each share."""
MINUTE_S = 60.0
Floats = NDArray[np.float64]


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

    def __init__(
        self,
        forecasts: UncertainForecasts,
        budget_min: float = BUDGET_MIN,
        relief_min: float = RELIEF_MIN,
        tick_s: float | None = None,
        switches: Switches = ALL_SHARE,
    ) -> None:
        super().__init__(forecasts, tick_s, switches)
        self._uncertain = forecasts
        self._budget_min = budget_min
        self._risks = minutes_at_risk(forecasts.horizons_min, relief_min)
        self._weights = np.array([high - low for low, high in pairwise(EDGES)])
        self._candidates: dict[str, Candidates] = {}
        self._known: dict[tuple[str, float], Sequence[float]] = {}
        self._loads = np.zeros((0, 0, 0))

    def lane(self, job: Job) -> int:
        """The median of its duration bins; asked once, when the job is submitted."""
        chances = self._uncertain.duration_probabilities(job)
        lane = median_bin(chances)
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
            while (job := self._next_borrower(draft, lane, overstay)) is not None:
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
            len(jobs) and jobs.narrowest <= draft.free
            for pool in draft.waiting()
            if (jobs := self._candidates.get(pool.name)) is not None
        )

    def _next_borrower(self, draft: TentativeAllocation, lane: int, overstay: Floats) -> Job | None:
        """First job within the budget, of the pool with the smallest share."""
        for _, name in sorted((draft.share(pool), pool.name) for pool in draft.waiting()):
            jobs = self._candidates.get(name)
            if jobs is not None and (job := jobs.first(lane, overstay, self._budget_min)) is not None:
                return job
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
            if pending[i] < unused[i]:
                self._ask(i, pool.name, view.now_s)
                loads[i] = draft.claims(pool, self._loads[i])[2]
        from jobcast.schedulers.sia_risk_kernels import overstays  # numba takes a second to import

        table: Floats = overstays(pending, unused, loads, self._weights, free, self._risks)
        return table if isinstance(costs, range) else table[costs]

    def _ask(self, number: int, pool: str, now_s: float) -> None:
        """Quantiles of a pool's loads; without bound where sharing is switched off."""
        for i, horizon_s in enumerate(self._horizons_s):
            if not self._switches.shares(pool, horizon_s, now_s):
                self._known.pop((pool, horizon_s), None)
                self._loads[number, i] = inf
                continue
            told = self._uncertain.load_quantiles(pool, horizon_s, LEVELS)
            if told is not self._known.get((pool, horizon_s)):
                self._known[pool, horizon_s] = told
                self._loads[number, i] = told


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


def minutes_at_risk(horizons_min: Sequence[float], relief_min: float = RELIEF_MIN) -> Floats:
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

    >>> minutes_at_risk((5, 60), inf).round(1).tolist()
    [[1.3, 0.5, 0.0, 0.0], [2.5, 14.9, 4.8, 0.0], [2.5, 30.0, 27.5, 205.6]]
    >>> minutes_at_risk((5, 60), 10).sum(axis=1).round(1).tolist()
    [1.6, 7.7, 10.0]
    """
    knots = [0.0, *horizons_min]
    edges = [horizons_min[0] / EDGE_RATIO, *horizons_min, horizons_min[-1] * EDGE_RATIO]
    relief_min = min(relief_min, ENDLESS * edges[-1])
    shares = (np.arange(STEPS) + 0.5) / STEPS
    made = np.zeros((len(knots), len(knots) + 1))
    for number, (low, high) in enumerate(pairwise(edges)):
        end = low * (high / low) ** shares[:, None]
        reach = -np.expm1(-end / relief_min)  # the integral over t of the exponential alone, per relief
        at = np.maximum(0.0, end + relief_min * np.log1p(-reach * shares))  # instants of equal shares of it
        weight = np.broadcast_to(relief_min * reach / STEPS**2, at.shape)
        known = at <= knots[-1]
        for i, hat in enumerate(np.eye(len(knots))):
            made[number, i] = weight[known] @ np.interp(at[known], knots, hat)
        made[number, -1] = weight[~known].sum()
    return made
