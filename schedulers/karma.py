"""Karma between pools of whole jobs: who lent GPUs earns credits, and who has most of them borrows first."""

from collections import defaultdict
from functools import partial
from math import ceil, inf

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, PoolView, Trigger, View
from jobcast.schedulers.tentative_allocation import Placed, TentativeAllocation

ALPHA = 0.5  # of the example of the authors' code
QUANTUM_S = 60.0  # ours
HOUR_S = 3600.0
DIGITS = 3  # milliseconds: instants near 1e9 s are told to 2e-7 s, and credits are sums of many


class Karma(Placed):
    """Guarantee each pool a share of its quota, and lend the rest to the pool with the most credits.

    Karma (Vuppalapati et al., OSDI 2023) shares GPUs out anew in each quantum: a user is given what it asks for up to
    its guarantee, alpha of its fair share. What others leave of theirs, and then the rest of all shares, goes GPU by
    GPU to the user with the most credits, who pays one for it; a GPU is taken from the donor with the fewest credits,
    who earns it. Everybody is given 1 - alpha of its share in credits beside. Here pools are the users and quotas the
    shares. Quotas differ, where the authors' code has equal shares: credits are counted in seconds of the whole quota,
    so that a larger pool pays less for a GPU.

    Whole jobs that run to their ends change four things. Credits are settled at events for the time that has passed,
    during which nobody's GPUs change. A job starts whole, where its pool can pay a quantum of all its GPUs. A pool
    whose guarantee is lent out waits until jobs end, and earns nothing by that: Karma would give it back at the next
    quantum. A borrower may come to owe credits, since nothing is taken from it: it pays on, and borrows no more until
    it owes none. So none of the paper's guarantees hold.

    Parameters
    ----------
    alpha : share of each quota that is guaranteed to its pool
    credits_h : hours of its whole quota that each pool can pay for at first; None: nobody runs out, and credits only
        rank, as by default in the authors' own code
    quantum_s : for which a start is paid at once, and after whose multiples a pool that lacked credits is asked again

    Attributes
    ----------
    credits_s : by pool, seconds of the whole quota, as of the last decision; below 0 what it owes
    """

    name = "karma"
    # Credits are settled for the time between two decisions: who ends last must not pay until somebody comes.
    trigger = Trigger(when_empty=True)

    def __init__(self, alpha: float = ALPHA, credits_h: float | None = None, quantum_s: float = QUANTUM_S) -> None:
        self._alpha, self._quantum_s = alpha, quantum_s
        self._initial_s, self._least_s = (0.0, -inf) if credits_h is None else (credits_h * HOUR_S, 0.0)
        self.credits_s: dict[str, float] = {}
        self._since_s: float | None = None  # nobody has asked yet
        self._held: defaultdict[str, float] = defaultdict(float)  # since then, by pool
        self._asked: defaultdict[str, float] = defaultdict(float)  # held or pending

    def decide(self, view: View) -> Decision:
        """Guarantees first, then what is lent; in both the pool with the most credits whose head fits."""
        self._settle(view)
        draft = self.placer.draft(view)
        rank = partial(self._rank, draft)
        for start in (self._own, self._borrow):
            draft.start_heads(partial(start, draft, view), rank=rank)
        for name, pool in view.pools.items():
            self._held[name] = draft.allocated(pool)
            self._asked[name] = self._held[name] + draft.pending_gpus(pool)
        return draft.decision(view.now_s + self._wait_s(draft))

    def _settle(self, view: View) -> None:
        """Bring credits up to now."""
        pools = view.pools.values()
        names, quotas = list(view.pools), np.array([float(pool.quota) for pool in pools])
        before = np.array([self.credits_s.get(name, self._initial_s) for name in names])
        held, asked = (np.array([of[name] for name in names]) for of in (self._held, self._asked))
        passed_s = 0.0 if self._since_s is None else view.now_s - self._since_s
        credits = before + earned_s(before, quotas, held, asked, self._alpha, passed_s)
        self.credits_s, self._since_s = dict(zip(names, credits.tolist(), strict=True)), view.now_s

    def _own(self, draft: TentativeAllocation, view: View, job: Job) -> bool:
        pool = view.pools[job.pool]
        return draft.allocated(pool) + job.gpus <= self._alpha * pool.quota and draft.start(job)

    def _borrow(self, draft: TentativeAllocation, view: View, job: Job) -> bool:
        return self._lacks_s(draft, view.pools[job.pool], job) <= 0 and draft.start(job)

    def _rank(self, draft: TentativeAllocation, pool: PoolView) -> float:
        """Most credits first."""
        return -self._balance_s(draft, pool)

    def _balance_s(self, draft: TentativeAllocation, pool: PoolView, more: float = 0.0) -> float:
        """Credits of a pool a quantum from now, if it holds so many GPUs more and donates none."""
        # Not `rounded`, which tells numbers about 0 apart by their noise.
        return round(self.credits_s[pool.name] + self._quantum_s * self._income(draft, pool, more), DIGITS)

    def _income(self, draft: TentativeAllocation, pool: PoolView, more: float = 0.0) -> float:
        """Credits that a pool earns a second while it donates nothing; negative where it pays."""
        return 1 - self._alpha - max(0.0, (draft.allocated(pool) + more) / pool.quota - self._alpha)

    def _lacks_s(self, draft: TentativeAllocation, pool: PoolView, job: Job) -> float:
        """Credits that a pool lacks to start a job."""
        return self._least_s - self._balance_s(draft, pool, job.gpus)

    def _wait_s(self, draft: TentativeAllocation) -> float:
        """Seconds, whole quanta, until the first pool can pay for its head that fits; infinite if none ever can."""
        waits_s = [inf]
        for pool in draft.waiting() if self._least_s > -inf else ():
            job, income = draft.head(pool), self._income(draft, pool)
            if job is not None and job.gpus <= draft.free and income > 0:
                lacks = self._lacks_s(draft, pool, job) / income / self._quantum_s
                waits_s += [self._quantum_s * max(1, ceil(round(lacks, DIGITS)))] if lacks > 0 else []
        return min(waits_s)


