"""HiveD without preemption: quotas first, then anybody on what idles. SIA, sections 6.1 and 6.4 (HiveD*)."""

from jobcast.domain.policy import Decision, View
from jobcast.schedulers.tentative_allocation import Placed


class HiveD(Placed):
    """Serve each pool from its quota in order of submission, then lend whatever idles to the heads of the queues.

    HiveD (OSDI 2020) runs jobs beyond their pool's quota on idle GPUs and preempts them when the GPUs are asked back;
    in SIA's adaptation, HiveD*, whatever has started runs to its end, so that a pool may find its quota lent out. A job
    is dedicated or spare for life, and nothing of the future is looked at. Both kinds of jobs come from the pool with
    the smallest allocation / quota whose head fits; equal pools go by name.
    """

    name = "hived"

    def decide(self, view: View) -> Decision:
        """Dedicated jobs as in AllocateDedicatedResources of SIA, Figure 7, then opportunistic ones."""
        draft = self.placer.draft(view)
        draft.start_heads(draft.dedicate)
        draft.start_heads(draft.lend)
        return draft.decision()
