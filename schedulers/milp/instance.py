"""An instance of the oracle's programme: jobs on a grid of time steps, with their cut-off starts. SIA, Figure 19."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from jobcast.domain.arrays import Ints
from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.sia_vc import virtual_starts_s

# A time counts as one of the grid's when it is no farther off: dust of seconds from the epoch held as floats.
OFF_GRID_S = 1e-6


@dataclass(frozen=True, slots=True)
class Instance:
    """Jobs in order of submission; times in steps of `grid_s` seconds from `origin_s`.

    Attributes
    ----------
    submit, duration, width, pool, cutoff : (n_jobs,) whole numbers; a cut-off is the start in the pool's own FCFS
    quotas : (n_pools,) GPUs, pools in order of their names
    grid_s, origin_s : a step, seconds; the instant of step 0, seconds from the epoch
    """

    submit: Ints
    duration: Ints
    width: Ints
    pool: Ints
    cutoff: Ints
    quotas: Ints
    grid_s: float
    origin_s: float

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def gpus(self) -> int:
        """All GPUs of the cluster."""
        return int(self.quotas.sum())

    @property
    def steps(self) -> int:
        """Steps until the last job ends at the latest."""
        return int((self.cutoff + self.duration).max())

    def wait(self, start: Ints) -> int:
        """Total wait of a schedule, steps; `start` is (n_jobs,)."""
        return int((start - self.submit).sum())


def on_grid(jobs: Sequence[Job], outcomes: Sequence[Outcome], grid_s: float) -> tuple[list[Job], list[Outcome]]:
    """The same jobs with submissions rounded up to multiples of `grid_s`, run times to at least one step.

    Submissions to the same step may change their order when a workload is made of them: ties go by job id. All
    policies that are compared with `milp` should replay this workload. Regimes of training jobs are left out.
    """
    rounded = [replace(job, submit_s=grid_s * _steps_up(job.submit_s, grid_s)) for job in jobs]
    durations = [Outcome(grid_s * max(1, _steps_up(outcome.duration_s, grid_s))) for outcome in outcomes]
    return rounded, durations


def make_instance(jobs: Sequence[Job], durations_s: Sequence[float], pools: Sequence[Pool], grid_s: float) -> Instance:
    """An instance of jobs in order of `seq`, all of whose times lie on the grid, counted from the first submission.

    Raises
    ------
    ConfigError
        A submission or a run time lies between two steps, or a job is wider than its pool.
    """
    names = {pool.name: index for index, pool in enumerate(sorted(pools, key=lambda pool: pool.name))}
    quotas = np.array([pool.quota for pool in sorted(pools, key=lambda pool: pool.name)], dtype=np.int64)
    origin_s = jobs[0].submit_s if jobs else 0.0
    for job, duration_s in zip(jobs, durations_s, strict=True):
        _check(job, job.submit_s - origin_s, "is submitted", " after the first job", grid_s)
        _check(job, duration_s, "runs", "", grid_s)
        if job.pool not in names or job.gpus > quotas[names[job.pool]]:
            raise ConfigError(
                f"policy milp: job {job.job_id} is wider than pool {job.pool}; leave it out or raise its quota"
            )
    submit = _whole([(job.submit_s - origin_s) / grid_s for job in jobs])
    duration = _whole([duration_s / grid_s for duration_s in durations_s])
    width = np.array([job.gpus for job in jobs], dtype=np.int64)
    pool = np.array([names[job.pool] for job in jobs], dtype=np.int64)
    # In steps, which are whole: no dust of seconds adds up.
    on_steps = [replace(job, submit_s=float(step)) for job, step in zip(jobs, submit.tolist(), strict=True)]
    alone = virtual_starts_s(on_steps, duration.tolist(), {pool.name: pool.quota for pool in pools})
    return Instance(submit, duration, width, pool, alone.astype(np.int64), quotas, grid_s, origin_s)


def _steps_up(time_s: float, grid_s: float) -> int:
    """Steps that a time takes, begun ones counted; dust is not."""
    # Else a time on the grid, held as a float, would be rounded up a whole step.
    nearest = round(time_s / grid_s)
    return nearest if abs(time_s - grid_s * nearest) <= OFF_GRID_S else ceil(time_s / grid_s)


def _whole(steps: Sequence[float]) -> Ints:
    return np.round(np.array(steps, dtype=np.float64)).astype(np.int64)


def _check(job: Job, time_s: float, what: str, after: str, grid_s: float) -> None:
    steps = round(time_s / grid_s)
    if abs(time_s - grid_s * steps) > OFF_GRID_S or (not after and steps < 1):
        raise ConfigError(
            f"policy milp: job {job.job_id} {what} {time_s:.6f} s{after}, which is no multiple of grid_s={grid_s:g}; "
            "round the trace's times to the grid, or pass --set grid_s=SECONDS that divides them"
        )
