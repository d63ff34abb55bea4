"""Over pools: the narrowest job of each pool first, within its quota."""

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Decision, Grant, View
from jobcast.schedulers.policies import PolicyFactory


class Narrowest:
    """Jobs start in order of their widths as long as they fit."""

    name = "narrowest"

    def lane(self, job: Job) -> int:
        """One lane."""
        return 0

    def key(self, job: Job) -> float:
        """Rank in the queue of its pool."""
        return float(job.gpus)

    def decide(self, view: View) -> Decision:
        """What fits into each quota starts."""
        starts: dict[int, Grant] = {}
        for pool in view.pools.values():
            free = pool.quota - pool.allocated
            while (job := pool.pending.head(starts.keys())) is not None and job.gpus <= free:
                starts[job.seq] = Grant(job.gpus)
                free -= job.gpus
        return Decision(starts)


policy = PolicyFactory(Narrowest, uses_forecasts=False)
