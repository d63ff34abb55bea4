"""Cells by turns where some spare jobs may be stopped: dedicated jobs and reservations look through those.

A preemptible spare job may lie in any idle cells. While jobs whose turn has come are placed, all such jobs step aside,
and then go on where their cells are idle still; the others are stopped. One that is stopped after its own turn came is
due at once. A spare job is never made dedicated where it runs; its place in its pool's quota is kept for it instead.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from math import floor, inf

from jobcast.domain.jobs import Job
from jobcast.domain.policy import Cell, Decision, PoolView, View
from jobcast.schedulers.cells.placer import Held
from jobcast.schedulers.cells.turns import TurnAllocation, TurnPlacer
from jobcast.schedulers.recall import Expected, Recalls, recallable_of
from jobcast.schedulers.tentative_allocation import Loads, TentativeAllocation


class RecallPlacer(TurnPlacer):
    """Gives jobs their places by turns, and has cells back from spare jobs that may be stopped; see `TurnPlacer`."""

    def draft(self, view: View) -> TentativeAllocation:
        """See `tentative_allocation.Placer`."""
        self._follow(view)
        return RecallTurnAllocation(view, self)

    def stop(self, held: Held, now_s: float) -> None:
        """A job that stepped aside does not go on; it is due if its turn has come already."""
        job = held.job
        del self.held[job.seq]
        self.floor.gone(held.cells)
        own = self.schedules[job.pool].stopped(job, held.start_s, now_s)
        if own is not None:
            self.due[job.seq] = (job, own)


class RecallTurnAllocation(TurnAllocation, Recalls):
    """A draft by turns in which preemptible spare jobs make room."""

    __slots__ = ("_aside", "_recallable")
    _placer: RecallPlacer

    def __init__(self, view: View, placer: RecallPlacer) -> None:
        super().__init__(view, placer)
        self._recallable = {run.job.seq: placer.held[run.job.seq] for run in recallable_of(view)}
        self._step_aside()

    def due(self) -> Iterable[tuple[PoolView, Job]]:
        """Jobs whose turn has come; when there is none more, spare jobs go on where they can."""
        if not self._aside:
            self._step_aside()
        rows = super().due()
        # Stopped jobs may be due at once, which makes new rows.
        while not rows and self._stop_displaced():
            rows = super().due()
        if not rows:
            self._go_on()
        return rows

    def rooms(self, horizon_s: float, expected: Expected, lost: float) -> tuple[float, float]:
        """See `Recalls`; in cells what is reserved are those that may have to be bound."""

        def load(name: str, horizon_s: float) -> float:
            pool = self._view.pools[name]
            future, share = expected(pool)
            room = self.unused_quota(pool) - self._startable(pool)
            return future + share * max(0.0, room - future)

        loads = Loads(horizon_s, load)
        rigid = self.usable(loads)
        kept = sum(gpus for pool in self._view.pools.values() for gpus in self._needs(pool, loads)) if lost else 0
        return rigid, min(self.room, self.free - floor(kept * lost))

    def lend(self, job: Job, windows: Iterable[Loads] = ()) -> bool:
        """Start a job as `TurnAllocation` does, or in any idle cells, if it may be stopped: better in unbound ones."""
        if not job.preemptible:
            return super().lend(job, windows)
        placer, sizes = self._placer, self._sizes(job)
        cells = placer.floor.to_lend(sizes) or placer.floor.to_lend(sizes, bound=True)
        self._lend(job, cells)
        placer.schedules[job.pool].started_early(job)
        placer.due.pop(job.seq, None)
        self._recallable[job.seq] = placer.held[job.seq]
        return True

    def decision(self, wake_s: float = inf) -> Decision:
        """Stops, then the starts in the order in which they were made."""
        made = super().decision(wake_s)
        # Stops come first, or starts would find their GPUs held.
        stops = {seq: None for seq, grant in made.change.items() if grant is None}
        return made._replace(change={**stops, **made.change}) if stops else made

    def _step_aside(self) -> None:
        self._aside = True
        for held in self._recallable.values():
            self._placer.floor.step_aside(held.cells)
            self.free += held.job.gpus

    def _go_on(self) -> None:
        self._aside = False
        for held in self._recallable.values():
            self._placer.floor.go_on(held.cells)
            self.free -= held.job.gpus

    def _stop_displaced(self) -> bool:
        """Stop jobs in whose cells others have started; whether there were any."""
        placer, idle = self._placer, self._placer.floor.idle
        displaced = [held for held in self._recallable.values() if not all(map(idle.is_free, held.cells))]
        # Only who becomes due by this is new: the others were asked before.
        waited = set(placer.due)
        for held in displaced:
            job = held.job
            del self._recallable[job.seq]
            placer.stop(held, self._view.now_s)
            self._changes[job.seq] = None
            self._allocated[job.pool] = self._allocated.get(job.pool, 0.0) - job.gpus
            self._pending[job.pool] = self._pending.get(job.pool, 0.0) + job.gpus
        placer.take_turns(self._view)
        self._left = {seq: row for seq, row in placer.due.items() if seq not in waited}
        return bool(displaced)

    def _reserve(self, sizes: Sequence[int]) -> list[Cell] | None:
        """Spare jobs that may be stopped are in nobody's way."""
        floor_ = self._placer.floor
        cells = [held.cells for held in self._recallable.values()]
        for mine in cells:
            floor_.step_aside(mine)
        kept = floor_.reserve(sizes)
        # Taken back before the spare jobs return, since it may lie on their cells.
        floor_.covered.uncover(kept or ())
        for mine in cells:
            floor_.go_on(mine)
        floor_.covered.cover(kept or ())
        return kept

    def _startable(self, pool: PoolView) -> float:
        mine = (held.job.gpus for held in self._recallable.values() if held.job.pool == pool.name)
        return self.pending_gpus(pool) + sum(mine)

    def _places(self, pool: str) -> Iterator[tuple[Cell, ...]]:
        cells = self._placer.own[pool].cells
        return chain(super()._places(pool), (cells[seq] for seq in self._recallable if seq in cells))

    def _back(self) -> Collection[int]:
        return self._recallable.keys()
