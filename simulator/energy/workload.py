"""What is replayed: jobs with due dates, how long their epochs really take, the nodes, and the price of energy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jobcast.domain.energy import DAY_S, EnergyCluster, EnergyJobs, Floats, Ints, Tariff
from jobcast.domain.errors import ConfigError, TraceError


@dataclass(frozen=True, slots=True, eq=False)
class EnergyTruth:
    """What only the engine knows.

    Attributes
    ----------
    epoch_s : (n_jobs, n_kinds, most_gpus) seconds that an epoch really takes on a node of this kind with column + 1
        GPUs; infinite where it cannot run
    """

    epoch_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class EnergyWorkload:
    """Jobs in order of submission, the truth about them, nodes, and the names of the jobs, (n_jobs,).

    `gpus`, `duration_s`: what was asked for and run times alone on that, (n_jobs,), where a trace tells them; no job
    gets on by them.
    """

    jobs: EnergyJobs
    truth: EnergyTruth
    cluster: EnergyCluster
    job_ids: Sequence[str]
    gpus: Ints | None = None
    duration_s: Floats | None = None

    def __len__(self) -> int:
        return len(self.jobs.submit_s)

    @property
    def asked_gpus(self) -> Ints:
        """(n_jobs,) GPUs asked for: the trace's, else those of the fastest configuration that there is."""
        return self._fastest.argmin(axis=1) + 1 if self.gpus is None else self.gpus

    @property
    def alone_s(self) -> Floats:
        """(n_jobs,) run times alone: the trace's, else those of the fastest configuration that there is."""
        return self.jobs.epochs * self._fastest.min(axis=1) if self.duration_s is None else self.duration_s

    @property
    def _fastest(self) -> Floats:
        """(n_jobs, most_gpus) seconds of an epoch on the fastest node that there is, by GPUs."""
        times_s = self.truth.epoch_s * runs_on(self.cluster)
        fastest_s: Floats = times_s[:, np.unique(self.cluster.kind_of)].min(axis=1)
        return fastest_s

    def believing(self, epoch_s: Floats | None) -> "EnergyWorkload":
        """The same for a policy that goes by other times, (n_jobs, n_kinds, most_gpus); None: by those it goes by."""
        return self if epoch_s is None else replace(self, jobs=self.jobs._replace(epoch_s=epoch_s))

    def check(self) -> None:
        """Refuse what cannot be replayed.

        Raises
        ------
        ConfigError
            Nodes, power, PUE or tariff that mean nothing.
        TraceError
            Columns of different lengths, numbers that mean nothing, jobs that can run nowhere; with the job's name.
        """
        _check_cluster(self.cluster)
        check_tariff(self.cluster.tariff)
        _check_shapes(self)
        _check_jobs(self)
        _check_times(self)


def runs_on(cluster: EnergyCluster) -> Floats:
    """(n_kinds, most_gpus) 1 where nodes of the kind have column + 1 GPUs, infinite where they have not."""
    gpus = np.arange(1, cluster.power_w.shape[1])
    return np.where(gpus <= cluster.kind_gpus[:, None], 1.0, np.inf)


def _check_cluster(cluster: EnergyCluster) -> None:
    kinds, power_w = len(cluster.kind_gpus), cluster.power_w
    if not len(cluster.kind_of) or not kinds:
        raise ConfigError("the cluster has no nodes; give at least one")
    strange = (cluster.kind_of < 0) | (cluster.kind_of >= kinds)
    if strange.any():
        node = int(np.argmax(strange))
        raise ConfigError(f"node {node} is of kind {cluster.kind_of[node]}; there are kinds 0 to {kinds - 1}")
    if power_w.ndim != 2 or len(power_w) != kinds or power_w.shape[1] < 2:
        raise ConfigError(
            f"power_w has shape {power_w.shape}; it needs a row for each of {kinds} kinds, from 0 GPUs on"
        )
    most = power_w.shape[1] - 1
    for kind, gpus in enumerate(cluster.kind_gpus):
        if not 1 <= gpus <= most:
            raise ConfigError(f"nodes of kind {kind} have {gpus} GPUs; power_w is given for 1 to {most}")
        if not (np.isfinite(power_w[kind]) & (power_w[kind] >= 0.0)).all():
            raise ConfigError(f"nodes of kind {kind} draw less than 0 W, or no number: {power_w[kind].tolist()}")
    if not 1.0 <= cluster.pue < np.inf:
        raise ConfigError(f"pue is {cluster.pue:g}; it must be at least 1")


