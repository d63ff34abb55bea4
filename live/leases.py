"""Leases: who runs on GPUs that other pools lend, as Slurm itself holds it, so that a kill loses nothing.

A job on lease is in the QOS `lent_<its own pool>`, whose limit is what that pool has on lease now. Its administrators'
comment ends with a mark, which alone tells our leases from what others do.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from jobcast.domain.errors import ClusterError
from jobcast.domain.jobs import Pool
from jobcast.live.slurm import Node, Qos, Snapshot
from jobcast.traces.readers.slurm_queue import QueuedJob

LENT = "lent_"
"""What names of QOS begin with that hold jobs on lease."""
POOL_BY = ("account", "qos", "partition")
SHORTEN = re.compile(r"(?:^|\s)jobcast=shorten(?:\s|$)")
"""In a job's comment: its time limit may be cut to what is forecast."""
MARK = re.compile(
    r"(?:^| \| )jobcast lease=(?P<name>\S+) until=(?P<until>\d+) from=(?P<qos>\S+)"
    r"(?: limit=(?P<limit>\d+|inf))? v=(?P<versions>\S*)(?=\s|$)"
)
"""In a job's AdminComment, to which others may have added since."""


@dataclass(frozen=True, slots=True)
class Lease:
    """GPUs lent to a job.

    Attributes
    ----------
    name : of the lease, unique
    job : as Slurm tells it; it waits still, or runs
    pool : that it belongs to
    until_s : when it is expected to have ended, seconds from the epoch
    qos : that it was taken from
    versions : of the predictors that said so
    limit_s : the job's time limit before it was cut, seconds, infinite without one; None where it was not cut
    """

    name: str
    job: QueuedJob
    pool: str
    until_s: float
    qos: str
    versions: str
    limit_s: float | None = None

    @property
    def gpus(self) -> int:
        """GPUs of the job."""
        return self.job.gpus or 0


def pool_of(job: QueuedJob, pool_by: str) -> str:
    """The pool of a job, of which a lease takes nothing away.

    Parameters
    ----------
    pool_by : one of `POOL_BY`; of several partitions the first counts
    """
    if pool_by == "partition":
        return job.partition.partition(",")[0]
    return job.account if pool_by == "account" else job.qos.removeprefix(LENT)


def on_lease(job: QueuedJob) -> bool:
    """Whether a job is in a QOS of leases."""
    return job.qos.startswith(LENT)


def leases_of(snapshot: Snapshot, pool_by: str) -> list[Lease]:
    """Leases that are not over, by the marks of jobs."""
    there = ((job, mark_of(job.mark)) for job in snapshot.jobs if on_lease(job) and (job.waits or job.runs))
    return [
        Lease(
            mark["name"],
            job,
            pool_of(job, pool_by),
            float(mark["until"]),
            mark["qos"],
            mark["versions"],
            None if mark["limit"] is None else float(mark["limit"]),
        )
        for job, mark in there
        if mark
    ]


def marked(job: QueuedJob, name: str, until_s: float, versions: str, cut: bool = False) -> str:
    """The comment of a job that gets a lease: what stood there before, and the mark; it has the limit that is cut."""
    limit = f" limit={job.limit_s:.0f}" if cut else ""
    mark = f"jobcast lease={name} until={until_s:.0f} from={job.qos}{limit} v={versions}"
    return f"{job.mark} | {mark}" if job.mark else mark


def unmarked(job: QueuedJob) -> str:
    """The comment of a job without our mark; what others wrote before and after stays."""
    mark = mark_of(job.mark)
    if mark is None:
        return job.mark
    before, after = job.mark[: mark.start()], job.mark[mark.end() :]
    return before + after if before else after.removeprefix(" | ")


def mark_of(comment: str) -> re.Match[str] | None:
    """Our mark in a comment: the last, for what looked like one before is older."""
    return next(reversed(list(MARK.finditer(comment))), None)


def pools_of(qos: Mapping[str, Qos]) -> list[Pool]:
    """Pools with their quotas: limited QOS that have one for leases; as long as none has, all that are limited.

    Raises
    ------
    ClusterError
        There is none.
    """
    limited = [Pool(name, one.gpus) for name, one in sorted(qos.items()) if one.gpus and not name.startswith(LENT)]
    pools = [pool for pool in limited if LENT + pool.name in qos] or limited
    if not pools:
        raise ClusterError(
            "Slurm limits the GPUs of no QOS, so that it has no pools; give each one: sacctmgr modify qos POOL set "
            "GrpTRES=gres/gpu=N, see docs/live-slurm.md"
        )
    return pools


