"""A pool's private cluster: its quota's cells, and what would start when if nobody shared. SIA, section 5.1."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import inf

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Cell, RunningJob
from jobcast.schedulers.cells.buddy import Buddies, sizes_of

# An end that the schedule is told of within so many seconds is an end of that instant.
PROMPT_S = 1e-3


class PrivateCluster:
    """The cells of a quota and the jobs in them, by buddy allocation.

    Parameters
    ----------
    cells : GPUs of each cell of the quota
    server_gpus : of a whole server

    Attributes
    ----------
    tree : its cells; `server` of a cell is the position of the quota's cell that it lies in
    cells : by `seq` of a job, its place
    """

    __slots__ = ("_server_gpus", "cells", "tree")

    def __init__(self, cells: Sequence[int], server_gpus: int) -> None:
        self.tree = Buddies(cells)
        self.cells: dict[int, tuple[Cell, ...]] = {}
        self._server_gpus = server_gpus

    def sizes(self, job: Job) -> tuple[int, ...]:
        """GPUs of the cells that a job takes up."""
        return sizes_of(job.gpus, self._server_gpus)

    def fit(self, job: Job) -> tuple[Cell, ...] | None:
        """Where a job would lie, None where there is no room."""
        return self.tree.find(self.sizes(job))

    def places(self, job: Job) -> Iterator[tuple[Cell, ...]]:
        """Where a job may lie: small blocks first; of the cells of one size that are whole, the first alone."""
        sizes, tree = self.sizes(job), self.tree
        if len(sizes) > 1:
            yield from filter(None, [tree.find(sizes)])
            return
        whole: set[int] = set()
        for block in list(tree.blocks(sizes[0])):
            # Whole cells of one size are alike: one try tells of all.
            if block.gpus == tree.roots[block.server]:
                if block.gpus in whole:
                    continue
                whole.add(block.gpus)
            for first in range(block.first, block.first + block.gpus, sizes[0]):
                yield (Cell(block.server, first, sizes[0]),)

    def take(self, job: Job, cells: tuple[Cell, ...]) -> None:
        """A job starts."""
        self.tree.take(cells)
        self.cells[job.seq] = cells

    def release(self, seq: int) -> None:
        """A job ended."""
        self.tree.give(self.cells.pop(seq))


class PrivateSchedule:
    """When each job of a pool would start without sharing, kept along while the shared cluster runs.

    Strict FCFS in the private cluster. A job that started early, on spare cells, has its turn here all the same. How
    long it runs is known once it has truly ended, which is no later than its end here as long as no job is slowed;
    one that is slowed keeps its place until its true end.

    Jobs that started early must have their turns: by buddy allocation others may lie elsewhere without them, and wait
    for a cell that is in pieces then. (Of equal GPUs, which are never in pieces, fewer jobs never delay the others.)

    Attributes
    ----------
    cluster : the private cluster
    queue : jobs that have not had their turn, in order of submission
    queued_gpus : GPUs of their cells
    """

    __slots__ = ("_early", "_ends", "_lasted_s", "_ran_s", "_turn_s", "cluster", "queue", "queued_gpus")

    def __init__(self, cells: Sequence[int], server_gpus: int) -> None:
        self.cluster = PrivateCluster(cells, server_gpus)
        self.queue: deque[Job] = deque()
        self.queued_gpus = 0
        self._early: dict[int, Job] = {}  # started on spare cells, and not over here
        self._turn_s: dict[int, float] = {}  # by seq, of those in the cluster whose end is not known
        self._lasted_s: dict[int, float] = {}  # of those that have ended before their turn
        self._ran_s: dict[int, float] = {}  # of those that were stopped, until then
        self._ends: list[tuple[float, int]] = []  # heap of (end here, seq); stale for those that were forgotten

    @property
    def next_s(self) -> float:
        """When a place is given back that a waiting job may take, infinite where that is not known."""
        return self._ends[0][0] if self._ends and self.queue else inf

    def submit(self, job: Job) -> None:
        """A job joins the queue."""
        self.queue.append(job)
        self.queued_gpus += sum(self.cluster.sizes(job))

    def started_early(self, job: Job) -> None:
        """A job has started on spare cells."""
        self._early[job.seq] = job

    def ended(self, job: Job, start_s: float, now_s: float, lasted_s: float) -> None:
        """A job has truly ended by now: it ran for so long in all, last from an instant on."""
        turn_s, ran_s = self._turn_s.pop(job.seq, None), self._ran_s.pop(job.seq, 0.0)
        if turn_s is not None:
            end_s = min(now_s, start_s + (lasted_s - ran_s))
            # One that started early ran before its turn: here it ends as late as if it had begun then.
            here_s = end_s if start_s >= turn_s and not ran_s else max(end_s, turn_s + lasted_s)
            heappush(self._ends, (here_s, job.seq))
        elif job.seq in self._early:
            self._lasted_s[job.seq] = lasted_s

    def stopped(self, job: Job, start_s: float, end_s: float) -> tuple[Cell, ...] | None:
        """A job that started early has truly run from one instant to another, and waits again.

        Returns its place where its turn has come already. One that was left out has a turn again, as submitted.
        """
        self._ran_s[job.seq] = self._ran_s.get(job.seq, 0.0) + (end_s - start_s)
        # It was left out to catch up, so that its turn is still to come.
        if self._early.pop(job.seq, None) is None:
            self.queue.insert(sum(other.seq < job.seq for other in self.queue), job)
            self.queued_gpus += sum(self.cluster.sizes(job))
        return self.cluster.cells.get(job.seq)

    def turns(self, now_s: float) -> Iterator[tuple[Job, tuple[Cell, ...]]]:
        """Jobs whose turn has come by now, with their places.

        Where no job was left nobody was asked for a while: turns of then are taken as of then.
        """
        # Ends between two calls, one after the other, each with the turns that it made possible.
        while self.queue and self._ends and self._ends[0][0] < now_s - PROMPT_S:
            yield from self._turns(self._ends[0][0])
        yield from self._turns(now_s)

    def _turns(self, now_s: float) -> Iterator[tuple[Job, tuple[Cell, ...]]]:
        self._give_back(now_s)
        while self.queue and self.queue[0].submit_s <= now_s and (cells := self.cluster.fit(self.queue[0])) is not None:
            job = self.queue.popleft()
            self.queued_gpus -= sum(self.cluster.sizes(job))
            self.cluster.take(job, cells)
            self._begin(job, now_s)
            yield job, cells
            self._give_back(now_s)  # one that lasted less than the clock can tell is over here already

    def _give_back(self, now_s: float) -> None:
        """Places of jobs that are over here by now."""
        while self._ends and self._ends[0][0] <= now_s:
            seq = heappop(self._ends)[1]
            # Stale ends are of jobs that were forgotten.
            if seq in self.cluster.cells:
                self.cluster.release(seq)
                self._early.pop(seq, None)

    def move(self, job: Job, cells: tuple[Cell, ...]) -> None:
        """A job that could not start in its place has started in another one."""
        self.cluster.release(job.seq)
        self.cluster.take(job, cells)

    def forget_early(self) -> bool:
        """Leave out the jobs that started early, so that others have their turns sooner; whether there were any.

        This is what a pool whose jobs are slowed catches up by.
        """
        early, self._early = self._early, {}
        for seq, job in early.items():
            self._turn_s.pop(seq, None)
            self._lasted_s.pop(seq, None)
            if seq in self.cluster.cells:
                self.cluster.release(seq)
            else:
                self.queue.remove(job)
                self.queued_gpus -= sum(self.cluster.sizes(job))
        return bool(early)

    def idle_until(
        self, until_s: float, now_s: float, running: Mapping[int, RunningJob], back: Collection[int] = ()
    ) -> Iterator[Cell]:
        """Places of jobs that are truly elsewhere or over, and that nobody else is given here until an instant.

        `back`: by `seq`, jobs elsewhere that may have to come to their places.
        """
        ends_s = {seq: end_s for end_s, seq in self._ends}
        for seq, cells in self.cluster.cells.items():
            # Who runs in its place needs it; who may be stopped may come back to it.
            if seq not in self._early or seq in back:
                continue
            if seq in self._turn_s and seq in running:
                ends_s[seq] = now_s + self._turn_s[seq] - running[seq].start_s  # it has run for so long already
            if ends_s.get(seq, -inf) >= until_s:
                yield from cells

    def _begin(self, job: Job, now_s: float) -> None:
        lasted_s = self._lasted_s.pop(job.seq, None)
        if lasted_s is None:
            self._turn_s[job.seq] = now_s
        else:
            heappush(self._ends, (now_s + lasted_s, job.seq))
