"""Energy, due dates and GPU types: what a policy knows of training jobs on unlike nodes, and whole schedules of them.

Filippini et al.: ANDREAS: Artificial intelligence training scheduler for accelerated resource clusters, FiCloud 2021,
sections III and IV, Table I.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.clock import DAY_S, HOUR_S
from jobcast.domain.errors import ConfigError, TraceError, refuse_first
from jobcast.domain.jobs import Job

POSTPONED = -1
"""In place of a node: the job waits."""
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


class EpochTimes(NamedTuple):
    """How long jobs run.

    Attributes
    ----------
    epochs : (n_jobs,) how many each runs
    epoch_s : (n_jobs, n_kinds, most_gpus) seconds an epoch takes on column + 1 GPUs of nodes of this kind; infinite
        where it cannot run
    applications : (n_jobs,) number of each job's application: model and batch size; None: each has one of its own
    """

    epochs: Floats
    epoch_s: Floats
    applications: Ints | None = None

    def check(self, jobs: Sequence[Job], known_s: Floats, cluster: "EnergyCluster") -> None:
        """Refuse jobs that mean nothing or can run nowhere, with their names. Raises TraceError.

        Parameters
        ----------
        jobs : (n_jobs,) whose times these are
        known_s : (n_jobs, n_kinds, most_gpus) seconds an epoch as policies know them
        cluster : one that was checked
        """
        count, true_s = len(jobs), self.epoch_s
        shapes = (
            (self.epochs, (count,)),
            (true_s, (count, len(cluster.kind_gpus), *true_s.shape[2:3])),
            (known_s, true_s.shape),
        )
        wrong = [(found.shape, shape) for found, shape in shapes if found.shape != shape or not found.size]
        if wrong:
            found, shape = ("x".join(map(str, one)) for one in wrong[0])
            raise TraceError(
                f"epochs, or the times that they take, are told for {found}; {shape} are needed, at least one"
            )
        total = np.bincount(cluster.kind_of, minlength=len(cluster.kind_gpus)) * cluster.kind_gpus
        # A job may lie on several nodes of a kind: all GPUs of the kind count, not those of one node.
        there = np.arange(1, true_s.shape[2] + 1) <= total[:, None]
        believed, able = np.isfinite(known_s) & there, np.isfinite(true_s) & there
        due_s, weight = (np.array([getattr(job, name) for job in jobs]) for name in ("due_s", "weight"))
        epochs = self.epochs
        rules: tuple[tuple[Any, str], ...] = (
            (~(np.isfinite(epochs) & (epochs > 0.0)), "has no epochs; give more than 0"),
            (~(due_s > -np.inf), "has a due date that is no time; infinity stands for none"),
            (~(np.isfinite(weight) & (weight >= 0.0)), "has a weight below 0, or no number"),
            (
                ~((known_s > 0.0) & (true_s > 0.0)).all(axis=(1, 2)),
                "has an epoch of 0 s or less, or no number; infinity stands for cannot run",
            ),
            ((believed & ~able).any(axis=(1, 2)), "is said to run where it cannot; leave that time infinite"),
            (
                ~believed.any(axis=(1, 2)),
                "can run on no node of the cluster; add nodes that it can use, or epoch times for those that there are",
            ),
        )
        refuse_first(rules, lambda row: f"job {jobs[row].job_id}")


class EpochsDone(NamedTuple):
    """How far jobs are.

    Attributes
    ----------
    done, saved : (n_jobs,) epochs, and those that would be left of them if the job were stopped now
    starts : (n_jobs,) how often it was started
    """

    done: Floats
    saved: Floats
    starts: Floats


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
        # A price holds from its instant on, so equal goes to the right.
        step = np.searchsorted(self.from_s, now_s % DAY_S, side="right") - 1
        return float(self.price_eur_kwh[step])

    def check(self) -> None:
        """Refuse what does not say the price of each second of a day. Raises ConfigError."""
        from_s, price = self
        if not len(from_s) or len(from_s) != len(price):
            raise ConfigError(
                f"the tariff has {len(price)} prices for {len(from_s)} times; give one each, at least one"
            )
        if from_s[0] != 0.0 or not (np.diff(from_s) > 0.0).all() or not from_s[-1] < DAY_S:
            hours = ", ".join(f"{each / HOUR_S:g}" for each in from_s)
            raise ConfigError(f"the tariff's prices begin at hours {hours}; begin at 0, ascend, stay below 24")
        if not (np.isfinite(price) & (price >= 0.0)).all():
            raise ConfigError(f"the tariff has a price below 0 EUR/kWh, or no number: {price.tolist()}")


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
    types : (n_kinds,) number of the GPU type of each kind, that of the reference 0; None: kinds are types
    """

    kind_of: Ints
    kind_gpus: Ints
    power_w: Floats
    pue: float
    tariff: Tariff
    types: Ints | None = None

    @property
    def reference(self) -> NDArray[np.bool_]:
        """(n_kinds,) whether a kind's GPUs are of the reference type."""
        return np.asarray((np.arange(len(self.kind_gpus)) if self.types is None else self.types) == 0)

    def check(self) -> None:
        """Refuse nodes, power, PUE or tariff that mean nothing. Raises ConfigError."""
        kinds, power_w, most = len(self.kind_gpus), self.power_w, self.power_w.shape[-1] - 1
        # First, for the checks below index by kind.
        if not len(self.kind_of) or not kinds:
            raise ConfigError("the cluster has no nodes; give at least one")
        strange = (self.kind_of < 0) | (self.kind_of >= kinds)
        if strange.any():
            node = int(np.argmax(strange))
            raise ConfigError(f"node {node} is of kind {self.kind_of[node]}; there are kinds 0 to {kinds - 1}")
        if power_w.ndim != 2 or len(power_w) != kinds or most < 1:
            raise ConfigError(
                f"power_w has shape {power_w.shape}; it needs a row for each of {kinds} kinds, from 0 GPUs on"
            )
        for kind, gpus in enumerate(self.kind_gpus):
            if not 1 <= gpus <= most:
                raise ConfigError(f"nodes of kind {kind} have {gpus} GPUs; power_w is given for 1 to {most}")
            if not (np.isfinite(power_w[kind]) & (power_w[kind] >= 0.0)).all():
                raise ConfigError(f"nodes of kind {kind} draw less than 0 W, or no number: {power_w[kind].tolist()}")
        if not 1.0 <= self.pue < np.inf:
            raise ConfigError(f"pue is {self.pue:g}; it must be at least 1")
        self.tariff.check()


