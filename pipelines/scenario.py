"""What settings change in the jobs that are replayed: which of them may be stopped, and what that costs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jobcast.schedulers.policies import PolicyFactory
from jobcast.schedulers.settings import read_settings
from jobcast.simulator.draws import draw_key, uniform
from jobcast.simulator.workload import Workload

PREEMPTIBLE_SHARE, RESUME_S = "preemptible_share", "resume_s"


def scenario_workload(workload: Workload, factory: object, settings: Mapping[str, Any], seed: int) -> Workload:
    """The workload as a policy's settings have it.

    `preemptible_share` draws the jobs that may be stopped, each by (seed, job id), in place of what the trace says;
    `resume_s` is lost by a job that goes on. Raises ConfigError for a setting that cannot be read.
    """
    if not isinstance(factory, PolicyFactory) or not {PREEMPTIBLE_SHARE, RESUME_S} & set(settings):
        return workload
    read = read_settings(getattr(factory.policy, "name", ""), factory.known, settings)
    share = read.get(PREEMPTIBLE_SHARE)
    if share is not None:
        jobs = [
            replace(job, preemptible=uniform(draw_key(seed, "preemptible", job.job_id)) < share)
            for job in workload.jobs
        ]
        workload = replace(workload, jobs=jobs)
    return replace(workload, resume_s=read.get(RESUME_S, workload.resume_s))
