"""Whole jobs on pools, from rows, and a policy that does what a script says."""

from math import inf

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Decision, Grant
from jobcast.simulator.workload import Workload


def workload_of(jobs, pools, *, unit_s=1.0, preemptible=False, **others):
    """Workload from rows (job id, pool, submission, duration, GPUs), times in units, and quotas by pool."""
    return Workload(
        [Job(0, name, pool, unit_s * at, gpus, preemptible=preemptible) for name, pool, at, _, gpus in jobs],
        [Outcome(unit_s * duration) for *_, duration, _ in jobs],
        [Pool(name, quota) for name, quota in pools.items()],
        **others,
    )


class Script:
    """Grants by instant, {instant: {job's name or number: Grant, GPUs or None}}; keeps what jobs had received by then.

    It wakes for its next step unless `wakes_s` say something else: instant -> seconds.
    """

    name = "script"

    def __init__(self, steps, wakes_s=None):
        self.steps, self.wakes_s, self.seen, self.asked = steps, wakes_s or {}, {}, []

    def lane(self, job):
        self.asked.append(("lane", job.job_id))
        return 0

    def key(self, job):
        self.asked.append(("key", job.job_id))
        return 0.0

    def decide(self, view):
        ids = {job.job_id: job.seq for job in view.active.values()}
        self.seen[view.now_s] = {job.job_id: view.service(job) for job in view.active.values()}
        wake_s = min((at_s for at_s in self.steps if at_s > view.now_s), default=inf)
        puts = {ids.get(name, name): put for name, put in self.steps.get(view.now_s, {}).items()}
        change = {seq: Grant(put) if isinstance(put, int | float) else put for seq, put in puts.items()}
        return Decision(change, self.wakes_s.get(view.now_s, wake_s))
