"""What is replayed: jobs, the truth about them, and the pools that they run in."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from jobcast.domain.errors import PoolsError, TraceError
from jobcast.domain.jobs import Job, Outcome, Pool, Succession
from jobcast.domain.scheduling_rules import NO_RULES, SchedulingRules


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where jobs stand when a run begins amid things; who is submitted before and does not run waits.

    Attributes
    ----------
    at_s : the instant, seconds from the epoch
    running : by job id, since when a job holds its GPUs (seconds from the epoch), and the seconds of its run time done
    """

    at_s: float
    running: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs with their outcomes, and pools; brought into order when made.

    Attributes
    ----------
    jobs : sorted by (submit time, job id, given order), `seq` counting from 0 in that order
    outcomes : (n_jobs,) the truth about each job, in the same order; for the engine and the oracle alone
    pools : names ascending
    restart_s : seconds that a job loses at every start, for loading its model and data
    resume_s : seconds more that it loses at a start after it was stopped
    servers : GPUs of each server, where jobs are given certain GPUs; empty where all are alike
    shared : whether jobs may share GPUs, so that one may ask for more than its pool has
    begin : where jobs stand when the run begins; None: it begins with an empty cluster
    rules : of priority and limits, which the cluster tells its policies
    successions : of a closed-loop replay: job id -> what it follows, for those that follow any; None: open loop

    Raises
    ------
    TraceError
        Numbers of jobs and outcomes differ.
    PoolsError
        A pool is given twice.
    """

    jobs: Sequence[Job]
    outcomes: Sequence[Outcome]
    pools: Sequence[Pool]
    restart_s: float = 0.0
    resume_s: float = 0.0
    servers: Sequence[int] = ()
    successions: Mapping[str, Succession] | None = None
    shared: bool = False
    begin: Beginning | None = None
    rules: SchedulingRules = NO_RULES

    def __post_init__(self) -> None:
        if len(self.jobs) != len(self.outcomes):
            raise TraceError(f"{len(self.jobs)} jobs but {len(self.outcomes)} outcomes; give one a job")
        for name, count in Counter(pool.name for pool in self.pools).items():
            if count > 1:
                raise PoolsError(f"pool {name} is given {count} times; keep one quota a pool")
        # Sorting is stable: the given order breaks the last tie.
        rows = sorted(zip(self.jobs, self.outcomes, strict=True), key=lambda row: (row[0].submit_s, row[0].job_id))
        # Jobs that are numbered already are kept: reading a trace of millions makes them once.
        jobs = tuple(job if job.seq == seq else replace(job, seq=seq) for seq, (job, _) in enumerate(rows))
        object.__setattr__(self, "jobs", jobs)
        object.__setattr__(self, "outcomes", tuple(outcome for _, outcome in rows))
        object.__setattr__(self, "pools", tuple(sorted(self.pools, key=lambda pool: pool.name)))

    @property
    def total_gpus(self) -> int:
        """GPUs of all pools."""
        return sum(pool.quota for pool in self.pools)

    @property
    def closed(self) -> bool:
        """Whether jobs arrive after those that they follow, not when the trace says."""
        return self.successions is not None

    def quotas(self) -> dict[str, int]:
        """GPUs by pool, for pools that have any."""
        return {pool.name: pool.quota for pool in self.pools if pool.quota > 0}

    def check(self) -> None:
        """Refuse what can never run without sharing.

        Raises
        ------
        PoolsError
            A job's pool has no capacity, or the servers have fewer GPUs than the quotas promise.
        TraceError
            A job is wider than its pool's quota, does not run for a positive time, or could never arrive; or a pool's
            jobs hold more than its quota when the run begins.
        """
        quotas = self.quotas()
        if self.servers and sum(self.servers) < self.total_gpus:
            raise PoolsError(
                f"the pools' quotas ({self.total_gpus} GPUs) exceed the {sum(self.servers)} GPUs of "
                f"{len(self.servers)} servers; add servers or lower the quotas"
            )
        homeless = [job for job in self.jobs if job.pool not in quotas]
        if homeless:
            lie = "1 job lies" if len(homeless) == 1 else f"{len(homeless)} jobs lie"
            raise PoolsError(
                f"pool {homeless[0].pool} has no GPUs but {lie} in such pools, "
                f"job {homeless[0].job_id} first; give it a quota or pass --pools-only to leave them out"
            )
        wide = [] if self.shared else [job for job in self.jobs if job.gpus > quotas[job.pool]]
        if wide:
            job = wide[0]
            raise TraceError(
                f"job {job.job_id} asks for {job.gpus} GPUs, its pool {job.pool} has {quotas[job.pool]} "
                f"({len(wide)} such jobs); raise the quota or pass --drop-too-wide to leave them out"
            )
        for job, outcome in zip(self.jobs, self.outcomes, strict=True):
            # Written so that NaN is refused, too.
            if not outcome.duration_s > 0:
                raise TraceError(
                    f"job {job.job_id}: its duration must be more than 0 s, got {outcome.duration_s}; drop it"
                )
        if self.successions:
            _check_successions(self.jobs, self.successions)
        _check_beginning(self.running, quotas)

    @property
    def running(self) -> Sequence[Job]:
        """Jobs that hold GPUs when the run begins, in the order in which they started."""
        running = {} if self.begin is None else self.begin.running
        jobs = [job for job in self.jobs if job.job_id in running] if running else []
        return sorted(jobs, key=lambda job: running[job.job_id][0])


def _check_beginning(running: Sequence[Job], quotas: Mapping[str, int]) -> None:
    """Refuse jobs that hold more GPUs than their pools have when a run begins."""
    held = Counter[str]()
    for job in running:
        held[job.pool] += job.gpus
    for pool, gpus in held.items():
        if gpus > quotas[pool]:
            raise TraceError(
                f"jobs of pool {pool} hold {gpus} GPUs when the run begins, its quota is {quotas[pool]}; raise the "
                "quota, or begin at another instant (jobs whose ends are told late run until they are told)"
            )


def _check_successions(jobs: Sequence[Job], successions: Mapping[str, Succession]) -> None:
    """Refuse successions of jobs that could never arrive, for they await what is not there or comes after them."""
    places = {job.job_id: place for place, job in enumerate(jobs)}
    for job_id, succession in successions.items():
        place = places.get(job_id, -inf)
        # They must come before it in the trace: that rules out circles.
        late = [name for name in succession.awaited if not places.get(name, inf) < place]
        if late or not succession.awaited or not 0 <= succession.think_s < inf:
            raise TraceError(
                f"job {job_id}: must follow jobs before it by 0 s or more, got {late or succession.awaited} and "
                f"{succession.think_s} s; leave its succession out"
            )


def drop_too_wide(workload: Workload) -> tuple[Workload, int]:
    """Leave out the jobs that are wider than their pool's quota; the count of those comes second."""
    quotas = workload.quotas()
    return keep_jobs(workload, lambda job: job.gpus <= quotas.get(job.pool, job.gpus))


def pools_only(workload: Workload) -> tuple[Workload, int]:
    """Leave out the jobs of pools without capacity; the count of those comes second."""
    quotas = workload.quotas()
    return keep_jobs(workload, lambda job: job.pool in quotas)


def keep_jobs(workload: Workload, wanted: Callable[[Job], bool]) -> tuple[Workload, int]:
    """Leave out the jobs that are not wanted; the count of those comes second."""
    rows = [row for row in zip(workload.jobs, workload.outcomes, strict=True) if wanted(row[0])]
    kept = replace(workload, jobs=[job for job, _ in rows], outcomes=[outcome for _, outcome in rows])
    return kept, len(workload.jobs) - len(rows)
