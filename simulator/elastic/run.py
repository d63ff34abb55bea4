"""A run of elastic jobs from beginning to end, and its record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.elastic import ElasticJobs, ElasticPolicy, ElasticView
from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.domain.jobs import Pool
from jobcast.domain.law import SPEEDUP
from jobcast.simulator.elastic.state import CLOCK, COUNT, OVERDUE_S, State, World, empty_state, with_room
from jobcast.simulator.log import RunLog, Spans, flat_spans

PROGRESS_EVERY = 200
"""Submissions between two calls of `progress`."""
FLAT = "all"
"""The pool that elastic jobs share."""
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


class WorstCase(NamedTuple):
    """The latest completion of a job, whatever arrives later, if sizes and speedups are as declared.

    Attributes
    ----------
    end_s : seconds from the run's beginning, infinite where nothing can be promised
    reason : why nothing can, else empty
    """

    end_s: float
    reason: str


class ElasticReplay:
    """A run that can be interrupted at any submission, looked at and gone on with.

    Parameters
    ----------
    jobs : what is known of them
    size_s : (n_jobs,) the work that they really are, seconds on one GPU
    cluster : GPUs
    policy : the rule that shares them
    pending_lease : whether a forecast keeps the lease that runs when it is made
    origin_s : seconds from the epoch of the run's beginning
    record : whether the log is to tell what each job held when; else only how much in the mean
    """

    def __init__(
        self,
        jobs: ElasticJobs,
        size_s: Floats,
        cluster: ElasticCluster,
        policy: ElasticPolicy,
        *,
        pending_lease: bool = True,
        origin_s: float = 0.0,
        record: bool = True,
    ) -> None:
        # Compiles on first use, and takes a second to import.
        from jobcast.simulator.elastic import kernel

        self.jobs = ElasticJobs(*(_plain(column) for column in jobs))
        self.size_s, self.cluster, self.policy = _plain(size_s), cluster, policy
        self._kernel = kernel
        self.state = empty_state(jobs, len(cluster.capacity), len(cluster.node_type), record=record)
        self.predicted_end_s = np.full(len(size_s), np.nan)
        self.worst_cases: dict[int, WorstCase] = {}
        self.renewed: dict[int, WorstCase] = {}
        self._later = list(policy.later)
        self._virtual: State | None = None
        self._world = self.world(self.jobs, self.size_s)
        self._pending_lease, self._origin_s = pending_lease, origin_s

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
        self._with_changes(until, self._play)

    def forecast(self, until: int) -> None:
        """Run on until `until` jobs were submitted, each with a forecast of its completion. Raises as `submit`."""
        self._with_changes(until, self._forecast)

    def _forecast(self, until: int) -> None:
        # One scratch state for all forecasts; runs without any need none.
        if self._virtual is None:
            self._virtual = empty_state(self.jobs, len(self.cluster.capacity), len(self.cluster.node_type))
        pending, predicted_end_s = self._pending_lease, self.predicted_end_s
        if self.policy.promises is None:
            self._go_on(self._kernel.forecast_arrivals, self._virtual, pending, until, predicted_end_s)
            return
        # A bound is of the state right after a submission: one at a time.
        for job in range(int(self.state.count[COUNT.arrived]), until):
            self._go_on(self._kernel.forecast_arrivals, self._virtual, pending, job + 1, predicted_end_s)
            self.worst_cases[job] = self.worst_case(job)

    def _with_changes(self, until: int, go: Callable[[int], None]) -> None:
        """Let jobs be submitted, the policy changing in between where it is to."""
        while self._later:
            at_s = self._later[0].from_s - self._origin_s
            first = int(np.searchsorted(self.jobs.submit_s, at_s))
            if first >= until:
                break
            if self.state.count[COUNT.arrived] < first:
                go(first)
            self.advance(at_s)
        if self.state.count[COUNT.arrived] < until:
            go(until)

    def set_preference(self, numbers: Floats, *, keep: bool = True) -> None:
        """Go by other numbers of the policy from now on, such as `WfqConfig.numbers`. PCS, section 3.2.

        keep : jobs that are there go by those that they were promised until they end, and before all that come from
            now on; else all go by the new ones at once: what was promised is promised anew, in `renewed`

        Raises ConfigError for a policy that promises nothing.
        """
        promises, now_s = self.policy.promises, float(self.state.clock[0])
        if promises is None:
            raise ConfigError(f"policy {self.policy.name}: has no preference to set; take pcs")
        numbers = promises.joined(self.policy.numbers, now_s, numbers) if keep else numbers
        self.policy = replace(self.policy, numbers=_plain(numbers))
        self._world = self._world._replace(numbers=self.policy.numbers)
        if keep:
            return
        # A lease that ends now has the rule asked.
        self.state.clock[CLOCK.lease_at] = now_s
        self._play(int(self.state.count[COUNT.arrived]), now_s)
        for job in self.state.active[: int(self.state.count[COUNT.active])].tolist():
            if job in self.worst_cases:
                self.renewed[job] = self.worst_case(job)

    def worst_case(self, job: int) -> WorstCase:
        """The latest completion of an active job as it can be promised now. Raises ConfigError where nothing is."""
        state, promises, told_s = self.state, self.policy.promises, np.zeros(2)
        if promises is None:
            raise ConfigError(f"policy {self.policy.name}: promises nothing; take pcs")
        count, now_s = int(state.count[COUNT.active]), float(state.clock[0])
        left_s = np.maximum(self.jobs.size_s - state.done_s, OVERDUE_S)
        held = (state.most, state.gpu_s, state.contention)
        view = ElasticView(now_s, self._world.capacity, state.active, count, self.jobs, left_s, *held)
        position, spread = int(np.flatnonzero(state.active[:count] == job)[0]), bool(len(self._world.node_type))
        how = (self._world.numbers, position, self.cluster.preempt_s, spread, told_s)
        reason = promises.reasons[promises.worst_case(view, *how)]
        return WorstCase(now_s + float(told_s[0]), reason)

    def advance(self, until_s: float) -> None:
        """Run on until an instant, what happens at it included; no more is submitted meanwhile. Raises as `submit`."""
        arrived = int(self.state.count[COUNT.arrived])
        while self._later and self._later[0].from_s - self._origin_s <= until_s:
            change = self._later.pop(0)
            self._play(arrived, change.from_s - self._origin_s)
            self.set_preference(change.numbers, keep=self.policy.keep)
        self._play(arrived, until_s)

    def finish(self) -> None:
        """Run on until the jobs submitted so far have finished; nothing more arrives meanwhile. Raises as `submit`."""
        while self._later:
            self.advance(self._later[0].from_s - self._origin_s)
        self._play(int(self.state.count[COUNT.arrived]))

    def _play(self, arrivals: int, until_s: float = np.inf) -> None:
        self._go_on(self._kernel.play, arrivals, self._kernel.NOBODY, until_s)

    def _go_on(self, kernel: Callable[..., int], *arguments: Any) -> None:
        """Call a kernel until it is through, with more room for changes whenever that is what it lacks."""
        # A kernel that lacks room stops between two events, and goes on where it was.
        status = kernel(self.policy.rule, self._world, self.state, *arguments)
        while status == self._kernel.FULL:
            self.state = with_room(self.state)
            status = kernel(self.policy.rule, self._world, self.state, *arguments)
        if status:
            culprit = int(self.state.count[COUNT.culprit])
            raise DecisionError(
                f"policy {self.policy.name} at {self.state.clock[0]:.6f} s: {FAULTS[status].format(culprit=culprit)}"
            )

    def log(self) -> RunLog:
        """The record of the jobs submitted so far, all of them finished."""
        n, state, jobs, origin_s = int(self.state.count[COUNT.arrived]), self.state, self.jobs, self._origin_s
        columns = {
            "work_s": self.size_s[:n].copy(),
            "contention_events": state.contention[:n].copy(),
            "gpu_s": state.gpu_s[:n].copy(),
        }
        if np.isfinite(self.predicted_end_s[:n]).any():
            columns["predicted_end_s"] = self.predicted_end_s[:n] + origin_s
        if self.worst_cases:
            columns["worst_case_end_s"] = self._ends_s(self.worst_cases, n)
        if self.renewed:
            columns["renewed_end_s"] = self._ends_s(self.renewed, n)
        return RunLog(
            policy=self.policy.name,
            pools=(Pool(FLAT, round(self.cluster.gpus)),),
            submit_s=jobs.submit_s[:n] + origin_s,
            start_s=state.start_s[:n] + origin_s,
            end_s=state.end_s[:n] + origin_s,
            duration_s=alone_s(jobs, self.size_s)[:n],
            gpus=jobs.most[:n].astype(np.int64),
            pool=np.zeros(n, dtype=np.int64),
            preemptions=state.preemptions[:n].copy(),
            dedicated=np.ones(n, dtype=np.bool_),
            spans=self._spans(n),
            events=int(state.count[COUNT.events]),
            law=SPEEDUP,
            columns=columns,
        )

    def _ends_s(self, figures: Mapping[int, WorstCase], count: int) -> Floats:
        """Seconds from the epoch, NaN of jobs that were told nothing."""
        ends_s = np.full(count, np.nan)
        ends_s[list(figures)] = [one.end_s + self._origin_s for one in figures.values()]
        return ends_s

    def _spans(self, count: int) -> Spans:
        """What jobs held, GPUs of all types together; without a record a job's mean between its start and its end."""
        state, origin_s = self.state, self._origin_s
        if not state.recorded.size:
            start_s, end_s = state.start_s[:count], state.end_s[:count]
            gpus = state.gpu_s[:count] / np.maximum(end_s - start_s, 1e-12)
            return flat_spans(np.arange(count), start_s + origin_s, end_s + origin_s, gpus)
        changes = state.changes[: int(state.count[COUNT.changes])]
        # A change holds until the next one of the same job and place.
        changes = changes[np.lexsort((changes[:, 2], changes[:, 1]))]  # stable: of a job's place in order of time
        here, later = changes[:-1], changes[1:]
        held = (here[:, 3] > 0.0) & (later[:, 0] > here[:, 0]) & (later[:, 1:3] == here[:, 1:3]).all(axis=1)
        here, until_s = here[held], later[held, 0]
        order = np.lexsort((here[:, 2], here[:, 1], until_s))
        at_s, job, node, gpus = here[order].T
        placed = node if len(self.cluster.node_type) else np.full(len(order), -1.0)
        return Spans(
            job.astype(np.int64), at_s + origin_s, until_s[order] + origin_s, gpus.copy(), placed.astype(np.int64)
        )