def earned_s(credits_s: Floats, quotas: Floats, held: Floats, asked: Floats, alpha: float, passed_s: float) -> Floats:
    """Credits that pools earn, or pay where negative, in a time in which nothing changes; all by pool, (n,).

    Donors with the fewest credits earn first, until they have as many as the next: what taking one GPU after the other
    from the poorest comes to. What is borrowed beyond all that is donated comes from what is shared, and pays nobody.

    Parameters
    ----------
    credits_s : before, seconds of the whole quota
    quotas, held, asked : GPUs; asked for are those that are held and those of pending jobs
    passed_s : seconds

    >>> credits, quotas, held = np.array([[0.0, 0.0, 6.0], [4.0, 4.0, 4.0], [6.0, 1.0, 0.0]])
    >>> earned_s(credits, quotas, held, asked=held, alpha=0.5, passed_s=8.0).tolist()
    [-4.0, 6.0, 8.0]
    """
    own = alpha * quotas
    borrowed, donated_s = np.maximum(held - own, 0.0), np.maximum(own - asked, 0.0) * passed_s

    def poured_s(levels: Floats) -> Floats:
        given_s: Floats = np.clip((levels[:, np.newaxis] - credits_s) * quotas, 0.0, donated_s)
        return given_s

    # Between these levels what is poured grows linearly; beyond the last one there is nothing left to pour.
    levels = np.sort(np.concatenate([credits_s, credits_s + donated_s / quotas]))
    level = np.interp([borrowed.sum() * passed_s], poured_s(levels).sum(axis=1), levels)
    earned: Floats = (1 - alpha) * passed_s + (poured_s(level)[0] - borrowed * passed_s) / quotas
    return earned
