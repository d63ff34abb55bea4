"""Cells by turns: a job's place is that of its turn in its pool's private cluster, and cells no turn needs are lent.

SIA, section 5.5, Figures 7 and 8: quotas in cells, reservations as cells given to nobody. With exact coarse forecasts,
and widths that are powers of two or whole servers, no job starts later than without sharing.

What turns within a window may need of a quota, and what they cannot need, rests on one count. Let turns of L GPUs
come in a window, in cells of powers of two, each in the smallest free block that holds it and there at the lowest
place, while others end as they like. A block of `s` GPUs that was not entered before is entered only when those
entered before have no room. So the turns enter at most ceil(L / s) blocks of `s` GPUs, and of a block of more than
`s` >= L GPUs (`s` a power of two) the first `s` GPUs alone.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from math import ceil, inf

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Cell, Decision, PoolView, View
from jobcast.schedulers.cells.buddy import Buddies, buddy_of, sizes_of
from jobcast.schedulers.cells.placer import CellAllocation, CellPlacer, Held, inside
from jobcast.schedulers.cells.private import PrivateCluster, PrivateSchedule
from jobcast.schedulers.cells.quotas import Cells
from jobcast.schedulers.tentative_allocation import Loads, TentativeAllocation

# GPUs of a cell, how many such there are, and how many of them turns have entered.
Sizes = list[tuple[int, int, int]]


def may_be_bound(tree: Buddies, unbound: Sequence[int], due: Set[int]) -> tuple[list[int], Sizes]:
    """Cells of a quota that are not bound: GPUs of those that have to be, and by size those that may have to be.

    Parameters
    ----------
    tree : the quota's cells, and what is taken of them in the private schedule
    unbound : positions of the cells that are not bound
    due : positions of cells in which jobs have their turn already; all of these are needed
    """
    roots = tree.roots
    others = [own for own in unbound if own not in due]
    sizes = []
    for gpus in sorted({roots[own] for own in others}):
        mine = [own for own in others if roots[own] == gpus]
        sizes.append((gpus, len(mine), sum(not tree.is_whole(own) for own in mine)))
    return [roots[own] for own in unbound if own in due], sizes


def reserved(needed: Sequence[int], sizes: Sizes, turns_gpus: float, starts_gpus: float) -> list[int]:
    """GPUs of the cells that are reserved for a window, of what `may_be_bound` tells.

    Parameters
    ----------
    turns_gpus : GPUs of the jobs whose turn may come: those in the private queue, and those forecast
    starts_gpus : GPUs of the jobs that may truly start: those pending, and those forecast
    """
    made = list(needed)
    for gpus, count, entered in sizes:
        made += [gpus] * int(min(count, entered + np.ceil(turns_gpus / gpus), np.ceil(starts_gpus)))
    return made


def reserved_gpus(needed: Sequence[int], sizes: Sizes, turns_gpus: Floats, starts_gpus: Floats) -> Floats:
    """GPUs of all `reserved` cells, for any number of forecasts at once."""
    total = np.full(turns_gpus.shape, float(sum(needed)))
    for gpus, count, entered in sizes:
        touched = np.minimum(entered + np.ceil(turns_gpus / gpus), np.ceil(starts_gpus))
        total += gpus * np.minimum(float(count), touched)
    return total


def out_of_reach(tree: Buddies, turns_gpus: float) -> Iterator[Cell]:
    """Parts of the free blocks of a private cluster that turns of so many GPUs do not come to."""
    if turns_gpus == inf:
        return
    # The next power of two: turns fill the lowest places first.
    reach = 1 << (ceil(turns_gpus) - 1).bit_length() if turns_gpus > 0 else 0
    for block in tree.blocks(max(1, reach)):
        if not reach:
            yield block
        size = reach
        while reach and size < block.gpus:
            yield Cell(block.server, block.first + size, size)
            size *= 2


# GPUs, an idle cell of a server, and the cell of a quota (whose, which) that it is a part of.
Part = tuple[int, Cell, tuple[str, int]]


class TurnPlacer(CellPlacer):
    """Gives jobs their places by turns, and lends what no turn will need in time.

    A job starts on dedicated cells when its turn comes in the schedule that its pool would have without sharing, which
    is kept along (`PrivateSchedule`), or before that on spare cells, if it ends within a window for which all cells
    are reserved that pools may need. A pool of which a job is slowed catches up: its jobs that started early are left
    out of its schedule from then on.

    Parameters
    ----------
    given : quotas as cells; pools that are not told are split as `quotas.default_cells` does
    follow : whether a pool whose jobs started early keeps to its private schedule; if not, dedicated jobs alone count
        against its quota, as in section 5.3: more jobs start early, and some are slowed although forecasts are exact
    apart : what spare jobs keep away from, beside cells that may be needed: `buddy` of each dedicated job the buddy of
        its cell, the whole `cell` of the quota that a dedicated job runs in, or `none`

    Attributes
    ----------
    schedules : by pool
    due : by `seq`, pending jobs whose turn has come, and their places
    """

    def __init__(self, given: Cells, follow: bool, apart: str = "buddy") -> None:
        super().__init__(given)
        self.apart, self._follow_turns = apart, follow
        self.schedules: dict[str, PrivateSchedule] = {}
        self.due: dict[int, tuple[Job, tuple[Cell, ...]]] = {}
        self._submitted: list[Job] = []

    def submitted(self, job: Job) -> None:
        """The job joins its pool's private queue."""
        self._submitted.append(job)

    def draft(self, view: View) -> TentativeAllocation:
        """See `tentative_allocation.Placer`."""
        self._follow(view)
        return TurnAllocation(view, self)

    def _follow(self, view: View) -> None:
        super()._follow(view)
        for job in self._submitted:
            self.schedules[job.pool].submit(job)
        self._submitted.clear()
        # As in section 5.3: nobody who started early counts against the quota.
        if not self._follow_turns:
            self.forget_early(self.schedules)

    def take_turns(self, view: View) -> None:
        """Jobs whose turn has come and who are pending are due."""
        for schedule in self.schedules.values():
            for job, own in schedule.turns(view.now_s):
                if job.seq in view.active and job.seq not in self.held:
                    self.due[job.seq] = (job, own)

    def forget_early(self, pools: Iterable[str]) -> bool:
        """Leave early jobs out of the schedules of some pools; whether there were any."""
        forgot = [self.schedules[pool].forget_early() for pool in pools]
        return any(forgot)

    def _settle(self, pool: str, cells: tuple[int, ...]) -> PrivateCluster:
        schedule = self.schedules[pool] = PrivateSchedule(cells, self.server_gpus)
        return schedule.cluster

    def _end(self, held: Held, view: View) -> None:
        lasted_s = view.service(held.job).held_s  # now is later than its end if nobody was left to decide on then
        self.schedules[held.job.pool].ended(held.job, held.start_s, view.now_s, lasted_s)


