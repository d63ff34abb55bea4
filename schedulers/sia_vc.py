"""SIA_VC: jobs start as early as leaves all others their virtual starts. SIA, section 5.1, Figure 6."""

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.domain.forecasts import JobForecasts
from jobcast.domain.jobs import Job
from jobcast.domain.policy import NOTHING, Decision, Grant, View
from jobcast.schedulers.virtual_clock import ResourceTimePlan, virtual_starts_s


class SiaVc:
    """Start a job if, until it ends, running jobs and the reservations of jobs before it leave it enough GPUs.

    Jobs are visited by virtual start, then submission: the start under `fcfs` on their pool's quota alone, worked out
    once for the whole trace. All that have not started, those to come as well, reserve their GPUs from their virtual
    start for their run time; pools do not matter otherwise. No job finishes later than under `fcfs` (Theorem 1), but
    for the microsecond within which instants are the same, as long as jobs run for the time that is forecast and
    starting costs nothing (`Workload.restart_s`).

    Parameters
    ----------
    forecasts : know every job of the run and its run time; only the oracle does

    Raises
    ------
    ConfigError
        The forecasts do not know the jobs to come.
    """

    name = "sia_vc"

    def __init__(self, forecasts: JobForecasts) -> None:
        if not hasattr(forecasts, "jobs"):
            raise ConfigError(f"policy {self.name} needs each single job's future; pass --forecasts oracle")
        import jobcast.schedulers.virtual_clock_kernels  # noqa: F401  slow to import, so not amid a run

        self._forecasts = forecasts
        self._plan: ResourceTimePlan | None = None
        self._arrived = 0
        self._owed: list[int] = []  # `seq` of jobs that are started, as far as there is a place for all their GPUs

    def lane(self, job: Job) -> int:
        """One lane. Raises ConfigError when a job arrives otherwise than was known."""
        jobs = self._forecasts.jobs
        if job.seq >= len(jobs) or jobs[job.seq] != job:
            raise ConfigError(
                f"policy {self.name}: job {job.job_id} arrives at {job.submit_s:.6f} s, which was not known before; "
                "replay in an open loop"
            )
        return 0

    def key(self, job: Job) -> float:
        """All alike: ties go by submission."""
        return 0.0

    def decide(self, view: View) -> Decision:
        """One pass of Figure 6."""
        if self._plan is None:
            self._plan = self._make_plan(view)
        arrived = self._arrivals(view.now_s)
        owed = [seq for seq in self._owed if seq in view.active and seq not in view.running]
        free = int(view.free_gpus) - sum(view.active[seq].gpus for seq in owed)
        if free > 0 or arrived:
            owed += self._plan.start(arrived, view.now_s, max(free, 0))
        self._owed = owed
        if owed:
            return Decision({seq: Grant(view.active[seq].gpus) for seq in owed})
        # Where jobs took less time than planned the plan holds GPUs that idle, and no end will come to ask again.
        return NOTHING if view.running else Decision(wake_s=self._plan.next_start_s(view.now_s))

    def _make_plan(self, view: View) -> ResourceTimePlan:
        jobs = self._forecasts.jobs
        durations_s = [self._forecasts.duration_s(job) for job in jobs]
        quotas = {pool.name: pool.quota for pool in view.pools.values()}
        starts_s = virtual_starts_s(jobs, durations_s, quotas)
        gpus = np.array([job.gpus for job in jobs], dtype=np.int64)
        return ResourceTimePlan(starts_s, np.array(durations_s, dtype=np.float64), gpus, view.total_gpus)

    def _arrivals(self, now_s: float) -> range:
        """`seq` of the jobs that have arrived since the last decision."""
        jobs, begin = self._forecasts.jobs, self._arrived
        while self._arrived < len(jobs) and jobs[self._arrived].submit_s <= now_s:
            self._arrived += 1
        return range(begin, self._arrived)
