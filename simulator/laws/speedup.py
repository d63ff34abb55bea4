"""Elastic jobs: as fast as their speedup on the GPUs that they hold, stage by stage. PCS, sections 3 and 4.

The compiled twin (`simulator.elastic`) plays the same world for compiled rules alone, and is copied in microseconds.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats
from jobcast.domain.elastic import ElasticJobs, ElasticView
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.law import SPEEDUP
from jobcast.domain.policy import Grant, Service
from jobcast.simulator.elastic.run import FLAT, ElasticCluster, alone_s
from jobcast.simulator.elastic.state import OVERDUE_S
from jobcast.simulator.laws.separable import Contention, Separable
from jobcast.simulator.workload import Workload

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation


class Speedup(Separable):
    """Work is seconds on one GPU of the first type. The workload's servers are GPU types, with all GPUs of each.

    Parameters
    ----------
    jobs : what is known of them, in the workload's order
    size_s : (n_jobs,) the work that they really are
    preempt_s : seconds without progress after a change of a started job's GPUs
    origin_s : seconds from the epoch of second 0 of the jobs' columns
    """

    name = SPEEDUP

    def __init__(self, jobs: ElasticJobs, size_s: Floats, preempt_s: float = 0.0, origin_s: float = 0.0) -> None:
        self.jobs, self.size_s, self.preempt_s, self.origin_s = jobs, size_s, preempt_s, origin_s

    def bind(self, run: "Simulation") -> None:
        """Make room for a run's jobs."""
        super().bind(run)
        count = len(run.workload.jobs)
        self.stage = [0] * count
        self.contention = Contention(count)

    def count(self, run: "Simulation") -> None:
        """An event: those who were active before it count."""
        self.contention.count(run)

    def arrive(self, run: "Simulation", job: Job) -> None:
        """The end of its first stage comes next; at one instant milestones go by submission."""
        seq = job.seq
        # Compiled rules go by submission; ties of milestones must do the same.
        self.begun[seq] = seq
        self.stage[seq] = int(self.jobs.stage_of[seq])
        self.goal[seq] = self.jobs.stage_end[self.stage[seq]] * self.size_s[seq]
        self.contention.arrive(run, seq)

    def begin(self, seq: int) -> None:
        """A job is given GPUs while it had none."""
        self.starts[seq] += 1

    def reach(self, run: "Simulation", job: Job) -> bool:
        """Over, or at its next stage, in which it can use another number of GPUs."""
        seq = job.seq
        self.work[seq] = self.goal[seq]
        if self.stage[seq] + 1 == self.jobs.stage_of[seq + 1]:
            return True
        self.stage[seq] += 1
        self.goal[seq] = self.jobs.stage_end[self.stage[seq]] * self.size_s[seq]
        self.go_on(seq, run.now_s, self.rate[seq])
        return False

    def why_not(self, run: "Simulation", job: Job, grant: Grant) -> str | None:
        """No more GPUs than the stage can use; fewer than the job's least get it nowhere."""
        most = self.jobs.stage_most[self.stage[job.seq]]
        if not 0.0 < grant.gpus <= most * (1.0 + tolerance.GPUS):
            return f"it can use up to {most:g} GPUs, it is given {grant.gpus:g}"
        return None if grant.cells else "it is given no GPUs of any type"

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """Work done is kept; a started job stands still after a change, unless a stage ended in which it used more."""
        seq, now_s = job.seq, run.now_s
        started, stops = self.starts[seq] > 0, old is None
        self.contention.change(run, seq, old)
        if old is None:
            self.begin(seq)
        else:
            self.halt(seq, now_s)
            # A stage that ended frees GPUs that the job could not use any more: no preemption.
            most = self.jobs.stage_most[self.stage[seq]] * (1.0 + tolerance.GPUS)
            less = _exceeds(old, new) and old.gpus <= most
            stops = less or (new is not None and _exceeds(new, old))
            self.stops[seq] += less
        if new is not None:
            # A change amid a stand-still does not cut that short.
            still_s = max(0.0, self.since_s[seq] + self.lost_s[seq] - now_s)  # of an earlier change
            lost_s = self.preempt_s if started and stops else still_s
            self.go_on(seq, now_s, self._speed(seq, new), lost_s)

    def leave(self, run: "Simulation", job: Job, held: Grant | None) -> None:
        """A job is over."""
        super().leave(run, job, held)
        self.contention.leave(run, job.seq, held)

    def _speed(self, seq: int, grant: Grant) -> float:
        """Work a second: speedup of all its GPUs, times their mean speed."""
        # Types of GPUs mixed: the mean of their speeds.
        fast = sum(cell.gpus * float(self.jobs.speed[self.jobs.model[seq], cell.server]) for cell in grant.cells)
        return self._up(seq, grant.gpus) * (fast / grant.gpus)

    def _up(self, seq: int, gpus: float) -> float:
        """Speedup on so many GPUs of the first type."""
        table = self.jobs.speedup[self.jobs.model[seq], 0]
        return float(np.interp(gpus, np.arange(len(table)), table))

    def service(self, run: "Simulation", job: Job) -> Service:
        """What an active job has received by now; run time is that on the GPUs that it asked for."""
        result = super().service(run, job)
        return result._replace(run_s=result.done / self._up(job.seq, job.gpus))

    def facts(self, run: "Simulation", kind: type[Any]) -> Any:
        """The jobs by column, as compiled rules see them."""
        if kind is not ElasticView:
            return super().facts(run, kind)
        active = np.fromiter(run.cluster.active, dtype=np.int64)
        left_s, contention, gpu_s = np.zeros((3, len(self.size_s)))
        for seq in active.tolist():
            left_s[seq] = max(float(self.jobs.size_s[seq]) - self.done(seq, run.now_s), 0.0) or OVERDUE_S
            contention[seq], gpu_s[seq] = self.contention.of(seq), self.contention.gpu_s(run, seq)
        most = self.jobs.stage_most[np.array(self.stage, dtype=np.int64)]
        now_s = run.now_s - self.origin_s
        capacity = np.array(run.workload.servers, dtype=np.float64)
        return ElasticView(now_s, capacity, active, len(active), self.jobs, left_s, most, gpu_s, contention)

    def report(self, run: "Simulation") -> Mapping[str, Any]:
        """GPUs that were taken away, and contention."""
        count = len(run.jobs)
        return {
            **super().report(run),
            "duration_s": alone_s(self.jobs, self.size_s)[:count],
            "columns": {
                "work_s": self.size_s[:count].copy(),
                "contention_events": np.array(self.contention.met[:count]),
                "gpu_s": np.array([self.contention.gpu_s(run, seq) for seq in range(count)]),
            },
        }

    def believe(self, run: "Simulation", believed_s: Callable[[Job], float]) -> None:
        """Sizes are as declared."""
        self.size_s = self.jobs.size_s
        for seq in run.cluster.active:
            self.overdue(run, seq, self.jobs.stage_end[self.stage[seq]] * self.size_s[seq])

    def fork(self) -> Self:
        """A copy that goes its own way."""
        copy = super().fork()
        copy.contention, copy.stage = self.contention.fork(), self.stage[:]
        return copy


