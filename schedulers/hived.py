"""HiveD without locality and without preemption: quotas first, then anybody on what idles. SIA, section 6.1."""

from collections.abc import Callable

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, PoolView, View
from jobcast.schedulers.draft import Draft


class HiveD:
    """Serve each pool from its quota in order of submission, then lend whatever idles to the heads of the queues.

    HiveD (OSDI 2020) runs jobs beyond their pool's quota on idle GPUs and preempts them when the GPUs are asked back;
    in SIA's adaptation, HiveD*, whatever has started runs to its end, so that a pool may find its quota lent out. A job
    is dedicated or spare for life, and nothing of the future is looked at. Both kinds of jobs come from the pool with
    the smallest allocation / quota whose head fits; equal pools go by name.
    """

    name = "hived"

    def lane(self, job: Job) -> int:
        """One lane."""
        return 0

    def key(self, job: Job) -> float:
        """All alike: ties go by submission."""
        return 0.0

    def decide(self, view: View) -> Decision:
        """Dedicated jobs as in AllocateDedicatedResources of SIA, Figure 7, then opportunistic ones."""
        draft = Draft(view)
        while (job := _next(draft, draft.unused_quota)) is not None:
            draft.start(job)
        while (job := _next(draft, lambda _: draft.free)) is not None:
            draft.start(job, dedicated=False)
        return draft.decision()


def _next(draft: Draft, room: Callable[[PoolView], float]) -> Job | None:
    """The head that fits a pool's room and the idle GPUs, of the pool with the smallest share."""
    if draft.free <= 0:
        return None
    heads = (
        (draft.share(pool), pool.name, job)
        for pool in draft.waiting()
        if (job := draft.head(pool)) is not None and job.gpus <= min(room(pool), draft.free)
    )
    best = min(heads, default=None)
    return None if best is None else best[2]
