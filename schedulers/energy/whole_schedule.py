"""Policies that answer whole schedules, one node a job, as the engine asks: what they see, and what changes by it.

With the Job Profiler: new applications are measured on nodes that are withheld for it. ANDREAS, section III.
"""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import HOUR_S
from jobcast.domain.energy import (
    POSTPONED,
    WATT_SECONDS,
    Deployment,
    EnergyCluster,
    EnergyJobs,
    EnergyView,
    EpochsDone,
    EpochTimes,
)
from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.domain.policy import ANYWHERE, Cell, Decision, Grant, Trigger, View


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
        return np.where(open_.any(axis=2), open_.argmax(axis=2) + 1, 0)

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


Schedule = Callable[[EnergyView], Deployment]
LEAST_PERIOD_S = 1e-3


class WholeSchedule:
    """Asked on a grid of instants, and when jobs arrive or end.

    Parameters
    ----------
    schedule : says where all active jobs are from now on
    name : what results call it
    period_s : H, seconds between two calls at the latest. ANDREAS, appendix B: 5 minutes.
    on_events : whether it is also called at submissions and completions; else on the grid alone
    restart_s : what a start after the first costs, as the schedule counts on; the law charges its own
    profile_s : seconds in which a new application is measured on each number of GPUs; 0: all are known
    """

    def __init__(
        self,
        schedule: Schedule,
        name: str,
        period_s: float,
        on_events: bool,
        restart_s: float,
        profile_s: float = 0.0,
    ) -> None:
        if not LEAST_PERIOD_S <= period_s < np.inf:
            raise ConfigError(f"period_s is {period_s:g}; it must be at least {LEAST_PERIOD_S:g} s")
        self.schedule, self.name, self.restart_s = schedule, name, restart_s
        self.trigger = Trigger(on_events=on_events, period_s=period_s)
        self.calls = 0
        self.profiler = Profiler(profile_s) if profile_s else None
        self._known: EpochTimes | None = None

    def decide(self, view: View) -> Decision:
        """Jobs that are put where they are go on; all others change."""
        seen, seqs = self.seen(view), list(view.active)
        if self.profiler is None:
            return Decision(self._changes(view, seen, seqs))
        turn = self.profiler.turn(view, seen)
        left = [seqs[row] for row in turn.seen.active.tolist()]
        # Nobody is asked where all have to be measured first, or no node is left.
        scheduled = self._changes(view, turn.seen, left, turn.nodes) if left else {}
        return Decision({**turn.change, **scheduled}, turn.wake_s)

    def figures(self) -> dict[str, float]:
        """What measuring took."""
        return {} if self.profiler is None else self.profiler.figures()

    def _changes(
        self, view: View, seen: EnergyView, seqs: list[int], nodes: Ints | None = None
    ) -> dict[int, Grant | None]:
        """What the schedule changes, by seq; `seqs` of those active, `nodes`: numbers of those that are seen."""
        self.calls += 1
        # Plug-ins answer lists, or floats by mistake; a wrong node must not be truncated to a right one.
        node_of, gpus_of = (np.asarray(column) for column in self.schedule(seen))
        if any(one.shape != seen.active.shape or one.dtype.kind not in "iu" for one in (node_of, gpus_of)):
            raise DecisionError(
                f"policy {self.name} at {view.now_s:.6f} s: gives nodes {node_of.dtype}{node_of.shape} and GPUs "
                f"{gpus_of.dtype}{gpus_of.shape} for {len(seen.active)} active jobs; give whole numbers, one a job"
            )
        moved = np.flatnonzero((node_of != seen.node_of[seen.active]) | (gpus_of != seen.gpus_of[seen.active]))
        change: dict[int, Grant | None] = {}
        for row, node, gpus in zip(moved.tolist(), node_of[moved].tolist(), gpus_of[moved].tolist(), strict=True):
            there = node if nodes is None or not 0 <= node < len(nodes) else int(nodes[node])
            change[seqs[row]] = None if node == POSTPONED else Grant(gpus, (Cell(there, ANYWHERE, gpus),))
        return change

    def seen(self, view: View) -> EnergyView:
        """The active jobs, numbered in order of submission, as the schedule goes by them."""
        known, cluster, result = view.facts(EpochTimes), view.facts(EnergyCluster), view.facts(EpochsDone)
        jobs, seqs, held = list(view.active.values()), np.array(list(view.active)), list(view.running.values())
        rows = np.searchsorted(seqs, [run.job.seq for run in held])
        node_of, gpus_of = np.full(len(jobs), POSTPONED), np.zeros(len(jobs), dtype=np.int64)
        node_of[rows] = [run.grant.cells[0].server for run in held]
        gpus_of[rows] = [run.grant.gpus for run in held]
        epochs = known.epochs[seqs]
        submit_s, due_s, weight = np.array([(job.submit_s, job.due_s, job.weight) for job in jobs]).reshape(-1, 3).T
        columns = EnergyJobs(submit_s, due_s, weight, epochs, self._on_one_node(known, cluster)[seqs])
        return EnergyView(
            now_s=view.now_s,
            jobs=columns,
            cluster=cluster,
            active=np.arange(len(jobs)),
            node_of=node_of,
            gpus_of=gpus_of,
            left=epochs - result.done[seqs],
            left_saved=epochs - result.saved[seqs],
            started=result.starts[seqs] > 0,
            restart_s=self.restart_s,
            period_s=self.trigger.period_s,
            call=self.calls,
        )

    def _on_one_node(self, known: EpochTimes, cluster: EnergyCluster) -> Floats:
        """Seconds an epoch, infinite with more GPUs than a node of the kind has; worked out when times become known."""
        # Times become known in steps, and the table has a cell for each job and number of GPUs.
        if known is not self._known:
            most = cluster.power_w.shape[1] - 1
            fits = np.arange(1, most + 1) <= cluster.kind_gpus[:, None]
            self._known, self._epoch_s = known, np.where(fits, known.epoch_s[:, :, :most], np.inf)
        return self._epoch_s
