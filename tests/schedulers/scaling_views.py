"""Views of jobs that scale, as a policy of goodput sees them at an instant."""

from dataclasses import dataclass

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Grant, RunningJob, Service
from jobcast.domain.training import Goodputs

NOW_S = 100_000.0


@dataclass(frozen=True)
class Scalable:
    """A job: its age in seconds, GPUs that it holds, how often they were changed, its goodput by GPUs."""

    age_s: float
    held: int
    changes: int
    goodput: tuple[float, ...]


class ScalingView:
    """The cluster at an instant, with no more than such policies look at."""

    now_s = NOW_S

    def __init__(self, jobs, total_gpus):
        self.total_gpus, self._jobs = total_gpus, jobs
        self.active = {seq: Job(seq, f"j{seq}", "all", NOW_S - one.age_s, 1) for seq, one in enumerate(jobs)}
        self.running = {
            seq: RunningJob(self.active[seq], NOW_S, Grant(one.held)) for seq, one in enumerate(jobs) if one.held
        }

    def service(self, job):
        return Service(0.0, 0.0, changes=self._jobs[job.seq].changes)

    def facts(self, kind):
        assert kind is Goodputs
        return Goodputs({seq: one.goodput for seq, one in enumerate(self._jobs)})


def allocated(policy, jobs, total_gpus):
    """GPUs of each job after a decision."""
    change = policy.decide(ScalingView(jobs, total_gpus)).change
    after = {seq: change.get(seq, Grant(one.held) if one.held else None) for seq, one in enumerate(jobs)}
    return [int(grant.gpus) if grant else 0 for grant in after.values()]
