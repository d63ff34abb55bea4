"""First-principle schedulers of jobs with due dates: first in first out, earliest due date, and priority.

ANDREAS is compared with them (FiCloud 2021, section V.B). They never change what a job was given; how it gets that, the
paper does not say. Here each job has one configuration, fixed by what is known at its submission: the cheapest that
meets its due date, else the fastest. It waits for a node with room, and is never preempted or moved.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from jobcast.domain.arrays import Ints
from jobcast.domain.energy import POSTPONED, Deployment, EnergyView
from jobcast.domain.rounding import rounded_all
from jobcast.schedulers.energy.settings import QueueSettings

# From a view and (n,) waiting jobs in order of submission: their rows in order of the queue.
QueueOrder = Callable[[EnergyView, Ints], Ints]


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Waiting jobs start in order of a queue, each with its one configuration, and run to the end.

    Attributes
    ----------
    name : as users write it
    order : of the queue
    settings : of the queue
    """

    name: str
    order: QueueOrder
    settings: QueueSettings = field(default_factory=QueueSettings)

    def schedule(self, view: EnergyView) -> Deployment:
        """Running jobs go on; waiting ones start where they have room, on the node with the least of it."""
        here = view.active
        node_of, gpus_of = view.node_of[here].astype(np.int64), view.gpus_of[here].astype(np.int64)
        free = view.cluster.kind_gpus[view.cluster.kind_of]
        runs = node_of != POSTPONED
        np.subtract.at(free, node_of[runs], gpus_of[runs])
        waiting = np.flatnonzero(~runs)
        if free.any():
            waiting = waiting[self.order(view, here[waiting])]
            self._start(view, waiting, free, node_of, gpus_of)
        return Deployment(node_of, gpus_of)

    def _start(self, view: EnergyView, waiting: Ints, free: Ints, node_of: Ints, gpus_of: Ints) -> None:
        """Write nodes and GPUs of the waiting rows that find room."""
        kind_of = view.cluster.kind_of
        kind, gpus = configurations(view, view.active[waiting])
        most = np.zeros(len(view.cluster.kind_gpus), dtype=np.int64)
        np.maximum.at(most, kind_of, free)
        place = 0
        # By the roomiest node of each kind: most jobs are passed over without a search.
        while (fits := (gpus[place:] > 0) & (gpus[place:] <= most[kind[place:]])).any():
            # Somebody before it finds no room, and nobody overtakes.
            if self.settings.strict and not fits[0]:
                return
            place += int(np.argmax(fits))
            row, own, width = waiting[place], kind[place], gpus[place]
            nodes = np.flatnonzero((kind_of == own) & (free >= width))
            # Best fit, the first of equals.
            node = nodes[np.argmin(free[nodes])]
            node_of[row], gpus_of[row] = node, width
            free[node] -= width
            most[own] = free[kind_of == own].max()
            place += 1


def configurations(view: EnergyView, jobs: Ints) -> tuple[Ints, Ints]:
    """(n,) kind and (n,) GPUs of jobs, by their ids; 0 GPUs for one that runs nowhere.

    The one of least energy that ends before the due date if it started at submission, else the fastest; the same at
    every call, since it goes by the epochs of the whole run.
    """
    cluster, submit_s = view.cluster, view.jobs.submit_s[jobs]
    fits = np.arange(1, view.jobs.epoch_s.shape[2] + 1) <= cluster.kind_gpus[:, None]
    # Of all its epochs, not of those left: its one configuration never changes.
    time_s = view.jobs.epoch_s[jobs] * view.jobs.epochs[jobs, None, None]
    watts = cluster.power_w[:, 1:].ravel()
    time_s = rounded_all(np.where(fits & np.isfinite(time_s), time_s, np.inf)).reshape(len(jobs), len(watts))
    runs = np.isfinite(time_s)
    meets = runs & (time_s < rounded_all(view.jobs.due_s[jobs] - submit_s)[:, None])
    # All of them would be paid at the price of one instant, so that the least energy is the cheapest.
    joules = rounded_all(np.multiply(time_s, watts, out=np.full_like(time_s, np.inf), where=meets))
    best = np.where(meets.any(axis=1), joules.argmin(axis=1), time_s.argmin(axis=1))
    gpus = np.where(runs.any(axis=1), best % fits.shape[1] + 1, 0)
    return best // fits.shape[1], gpus


def by_submission(view: EnergyView, jobs: Ints) -> Ints:
    """First in, first out."""
    return np.arange(len(jobs))


def by_due_date(view: EnergyView, jobs: Ints) -> Ints:
    """The earliest due date first; those alike by submission."""
    return np.argsort(view.jobs.due_s[jobs], kind="stable")


def by_weight(view: EnergyView, jobs: Ints) -> Ints:
    """The largest tardiness weight first, then the earliest due date; those alike by submission."""
    return np.lexsort((view.jobs.due_s[jobs], -view.jobs.weight[jobs]))


# Orders of the queue by their policies' names.
ORDERS: Mapping[str, QueueOrder] = MappingProxyType({"fifo": by_submission, "edf": by_due_date, "ps": by_weight})
