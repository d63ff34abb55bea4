"""First come, first served within each pool, nothing shared: the baseline of SIA, section 4.1."""

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, View
from jobcast.schedulers.draft import Draft


class Fcfs:
    """Start each pool's jobs in order of submission while they fit its quota; the head blocks the rest."""

    name = "fcfs"

    def lane(self, job: Job) -> int:
        """One lane."""
        return 0

    def key(self, job: Job) -> float:
        """All alike: ties go by submission."""
        return 0.0

    def decide(self, view: View) -> Decision:
        """Only a pool with an arrival or a completion can have something to start."""
        draft = Draft(view)
        for pool in view.touched:
            while (job := draft.head(pool)) is not None and job.gpus <= pool.quota - draft.allocated(pool):
                draft.start(job)
        return draft.decision()
