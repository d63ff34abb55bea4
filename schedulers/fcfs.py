"""First come, first served within each pool, nothing shared: the baseline of SIA, sections 4.1 and 6.4."""

from jobcast.domain.policy import Decision, View
from jobcast.schedulers.tentative_allocation import Placed


class Fcfs(Placed):
    """Start each pool's jobs in order of submission while they fit its quota; the head blocks the rest."""

    name = "fcfs"
    # Futures are played without later arrivals where these delay nobody.
    overtakes = False

    def decide(self, view: View) -> Decision:
        """Only a pool with an arrival or a completion can have something to start."""
        draft = self.placer.draft(view)
        for pool in view.touched:
            draft.dedicate_heads(pool)
        return draft.decision()
