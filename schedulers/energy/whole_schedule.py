"""Policies that answer whole schedules, one node a job, as the engine asks: what they see, and what changes by it."""

from collections.abc import Callable

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.cells import ANYWHERE, Cell
from jobcast.domain.energy import POSTPONED, Deployment, EnergyCluster, EnergyJobs, EnergyView, EpochsDone, EpochTimes
from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.domain.policy import Decision, Grant, Trigger, View
from jobcast.schedulers.energy.profiler import Profiler

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
