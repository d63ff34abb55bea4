"""Max-min fair sharing between the pools that have jobs pending. SIA, section 4.1."""

from jobcast.domain.policy import Decision, View
from jobcast.schedulers.tentative_allocation import Placed


class MaxMinFair(Placed):
    """Visit pools in increasing allocation / quota, and start the head of the first whose head fits the idle GPUs.

    Parameters
    ----------
    strict : the first pool with jobs pending blocks the others if its head does not fit
    """

    name = "mmfs"

    def __init__(self, strict: bool = False) -> None:
        self._strict = strict

    def decide(self, view: View) -> Decision:
        """One head at a time, the order of the pools worked out anew after each."""
        draft = self.placer.draft(view)
        draft.start_heads(draft.start, self._strict)
        return draft.decision()
