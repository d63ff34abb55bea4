"""How far jobs are and where: progress by the true times of epochs, snapshots, stops and starts."""

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.energy import POSTPONED, Floats, Ints
from jobcast.simulator.energy.meter import Meter
from jobcast.simulator.energy.workload import EnergyWorkload
from jobcast.simulator.log import Spans
from jobcast.simulator.spans import joined

DUST_S = 1e-6
"""Events closer to one another than this are one: adding floats up differently, near 1e9 s, makes up to 2e-7 s."""
EPOCH_DUST = 1e-9
"""Epochs left with which a job is done, and by which the end of an epoch may be missed."""


class EnergyState:
    """Jobs in the midst of a run; arrays have shape (n_jobs,).

    Attributes
    ----------
    node_of, gpus_of, left, left_saved, started : see `EnergyView`
    start_s, end_s : first start and completion, NaN before
    done_s : when a running job will be done where it runs, infinite for others
    preemptions, migrations, lost_epochs : see `RunLog` and its columns
    meter : accounts of energy
    """

    def __init__(self, workload: EnergyWorkload, snapshot_epochs: int, restart_s: float) -> None:
        count, self._epochs = len(workload), workload.jobs.epochs
        self._true_s, self._kind_of = workload.truth.epoch_s, workload.cluster.kind_of
        self._every, self._restart_s = float(snapshot_epochs), restart_s
        self.meter = Meter(workload.cluster, count)
        self.node_of: Ints = np.full(count, POSTPONED, dtype=np.int64)
        self.gpus_of: Ints = np.zeros(count, dtype=np.int64)
        self.left, self.left_saved = self._epochs.copy(), self._epochs.copy()
        self.started: NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)
        self.start_s, self.end_s = np.full(count, np.nan), np.full(count, np.nan)
        self.done_s = np.full(count, np.inf)
        self.preemptions: Ints = np.zeros(count, dtype=np.int64)
        self.migrations: Ints = np.zeros(count, dtype=np.int64)
        self.lost_epochs = np.zeros(count)
        self._put_s, self._gets_on_s = np.zeros(count), np.zeros(count)  # put where it runs; after the restart
        self._left_then, self._epoch_s = np.zeros(count), np.zeros(count)  # when it was put there; where it runs
        self._spans: list[tuple[Ints, Floats, Floats, Ints, Ints]] = []

    def running(self, active: Ints) -> Ints:
        """Those of the jobs that hold GPUs."""
        holding: Ints = active[self.node_of[active] != POSTPONED]
        return holding

    def pass_time(self, from_s: float, until_s: float, running: Ints) -> None:
        """Energy is charged, epochs get done, snapshots are taken."""
        self.meter.pass_time(from_s, until_s, running, self.node_of[running], self.gpus_of[running])
        epoch_s = self._epoch_s[running]
        done = np.maximum(0.0, until_s - self._gets_on_s[running]) / epoch_s
        left = np.maximum(0.0, self._left_then[running] - done)
        # Times are known to a fraction of DUST_S: an epoch missed by less than that is over.
        reached = (self._epochs[running] - left + EPOCH_DUST + DUST_S / epoch_s) / self._every
        saved = self._epochs[running] - np.floor(reached) * self._every
        self.left[running] = left
        self.left_saved[running] = np.maximum(left, np.minimum(saved, self._left_then[running]))

    def finish(self, now_s: float, running: Ints) -> Ints:
        """Jobs that are done by now leave; which."""
        over: Ints = running[(self.done_s[running] <= now_s) | (self.left[running] <= EPOCH_DUST)]
        if len(over):
            self._release(now_s, over)
            self.end_s[over] = now_s
            self.left[over] = self.left_saved[over] = 0.0
        return over

    def move(self, now_s: float, active: Ints, node: Ints, gpus: Ints) -> None:
        """Put (n_active,) active jobs where a policy wants them; those that are there go on."""
        changes = (node != self.node_of[active]) | (gpus != self.gpus_of[active])
        if not changes.any():
            return
        jobs, node, gpus = active[changes], node[changes], gpus[changes]
        stopped, placed = self.node_of[jobs] != POSTPONED, node != POSTPONED
        self.preemptions[jobs[stopped & ~placed]] += 1
        self.migrations[jobs[stopped & placed]] += 1
        self._stop(now_s, jobs[stopped])
        self._start(now_s, jobs[placed], node[placed], gpus[placed])

    def _stop(self, now_s: float, jobs: Ints) -> None:
        """What was done after the last snapshot is lost."""
        self.lost_epochs[jobs] += self.left_saved[jobs] - self.left[jobs]
        self.left[jobs] = self.left_saved[jobs]
        self._release(now_s, jobs)

    def _release(self, now_s: float, jobs: Ints) -> None:
        node, gpus, put_s = self.node_of[jobs], self.gpus_of[jobs], self._put_s[jobs]
        self._spans.append((jobs, put_s, np.full(len(jobs), now_s), gpus, node))
        self.meter.take(node, -gpus)
        self.node_of[jobs], self.gpus_of[jobs], self.done_s[jobs] = POSTPONED, 0, np.inf

    def _start(self, now_s: float, jobs: Ints, node: Ints, gpus: Ints) -> None:
        self.node_of[jobs], self.gpus_of[jobs] = node, gpus
        self.meter.take(node, gpus)
        self._put_s[jobs] = now_s
        self._gets_on_s[jobs] = now_s + np.where(self.started[jobs], self._restart_s, 0.0)
        self._left_then[jobs] = self.left[jobs]
        self._epoch_s[jobs] = self._true_s[jobs, self._kind_of[node], gpus - 1]
        self.done_s[jobs] = self._gets_on_s[jobs] + self.left[jobs] * self._epoch_s[jobs]
        self.start_s[jobs] = np.where(self.started[jobs], self.start_s[jobs], now_s)
        self.started[jobs] = True

    def spans(self) -> Spans:
        """Who held what where when, of all that was stopped or is over."""
        job, from_s, until_s, gpus, node = (np.concatenate(column) for column in zip(*self._spans, strict=True))
        return joined(Spans(job, from_s, until_s, gpus.astype(np.float64), node))