class EnergyView(NamedTuple):
    """The cluster at an instant.

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


def times_left_s(view: EnergyView) -> Floats:
    """(n_active, n_kinds, most_gpus) t_jng: seconds that active jobs still need wherever they were started now.

    Restarts and what is lost since the last snapshot are in it; staying in place is told by `stay_s`.
    """
    here = view.active
    # A first start is free: there is no snapshot to load.
    restart_s = np.where(view.started[here], view.restart_s, 0.0)
    return view.jobs.epoch_s[here] * view.left_saved[here, None, None] + restart_s[:, None, None]


def stay_s(view: EnergyView) -> Floats:
    """(n_active,) seconds that running jobs still need where they run; infinite for those that wait."""
    here = view.active
    node, gpus = view.node_of[here], view.gpus_of[here]
    runs = node != POSTPONED
    kind = view.cluster.kind_of[np.where(runs, node, 0)]
    # Who waits looks up any entry; it is thrown away below.
    epoch_s = view.jobs.epoch_s[here, kind, np.maximum(gpus, 1) - 1]
    return np.where(runs, epoch_s * view.left[here], np.inf)


def cost_eur_h(cluster: EnergyCluster, now_s: float) -> Floats:
    """(n_kinds, most_gpus + 1) c_ng: EUR an hour of a node with so many GPUs in use, at the price of now."""
    return cluster.power_w * (cluster.pue * cluster.tariff.at(now_s) / 1000.0)
