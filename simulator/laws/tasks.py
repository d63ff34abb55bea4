"""Jobs of tasks: every iteration is as slow as its slowest path through the servers. MLFS, section 3.

What tasks use, and with it the rates of all jobs, is looked at when a decision is made; between decisions rates stay,
completions have their exact instants, and what they free is used from the next decision on. Accounts are brought up to
date when somebody asks.

Whole jobs among tasks: a GPU for each worker that no other task is on, where the memory of servers allows it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.errors import ConfigError, DecisionError, TraceError
from jobcast.domain.jobs import Job
from jobcast.domain.law import TASKS
from jobcast.domain.optstop import stall_epochs
from jobcast.domain.policy import ANYWHERE, Cell, Decision, Grant, Service
from jobcast.domain.tasks import MEMORY, QUEUED, AccuracyForecast, TaskView
from jobcast.simulator.cluster import Starts
from jobcast.simulator.law import Milestone
from jobcast.simulator.laws.task_state import (
    ACTIVE,
    CULPRIT,
    MOVES,
    OVERLOADS,
    SLOT_S,
    STATUS,
    TURNED,
    WHERE,
    TaskState,
    TaskWorld,
    empty_state,
    world_of,
)
from jobcast.simulator.log import task_spans
from jobcast.simulator.task_workload import TaskWorkload

if TYPE_CHECKING:
    from jobcast.simulator.engine import Simulation


class Gangs:
    """GPUs without tasks, and memory, as they are left while a decision is carried out.

    Parameters
    ----------
    world, state : after the stops of the decision
    used_gb : (n_servers,) memory that the tasks on each server need
    """

    def __init__(self, world: TaskWorld, state: TaskState, used_gb: Floats) -> None:
        self._world, self._last = world, state.last_server
        self._memory = world.cluster.capacity[:, MEMORY] - used_gb
        self._free = np.ones(len(world.cluster.server_of), dtype=np.bool_)
        for gpu_of in (state.gpu_of, state.copy_of):
            self._free[gpu_of[gpu_of != QUEUED]] = False

    def take(self, job: int, cells: Sequence[Cell]) -> dict[int, int] | None:
        """GPUs for all tasks of a job, which are taken; None where they do not fit. `cells` : where they must go.

        Else the servers that they were on last; the one that has the fewest GPUs left then; the fewest.
        """
        jobs, hosts = self._world.jobs, self._world.cluster.server_of
        # The first choice that holds all tasks is taken.
        for gpus in [self._of_cells(cells)] if cells else self._choices(job):
            put = self._fill(job, gpus)
            if put is not None:
                for task, gpu in put.items():
                    self._free[gpu] = False
                    self._memory[hosts[gpu]] -= jobs.demand[task, MEMORY]
                return put
        return None

    def _of_cells(self, cells: Sequence[Cell]) -> Ints:
        hosts, taken = self._world.cluster.server_of, self._free.copy()
        found: list[int] = []
        for cell in cells:
            here = np.flatnonzero((hosts == cell.server) & taken)
            if cell.first != ANYWHERE:
                # GPUs are numbered through all servers: the server's first one.
                begin = int(np.searchsorted(hosts, cell.server)) + cell.first
                here = here[(here >= begin) & (here < begin + cell.gpus)]
            found += here[: cell.gpus].tolist()
            taken[here[: cell.gpus]] = False
        return np.array(found, dtype=np.int64)

    def _choices(self, job: int) -> Iterator[Ints]:
        """GPUs to try, in the order in which they are taken."""
        jobs, hosts = self._world.jobs, self._world.cluster.server_of
        free = np.flatnonzero(self._free)
        count = np.bincount(hosts[free], minlength=len(self._memory))
        begin, end = jobs.task_of[job], jobs.task_of[job + 1]
        wanted = int(np.count_nonzero(~jobs.is_server[begin:end]))
        last = self._last[begin:end]
        # Only where all its tasks have been somewhere is there a place to go back to.
        if (last != QUEUED).all():
            yield free[np.isin(hosts[free], last)]
        # The tightest server first; ties by number.
        for server in np.argsort(count, kind="stable"):
            if count[server] >= wanted:
                yield free[hosts[free] == server]
        # None holds all workers: the emptiest servers first, so that it spreads over few.
        yield free[np.argsort(-count[hosts[free]], kind="stable")]

    def _fill(self, job: int, gpus: Ints) -> dict[int, int] | None:
        """Workers on GPUs as they come where there is memory for them, then parameter servers beside them."""
        jobs, hosts = self._world.jobs, self._world.cluster.server_of
        tasks, memory = np.arange(jobs.task_of[job], jobs.task_of[job + 1]), self._memory.copy()
        workers = tasks[~jobs.is_server[tasks]].tolist()
        put: dict[int, int] = {}
        for gpu in gpus.tolist():
            if len(put) == len(workers):
                break
            task = workers[len(put)]
            # A GPU without memory beside it is passed over.
            if jobs.demand[task, MEMORY] <= memory[hosts[gpu]]:
                memory[hosts[gpu]] -= jobs.demand[task, MEMORY]
                put[task] = gpu
        if len(put) < len(workers):
            return None
        beside = list(put.values())
        for task in tasks[jobs.is_server[tasks]].tolist():
            gpu = next((gpu for gpu in beside if jobs.demand[task, MEMORY] <= memory[hosts[gpu]]), QUEUED)
            if gpu == QUEUED:
                return None
            memory[hosts[gpu]] -= jobs.demand[task, MEMORY]
            put[task] = gpu
        return put


PATIENCE = 1_440
"""Decisions in a row in which no job may get on while none will arrive: a day of minutes."""
FEW_EPOCHS = 10
"""Jobs of at most so many epochs are asked about after their first; others after their second, which shows a trend."""
OWN = ("now_s", "jobs", "cluster", "active", "earlier")
"""What of a view the state does not hold."""


class Tasks:
    """Work is iterations; times count from the first submission.

    Parameters
    ----------
    workload : jobs of tasks and the truth about them, in the order of the run's jobs
    forecast : of final metrics, asked as epochs pass; None leaves them NaN in views
    seed : of what tasks use
    fluctuation : standard deviation of what a task uses over what it uses at rest, memory apart
    restart_s : seconds that a job stands still when a task of it moved, or when it goes on after a stop
    forecast_every : share of a job's epochs between two forecasts; at least one epoch
    stragglers : share of servers that are slow at a time, 0 to 1
    straggler_factor : how many times as long tasks compute on one, at least 1
    straggler_h : hours that a server is slow at a time, or is not

    Raises
    ------
    TraceError
        The workload cannot be replayed.
    ConfigError
        A setting below what it can be.
    """

    name = TASKS
    patience = PATIENCE

    def __init__(
        self,
        workload: TaskWorkload,
        forecast: AccuracyForecast | None = None,
        *,
        seed: int = 0,
        fluctuation: float = 0.2,
        restart_s: float = 10.0,
        forecast_every: float = 0.1,
        stragglers: float = 0.0,
        straggler_factor: float = 2.0,
        straggler_h: float = 6.0,
    ) -> None:
        for name, value in (("fluctuation", fluctuation), ("restart_s", restart_s), ("forecast_every", forecast_every)):
            least = 1e-9 if name == "forecast_every" else 0.0
            if not least <= value < inf:
                raise ConfigError(f"{name} is {value:g}; it must be {'above' if least else 'at least'} 0")
        if not (0.0 <= stragglers <= 1.0 and 1.0 <= straggler_factor < inf and 0.0 < straggler_h < inf):
            raise ConfigError(
                f"stragglers is {stragglers:g}, straggler_factor {straggler_factor:g}, straggler_h {straggler_h:g}; "
                "they must be from 0 to 1, at least 1, and above 0"
            )
        workload.check()
        # Numba takes a second to import.
        from jobcast.simulator.laws import task_kernels

        self._kernels: Any = task_kernels
        self.workload, self._forecast, self._every = workload, forecast, forecast_every
        slowness = {"stragglers": stragglers, "straggler_factor": straggler_factor, "straggler_s": straggler_h * 3600.0}
        self.world = world_of(workload, seed=seed, fluctuation=fluctuation, restart_s=restart_s, **slowness)
        self._epochs = workload.epochs
        self._stall = stall_epochs(self._epochs)
        self._best = _best_of(self.world.metric)
        self.decision_s = 0.0

    def bind(self, run: "Simulation") -> None:
        """Everybody is still to come."""
        # Arrays of tasks are indexed by seq: another order would give jobs each other's tasks.
        if [job.job_id for job in run.workload.jobs] != list(self.workload.job_ids) or run.workload.closed:
            raise TraceError(
                "the jobs of tasks are not those that arrive, in order of submission, then of names; make them agree, "
                "and arrive when the trace says"
            )
        if not run.trigger.period_s > 0.0:
            raise ConfigError(f"round_s is {run.trigger.period_s:g}; it must be above 0")
        self.state: TaskState = empty_state(self.world.jobs, self.world.cluster)
        self._fresh: list[int] = []
        self._stopped: list[int] = []
        self._put: dict[int, int] = {}
        self._spots: dict[int, dict[int, int]] = {}  # by seq, GPUs of tasks of whole jobs that start
        self._moved: list[Floats] = []
        self._now_s, self._next_s = 0.0, inf
        self._slot: int | None = None  # that loads were measured in, as long as they hold
        self._rates_slot: int | None = None  # that rates were set in, as long as they hold
        self._gained = False
        self._asked_s: float | None = None

    def next_s(self) -> float:
        """Instant of the next completion, seconds from the epoch."""
        return self.world.origin_s + self._next_s

    def due(self, limit_s: float, most: int | None = None) -> list[Milestone]:
        """Completions up to an instant."""
        # Asked at every event of the run; most have no completion.
        if self.next_s() > limit_s:
            return []
        state, origin_s = self.state, self.world.origin_s
        active = state.active[: state.counts[ACTIVE]]
        jobs = active[origin_s + state.at_s[active] <= limit_s]
        found = sorted((float(origin_s + state.at_s[job]), job, job) for job in jobs.tolist())
        state.at_s[jobs], self._next_s = inf, inf  # `reach` tells the next one
        return found

    def arrive(self, run: "Simulation", job: Job) -> None:
        """A job waits."""
        self._fresh.append(job.seq)

    def reach(self, run: "Simulation", job: Job) -> bool:
        """A job has done all its iterations, or as many as it was limited to."""
        self._next_s = self._kernels.finish(self.world, self.state, job.seq, self._now_s, self._clock(run))
        self._slot = self._rates_slot = None
        self._gained = True
        return True

    def place(self, run: "Simulation", starts: Starts) -> Starts:
        """The starts of whole jobs that fit, one worker a GPU; who does not fit waits, and who comes after in its pool.

        Those that name cells come first.
        """
        if not starts:
            return starts
        for job, _ in starts:  # who goes elsewhere gives back what it holds
            self._stop(run, job.seq)
        gangs = Gangs(self.world, self.state, self._kernels.used_memory(self.world, self.state))
        full: set[str] = set()
        # False sorts first: those with cells.
        for job, grant in sorted(starts, key=lambda start: not start[1].cells):
            put = None if job.pool in full else gangs.take(job.seq, grant.cells)
            if put is not None:
                self._spots[job.seq] = put
            # Who names cells that are taken is refused later, with a reason.
            elif not grant.cells:
                full.add(job.pool)
        fits = [(job, grant) for job, grant in starts if grant.cells or job.seq in self._spots]
        if not run.cluster.servers:
            return fits
        return [(job, grant if grant.cells else grant._replace(cells=self._cells(job))) for job, grant in fits]

    def _cells(self, job: Job) -> tuple[Cell, ...]:
        """Where a job's workers are put."""
        jobs, hosts = self.world.jobs, self.world.cluster.server_of
        there = Counter(int(hosts[gpu]) for task, gpu in self._spots[job.seq].items() if not jobs.is_server[task])
        return tuple(Cell(server, ANYWHERE, count) for server, count in sorted(there.items()))

    def why_not(self, run: "Simulation", job: Job, grant: Grant) -> str | None:
        """A whole job gets as many GPUs as it asked for, one a worker, to itself."""
        if grant.gpus != job.gpus:
            return f"it needs {job.gpus} GPUs, it is given {grant.gpus:g}"
        return None if job.seq in self._spots else "where it is put GPUs are taken, or lack the memory for its tasks"

    def change(self, run: "Simulation", job: Job, old: Grant | None, new: Grant | None) -> None:
        """A job goes back to the queue, or a whole one starts."""
        if old is not None:
            self._stop(run, job.seq)
        if new is not None:
            self._put |= self._spots.pop(job.seq)

    def _stop(self, run: "Simulation", seq: int) -> None:
        self._catch_up(run)
        if self.state.placed[seq]:
            self._kernels.stop(self.world, self.state, seq, self._now_s)
            self._stopped.append(seq)

    def stand(self, run: "Simulation", job: Job, done: float) -> None:
        """Refused: what tasks did to one another before is not told by what they have done."""
        raise ConfigError(f"job {job.job_id}: jobs of tasks begin in an empty cluster; let the run begin before them")

    def leave(self, run: "Simulation", job: Job, held: Grant | None) -> None:
        """Its GPUs are free since it reached its end."""

    def settle(self, run: "Simulation", decision: Decision) -> None:
        """Limits are set, tasks put where they belong, all at once, and rates follow; raises DecisionError."""
        # From the view's delivery to the answer: the policy's own time.
        if self._asked_s is not None:
            self.decision_s += time.process_time() - self._asked_s
        self._look(run)
        tasks, copies, limit = self._put | dict(decision.tasks), decision.copies, decision.limit
        for seq in limit:
            run.known(seq)
        # Before a decision adds to them: the state has room for one.
        if self.state.counts[MOVES]:
            self._take_moves()
        self._next_s = self._kernels.carry_out(
            *(self.world, self.state, self._now_s, self._slot, self._rates_slot != self._slot),
            *(_ints(self._stopped), _ints(tasks), _ints(tasks.values()), _ints(copies), _ints(copies.values())),
            *(_ints(limit), np.fromiter(limit.values(), np.float64, len(limit))),
        )
        if self.state.counts[STATUS] > self._kernels.CHANGED:
            self._refuse(run, limit)
        self._stopped, self._put, self._spots, self._asked_s = [], {}, {}, None
        self._rates_slot = self._slot
        self._turn(run)
        if run.trigger.period_s < inf:  # others must be asked after it: to them it is an event of its own
            self._end_at_once(run)

    def _turn(self, run: "Simulation") -> None:
        """Tell the cluster of jobs that run whole from now on, or no more."""
        cluster = run.cluster
        for seq in self.state.turned[: self.state.counts[TURNED]].tolist():
            job = run.jobs[seq]
            # The cluster's books follow the tasks, not the other way round.
            if seq in cluster.running and self.state.rate[seq] == 0.0:
                cluster.stop(job)
            elif seq not in cluster.running:
                cluster.start(job, Grant(job.gpus))

    def _end_at_once(self, run: "Simulation") -> None:
        """Jobs that are at their limits, or at their ends, end with the decision."""
        for _, _, seq in self.due(run.now_s + run.same_s):
            self.reach(run, run.jobs[seq])
            run.end(run.jobs[seq])

    def _refuse(self, run: "Simulation", limit: Mapping[int, float]) -> None:
        """Raise DecisionError for what a policy did wrong."""
        kernels, world, counts = self._kernels, self.world, self.state.counts
        status, culprit, where = int(counts[STATUS]), int(counts[CULPRIT]), int(counts[WHERE])
        if status in (kernels.LIMIT_DONE, kernels.LIMIT_ABOVE):
            most, done = world.jobs.iterations[culprit], self.state.done[culprit]
            than = (
                f"more than its {most:g}"
                if status == kernels.LIMIT_ABOVE
                else f"fewer than the {done:g} that it has done"
            )
            raise run.refusal("limit", run.jobs[culprit], f"{limit[culprit]:g} iterations are {than}")
        if not 0 <= culprit < len(world.jobs.job_of):
            raise DecisionError(f"policy {run.name} at {run.now_s:.6f} s: cannot place task {culprit}: there is none")
        job = run.jobs[world.jobs.job_of[culprit]]
        task = f"task {culprit - world.jobs.task_of[job.seq]}"
        if status == kernels.NO_MEMORY:
            there = f"lacks the memory for it ({world.cluster.capacity[where, MEMORY]:g} GB in all)"
            raise run.refusal("place", job, f"{task} goes to server {where}, which {there}")
        why = {
            kernels.NO_TASK: "it is not active",
            kernels.NO_GPU: f"{task} goes to GPU {where}, of which there are {len(self.state.gpu_load)}",
            kernels.NO_COPY: f"{task} gets a copy on GPU {where}, but is on no GPU itself",
        }
        raise run.refusal("place", job, why[status])

    def got_on(self, run: "Simulation") -> bool:
        """Whether any job did an iteration, or ended."""
        self._catch_up(run)
        # Told once.
        gained, self._gained = self._gained, False
        return gained

    def service(self, run: "Simulation", job: Job) -> Service:
        """Work is iterations, all of which a stop leaves; in run time as long a part of it as of its iterations."""
        self._catch_up(run)
        seq, state = job.seq, self.state
        done = float(state.done[seq])
        run_s = done / self.world.jobs.iterations[seq] * self.workload.alone_s[seq]
        starts = int(state.preemptions[seq]) + int(state.placed[seq] > 0)
        # All its life but the time in which it waited.
        held_s = max(0.0, self._now_s + self.world.origin_s - job.submit_s - state.waited_s[seq])
        return Service(held_s, run_s, None, done, done, starts)

    def facts(self, run: "Simulation", kind: type[Any]) -> Any:
        """A `TaskView`, which shares the law's own arrays: copy what is needed beyond the answer."""
        if kind is not TaskView:
            raise LookupError(f"a world of {self.name} knows no {kind.__name__}")
        self._look(run)
        if self._forecast is not None:
            self._ask(self._forecast)
        state = self.state
        known = {name: getattr(state, name) for name in TaskView._fields if name not in OWN}
        active = state.active[: state.counts[ACTIVE]].copy()
        now_s = self.world.origin_s + self._now_s
        view = TaskView(now_s, self.world.jobs, self.world.cluster, active, earlier=self._earlier(active), **known)
        self._asked_s = time.process_time()
        return view

    def _clock(self, run: "Simulation") -> float:
        """Now, from the first submission on; at an instant of the grid to the bit what it is on every machine."""
        # Rounding must not let the law's clock go back.
        now_s, period_s = max(run.now_s - self.world.origin_s, self._now_s), run.trigger.period_s
        tick_s = round(now_s / period_s) * period_s  # NaN without a grid, to which nothing is near
        return max(tick_s if abs(now_s - tick_s) <= tolerance.INSTANT_S else now_s, self._now_s)

    def _catch_up(self, run: "Simulation") -> None:
        """Bring the accounts of all who are active up to date; who arrived since waits."""
        now_s, state = self._clock(run), self.state
        if now_s != self._now_s:  # it never goes back
            self._gained |= self._kernels.advance(self.world, state, self._now_s, now_s)
            self._now_s = now_s
        if self._fresh:
            fresh, active = np.array(self._fresh), int(state.counts[ACTIVE])
            state.active[active : active + len(fresh)] = fresh
            state.counts[ACTIVE] += len(fresh)
            state.is_active[fresh] = True
            # They have waited since their submission, between two decisions.
            state.waited_s[fresh] = np.maximum(0.0, now_s - (self.world.jobs.submit_s[fresh] - self.world.origin_s))
            self._fresh = []

    def _look(self, run: "Simulation") -> None:
        """Measure loads, unless nothing that they depend on has changed."""
        self._catch_up(run)
        slot = int((self.world.origin_s + self._now_s) // SLOT_S)
        # Loads depend on who is where and on the slot alone.
        if slot != self._slot:
            self._slot = slot
            self._kernels.measure(self.world, self.state, slot)

    def _ask(self, forecast: AccuracyForecast) -> None:
        """Ask about all active jobs that finished a new part of their epochs since they were last asked about.

        The metric of epochs 1, 2, ... is shown in columns 0, 1, ...; nothing beyond the epochs finished.
        """
        state, epochs = self.state, self._epochs
        active = state.active[: state.counts[ACTIVE]]
        seen = state.epoch[active]
        least = np.where(epochs[active] <= FEW_EPOCHS, 1, 2)
        due = (seen >= least) & (
            seen - state.asked[active] >= np.maximum(1.0, self._every * epochs[active] - tolerance.EPOCHS)
        )
        jobs, seen = active[due], seen[due]
        if not len(jobs):
            return
        columns = np.arange(seen.max())
        shown = np.where(columns < seen[:, None], self.world.metric[jobs, 1 : len(columns) + 1], np.nan)
        state.final_mean[jobs], state.final_sd[jobs] = forecast(jobs.copy(), shown, seen, epochs[jobs])
        state.asked[jobs] = seen

    def _earlier(self, active: Any) -> Floats:
        """(n_jobs,) best metric as of the epochs before over which a run must have stalled; NaN for younger jobs."""
        # Column 0 of `_best` is the first epoch.
        before = self.state.epoch[active] - self._stall[active]
        old = before >= 1
        earlier = np.full(len(self._stall), np.nan)
        earlier[active[old]] = self._best[active[old], before[old] - 1]
        return earlier

    def report(self, run: "Simulation") -> Mapping[str, Any]:
        """Accounts of jobs; a job's start is the first time that all its tasks were on GPUs."""
        self._catch_up(run)
        world, state, jobs = self.world, self.state, self.world.jobs
        self._take_moves()
        job_of = np.concatenate([jobs.job_of, jobs.job_of[::-1]])  # a copy's number is ~task, from the end
        held = task_spans(np.concatenate(self._moved), job_of, world.cluster.server_of, self._now_s)
        return {
            "start_s": world.origin_s + state.start_s,
            "end_s": world.origin_s + state.end_s,
            "preemptions": state.preemptions.copy(),
            "dedicated": np.ones(len(state.done), dtype=np.bool_),
            "spans": replace(held, from_s=held.from_s + world.origin_s, until_s=held.until_s + world.origin_s),
            "columns": {
                "due_s": jobs.deadline_s,
                "weight": jobs.urgency,
                "target": jobs.target,
                "iterations": world.iterations,
                "done": state.done.copy(),
                "ran_s": state.ran_s.copy(),
                "used_gpu_s": state.gpu_s.copy(),
                "accuracy": self._accuracy_at(state.done),
                "deadline_accuracy": self._accuracy_at(state.deadline_done),
                "edge_mb": state.edge_mb.copy(),
                "moved_mb": state.moved_mb.copy(),
                "migrations": state.migrations.astype(np.float64),
            },
            "totals": {
                "decisions": run.decisions,
                "decision_s": self.decision_s,
                "overloads": int(state.counts[OVERLOADS]),
            },
        }

    def believe(self, run: "Simulation", believed_s: Callable[[Job], float]) -> None:
        """Jobs run all the iterations that they declare, tasks use what they use at rest, and no server is slow.

        Metrics go straight from what was seen last to what is forecast of their ends, or stay where nothing is.
        """
        self._catch_up(run)
        state, epochs, active = self.state, self._epochs, np.fromiter(run.cluster.active, dtype=np.int64)
        # Jobs may declare more epochs than any has in truth.
        short = max(0, int(epochs[active].max(initial=0)) + 1 - self.world.metric.shape[1])
        metric = np.pad(self.world.metric, ((0, 0), (0, short)), constant_values=np.nan)
        for job in active.tolist():
            seen, last = int(state.epoch[job]), metric[job, state.epoch[job]]
            final = state.final_mean[job] if np.isfinite(state.final_mean[job]) else last
            to_come = metric[job, seen : epochs[job] + 1]
            to_come[:] = np.linspace(last, final, len(to_come))
        # Asking would change what a policy in the fork believes of jobs.
        self._forecast = None  # forecasts stand as they are
        iterations = self.world.jobs.iterations
        world = self.world._replace(iterations=iterations, epochs=epochs, metric=metric)
        self.world = world._replace(fluctuation=0.0, stragglers=0.0)
        self._best = _best_of(metric)

    def fork(self) -> Self:
        """A copy that goes its own way; neither's later decisions move the other's tasks."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.state = TaskState(**{name: column.copy() for name, column in self.state._asdict().items()})
        copy._fresh, copy._stopped = self._fresh[:], self._stopped[:]
        copy._put, copy._spots, copy._moved = dict(self._put), dict(self._spots), self._moved[:]
        return copy

    def _take_moves(self) -> None:
        """Take the record of moves out of the state, which has room again."""
        counts = self.state.counts
        self._moved.append(self.state.moves[: counts[MOVES]].copy())
        counts[MOVES] = 0

    def _accuracy_at(self, done: Floats) -> Floats:
        """Metric at the end of the latest epoch after so many iterations, (n_jobs,)."""
        world = self.world
        epoch = np.floor(done / world.jobs.epoch_iterations + tolerance.EPOCHS).astype(np.int64)
        epoch = np.where(
            done >= world.iterations * (1.0 - tolerance.EPOCHS), world.epochs, np.minimum(epoch, world.epochs)
        )
        return world.metric[np.arange(len(done)), epoch]


def _best_of(metric: Floats) -> Floats:
    """(n_jobs, epochs) best metric by the end of each epoch."""
    # Fmax passes over the NaN that pad short jobs.
    return np.fmax.accumulate(metric[:, 1:], axis=1)


def _ints(numbers: Any) -> Any:
    """(n,) whole numbers."""
    return np.fromiter(numbers, np.int64, len(numbers))
