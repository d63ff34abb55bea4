"""A run of elastic jobs from beginning to end, and its record."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from jobcast.domain.elastic import ElasticJobs, ElasticPolicy, Floats, Ints
from jobcast.domain.errors import DecisionError
from jobcast.simulator.elastic.state import COUNT, State, World, empty_state

PROGRESS_EVERY = 200
"""Submissions between two calls of `progress`."""
FAULTS = (
    "",
    "gives out more GPUs than there are of type {culprit}",
    "gives job {culprit} more GPUs than it can use",
    "gives job {culprit} less than no GPUs, or no number of them",
    "leaves job {culprit} and all others waiting while nothing will arrive",
)


@dataclass(frozen=True, slots=True, eq=False)
class ElasticCluster:
    """GPUs that elastic jobs share.

    Attributes
    ----------
    capacity : (n_types,) GPUs by type
    node_type, node_gpus : (n_nodes,) of each node; empty where it does not matter where a job lies
    preempt_s : seconds without progress after a change of a started job's GPUs
    """

    capacity: Floats
    node_type: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    node_gpus: Floats = field(default_factory=lambda: np.zeros(0))
    preempt_s: float = 0.0

    @property
    def gpus(self) -> float:
        """GPUs of all types."""
        return float(self.capacity.sum())


@dataclass(frozen=True, slots=True, eq=False)
class ElasticLog:
    """A finished run. Arrays have shape (n_jobs,), in order of submission; seconds from the run's beginning.

    Attributes
    ----------
    submit_s, start_s, end_s : submission, first GPUs, completion
    predicted_end_s : completion as forecast at submission, NaN without forecasts
    gpu_s : GPU-seconds held
    preemptions : times that GPUs were taken away from a job that had not finished
    contention_events : mean number of active jobs over the events between submission and completion
    contention_time : the same over time
    size_s, most : work on one GPU, the most GPUs used
    gpus : of the cluster
    events : submissions, stages reached, completions, leases
    """

    submit_s: Floats
    start_s: Floats
    end_s: Floats
    predicted_end_s: Floats
    gpu_s: Floats
    preemptions: Ints
    contention_events: Floats
    contention_time: Floats
    size_s: Floats
    most: Floats
    gpus: float
    events: int

    def __len__(self) -> int:
        return len(self.submit_s)

    def after(self, from_s: float) -> "ElasticLog":
        """Of the jobs submitted at or after an instant alone."""
        kept = self.submit_s >= from_s
        arrays = {
            one.name: getattr(self, one.name)[kept]
            for one in fields(self)
            if isinstance(getattr(self, one.name), np.ndarray)
        }
        return replace(self, **arrays)


class ElasticReplay:
    """A run that can be interrupted at any submission, looked at and gone on with.

    Parameters
    ----------
    jobs : what is known of them
    size_s : (n_jobs,) the work that they really are, seconds on one GPU
    cluster : GPUs
    policy : the rule that shares them
    pending_lease : whether a forecast keeps the lease that runs when it is made
    """

    def __init__(
        self,
        jobs: ElasticJobs,
        size_s: Floats,
        cluster: ElasticCluster,
        policy: ElasticPolicy,
        *,
        pending_lease: bool = True,
    ) -> None:
        from jobcast.simulator.elastic import kernel

        self.jobs = ElasticJobs(*(_plain(column) for column in jobs))
        self.size_s, self.cluster, self.policy = _plain(size_s), cluster, policy
        self._kernel = kernel
        self.state = empty_state(jobs, len(cluster.capacity), len(cluster.node_type))
        self.predicted_end_s = np.full(len(size_s), np.nan)
        self._virtual: State | None = None
        self._world = self.world(self.jobs, self.size_s)
        self._pending_lease = pending_lease

    def world(self, jobs: ElasticJobs, size_s: Floats) -> World:
        """The cluster and the policy of this run with other jobs, that are really `size_s`."""
        cluster, policy = self.cluster, self.policy
        return World(
            numbers=_plain(policy.numbers),
            lease_s=policy.lease_s,
            jobs=jobs,
            size_s=size_s,
            capacity=_plain(cluster.capacity),
            preempt_s=cluster.preempt_s,
            node_type=_plain(cluster.node_type),
            node_gpus=_plain(cluster.node_gpus),
            left_s=np.zeros(len(size_s)),
        )

    def submit(self, until: int) -> None:
        """Run on until `until` jobs were submitted. Raises DecisionError for what the rule may not do."""
        if self.state.count[COUNT.arrived] < until:
            self._play(until)

    def forecast(self, until: int) -> None:
        """Run on until `until` jobs were submitted, each with a forecast of its completion. Raises as `submit`."""
        if self._virtual is None:
            self._virtual = empty_state(self.jobs, len(self.cluster.capacity), len(self.cluster.node_type))
        self._check(
            self._kernel.forecast_arrivals(
                *(self.policy.rule, self._world, self.state, self._virtual),
                *(self._pending_lease, until, self.predicted_end_s),
            )
        )

    def advance(self, until_s: float) -> None:
        """Run on until an instant, what happens at it included; no more is submitted meanwhile. Raises as `submit`."""
        self._play(int(self.state.count[COUNT.arrived]), until_s)

    def finish(self) -> None:
        """Run on until the jobs submitted so far have finished; nothing more arrives meanwhile. Raises as `submit`."""
        self._play(int(self.state.count[COUNT.arrived]))

    def _play(self, arrivals: int, until_s: float = np.inf) -> None:
        kernel = self._kernel
        self._check(kernel.play(self.policy.rule, self._world, self.state, arrivals, kernel.NOBODY, until_s))

    def log(self) -> ElasticLog:
        """The record of the jobs submitted so far, all of them finished."""
        n, state, jobs = int(self.state.count[COUNT.arrived]), self.state, self.jobs
        return ElasticLog(
            submit_s=jobs.submit_s[:n],
            start_s=state.start_s[:n],
            end_s=state.end_s[:n],
            predicted_end_s=self.predicted_end_s[:n],
            gpu_s=state.gpu_s[:n],
            preemptions=state.preemptions[:n],
            contention_events=state.contention[:n],
            contention_time=_mean_active(jobs.submit_s[:n], state.end_s[:n]),
            size_s=self.size_s[:n],
            most=jobs.most[:n],
            gpus=self.cluster.gpus,
            events=int(state.count[COUNT.events]),
        )

    def _check(self, status: int) -> None:
        if status:
            culprit = int(self.state.count[COUNT.culprit])
            raise DecisionError(
                f"policy {self.policy.name} at {self.state.clock[0]:.6f} s: {FAULTS[status].format(culprit=culprit)}"
            )


def replay_elastic(
    run: ElasticReplay, *, predict: bool = False, progress: Callable[[int, int], None] | None = None
) -> ElasticLog:
    """Run all jobs to completion, with a forecast of each job's completion at its submission where `predict`.

    Parameters
    ----------
    run : at its beginning
    predict : whether to forecast
    progress : called with (submitted, all) every few hundred jobs and at the end

    Raises DecisionError when the rule gives out what is not there, or leaves all jobs waiting for ever.
    """
    count = len(run.size_s)
    go = run.forecast if predict else run.submit
    for until in (*range(PROGRESS_EVERY, count, PROGRESS_EVERY), count):
        go(until)
        if progress is not None:
            progress(until, count)
    run.finish()
    return run.log()


def _plain(array: Any) -> Any:
    """As compiled code takes it: contiguous and writeable, which arrays from other processes may not be."""
    return np.require(array, requirements=("C", "W"))


def _mean_active(submit_s: Floats, end_s: Floats) -> Floats:
    """Mean number of active jobs over time from each job's submission to its completion, (n_jobs,)."""
    instants = np.concatenate([submit_s, end_s])
    order = np.argsort(instants, kind="stable")
    at_s = instants[order]
    active = np.cumsum(np.where(order < len(submit_s), 1.0, -1.0))
    area = np.concatenate([[0.0], np.cumsum(active[:-1] * np.diff(at_s))])
    total = np.interp(end_s, at_s, area) - np.interp(submit_s, at_s, area)
    mean: Floats = total / np.maximum(end_s - submit_s, 1e-12)
    return mean