def check_tariff(tariff: Tariff) -> None:
    """Refuse a tariff that does not say the price of each second of a day. Raises ConfigError."""
    from_s, price = tariff.from_s, tariff.price_eur_kwh
    if not len(from_s) or len(from_s) != len(price):
        raise ConfigError(f"the tariff has {len(price)} prices for {len(from_s)} times; give one each, at least one")
    if from_s[0] != 0.0 or not (np.diff(from_s) > 0.0).all() or not from_s[-1] < DAY_S:
        hours = ", ".join(f"{each / 3600.0:g}" for each in from_s)
        raise ConfigError(f"the tariff's prices begin at hours {hours}; begin at 0, ascend, stay below 24")
    if not (np.isfinite(price) & (price >= 0.0)).all():
        raise ConfigError(f"the tariff has a price below 0 EUR/kWh, or no number: {price.tolist()}")


def _check_shapes(workload: EnergyWorkload) -> None:
    jobs, count = workload.jobs, len(workload)
    if not count:
        raise TraceError("there are no jobs; give at least one")
    told = (("gpus", workload.gpus), ("duration", workload.duration_s))
    columns = (*zip(jobs._fields[:4], jobs[:4], strict=True), *told)
    wrong = [(name, column.shape) for name, column in columns if column is not None and column.shape != (count,)]
    wanted = (count, *np.subtract(workload.cluster.power_w.shape, (0, 1)).tolist())
    times = (("epoch_s", jobs.epoch_s), ("the truth's epoch_s", workload.truth.epoch_s))
    wrong += [(name, column.shape) for name, column in times if column.shape != wanted]
    if wrong:
        name, shape = wrong[0]
        raise TraceError(
            f"column {name} has shape {shape}; there are {count} jobs, kinds and GPUs of shape {wanted[1:]}"
        )
    if len(workload.job_ids) != count:
        raise TraceError(f"there are {len(workload.job_ids)} names for {count} jobs; give one each")


def _check_jobs(workload: EnergyWorkload) -> None:
    jobs = workload.jobs
    late = np.concatenate([[False], np.diff(jobs.submit_s) < 0.0])
    rules = (
        (~np.isfinite(jobs.submit_s) | late, "is submitted before the job above it, or never; sort by submission"),
        (~(np.isfinite(jobs.epochs) & (jobs.epochs > 0.0)), "has no epochs; give more than 0"),
        (~(jobs.due_s > -np.inf), "has a due date that is no time; infinity stands for none"),
        (~(np.isfinite(jobs.weight) & (jobs.weight >= 0.0)), "has a weight below 0, or no number"),
    )
    for bad, told in rules:
        if bad.any():
            raise TraceError(f"job {workload.job_ids[int(np.argmax(bad))]} {told}")


def _check_times(workload: EnergyWorkload) -> None:
    cluster, known, true = workload.cluster, workload.jobs.epoch_s, workload.truth.epoch_s
    there = np.isfinite(runs_on(cluster)) & np.isin(np.arange(len(cluster.kind_gpus)), cluster.kind_of)[:, None]
    believed, able = np.isfinite(known) & there, np.isfinite(true) & there
    rules = (
        (~((known > 0.0) & (true > 0.0)), "has an epoch of 0 s or less, or no number; infinity stands for cannot run"),
        (believed & ~able, "is said to run where it cannot; leave that time infinite"),
    )
    for bad, told in rules:
        jobs = bad.any(axis=(1, 2))
        if jobs.any():
            raise TraceError(f"job {workload.job_ids[int(np.argmax(jobs))]} {told}")
    nowhere = ~believed.any(axis=(1, 2))
    if nowhere.any():
        raise TraceError(
            f"job {workload.job_ids[int(np.argmax(nowhere))]} can run on no node of the cluster; "
            "add nodes that it can use, or epoch times for those that there are"
        )
