"""Energy, due dates and GPU types: what a policy sees of training jobs on unlike nodes, and what it may answer.

Filippini et al.: ANDREAS: Artificial intelligence training scheduler for accelerated resource clusters, FiCloud 2021,
sections III and IV, Table I.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POSTPONED = -1
"""In place of a node: the job waits."""
HOUR_S = 3600.0
DAY_S = 86400.0
WATT_SECONDS = 3.6e6
"""Of a kWh."""


class EnergyJobs(NamedTuple):
    """Jobs by column, in order of submission.

    Attributes
    ----------
    submit_s : (n_jobs,) seconds from the epoch
    due_s : (n_jobs,) d_j, the same, infinite where there is none
    weight : (n_jobs,) omega_j, EUR an hour of tardiness
    epochs : (n_jobs,) how many it runs
    epoch_s : (n_jobs, n_kinds, most_gpus) seconds an epoch takes on a node of this kind with column + 1 GPUs, as far as
        is known: profiled or forecast; infinite where it cannot run
    """

    submit_s: Floats
    due_s: Floats
    weight: Floats
    epochs: Floats
    epoch_s: Floats


class Tariff(NamedTuple):
    """Price of energy by time of day (UTC), which repeats every day.

    Attributes
    ----------
    from_s : (n_steps,) seconds from midnight at which a price begins, ascending, the first is 0
    price_eur_kwh : (n_steps,)
    """

    from_s: Floats
    price_eur_kwh: Floats

    def at(self, now_s: float) -> float:
        """EUR a kWh at an instant.

        >>> Tariff(np.array([0.0, 28800.0]), np.array([0.1, 0.2])).at(86400.0 + 30000.0)
        0.2
        """
        step = np.searchsorted(self.from_s, now_s % DAY_S, side="right") - 1
        return float(self.price_eur_kwh[step])


class EnergyCluster(NamedTuple):
    """Nodes; those of one kind have the same GPUs, as many of them, and the same power.

    Attributes
    ----------
    kind_of : (n_nodes,) kind of each node
    kind_gpus : (n_kinds,) G_n, GPUs of a node
    power_w : (n_kinds, most_gpus + 1) what a node draws with so many GPUs in use, watts; 0 GPUs: the node idles or is
        off; columns beyond its GPUs repeat the last one
    pue : power usage effectiveness, >= 1: what the whole site draws for a watt of its nodes
    tariff : of energy
    """

    kind_of: Ints
    kind_gpus: Ints
    power_w: Floats
    pue: float
    tariff: Tariff


class EnergyView(NamedTuple):
    """The cluster at an instant; arrays are the engine's own, not to be written to.

    Attributes
    ----------
    now_s : T_c, seconds from the epoch
    jobs, cluster : what never changes
    active : (n_active,) jobs submitted and not over, in order of submission
    node_of : (n_jobs,) where a job runs, `POSTPONED` where it does not
    gpus_of : (n_jobs,) GPUs that it holds, 0 where it does not run
    left : (n_jobs,) epochs that are left where it goes on as it runs; fractional
    left_saved : (n_jobs,) epochs left from its last snapshot, with which it starts elsewhere or with other GPUs
    started : (n_jobs,) whether it ever ran: from then on a start takes `restart_s`
    restart_s : seconds in which a job that was stopped or moved holds its GPUs and does not get on
    period_s : H, seconds until the next call at the latest
    call : how many calls of this run came before
    """

    now_s: float
    jobs: EnergyJobs
    cluster: EnergyCluster
    active: Ints
    node_of: Ints
    gpus_of: Ints
    left: Floats
    left_saved: Floats
    started: NDArray[np.bool_]
    restart_s: float
    period_s: float
    call: int = 0


class Deployment(NamedTuple):
    """What a policy answers: the whole schedule until it is called again.

    Attributes
    ----------
    node_of : (n_active,) a node for each active job, in their order, or `POSTPONED`
    gpus_of : (n_active,) GPUs of it, 0 where it is postponed

    A job that is given the node and the GPUs that it holds goes on; any other is stopped, loses what it did after its
    last snapshot, and starts where it is put.
    """

    node_of: Ints
    gpus_of: Ints


class EnergyPolicy(Protocol):
    """A scheduler of energy and due dates: a decision over a view."""

    @property
    def name(self) -> str: ...  # noqa: D102

    def decide(self, view: EnergyView) -> Deployment:
        """The schedule from now on."""
        ...


def times_left_s(view: EnergyView) -> Floats:
    """(n_active, n_kinds, most_gpus) t_jng: seconds that active jobs still need wherever they were started now.

    Restarts and what is lost since the last snapshot are in it; staying in place is told by `stay_s`.
    """
    here = view.active
    restart_s = np.where(view.started[here], view.restart_s, 0.0)
    times: Floats = view.jobs.epoch_s[here] * view.left_saved[here, None, None] + restart_s[:, None, None]
    return times


def stay_s(view: EnergyView) -> Floats:
    """(n_active,) seconds that running jobs still need where they run; infinite for those that wait."""
    here = view.active
    node, gpus = view.node_of[here], view.gpus_of[here]
    runs = node != POSTPONED
    kind = view.cluster.kind_of[np.where(runs, node, 0)]
    epoch_s = view.jobs.epoch_s[here, kind, np.maximum(gpus, 1) - 1]
    return np.where(runs, epoch_s * view.left[here], np.inf)


def cost_eur_h(cluster: EnergyCluster, now_s: float) -> Floats:
    """(n_kinds, most_gpus + 1) c_ng: EUR an hour of a node with so many GPUs in use, at the price of now."""
    rate: Floats = cluster.power_w * (cluster.pue * cluster.tariff.at(now_s) / 1000.0)
    return rate
