"""Placement on nodes that packs and stays: the policy answers what runs, this module says where.

Shockwave, section 7: workers are packed tightly over the machines, and a job that goes on keeps those that it has.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations_with_replacement

from jobcast.domain.errors import DecisionError
from jobcast.domain.jobs import Job
from jobcast.domain.policy import ANYWHERE, Cell, Grant


class NodePlacement:
    """Where jobs sit, where they sat last, and how well that went.

    Parameters
    ----------
    nodes : GPUs of each node

    """

    def __init__(self, nodes: Sequence[int]) -> None:
        self._nodes = tuple(nodes)
        self._seats: Mapping[int, Seat] = {}
        self._moves = self._starts = self._spread = 0

    def settle(self, staying: Sequence[Job], coming: Sequence[Job]) -> dict[int, Grant]:
        """Seat the jobs of a round; what those that come and those that move hold. Others give up their seats.

        Raises DecisionError when they need more GPUs than the nodes have.
        """
        stay = {job.seq: job for job in staying}
        placed = place(
            self._nodes,
            {seq: self._seats[seq] for seq in stay},
            {job.seq: job.gpus for job in coming},
            frozenset(job.seq for job in staying if not job.preemptible),
        )
        if placed.unseated:
            asked = sum(job.gpus for job in (*staying, *coming))
            raise DecisionError(f"jobs of {asked} GPUs are to run on nodes of {sum(self._nodes)} GPUs")
        self._seats = placed.seats
        started = [*(job.seq for job in coming), *placed.moved]
        self._moves += len(placed.moved)
        self._starts += len(started)
        self._spread += len(placed.spread)
        gpus = {job.seq: job.gpus for job in (*staying, *coming)}
        return {
            seq: Grant(gpus[seq], tuple(Cell(node, ANYWHERE, held) for node, held in placed.seats[seq]))
            for seq in started
        }

    def figures(self) -> dict[str, float]:
        """Jobs moved while they ran, and the share of starts, moves included, on more nodes than needed, percent."""
        return {"moves": float(self._moves), "spread_pct": 100.0 * self._spread / max(1, self._starts)}


# Where a job sits: (node, GPUs of it), nodes ascending.
Seat = tuple[tuple[int, int], ...]
# Jobs that leave a node for one that comes, at most: all that nodes of four GPUs hold. On larger ones a job is rather
# spread than half a dozen others restarted.
MOST_LEAVING = 4


@dataclass(frozen=True, slots=True)
class Placement:
    """Where all jobs of a round sit.

    Attributes
    ----------
    seats : by job
    moved : jobs that leave the seat they had, in the order in which they were moved
    spread : jobs that start or move onto more nodes than their width needs, widest first
    unseated : jobs that are wider than all that is free, widest first
    """

    seats: Mapping[int, Seat]
    moved: tuple[int, ...] = ()
    spread: tuple[int, ...] = ()
    unseated: tuple[int, ...] = ()


def place(
    nodes: Sequence[int], staying: Mapping[int, Seat], coming: Mapping[int, int], fixed: Set[int] = frozenset()
) -> Placement:
    """Seat the jobs of a round.

    Jobs that come are taken in decreasing width. One that a node can hold gets the node that it fills best; a wider one
    gets whole nodes and the rest of it the node that it fills best. Where that takes more nodes than the width needs,
    the fewest staying jobs are moved that leave such room and find as good a seat elsewhere, `MOST_LEAVING` a node at
    most; where there are none, the job waits until the others are seated and is spread over the fewest nodes then.

    Parameters
    ----------
    nodes : GPUs of each node
    staying : seats of the jobs that go on
    coming : widths of the jobs that start
    fixed : staying jobs that must not be moved

    Notes
    -----
    Deterministic: ties go by width, then by the smaller key of a job, and by the smaller index of a node. Where all
    widths are powers of two, best fit in decreasing order seats all jobs that can be seated without a move (Coffman,
    Garey and Johnson, "Bin packing with divisible item sizes", 1987), so that a job is moved only if one must be. Jobs
    that are moved find room that is there; no second one is moved for them.

    >>> place([4, 4], {0: ((0, 2),)}, {1: 4, 2: 2}).seats
    {0: ((0, 2),), 1: ((1, 4),), 2: ((0, 2),)}
    """
    room = _Room(nodes, staying, fixed)
    late = []
    # The widest first: whole nodes are gone once narrow jobs lie on them.
    for job, width in sorted(coming.items(), key=lambda item: (-item[1], item[0])):
        if not (room.seat(job, width) or room.make_room(job, width)):
            late.append((job, width))
    spread: list[int] = []
    unseated: list[int] = []
    for job, width in late:
        if not room.seat(job, width):
            (spread if room.seat(job, width, anyhow=True) else unseated).append(job)
    return Placement(dict(sorted(room.seats.items())), tuple(room.moved), tuple(spread), tuple(unseated))


def nodes_needed(nodes: Sequence[int], width: int) -> int:
    """Nodes that a job takes on the empty cluster, at least.

    >>> nodes_needed([4, 4, 8], 10)
    2
    """
    return len(_parts(nodes, width))


def _parts(nodes: Sequence[int], width: int) -> list[int]:
    """GPUs by node on the empty cluster: whole nodes, the largest first, then what is left of the job."""
    parts = []
    for size in sorted(nodes, reverse=True):
        if width <= 0:
            break
        parts.append(min(size, width))
        width -= parts[-1]
    return parts


class _Room:
    """Scratch: GPUs that are free while jobs are seated one after another."""

    def __init__(self, nodes: Sequence[int], staying: Mapping[int, Seat], fixed: Set[int]) -> None:
        self.seats = dict(staying)
        self.moved: list[int] = []
        self._nodes = nodes
        self._free = list(nodes)
        self._on: list[set[int]] = [set() for _ in nodes]  # jobs that may be moved, by node
        for job, seat in staying.items():
            for node, gpus in seat:
                self._free[node] -= gpus
                if job not in fixed:
                    self._on[node].add(job)

    def seat(self, job: int, width: int, anyhow: bool = False) -> bool:
        """Seat a job on the fewest nodes that have room; unless `anyhow`, only on as few as its width needs."""
        seat = _fewest(self._free, width)
        if seat is None or (not anyhow and len(seat) > nodes_needed(self._nodes, width)):
            return False
        _shift(self._free, seat, -1)
        self.seats[job] = seat
        return True

    def make_room(self, job: int, width: int) -> bool:
        """Move the fewest others so that a job gets as few nodes as its width needs; nothing changes if none can."""
        if width > sum(self._free):
            return False
        free, seats = list(self._free), dict(self.seats)
        # On copies: either all parts find a node or nothing has changed.
        taken: dict[int, int] = {}
        gone: list[int] = []
        for part in _parts(self._nodes, width):
            # Every part but the last fills its node, so that no node is taken for two of them.
            node = _best(free, range(len(free)), part)
            if node is None:
                found = self._least(free, seats, part, gone)
                if found is None:
                    return False
                node, new = found
                for other, seat in new.items():
                    _shift(free, seats[other], 1)
                    _shift(free, seat, -1)
                    seats[other] = seat
                gone += new
            free[node] -= part
            taken[node] = part
        self._free, self.seats = free, seats | {job: tuple(sorted(taken.items()))}
        self.moved += gone
        self._on = [on - set(gone) for on in self._on]  # who has been moved once stays
        return True

    def _least(
        self, free: list[int], seats: Mapping[int, Seat], part: int, gone: Sequence[int]
    ) -> tuple[int, dict[int, Seat]] | None:
        """Node to clear for a part of a job, and the new seats of those that leave it: the fewest, then the narrowest.

        Jobs that have been moved for it are not touched.
        """
        sizes = [node for node, size in enumerate(self._nodes) if size >= part]
        # The fewest moves win, so that sets of two are looked at only where no single job will do.
        for count in range(1, MOST_LEAVING + 1):
            found: list[tuple[int, int, int, dict[int, Seat]]] = []
            for node in sizes:
                jobs = [other for other in self._on[node] if other not in gone]
                for leaving in _unlike(jobs, seats, count):
                    # A leaving job may lie on several nodes; only what it holds of this one counts.
                    freed = free[node] + sum(gpus for other in leaving for at, gpus in seats[other] if at == node)
                    if freed < part:
                        continue
                    new = self._elsewhere(free, seats, leaving, node)
                    if new is not None:
                        found.append((sum(_width(seats[other]) for other in leaving), freed, node, new))
            if found:
                _, _, node, new = min(found, key=lambda one: one[:3])
                return node, new
        return None

    def _elsewhere(
        self, free: Sequence[int], seats: Mapping[int, Seat], leaving: Sequence[int], cleared: int
    ) -> dict[int, Seat] | None:
        """Seats on as few nodes as their widths need for jobs that leave a node; None if one has none.

        GPUs that they leave on other nodes count as free.
        """
        left = list(free)
        for other in leaving:
            _shift(left, seats[other], 1)
        # No room on the node that is cleared, or they would move back to where they left.
        left[cleared] = 0
        new = {}
        # Decreasing widths pack best, as in `place`.
        for other in sorted(leaving, key=lambda one: (-_width(seats[one]), one)):
            width = _width(seats[other])
            seat = _fewest(left, width)
            if seat is None or len(seat) > nodes_needed(self._nodes, width):
                return None
            _shift(left, seat, -1)
            new[other] = seat
        return new


def _fewest(free: Sequence[int], width: int) -> Seat | None:
    """The fewest nodes that have room for a job, those with the most room first, the last by best fit."""
    parts: dict[int, int] = {}
    order = sorted(range(len(free)), key=lambda node: (-free[node], node))
    for position, node in enumerate(order):
        last = _best(free, order[position:], width)
        if last is not None:
            parts[last] = width
            return tuple(sorted(parts.items()))
        # Nodes by falling room: behind this one there is none either.
        if free[node] <= 0:
            return None
        # No single node holds the rest, so the roomiest one is filled.
        parts[node] = free[node]
        width -= free[node]
    return None


def _best(free: Sequence[int], nodes: Sequence[int], gpus: int) -> int | None:
    """The node with the least room that suffices, the first among equals."""
    fitting = [(free[node], node) for node in nodes if free[node] >= gpus]
    return min(fitting)[1] if fitting else None


def _unlike(jobs: Sequence[int], seats: Mapping[int, Seat], count: int) -> Iterator[list[int]]:
    """Sets of so many jobs, one of those with the same seats."""
    alike: dict[Seat, list[int]] = {}
    for job in sorted(jobs):
        alike.setdefault(seats[job], []).append(job)
    # Jobs with equal seats are alike to who needs room: one set of each kind is enough.
    for kinds in combinations_with_replacement(sorted(alike), count):
        counts = Counter(kinds)
        if all(many <= len(alike[kind]) for kind, many in counts.items()):
            yield [job for kind, many in counts.items() for job in alike[kind][:many]]


def _width(seat: Seat) -> int:
    return sum(gpus for _, gpus in seat)


def _shift(free: list[int], seat: Seat, sign: int) -> None:
    """Give a seat's GPUs back to their nodes, or with a sign of -1 take them."""
    for node, gpus in seat:
        free[node] += sign * gpus
