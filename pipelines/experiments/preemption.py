"""What settings change in the jobs that are replayed: which of them may be stopped, and what that costs."""

from dataclasses import replace

from jobcast.schedulers.settings import Settings
from jobcast.simulator.draws import draw_key, uniform
from jobcast.simulator.workload import Workload

PREEMPTIBLE_SHARE, RESUME_S = "preemptible_share", "resume_s"


def scenario_workload(workload: Workload, own: Settings, seed: int) -> Workload:
    """The workload as a policy's settings have it.

    `preemptible_share` draws the jobs that may be stopped, each by (seed, job id), in place of what the trace says;
    `resume_s` is lost by a job that goes on.
    """
    given = own.given()
    share = given.get(PREEMPTIBLE_SHARE)
    if share is not None:
        jobs = [
            replace(job, preemptible=uniform(draw_key(seed, "preemptible", job.job_id)) < share)
            for job in workload.jobs
        ]
        workload = replace(workload, jobs=jobs)
    return replace(workload, resume_s=given[RESUME_S]) if RESUME_S in given else workload
