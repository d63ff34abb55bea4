"""A run that stands where a cluster stands: what policies decide on beside a running cluster, and futures fork from."""

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from math import isnan, nan
from typing import Any

from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Grant
from jobcast.live.job_record import JobRecord, by_submission
from jobcast.simulator.engine import Simulation, Stand
from jobcast.simulator.workload import Workload

LEAST_S = 1.0
"""How much longer a job runs that has outlived what is believed of it."""


def standing(
    active: Mapping[str, JobRecord],
    gpus: int | None,
    now_s: float,
    pools: Sequence[Pool],
    policy: Any,
    source: ForecastSource | None,
    believed_s: Callable[[Job], float],
    without: Container[str] = (),
) -> Simulation:
    """A run at an instant, before its policy is asked: `look()` tells the view, `fork()` gives futures.

    Left out are jobs that are known to have ended, and those that wait but may not start, or never can: held ones,
    those of pools that have no quota, or none of whose GPUs is up, or a smaller one than they are wide. The run has no
    history: its source looks at one of its own, of all that is known.

    Parameters
    ----------
    active : jobs that have not ended, by id; a start whose facts have `dedicated` False holds spare GPUs
    gpus : of all nodes that are up, None where nobody told
    now_s : seconds from the epoch
    pools : with their quotas as of now
    believed_s : how long a job runs in all, seconds
    without : ids of jobs that are left out, too

    Jobs may hold more GPUs than their pool's quota, which may have been lowered, and than there are: see `present`.
    """
    known = by_submission(active.values())
    jobs = [one.job(seq) for seq, one in enumerate(known)]
    quotas = {pool.name: pool.quota for pool in pools}
    there = [
        job
        for job, one in zip(jobs, known, strict=True)
        if _there(job, one, quotas, now_s) and job.job_id not in without
    ]
    since_s = {name: _since_s(active[name], now_s) for name in (job.job_id for job in there)}
    held = [job for job in there if not isnan(since_s[job.job_id])]
    up = present(pools, gpus, known, held)
    # For a pool of which no GPU is up nobody can say anything.
    empty = {pool.name for pool in up if not pool.quota}
    inside = [job for job in there if job.pool not in empty]
    ran_s = {name: now_s - at_s - active[name].paused_s(now_s) for name, at_s in since_s.items()}
    outcomes = [Outcome(_run_s(believed_s(job), ran_s[job.job_id])) for job in inside]
    workload = Workload(inside, outcomes, [pool for pool in up if pool.quota])
    seqs = {job.job_id: job.seq for job in workload.jobs}
    held.sort(key=lambda job: (since_s[job.job_id], job.job_id))
    stands = {
        seqs[job.job_id]: Stand(ran_s[job.job_id], _grant(job, active[job.job_id]), since_s[job.job_id]) for job in held
    }
    return Simulation(workload, policy, source).begin(now_s, stands)


def present(pools: Sequence[Pool], gpus: int | None, known: Sequence[JobRecord], held: Sequence[Job]) -> list[Pool]:
    """Quotas as far as there are GPUs: of what is down, or held by jobs of no pool, each pool lacks its share.

    Parameters
    ----------
    gpus : of all nodes that are up, None where nobody told
    known : jobs that have not ended
    held : those of the pools that hold GPUs; a pool keeps as many as its widest, all together as many as they hold
    """
    total, names = sum(pool.quota for pool in pools), {pool.name for pool in pools}
    strangers = (one.facts["gpus"] for one in known if one.runs and one.facts["pool"] not in names)
    there = total if gpus is None else gpus - sum(strangers)
    least = {job.pool: job.gpus for job in sorted(held, key=lambda job: job.gpus)}
    share = min(max(there, 0), total)
    # Rounded down: of what is not there nothing is lent.
    result = {one.name: max(one.quota * share // max(total, 1), least.get(one.name, 0)) for one in pools}
    # Who was granted GPUs that an owner took before, runs on a node that goes down, or has ended unheard, holds more
    # than is there: nothing is idle then, and the pools whose jobs do so have as many more.
    short = sum(job.gpus for job in held) - sum(result.values())
    holds = Counter[str]()
    for job in held:
        holds[job.pool] += job.gpus
    for name, gpus_held in holds.items():
        more = min(max(short, 0), max(gpus_held - result[name], 0))
        result[name] += more
        short -= more
    return [Pool(name, quota) for name, quota in result.items()]


def too_wide(run: Simulation, active: Mapping[str, JobRecord]) -> dict[str, str]:
    """By id of jobs that wait for more GPUs than are up of their pool's quota, why they do, in plain words.

    In a run that stands where the cluster does they would wait for ever, which it refuses.
    """
    up, holds = run.cluster.pools, {one.job.job_id for one in run.cluster.running.values()}
    result = {}
    for one in active.values():
        # Of one whose submission is not known nobody knows how wide it is, and no run has it.
        if not one.came or one.name in holds:
            continue
        gpus, pool = one.facts["gpus"], one.facts["pool"]
        quota = up[pool].quota if pool in up else 0
        if gpus > quota:
            result[one.name] = f"it asks for {gpus} GPUs, and of pool {pool}'s quota {quota} are up"
    return result


def _there(job: Job, known: JobRecord, quotas: Mapping[str, int], now_s: float) -> bool:
    """Whether a job runs, or waits for what it can have."""
    if known.over or job.submit_s > now_s or job.pool not in quotas or job.gpus == 0:
        return False
    return known.holds or (not known.held and job.gpus <= quotas[job.pool])


def _since_s(known: JobRecord, now_s: float) -> float:
    """Since when it holds GPUs, NaN where it waits."""
    if not known.holds:
        return nan
    # Granted ones are as good as started.
    return now_s if known.start is None else min(known.start.at_s, now_s)


def _grant(job: Job, known: JobRecord) -> Grant:
    # Granted are spare GPUs alone.
    return Grant(job.gpus, dedicated=known.start is not None and known.dedicated)


def _run_s(believed_s: float, ran_s: float) -> float:
    """Run time of a job that has run so long, NaN where it waits."""
    # A comparison with NaN is false: who waits runs as believed.
    return ran_s + LEAST_S if believed_s < ran_s + LEAST_S else believed_s