class TurnAllocation(CellAllocation):
    """A draft in which quotas are taken by turns, and cells are lent that are reserved for none."""

    __slots__ = ("_left", "_parts", "_reserved")
    _placer: TurnPlacer

    def __init__(self, view: View, placer: TurnPlacer) -> None:
        super().__init__(view, placer)
        placer.take_turns(view)
        self._left = dict(placer.due)
        self._reserved: list[Cell] = []
        self._parts: list[Part] = []

    def due(self) -> Iterable[tuple[PoolView, Job]]:
        """Jobs whose turn has come, the first of each pool, each once; more where a pool that is behind catches up."""
        # Leaving early jobs out may bring turns forward; as long as that does, go on.
        idle = self.free > 0
        while not (idle and self._left) and self._catch_up():
            pass
        firsts: dict[str, Job] = {}
        for seq in sorted(self._left) if idle else ():
            firsts.setdefault(self._left[seq][0].pool, self._left[seq][0])
        return [(self._view.pools[pool], job) for pool, job in firsts.items()]

    def _catch_up(self) -> bool:
        placer = self._placer
        behind = placer.forget_early(sorted({job.pool for job, _ in placer.due.values()}))
        if behind:
            placer.take_turns(self._view)
            self._left = dict(placer.due)
        return behind

    def dedicate(self, job: Job) -> bool:
        """Start a job that is due in its place, or where spare ones leave it room; whether there was any."""
        _, own = self._left.pop(job.seq)
        there = job.gpus <= self.free and (self._bind(job, own) or self._squeeze_in(job))
        if there:
            # Else it stays due, and is tried again at the next decision.
            del self._placer.due[job.seq]
        return there

    def _squeeze_in(self, job: Job) -> bool:
        """Start a job that spare ones keep from its place: elsewhere in its quota, beside them, or anywhere idle."""
        schedule = self._placer.schedules[job.pool]
        # Another place in the quota first: it changes nobody else's turn.
        for own in schedule.cluster.places(job):
            if self._bind(job, own, crowded=True):
                schedule.move(job, own)
                return True
        return self._bind(job, schedule.cluster.cells[job.seq], crowded=True) or self.start(job)

    def pledged(self, slack: float = 0.0) -> float:
        """Nothing before the cells are looked for."""
        return 0.0

    def usable(self, loads: Loads, most: float = inf) -> float:
        """Width of the widest job that may be lent cells for a window, 0 where a reservation cannot be met."""
        floor = self._placer.floor
        kept = self._reserve([gpus for pool in self._view.pools.values() for gpus in self._needs(pool, loads)])
        # Not even without a loan is there room for all that may be needed.
        if kept is None:
            return 0.0
        self._reserved, self._parts = kept, self._idle_parts(loads)
        room = floor.covered.free.widest(self._placer.server_gpus)
        # The reservation is put up only while it is looked for room beside it.
        floor.covered.uncover(kept)
        return min(self.free, max([room, *(part[0] for part in self._parts)]))

    def _reserve(self, sizes: Sequence[int]) -> list[Cell] | None:
        return self._placer.floor.reserve(sizes)

    def lend(self, job: Job, windows: Iterable[Loads] = ()) -> bool:
        """Start a job of at most the width that is usable: in the smallest part that holds it, else on free blocks."""
        floor, sizes = self._placer.floor, self._sizes(job)
        if windows and not any(self.usable(loads) >= job.gpus for loads in windows):
            return False
        # Parts first: they are of use to nobody else in this window.
        part = next((part for part in self._parts if part[0] >= sum(sizes)), None)
        if part is None:
            floor.covered.cover(self._reserved)
            cells, within = floor.to_lend(sizes), None
            floor.covered.uncover(self._reserved)
        else:
            _, cell, within = part
            cells = (Cell(cell.server, cell.first, sizes[0]),)
        self._lend(job, cells, within=within)
        self._placer.schedules[job.pool].started_early(job)
        self._placer.due.pop(job.seq, None)
        return True

    def decision(self, wake_s: float = inf) -> Decision:
        """The starts; asked again at the next turn that no event brings, if not before."""
        return super().decision(min([wake_s, *(schedule.next_s for schedule in self._placer.schedules.values())]))

    def _needs(self, pool: PoolView, loads: Loads) -> list[int]:
        """ReserveResourcesForFuture, Figure 8: GPUs of the cells of a quota that may have to be bound."""
        needed, sizes, queued_gpus = self._unbound(pool)
        if not needed and not sizes:
            return []
        future_gpus = loads[pool.name]
        return reserved(needed, sizes, queued_gpus + future_gpus, self._startable(pool) + future_gpus)

    def _startable(self, pool: PoolView) -> float:
        """GPUs of a pool's jobs that may truly start in its quota."""
        return self.pending_gpus(pool)

    def _places(self, pool: str) -> Iterator[tuple[Cell, ...]]:
        """Places of a pool's jobs whose turn has come and who may start there."""
        return (own for job, own in self._placer.due.values() if job.pool == pool)

    def _unbound(self, pool: PoolView) -> tuple[list[int], Sizes, int]:
        """`may_be_bound`, and GPUs of the jobs whose turn is to come."""
        placer, tree = self._placer, self._placer.own[pool.name].tree
        unbound = [own for own in range(len(tree.roots)) if placer.floor.base(pool.name, own) is None]
        due = {cell.server for own in self._places(pool.name) for cell in own}
        return *may_be_bound(tree, unbound, due), placer.schedules[pool.name].queued_gpus

    def claims(self, pool: PoolView, loads: Floats) -> tuple[float, float, Floats]:
        """See `TentativeAllocation.claims`: in GPUs of cells that may have to be bound."""
        needed, sizes, queued_gpus = self._unbound(pool)
        pending = self.pending_gpus(pool)
        most = float(sum(needed) + sum(gpus * count for gpus, count, _ in sizes))
        now = reserved_gpus(needed, sizes, np.array(float(queued_gpus)), np.array(pending)).item()
        return now, most, reserved_gpus(needed, sizes, queued_gpus + loads, pending + loads) - now

    def left(self) -> tuple[int, Sequence[int]]:
        """See `TentativeAllocation.left`: in whole blocks, as large as the largest cell that may have to be bound."""
        floor, server_gpus = self._placer.floor, self._placer.server_gpus
        unbound = (self._unbound(pool) for pool in self._view.pools.values())
        # All are bound: then no GPU is left either, and any block will do.
        cells = (gpus for needed, sizes, _ in unbound for gpus in (*needed, *(row[0] for row in sizes)))
        block = max(cells, default=server_gpus)
        free = [cell.gpus for cell in floor.covered.free.blocks(1)]
        pieces = max((gpus for gpus in free if gpus < block), default=0)
        costs = [0] * (pieces + 1)
        for width in range(pieces + 1, floor.covered.free.widest(server_gpus) + 1):
            costs.append(-(-sum(sizes_of(width, server_gpus)) // block) * block)
        return sum(gpus for gpus in free if gpus >= block), costs

    def _idle_parts(self, loads: Loads) -> list[Part]:
        """Idle parts of bound cells that no turn comes to in the window, smaller ones first."""
        found: list[Part] = []
        for pool in self._view.pools.values() if self._placer.apart != "cell" else ():
            avoid = self._avoided(pool.name)
            for place in self._out_of_reach(pool, loads):
                base = self._placer.floor.base(pool.name, place.server)
                # Unbound cells are no place on any server yet.
                if base is not None and not any(_covers(buddy, place) for buddy in avoid):
                    idle = _idle(self._placer.floor.idle, inside(base, place))
                    found += ((cell.gpus, cell, (pool.name, place.server)) for cell in idle)
        return sorted(found)

    def _avoided(self, pool: str) -> list[Cell]:
        """Buddies of dedicated jobs in their pool's quota."""
        if self._placer.apart == "none":
            return []
        cluster, held = self._placer.own[pool], self._placer.held
        cells = (cell for seq, own in cluster.cells.items() if seq in held and held[seq].own for cell in own)
        # That of a whole cell of the quota would lie beyond it, where there is no place.
        return [buddy_of(cell) for cell in cells]

    def _out_of_reach(self, pool: PoolView, loads: Loads) -> Iterator[Cell]:
        schedule, future_gpus = self._placer.schedules[pool.name], loads[pool.name]
        starts = self._startable(pool) + future_gpus > 0
        yield from out_of_reach(schedule.cluster.tree, schedule.queued_gpus + future_gpus if starts else 0.0)
        now_s, view = self._view.now_s, self._view
        yield from schedule.idle_until(now_s + loads.horizon_s, now_s, view.running, self._back())

    def _back(self) -> Collection[int]:
        """By `seq`, spare jobs that may have to come to their places after all."""
        return ()


def _covers(cell: Cell, place: Cell) -> bool:
    return cell.server == place.server and cell.first <= place.first < cell.first + cell.gpus


def _idle(tree: Buddies, cell: Cell) -> Iterator[Cell]:
    """The idle parts of a cell, as large as they are."""
    if tree.is_free(cell):
        yield cell
    elif cell.gpus > 1:
        half = cell.gpus // 2
        yield from _idle(tree, Cell(cell.server, cell.first, half))
        yield from _idle(tree, Cell(cell.server, cell.first + half, half))
