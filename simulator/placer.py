"""Where gangs lie that name no nodes, in worlds where that matters: the default, with no penalty for spreading."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.cells import ANYWHERE, Cell
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Grant

Starts = Sequence[tuple[Job, Grant]]
Nodes = NDArray[np.int64]
Able = Callable[[Job, float], NDArray[np.bool_]]
"""(n_kinds,) whether a job runs on so many GPUs of nodes of a kind."""


class Placer:
    """Nodes that a job held last come first; then the single node that fits best, the first GPU type's before others';
    then the fewest nodes of one kind, ties by node.

    Parameters
    ----------
    kind_of : (n_nodes,) kind of each node
    reference : (n_kinds,) whether its GPUs are of the cluster's first type
    """

    def __init__(self, kind_of: Nodes, reference: NDArray[np.bool_]) -> None:
        self._kind_of, self._other = kind_of, ~reference[kind_of]

    def complete(self, starts: Starts, free: NDArray[np.float64], able: Able, last: Mapping[int, Nodes]) -> Starts:
        """The starts with their cells. What does not fit is left out, and so is what comes after it in its pool.

        Parameters
        ----------
        starts : in order; those that name cells, or no whole number of GPUs, stay as they are
        free : (n_nodes,) GPUs that nobody holds
        able : where jobs can run
        last : by seq, nodes that jobs held last
        """
        free, full, found = free.copy(), set(), []
        # Named cells first: what is chosen below must not take them.
        for _, grant in starts:
            _take(free, grant)
        for job, grant in starts:
            # Nobody overtakes who waits for room in the same pool.
            if job.pool in full:
                continue
            if not grant.cells and grant.gpus >= 1 and grant.gpus % 1 == 0:
                room = np.where(able(job, grant.gpus)[self._kind_of], free, 0.0)
                held = np.zeros_like(room)
                before = last.get(job.seq, ())
                # Its old nodes alone; all nodes are tried where these do not hold it.
                held[before] = room[before]
                grant = grant._replace(cells=self._cells(held, grant.gpus) or self._cells(room, grant.gpus))
                if not grant.cells:
                    full.add(job.pool)
                    continue
                _take(free, grant)
            found.append((job, grant))
        return found

    def _cells(self, room: NDArray[np.float64], gpus: float) -> tuple[Cell, ...]:
        """Cells where there is room, none where there is not enough."""
        single = np.flatnonzero(room >= gpus)
        if len(single):
            # The last key decides first: nodes of the reference type, then the tightest.
            best = np.lexsort((room[single], self._other[single]))[0]
            return (Cell(int(single[best]), ANYWHERE, int(gpus)),)
        spreads = [self._spread(np.where(self._kind_of == kind, room, 0.0), gpus) for kind in set(self._kind_of)]
        enough = [nodes for nodes in spreads if room[nodes].sum() >= gpus]
        if not enough:
            return ()
        # Lists compare node by node: ties go the same way on every machine.
        nodes = min(enough, key=lambda nodes: (len(nodes), nodes.tolist()))
        rest = gpus - np.cumsum(room[nodes]) + room[nodes]
        held = np.minimum(room[nodes], rest).astype(np.int64)
        return tuple(Cell(node, ANYWHERE, part) for node, part in zip(nodes.tolist(), held.tolist(), strict=True))

    def _spread(self, room: NDArray[np.float64], gpus: float) -> Nodes:
        """As few nodes as have so many GPUs together, or all that have any."""
        # The emptiest first: fewer nodes than any other choice.
        nodes = np.argsort(-room, kind="stable")[: int((room > 0.0).sum())]
        return nodes[: int(np.searchsorted(np.cumsum(room[nodes]), gpus)) + 1]


def _take(free: NDArray[np.float64], grant: Grant) -> None:
    for cell in grant.cells:
        if 0 <= cell.server < len(free):
            free[cell.server] -= cell.gpus