def _exceeds(one: Grant, other: Grant | None) -> bool:
    """Whether one has more GPUs of any type than the other."""
    held = {cell.server: cell.gpus for cell in other.cells} if other is not None else {}
    return any(cell.gpus > held.get(cell.server, 0.0) + tolerance.GPUS for cell in one.cells)


def elastic_workload(jobs: ElasticJobs, size_s: Floats, cluster: ElasticCluster, origin_s: float = 0.0) -> Workload:
    """Elastic jobs as the engine takes them, named by their position. Raises ValueError for a cluster of nodes.

    Parameters
    ----------
    jobs, size_s : what is known of them, and the work that they really are
    cluster : GPUs by type; the twin alone places jobs on nodes
    origin_s : seconds from the epoch of the run's second 0
    """
    # A locality of jobs is known to the twin alone.
    if len(cluster.node_gpus):
        raise ValueError("jobs are placed on nodes by the compiled twin alone; leave the nodes out")
    alone = alone_s(jobs, size_s).tolist()
    rows = zip(jobs.submit_s.tolist(), jobs.most.astype(int).tolist(), jobs.least.astype(int).tolist(), strict=True)
    made = [
        Job(seq, f"{seq:09}", FLAT, origin_s + at, most, min_gpus=least, preemptible=True)
        for seq, (at, most, least) in enumerate(rows)
    ]
    sizes = [int(gpus) for gpus in cluster.capacity]
    return Workload(made, [Outcome(seconds) for seconds in alone], [Pool(FLAT, sum(sizes))], servers=sizes)
