"""The Job Profiler: new applications are measured on nodes that are withheld for it. ANDREAS, section III."""

from math import inf
from typing import NamedTuple

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Ints
from jobcast.domain.cells import ANYWHERE, Cell
from jobcast.domain.energy import HOUR_S, POSTPONED, WATT_SECONDS, EnergyView, EpochTimes
from jobcast.domain.policy import Grant, View


class Measurement(NamedTuple):
    """A job that runs to be measured, its application, on how many GPUs, and since when."""

    seq: int
    application: int
    gpus: int
    from_s: float


class Turn(NamedTuple):
    """What is left to the schedule while some are measured.

    Attributes
    ----------
    seen : without the nodes that are withheld; active are the jobs of measured applications that are not on these
    nodes : (n_left,) numbers of the nodes that `seen` has
    change : of jobs that are measured, by seq, or that no longer are
    wake_s : when the next measurement is over
    """

    seen: EnergyView
    nodes: Ints
    change: dict[int, Grant | None]
    wake_s: float


class Profiler:
    """Runs the first job of an application for a while on each number of GPUs of each kind, then lets its jobs start.

    Of each kind that has something to be measured the last node is withheld from the schedule: what runs there goes on,
    nothing else starts there. It measures one job at a time, on 1, 2, ... of its GPUs, in order of submission. Jobs of
    an application are scheduled once it is measured wherever they may run; then times are those that the source of
    forecasts tells. A job that is measured runs in earnest: it holds GPUs, its node draws power, and what it did since
    its last snapshot is lost when it is stopped or moved, as ever; one that is left where it is goes on.

    Parameters
    ----------
    profile_s : seconds of a measurement
    """

    def __init__(self, profile_s: float) -> None:
        self.profile_s = profile_s
        self._most: dict[tuple[int, int], int] = {}  # GPUs measured up to, by application and kind
        self._on: dict[int, Measurement] = {}  # by kind
        self._count, self._gpu_s, self._joules = 0, 0.0, 0.0

    def turn(self, view: View, seen: EnergyView) -> Turn:
        """End what has been measured for long enough, begin what there is room for, and show the rest.

        `seen` : all active jobs, on all nodes
        """
        known, seqs, kind_of = view.facts(EpochTimes), list(view.active), seen.cluster.kind_of
        applications = seqs if known.applications is None else known.applications[seqs].tolist()
        node_of, gpus_of = seen.node_of.copy(), seen.gpus_of.copy()
        change: dict[int, Grant | None] = {}
        for seq in self._ended(view, seen):
            row = seqs.index(seq)
            node_of[row], gpus_of[row], change[seq] = POSTPONED, 0, None
        nodes = {kind: int(np.flatnonzero(kind_of == kind)[-1]) for kind in np.unique(kind_of).tolist()}
        left = self._left(seen, applications, nodes)
        for kind, node in nodes.items():
            measured = {one.seq for one in self._on.values()}
            first = next((row for row in np.flatnonzero(left[:, kind]).tolist() if seqs[row] not in measured), None)
            free = seen.cluster.kind_gpus[kind] - gpus_of[node_of == node].sum()
            # Who came first goes first, also where a later one would find room.
            if kind not in self._on and first is not None and left[first, kind] <= free:
                gpus = int(left[first, kind])
                self._on[kind] = Measurement(seqs[first], applications[first], gpus, view.now_s)
                change[seqs[first]] = Grant(gpus, (Cell(node, ANYWHERE, gpus),))
        wake_s = min((one.from_s + self.profile_s for one in self._on.values()), default=inf)
        seen = seen._replace(node_of=node_of, gpus_of=gpus_of)
        withheld = [node for kind, node in nodes.items() if left[:, kind].any()]
        return Turn(*_without(seen, withheld, np.flatnonzero(left.any(axis=1))), change, wake_s)

    def _ended(self, view: View, seen: EnergyView) -> list[int]:
        """Count what has been measured, and tell the jobs that are still there."""
        over = {
            kind: one
            for kind, one in self._on.items()
            if one.seq not in view.active or view.now_s >= one.from_s + self.profile_s - tolerance.INSTANT_S
        }
        for kind, one in over.items():
            del self._on[kind]
            self._most[one.application, kind] = one.gpus
            took_s = min(view.now_s - one.from_s, self.profile_s)
            self._count += 1
            self._gpu_s += one.gpus * took_s
            self._joules += float(seen.cluster.power_w[kind, one.gpus]) * took_s
        return [one.seq for one in over.values() if one.seq in view.active]

    def _left(self, seen: EnergyView, applications: list[int], nodes: dict[int, int]) -> Ints:
        """(n_active, n_kinds) the fewest GPUs on which a job's application is not measured yet; 0: it is on all."""
        count, kinds, most = seen.jobs.epoch_s.shape
        done = np.full((count, kinds), most)
        for kind in nodes:
            done[:, kind] = [self._most.get((application, kind), 0) for application in applications]
        open_ = np.isfinite(seen.jobs.epoch_s) & (np.arange(1, most + 1) > done[:, :, None])
        left: Ints = np.where(open_.any(axis=2), open_.argmax(axis=2) + 1, 0)
        return left

    def figures(self) -> dict[str, float]:
        """Measurements, GPU-hours that they took, and kWh that nodes would have drawn for them alone, without PUE."""
        kwh = self._joules / WATT_SECONDS
        return {"profiles": float(self._count), "profiling_gpu_h": self._gpu_s / HOUR_S, "profiling_kwh": kwh}


def _without(seen: EnergyView, withheld: list[int], waiting: Ints) -> tuple[EnergyView, Ints]:
    """The view without some nodes, and the nodes left; of jobs that run on these or could, but for those `waiting`."""
    cluster, node_of = seen.cluster, seen.node_of
    nodes = np.delete(np.arange(len(cluster.kind_of)), withheld)
    place = np.full(len(cluster.kind_of), POSTPONED)
    place[nodes] = np.arange(len(nodes))
    here = np.where(node_of == POSTPONED, POSTPONED, place[node_of])
    able = np.isfinite(seen.jobs.epoch_s[:, cluster.kind_of[nodes]]).any(axis=(1, 2))
    shown = np.flatnonzero(able & ((node_of == POSTPONED) | (here != POSTPONED)))
    left = cluster._replace(kind_of=cluster.kind_of[nodes])
    return seen._replace(cluster=left, active=np.setdiff1d(shown, waiting), node_of=here), nodes
