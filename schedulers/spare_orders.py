"""Who gets spare GPUs first, by name. SIA, section 5.3, leaves it to the operator."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from jobcast.domain.jobs import Job
from jobcast.domain.policy import PoolView
from jobcast.schedulers.tentative_allocation import TentativeAllocation

SHARE = "share"
"""The default, by which dedicated GPUs are given out too."""


def by_share(draft: TentativeAllocation, usable: float, max_lane: int) -> Job | None:
    """First job that fits of the pool with the smallest allocation / quota; ties go by name. SIA, Figure 8."""
    return of_smallest_share(draft, draft.firsts(usable, max_lane))


def by_submission(draft: TentativeAllocation, usable: float, max_lane: int) -> Job | None:
    """The job that was submitted first of all that fit."""
    return min((job for _, job in draft.firsts(usable, max_lane)), key=lambda job: job.seq, default=None)


def by_bin(draft: TentativeAllocation, usable: float, max_lane: int) -> Job | None:
    """A job of the smallest duration bin; ties go by share."""
    for lane in range(max_lane + 1):
        job = by_share(draft, usable, lane)
        if job is not None:
            return job
    return None


def by_width(draft: TentativeAllocation, usable: float, max_lane: int) -> Job | None:
    """A job of the fewest GPUs; ties go by share."""
    rows = list(_narrowest(draft, usable, max_lane))
    least = min((job.gpus for _, job in rows), default=0)
    return of_smallest_share(draft, ((pool, job) for pool, job in rows if job.gpus == least))


SpareOrder = Callable[[TentativeAllocation, float, int], Job | None]
"""Chooses among the jobs at most so wide in lanes up to another number; None where there is none."""

SPARE_ORDERS: Mapping[str, SpareOrder] = {
    SHARE: by_share,
    "submission": by_submission,
    "shortest": by_bin,
    "narrow": by_width,
}


def of_smallest_share(draft: TentativeAllocation, jobs: Iterable[tuple[PoolView, Job]]) -> Job | None:
    """The job of the pool with the smallest allocation / quota; ties go by name."""
    best = min(((draft.share(pool), pool.name, job) for pool, job in jobs), default=None)
    return None if best is None else best[2]


def _narrowest(draft: TentativeAllocation, usable: float, max_lane: int) -> Iterator[tuple[PoolView, Job]]:
    """Of each pool the first of its narrowest jobs."""
    for pool, first in draft.firsts(usable, max_lane):
        job = first
        while (narrower := draft.first(pool, job.gpus - 1, max_lane)) is not None:
            job = narrower
        yield pool, job
