"""Small workloads, in seconds, and a policy that does what a script says."""

from math import inf

import pytest

from jobcast.domain.policy import Decision, Grant
from tests.simulator.pool_cases import workload_of


class Scripted:
    """Answers from a script: instant -> (ids to start, ids to stop, wake_s). Keeps what it saw."""

    name = "scripted"

    def __init__(self, workload, script):
        self.jobs = {job.job_id: job for job in workload.jobs}
        self.script = script
        self.seen = []
        self.asked = []

    def lane(self, job):
        self.asked.append(("lane", job.job_id))
        return 0

    def key(self, job):
        self.asked.append(("key", job.job_id))
        return 0.0

    def decide(self, view):
        heads = [head.job_id for pool in view.pools.values() if (head := pool.pending.head())]
        running = [run.job.job_id for run in view.running.values()]
        touched = sorted(pool.name for pool in view.touched)
        self.seen.append((view.now_s, heads, running, touched, view.free_gpus))
        starts, stops, wake_s = self.script.get(view.now_s, ((), (), None))
        started = {self.jobs[i].seq: Grant(self.jobs[i].gpus) for i in starts}
        return Decision({**{self.jobs[i].seq: None for i in stops}, **started}, inf if wake_s is None else wake_s)


@pytest.fixture(scope="session")
def workload():
    return workload_of


@pytest.fixture(scope="session")
def scripted():
    return Scripted
