"""Max-min fair sharing between the pools that have jobs pending. SIA, section 4.1."""

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, View
from jobcast.schedulers.draft import Draft


class MaxMinFair:
    """Visit pools in increasing allocation / quota, and start the head of the first whose head fits the idle GPUs.

    Parameters
    ----------
    strict : the first pool with jobs pending blocks the others if its head does not fit
    """

    name = "mmfs"

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict

    def lane(self, job: Job) -> int:
        """One lane."""
        return 0

    def key(self, job: Job) -> float:
        """All alike: ties go by submission."""
        return 0.0

    def decide(self, view: View) -> Decision:
        """One head at a time, the order of the pools worked out anew after each."""
        draft = Draft(view)
        while draft.free > 0 and (job := self._next(draft)) is not None:
            draft.start(job)
        return draft.decision()

    def _next(self, draft: Draft) -> Job | None:
        heads = [(draft.share(pool), pool.name, job) for pool in draft.waiting() if (job := draft.head(pool))]
        if self._strict:
            heads = [min(heads)] if heads else []
        fitting = [head for head in heads if head[2].gpus <= draft.free]
        return min(fitting)[2] if fitting else None
