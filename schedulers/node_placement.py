"""NodePlacement of the jobs of a run on a cluster of nodes, kept up from round to round."""

from collections.abc import Mapping, Sequence

from jobcast.domain.cells import ANYWHERE, Cell
from jobcast.domain.errors import DecisionError
from jobcast.domain.jobs import Job
from jobcast.domain.policy import Grant
from jobcast.schedulers.placement import Seat, place


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
