"""Whole jobs on pools, from rows."""

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.simulator.workload import Workload


def workload_of(jobs, pools, *, unit_s=1.0, preemptible=False, **others):
    """Workload from rows (job id, pool, submission, duration, GPUs), times in units, and quotas by pool."""
    return Workload(
        [Job(0, name, pool, unit_s * at, gpus, preemptible=preemptible) for name, pool, at, _, gpus in jobs],
        [Outcome(unit_s * duration) for *_, duration, _ in jobs],
        [Pool(name, quota) for name, quota in pools.items()],
        **others,
    )