def replay_elastic(
    run: ElasticReplay, *, predict: bool = False, progress: Callable[[int, int], None] | None = None
) -> RunLog:
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
    # In steps, so that progress is told and Ctrl-C is heard.
    for until in (*range(PROGRESS_EVERY, count, PROGRESS_EVERY), count):
        go(until)
        if progress is not None:
            progress(until, count)
    run.finish()
    return run.log()


def _plain(array: Any) -> Any:
    """As compiled code takes it: contiguous and writeable, which arrays from other processes may not be."""
    return np.require(array, requirements=("C", "W"))


def alone_s(jobs: ElasticJobs, size_s: Floats) -> Floats:
    """Run times alone on the most GPUs that each stage can use, of the first type, (n_jobs,) seconds."""
    job, stages = np.repeat(np.arange(len(size_s)), np.diff(jobs.stage_of)), int(jobs.stage_of[-1])
    end = jobs.stage_end[:stages]
    begin = np.concatenate([[0.0], end])[:stages]
    # The first stage of each job begins at nothing, not at the end of the job before.
    begin[jobs.stage_of[:-1]] = 0.0
    most = np.minimum(jobs.stage_most[:stages].astype(np.int64), jobs.speedup.shape[2] - 1)
    speed = jobs.speedup[jobs.model[job], 0, most] * jobs.speed[jobs.model[job], 0]
    return np.bincount(job, (end - begin) * size_s[job] / speed, minlength=len(size_s)).astype(np.float64)