def on_loan(leases: Iterable[Lease]) -> Counter[str]:
    """GPUs on lease by pool of the borrowers."""
    result = Counter[str]()
    for lease in leases:
        result[lease.pool] += lease.gpus
    return result


def barred_tasks(jobs: Sequence[QueuedJob], qos: Mapping[str, Qos], pool_by: str, preempt: bool) -> dict[str, str]:
    """By task of a job array that waits why it would start on no lease, in plain words.

    An array may run so many tasks at once and no more. And where Slurm has tried a task in vain it tries no other of
    that array: those that the quota holds must not come before those on lease. Which comes first Slurm decides by who
    may stop whom, then by priority (`sort_job_queue2` and `reject_array_job` of its job_scheduler.c).

    `preempt`: whether owners are about to be allowed to stop jobs on lease
    """
    tasks = [job for job in jobs if job.array]
    waiting = [job for job in tasks if job.waits and not job.held and not on_lease(job)]
    busy = Counter(job.array for job in tasks if job.runs or (job.waits and on_lease(job)))
    others, found = Counter(job.array for job in waiting), dict[str, str]()
    for job in waiting:
        own, pool = qos.get(job.qos, Qos(None)), pool_of(job, pool_by)
        lent = LENT + pool
        stops = lent in own.preempts or (preempt and job.qos == pool)
        if (stops or own.priority > qos.get(lent, Qos(None)).priority) and others[job.array] > 1:
            found[job.job_id] = (
                f"Slurm tries tasks of its array in {job.qos} first, and then none of them in {lent}: "
                f"{job.qos} may stop jobs of {lent}, or has a higher Priority"
            )
        elif 0 < job.at_once <= busy[job.array]:
            found[job.job_id] = f"its array runs {job.at_once} tasks at once, and no more"
        else:
            busy[job.array] += 1
    return found


def in_part(jobs: Sequence[QueuedJob], granted: Collection[str]) -> list[str]:
    """Parts, which wait, of jobs of several some of which are lent to just now while the quota may hold others back.

    Slurm starts all parts of a job at once, each within the limit of its own QOS, or none (`_het_job_limit_check` of
    its backfill.c). It says of a part that its quota does not hold that it waits for resources; what it has not looked
    at yet may be held.
    """
    waiting = [job for job in jobs if job.whole and job.waits and not on_lease(job)]
    begun = {job.whole for job in waiting if job.job_id in granted}
    short = {job.whole for job in waiting if job.gpus and job.job_id not in granted and job.reason != "Resources"}
    return [job.job_id for job in waiting if job.whole in begun & short]


class Room:
    """GPUs of nodes on which jobs may start, as they are given away one after another."""

    def __init__(self, nodes: Mapping[str, Node], coming: Sequence[QueuedJob] = ()) -> None:
        self._free = sorted(
            ((node.gpus - node.held, node.names) for node in nodes.values() if node.up), key=itemgetter(0)
        )
        for job in coming:
            self.take(job)

    def take(self, job: QueuedJob) -> bool:
        """Whether a job fits, as many GPUs on each of its nodes; where it does, they are gone: the fullest that fit."""
        fit = self._fit(job)
        if len(fit) < job.nodes:
            return False
        for place in fit[: job.nodes]:
            free, names = self._free[place]
            self._free[place] = free - _each(job), names
        self._free.sort(key=itemgetter(0))
        return True

    def stuck(self, job: QueuedJob) -> bool:
        """Whether a job that may not use all nodes does not fit on those that it may use."""
        return len(self._fit(job)) < job.nodes and not all(_suits(job, names) for _, names in self._free)

    def _fit(self, job: QueuedJob) -> list[int]:
        return [place for place, (free, names) in enumerate(self._free) if free >= _each(job) and _suits(job, names)]


def _each(job: QueuedJob) -> int:
    """GPUs on each of its nodes."""
    return -(-(job.gpus or 0) // job.nodes)


def _suits(job: QueuedJob, names: frozenset[str]) -> bool:
    """Whether a job may use a node, by its partitions, features and types of GPUs."""
    return not names or all(one & names for one in job.asks)
