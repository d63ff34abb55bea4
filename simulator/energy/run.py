"""A run of jobs with due dates on unlike nodes, from the first submission to the last completion.

The policy is asked for the whole schedule at submissions, completions, and on a grid of instants `period_s` apart that
begins at the first submission; grid points without active jobs are left out. At one instant: completions, then
submissions, then the policy once. ANDREAS, sections III and IV.
"""

import time
from collections.abc import Callable

import numpy as np

from jobcast.domain.energy import EnergyJobs, EnergyPolicy, EnergyView
from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.simulator.energy.answers import fault_of
from jobcast.simulator.energy.log import EnergyLog
from jobcast.simulator.energy.state import DUST_S, EPOCH_DUST, EnergyState
from jobcast.simulator.energy.views import read_only, shown_jobs
from jobcast.simulator.energy.workload import EnergyWorkload

LEAST_PERIOD_S = 1e-3
PROGRESS_EVERY = 200
"""Decisions between two calls of `progress`."""
PATIENCE = 1_000
"""Decisions in a row in which no job gets further than it ever was, while none is to come: three days of periods."""
PATIENT_SNAPSHOTS = 10.0
"""Where jobs run all the same, that must also take so many times as long as from a start to the longest's snapshot."""


def replay_energy(
    workload: EnergyWorkload,
    policy: EnergyPolicy,
    *,
    period_s: float = 300.0,
    on_events: bool = True,
    snapshot_epochs: int = 1,
    restart_s: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> EnergyLog:
    """Run all jobs to completion.

    Parameters
    ----------
    workload : jobs, true times of epochs, nodes and tariff
    policy : asked for schedules; it believes the jobs' `epoch_s`, the jobs get on by the truth's
    period_s : H, seconds between two calls at the latest. ANDREAS, appendix B: 5 minutes.
    on_events : whether it is also called at submissions and completions; else on the grid alone
    snapshot_epochs : whole epochs between two snapshots. ANDREAS, section V: 1.
    restart_s : seconds that a job which ran before holds its GPUs without getting on when it starts anew
    progress : called with (jobs over, all) every few hundred decisions and at the end

    Raises
    ------
    TraceError, ConfigError
        The workload cannot be replayed, a setting is out of its range.
    DecisionError
        The policy asks for what cannot be, or keeps jobs from ever getting on.
    """
    _check(period_s, snapshot_epochs, restart_s)
    workload.check()
    run = EnergyReplay(workload, policy, period_s, on_events, snapshot_epochs, restart_s)
    count, told = len(workload), 0
    while run.step():
        if progress is not None and run.decisions >= told + PROGRESS_EVERY:
            told = run.decisions
            progress(run.over, count)
    if progress is not None:
        progress(count, count)
    return run.log()


def _check(period_s: float, snapshot_epochs: int, restart_s: float) -> None:
    if not LEAST_PERIOD_S <= period_s < np.inf:
        raise ConfigError(f"period_s is {period_s:g}; it must be at least {LEAST_PERIOD_S:g} s")
    if snapshot_epochs < 1 or snapshot_epochs != int(snapshot_epochs):
        raise ConfigError(f"snapshot_epochs is {snapshot_epochs:g}; it must be a whole number, at least 1")
    if not 0.0 <= restart_s < np.inf:
        raise ConfigError(f"restart_s is {restart_s:g}; it must be at least 0 s")


class EnergyReplay:
    """A run that goes on from event to event; see `replay_energy` for its parameters."""

    def __init__(
        self,
        workload: EnergyWorkload,
        policy: EnergyPolicy,
        period_s: float,
        on_events: bool,
        snapshot_epochs: int,
        restart_s: float,
    ) -> None:
        self.workload, self.policy = workload, policy
        self._period_s, self._on_events, self._restart_s = period_s, on_events, restart_s
        self._submit_s = workload.jobs.submit_s
        self._origin_s = self.now_s = float(self._submit_s[0])
        self.state = EnergyState(workload, snapshot_epochs, restart_s)
        self.active = np.zeros(0, dtype=np.int64)
        self._arrived = self.decisions = 0
        self.decision_s = self.decision_max_s = 0.0
        self._jobs: EnergyJobs = shown_jobs(workload)
        self._cluster = read_only(workload.cluster)._replace(tariff=read_only(workload.cluster.tariff))
        self._least = workload.jobs.epochs.copy()  # epochs left, at the furthest that jobs ever were
        self._news = False  # whether anything ended or was submitted since the last call
        self._vain, self._vain_since_s, self._vain_ran = 0, self.now_s, False
        times, epochs = workload.truth.epoch_s, np.minimum(workload.jobs.epochs, snapshot_epochs)
        longest_s = (np.where(np.isfinite(times), times, 0.0).max(axis=(1, 2)) * epochs).max()
        self._patience_s = PATIENT_SNAPSHOTS * (float(longest_s) + restart_s)

    @property
    def over(self) -> int:
        """Jobs that have ended."""
        return self._arrived - len(self.active)

    def step(self) -> bool:
        """Go to the next event, and ask the policy there; False where nothing is left. Raises DecisionError."""
        if not len(self.active) and self._arrived == len(self._submit_s):
            return False
        before_s, running = self.now_s, self.state.running(self.active)
        self.now_s = max(before_s, self._next_instant(running))
        self.state.pass_time(before_s, self.now_s, running)
        over = self.state.finish(self.now_s, running)
        if len(over):
            self.active = self.active[np.isnan(self.state.end_s[self.active])]
        events = bool(self._arrive()) or len(over) > 0
        self._news |= events
        if len(self.active) and ((self._on_events and events) or self._on_grid()):
            self._watch()
            self._decide()
        return True

    def _next_instant(self, running: np.ndarray) -> float:
        """The next event; of events that are apart by dust the last one, for all of them."""
        grid_s = self._next_grid_s() if len(self.active) else np.inf
        submit_s = self._submit_s[self._arrived] if self._arrived < len(self._submit_s) else np.inf
        known = np.append(self.state.done_s[running], (grid_s, submit_s))
        limit_s = known.min() + DUST_S
        last = int(np.searchsorted(self._submit_s, limit_s, side="right")) - 1
        latest_s = self._submit_s[last] if last >= self._arrived else -np.inf
        return float(max(known[known <= limit_s].max(), latest_s))

    def _next_grid_s(self) -> float:
        step = np.floor((self.now_s - self._origin_s) / self._period_s) + 1.0
        at_s = self._origin_s + step * self._period_s
        return float(at_s if at_s > self.now_s + DUST_S else at_s + self._period_s)

    def _on_grid(self) -> bool:
        step = np.rint((self.now_s - self._origin_s) / self._period_s)
        return bool(abs(self._origin_s + step * self._period_s - self.now_s) <= DUST_S)

    def _arrive(self) -> int:
        """Let those in who are submitted by now; how many."""
        until = int(np.searchsorted(self._submit_s, self.now_s, side="right"))
        fresh = np.arange(self._arrived, until)
        self.active = np.concatenate([self.active, fresh])
        self._arrived = until
        return len(fresh)

    def _decide(self) -> None:
        view = self._view()
        began_s = time.process_time()
        decided = self.policy.decide(view)
        took_s = time.process_time() - began_s
        self.decision_s += took_s
        self.decision_max_s = max(self.decision_max_s, took_s)
        self.decisions += 1
        workload = self.workload
        fault = fault_of(decided, self.active, workload.cluster, workload.truth.epoch_s, workload.job_ids)
        if fault is not None:
            self._refuse(fault)
        node, gpus = (np.asarray(column, dtype=np.int64) for column in (decided.node_of, decided.gpus_of))
        self.state.move(self.now_s, self.active, node, gpus)

    def _view(self) -> EnergyView:
        state = self.state
        return read_only(
            EnergyView(
                now_s=self.now_s,
                jobs=self._jobs,
                cluster=self._cluster,
                active=self.active,
                node_of=state.node_of,
                gpus_of=state.gpus_of,
                left=state.left,
                left_saved=state.left_saved,
                started=state.started,
                restart_s=self._restart_s,
                period_s=self._period_s,
                call=self.decisions,
            )
        )

    def _watch(self) -> None:
        """Count the calls in vain. Raises DecisionError when there were too many of them."""
        left, least = self.state.left[self.active], self._least[self.active]
        if self._news or self._arrived < len(self._submit_s) or (left < least - EPOCH_DUST).any():
            self._vain, self._vain_since_s, self._vain_ran = 0, self.now_s, False
        self._news = False
        self._least[self.active] = np.minimum(left, least)
        self._vain += 1
        self._vain_ran |= len(self.state.running(self.active)) > 0
        if self._vain > PATIENCE and not (self._vain_ran and self.now_s - self._vain_since_s <= self._patience_s):
            name, others = self.workload.job_ids[int(self.active[0])], len(self.active) - 1
            self._refuse(
                f"leaves job {name} and {others} others for ever: none got further in the last {PATIENCE} decisions, "
                "and no more will be submitted"
            )

    def _refuse(self, fault: str) -> None:
        raise DecisionError(f"policy {self.policy.name} at {self.now_s:.3f} s: {fault}")

    def log(self) -> EnergyLog:
        """What has happened, once all is over."""
        state, meter, jobs = self.state, self.state.meter, self.workload.jobs
        cluster = self.workload.cluster
        return EnergyLog(
            policy=self.policy.name,
            job_ids=self.workload.job_ids,
            submit_s=jobs.submit_s,
            start_s=state.start_s,
            end_s=state.end_s,
            due_s=jobs.due_s,
            weight=jobs.weight,
            epochs=jobs.epochs,
            run_s=state.run_s,
            gpu_s=state.gpu_s,
            energy_kwh=meter.job_kwh,
            energy_eur=meter.job_eur,
            preemptions=state.preemptions,
            migrations=state.migrations,
            lost_epochs=state.lost_epochs,
            segments=state.segments(),
            gpus=int(cluster.kind_gpus[cluster.kind_of].sum()),
            node_energy_kwh=meter.node_kwh,
            node_energy_eur=meter.node_eur,
            decisions=self.decisions,
            decision_s=self.decision_s,
            decision_max_s=self.decision_max_s,
        )
