"""A run of jobs of tasks from the first submission to the last completion: a decision a round, and its record.

At a tick: completions so far, arrivals, loads measured, forecasts, then one decision. Between ticks rates stay as they
are; completions have their exact instants, and what they free is used from the next tick on. Ticks without active jobs
are left out. MLFS, section 3.3.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from math import ceil

import numpy as np

from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.domain.jobs import FLAT_POOL, Pool
from jobcast.domain.optstop import stall_epochs
from jobcast.domain.tasks import AccuracyForecast, Floats, TaskDecision, TaskPolicy, TaskView
from jobcast.simulator.log import TASKS, RunLog, Spans
from jobcast.simulator.tasks.asking import ask_forecasts
from jobcast.simulator.tasks.faults import CHANGED, told
from jobcast.simulator.tasks.spans import spans_of
from jobcast.simulator.tasks.state import ACTIVE, MOVES, OVERLOADS, ROOM, SLOT_S, empty_state, world_of
from jobcast.simulator.tasks.workload import EPOCH_DUST, TaskWorkload

PROGRESS_EVERY = 200
"""Decisions between two calls of `progress`."""
PATIENCE = 1_440
"""Decisions in a row in which no job may get on while none will arrive: a day of minutes."""
ARRIVAL_DUST_S = 1e-9


def replay_tasks(
    workload: TaskWorkload,
    policy: TaskPolicy,
    forecast: AccuracyForecast | None = None,
    *,
    round_s: float = 60.0,
    seed: int = 0,
    fluctuation: float = 0.2,
    restart_s: float = 10.0,
    forecast_every: float = 0.1,
    progress: Callable[[int, int], None] | None = None,
) -> RunLog:
    """Run all jobs to completion.

    Parameters
    ----------
    workload : jobs, truth and servers
    policy : asked once a round
    forecast : of final metrics; None leaves them NaN in views
    round_s : seconds between two decisions
    seed : of what tasks use
    fluctuation : standard deviation of what a task uses over what it uses at rest, memory apart
    restart_s : seconds that a job stands still when a task of it moved, or when it goes on after a stop
    forecast_every : share of a job's epochs between two forecasts
    progress : called with (jobs over, all) every few hundred decisions and at the end

    Raises
    ------
    TraceError
        The workload cannot be replayed.
    ConfigError
        A setting below what it can be.
    DecisionError
        The policy asks for what cannot be, or leaves jobs for ever.
    """
    _check(round_s=round_s, forecast_every=forecast_every)
    _check(least=0.0, fluctuation=fluctuation, restart_s=restart_s)
    workload.check()
    run = TaskReplay(workload, policy, forecast, round_s, seed, fluctuation, restart_s, forecast_every)
    count = len(workload)
    while run.step():
        if progress is not None and run.decisions % PROGRESS_EVERY == 0:
            progress(run.over, count)
    if progress is not None:
        progress(count, count)
    return run.log()


def _check(least: float = 1e-9, **settings: float) -> None:
    for name, value in settings.items():
        if not least <= value < np.inf:
            raise ConfigError(f"{name} is {value:g}; it must be {'above' if least else 'at least'} 0")


class TaskReplay:
    """A run that goes on from tick to tick; see `replay_tasks` for its parameters."""

    def __init__(
        self,
        workload: TaskWorkload,
        policy: TaskPolicy,
        forecast: AccuracyForecast | None,
        round_s: float,
        seed: int,
        fluctuation: float,
        restart_s: float,
        forecast_every: float,
    ) -> None:
        from jobcast.simulator.tasks import advance, moves, rates

        self._advance, self._moves, self._rates = advance, moves, rates
        self.workload, self.policy, self._forecast = workload, policy, forecast
        self._round_s, self._every = round_s, forecast_every
        self.world = world_of(workload, seed=seed, fluctuation=fluctuation, restart_s=restart_s)
        self.state = empty_state(self.world.jobs, self.world.cluster)
        self._submit_s = self.world.jobs.submit_s - self.world.origin_s
        self._epochs = workload.epochs
        self._stall = stall_epochs(self._epochs)
        self._best = np.fmax.accumulate(self.world.metric[:, 1:], axis=1)
        self._tick = self._arrived = self.decisions = self._idle = 0
        self._slot: int | None = None
        self.decision_s = 0.0
        self._stale = True
        self._moved: list[Floats] = []

    @property
    def over(self) -> int:
        """Jobs that have ended."""
        return self._arrived - int(self.state.counts[ACTIVE])

    @property
    def now_s(self) -> float:
        """The tick, seconds from the epoch."""
        return self.world.origin_s + self._tick * self._round_s

    def step(self) -> bool:
        """One tick and the round after it; whether anything is left to do. Raises DecisionError as `replay_tasks`."""
        view = self.look()
        if view is None:
            return False
        began_s = time.process_time()
        decided = self.policy.decide(view)
        self.decision_s += time.process_time() - began_s
        self.go_on(decided)
        return True

    def look(self) -> TaskView | None:
        """Go to the next tick, and see what a policy sees; None where nothing is left to do.

        Views share the run's own arrays: copy what is needed beyond the answer.
        """
        if not self._next_tick():
            return None
        self._measure()
        if self._forecast is not None:
            ask_forecasts(self._forecast, self.world, self.state, self._epochs, self._every)
        return self._view()

    def go_on(self, decided: TaskDecision) -> None:
        """Carry out what was decided on the latest look, and let a round pass. Raises DecisionError."""
        self.decisions += 1
        self._carry_out(decided)
        self._pass_round()

    def _next_tick(self) -> bool:
        """Let those arrive who were submitted; where nobody is there, at the tick after the next submission."""
        if not self.state.counts[ACTIVE]:
            if self._arrived == len(self._submit_s):
                return False
            self._tick = max(self._tick, ceil((self._submit_s[self._arrived] - ARRIVAL_DUST_S) / self._round_s))
        now_s, state = self._tick * self._round_s, self.state
        until = int(np.searchsorted(self._submit_s, now_s + ARRIVAL_DUST_S, side="right"))
        fresh = np.arange(self._arrived, until)
        if len(fresh):
            active = int(state.counts[ACTIVE])
            state.active[active : active + len(fresh)] = fresh
            state.counts[ACTIVE] += len(fresh)
            state.is_active[fresh] = True
            state.waited_s[fresh] = np.maximum(0.0, now_s - self._submit_s[fresh])
            self._arrived = until
        return True

    def _measure(self) -> None:
        """Measure loads, unless nothing that they depend on has changed."""
        slot = int(self.now_s // SLOT_S)
        if self._stale or slot != self._slot:
            self._slot, self._stale = slot, True  # stale until rates are set
            self._rates.measure(self.world, self.state, slot)

    def _view(self) -> TaskView:
        state = self.state
        return TaskView(
            now_s=self.now_s,
            jobs=self.world.jobs,
            cluster=self.world.cluster,
            active=state.active[: state.counts[ACTIVE]].copy(),
            gpu_of=state.gpu_of,
            load=state.load,
            gpu_load=state.gpu_load,
            task_load=state.task_load,
            done=state.done,
            limit=state.limit,
            waited_s=state.waited_s,
            ran_s=state.ran_s,
            accuracy=state.accuracy,
            last_gain=state.last_gain,
            all_gain=state.all_gain,
            earlier=self._earlier(),
            final_mean=state.final_mean,
            final_sd=state.final_sd,
        )

    def _earlier(self) -> Floats:
        """(n_jobs,) best metric as of the epochs before over which a run must have stalled; NaN for younger jobs."""
        active = self.state.active[: self.state.counts[ACTIVE]]
        before = self.state.epoch[active] - self._stall[active]
        old = before >= 1
        earlier = np.full(len(self._stall), np.nan)
        earlier[active[old]] = self._best[active[old], before[old] - 1]
        return earlier

    def _carry_out(self, decided: TaskDecision) -> None:
        """Do what the policy asks for, and set rates by it."""
        stop, tasks, gpus, limited = (
            np.require(column, dtype=np.int64, requirements=("C", "W"))
            for column in (decided.stop, decided.tasks, decided.gpus, decided.limited)
        )
        limits = np.require(decided.limits, dtype=np.float64, requirements=("C", "W"))
        if self.state.counts[MOVES] > ROOM:
            self._take_moves()
        if len(tasks) != len(gpus) or len(limited) != len(limits):
            self._refuse(f"gives {len(gpus)} GPUs for {len(tasks)} tasks, {len(limits)} limits for {len(limited)} jobs")
        status = self._moves.carry_out(
            *(self.world, self.state, self._tick * self._round_s, self._slot, self._stale),
            *(stop, tasks, gpus, limited, limits),
        )
        if status > CHANGED:
            self._refuse(told(status, self.world, self.state, self.workload.job_ids, limits))
        self._stale = False

    def _pass_round(self) -> None:
        """On to the next tick. Raises DecisionError when no job gets on any more, and none will arrive."""
        from_s = self._tick * self._round_s
        self._tick += 1
        news = self._advance.advance(self.world, self.state, from_s, self._tick * self._round_s)
        self._stale |= news == self._advance.SOME_ENDED
        waiting = news == self._advance.NONE_MOVED and self._arrived == len(self._submit_s)
        self._idle = self._idle + 1 if waiting else 0
        if self._idle >= PATIENCE:
            name = self.workload.job_ids[int(self.state.active[0])]
            others = int(self.state.counts[ACTIVE]) - 1
            self._refuse(
                f"leaves job {name} and {others} others for ever: none got on in the last {PATIENCE} decisions, "
                "and no more will arrive"
            )

    def _refuse(self, fault: str) -> None:
        raise DecisionError(f"policy {self.policy.name} at {self.now_s:.3f} s: {fault}")

    def log(self) -> RunLog:
        """What has happened so far. A job's start is the first time that all its tasks were on GPUs."""
        world, state, jobs = self.world, self.state, self.world.jobs
        count = len(jobs.submit_s)
        return RunLog(
            policy=self.policy.name,
            pools=(Pool(FLAT_POOL, len(state.gpu_load)),),
            submit_s=jobs.submit_s,
            start_s=world.origin_s + state.start_s,
            end_s=world.origin_s + state.end_s,
            duration_s=self.workload.alone_s,
            gpus=jobs.gpus,
            pool=np.zeros(count, dtype=np.int64),
            preemptions=state.preemptions,
            dedicated=np.ones(count, dtype=np.bool_),
            spans=self._spans(),
            events=self.decisions,
            law=TASKS,
            columns=self._columns(),
            totals={
                "decisions": self.decisions,
                "decision_s": self.decision_s,
                "overloads": int(state.counts[OVERLOADS]),
            },
        )

    def _columns(self) -> dict[str, Floats]:
        """What is added to a log, by names of `COLUMNS`."""
        world, state, jobs = self.world, self.state, self.world.jobs
        return {
            "due_s": jobs.deadline_s,
            "weight": jobs.urgency,
            "target": jobs.target,
            "iterations": world.iterations,
            "done": state.done,
            "ran_s": state.ran_s,
            "used_gpu_s": state.gpu_s,
            "accuracy": self._accuracy_at(state.done),
            "deadline_accuracy": self._accuracy_at(state.deadline_done),
            "edge_mb": state.edge_mb,
            "moved_mb": state.moved_mb,
            "migrations": state.migrations.astype(np.float64),
        }

    def _spans(self) -> Spans:
        self._take_moves()
        moves = np.concatenate(self._moved)
        now_s, origin_s = self._tick * self._round_s, self.world.origin_s
        held = spans_of(moves, self.world.jobs.job_of, self.world.cluster.server_of, now_s)
        return replace(held, from_s=held.from_s + origin_s, until_s=held.until_s + origin_s)

    def _take_moves(self) -> None:
        """Take the record of moves out of the state, which has room again."""
        counts = self.state.counts
        self._moved.append(self.state.moves[: counts[MOVES]].copy())
        counts[MOVES] = 0

    def _accuracy_at(self, done: Floats) -> Floats:
        """Metric at the end of the latest epoch after so many iterations, (n_jobs,)."""
        world = self.world
        epoch = np.floor(done / world.jobs.epoch_iterations + EPOCH_DUST).astype(np.int64)
        epoch = np.where(done >= world.iterations * (1.0 - EPOCH_DUST), world.epochs, np.minimum(epoch, world.epochs))
        found: Floats = world.metric[np.arange(len(done)), epoch]
        return found
