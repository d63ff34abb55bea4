"""Where a run of jobs of tasks stands, as arrays that compiled code shares with views."""

from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.tasks import QUEUED, TaskCluster, TaskJobs, by_sender
from jobcast.simulator.task_workload import TaskWorkload, epochs_of

OVERLOADED = 0.9
"""h_r: share of a server's capacity beyond which a resource of it is overloaded. MLFS, sections 3.3.2 and 4.1."""
SLOT_S = 300.0
"""What a task uses is drawn anew so often; five minutes."""
COUNTS = range(8)
ACTIVE, OVERLOADS, OVERLOADED_NOW, STATUS, CULPRIT, WHERE, MOVES, TURNED = COUNTS
"""Places in `TaskState.counts`: active jobs; overloads so far, servers overloaded now; how a decision ended, whose
fault it is, and where; moves that wait to be taken; jobs that are on GPUs whole from now on, or no more."""
ROOM_BY_TASK = 4
"""Moves of a task and its copy from one decision to the next: placed by the one; stopped by the other, or at an end."""


class TaskWorld(NamedTuple):
    """What a run plays out in, and does not change. Times count from the first submission.

    Attributes
    ----------
    jobs, cluster : as policies see them
    deadline_s, iterations : (n_jobs,) deadlines, and the iterations after which jobs really end
    epochs : (n_jobs,) in which they end
    metric, model_mb : see `TaskTruth`
    edge_order : (n_edges,) edges by the task that they come from
    origin_s : the first submission, seconds from the epoch
    seed, fluctuation : of what tasks use
    restart_s : seconds that a moved or restarted job stands still
    stragglers, straggler_factor, straggler_s : share of servers that are slow, how many times as long tasks compute on
        one, and how long that lasts, seconds
    """

    jobs: TaskJobs
    cluster: TaskCluster
    deadline_s: Floats
    iterations: Floats
    epochs: Ints
    metric: Floats
    model_mb: Floats
    edge_order: Ints
    origin_s: float
    seed: int
    fluctuation: float
    restart_s: float
    stragglers: float
    straggler_factor: float
    straggler_s: float


class TaskState(NamedTuple):
    """What changes. Times count from the first submission.

    Attributes
    ----------
    gpu_of, task_load, copy_of, step_s : see `TaskView`
    last_server : (n_tasks,) server that the task was on last, or QUEUED
    factor, factor_slot : (n_tasks,) draw of what the task uses over what it uses at rest, and for which slot
    ready_s : (n_tasks, 2) room for when a task and its copy have all that they need, into an iteration
    next_step_s : (n_tasks, 2) `step_s` as it will be seen when an iteration has gone on with it
    slow : (n_servers,) how many times as long as on a healthy server tasks compute
    load, gpu_load, done, limit, waited_s, ran_s, accuracy, last_gain, all_gain, final_mean, final_sd : see `TaskView`
    placed : (n_jobs,) tasks on GPUs
    rate : (n_jobs,) iterations a second, 0 for a job that does not run
    iteration_mb : (n_jobs,) MB that an iteration sends between servers
    gpu_share : (n_jobs,) GPUs in use while it runs
    owed_s : (n_jobs,) seconds that it will stand still when all its tasks are on GPUs
    stalled_until_s : (n_jobs,) when it goes on after that
    epoch, asked : (n_jobs,) epochs finished, and those at the latest forecast
    is_active : (n_jobs,) whether it has come and is not over
    start_s, end_s : (n_jobs,) first time that all tasks were on GPUs, completion; NaN until then
    at_s : (n_jobs,) completion if nothing changes, infinite where there is none or it has been told
    deadline_done : (n_jobs,) iterations done by the deadline, up to now
    edge_mb, moved_mb, gpu_s : (n_jobs,) MB sent between servers by iterations and by moves, GPU-seconds used
    migrations, preemptions : (n_jobs,) moves of tasks from GPU to GPU, times that the job was stopped
    mark : (n_jobs,) room for marks
    turned : (n_jobs,) jobs of which a decision put the last task on a GPU, or took the first; counts[TURNED] of them
    active : (n_jobs,) the active jobs, ascending; the first counts[ACTIVE] of it
    moves : (ROOM_BY_TASK x n_tasks, 3) the latest moves: task (~task of a copy), GPU or QUEUED, and when; the first
        counts[MOVES] of it
    counts : (len(COUNTS),) see there
    """

    gpu_of: Ints
    task_load: Floats
    last_server: Ints
    factor: Floats
    factor_slot: Ints
    ready_s: Floats
    copy_of: Ints
    step_s: Floats
    next_step_s: Floats
    slow: Floats
    load: Floats
    gpu_load: Floats
    done: Floats
    limit: Floats
    waited_s: Floats
    ran_s: Floats
    accuracy: Floats
    last_gain: Floats
    all_gain: Floats
    final_mean: Floats
    final_sd: Floats
    placed: Ints
    rate: Floats
    iteration_mb: Floats
    gpu_share: Floats
    owed_s: Floats
    stalled_until_s: Floats
    epoch: Ints
    asked: Ints
    is_active: Bools
    start_s: Floats
    end_s: Floats
    at_s: Floats
    deadline_done: Floats
    edge_mb: Floats
    moved_mb: Floats
    gpu_s: Floats
    migrations: Ints
    preemptions: Ints
    mark: Ints
    turned: Ints
    active: Ints
    moves: Floats
    counts: Ints


UNKNOWN = ("accuracy", "last_gain", "all_gain", "final_mean", "final_sd", "start_s", "end_s")
"""Columns of the state that are NaN at first."""
INT_COLUMNS = frozenset(
    ["option", "may_become", "algorithm", "gpus", "task_of", "edge_of", "job_of", "edge_from", "edge_to", "server_of"]
)
"""Columns of jobs and servers that hold whole numbers."""
BY_TASK_INTS = {"gpu_of": QUEUED, "copy_of": QUEUED, "last_server": QUEUED, "factor_slot": np.iinfo(np.int64).min}
BY_JOB_INTS = ("placed", "epoch", "asked", "migrations", "preemptions", "mark", "turned", "active")
STATE_INTS = frozenset((*BY_TASK_INTS, *BY_JOB_INTS, "counts"))
"""Columns of the state that hold whole numbers."""


def empty_state(jobs: TaskJobs, cluster: TaskCluster) -> TaskState:
    """An empty cluster before the first submission."""
    count, tasks = len(jobs.submit_s), len(jobs.job_of)
    # A row of zeros by job unless said otherwise below.
    columns = {name: np.zeros(count) for name in TaskState._fields}
    columns |= {name: np.full(count, np.nan) for name in UNKNOWN}
    ints = {name: np.zeros(count, dtype=np.int64) for name in BY_JOB_INTS}
    ints |= {name: np.full(tasks, value, dtype=np.int64) for name, value in BY_TASK_INTS.items()}
    ints["counts"] = np.zeros_like(COUNTS, dtype=np.int64)
    steps_s: Floats = np.full((tasks, 2), np.nan)
    columns |= {
        "task_load": jobs.demand.copy(),
        "factor": np.ones(tasks),
        "ready_s": steps_s.copy(),
        "step_s": steps_s.copy(),
        "next_step_s": steps_s,
        "slow": np.ones(len(cluster.capacity)),
        "moves": np.zeros((ROOM_BY_TASK * tasks, 3)),
        "load": np.zeros_like(cluster.capacity),
        "gpu_load": np.zeros(len(cluster.server_of)),
        "limit": jobs.iterations.copy(),
        "stalled_until_s": np.full(count, -np.inf),
        "at_s": np.full(count, np.inf),
    }
    return TaskState(**{**columns, **ints, "is_active": np.zeros(count, dtype=np.bool_)})  # type: ignore[arg-type]


def world_of(workload: TaskWorkload, **how: Any) -> TaskWorld:
    """What a run of a workload plays out in; `how` : its columns from `seed` on."""
    jobs = TaskJobs(**{name: _typed(name, column) for name, column in workload.jobs._asdict().items()})
    iterations = _typed("iterations", workload.iterations)
    origin_s = float(jobs.submit_s[0])
    return TaskWorld(
        jobs=jobs,
        cluster=TaskCluster(**{name: _typed(name, column) for name, column in workload.cluster._asdict().items()}),
        deadline_s=jobs.deadline_s - origin_s,
        iterations=iterations,
        epochs=epochs_of(iterations, jobs.epoch_iterations),
        metric=_typed("metric", workload.truth.metric),
        model_mb=_typed("model_mb", workload.truth.model_mb),
        edge_order=by_sender(jobs.edge_from),
        origin_s=origin_s,
        **how,
    )


def _typed(name: str, column: Any) -> Any:
    """A column of jobs or servers as compiled code takes it: its type, contiguous and writeable."""
    # Compiled signatures are exact: another type would not be taken.
    dtype = np.int64 if name in INT_COLUMNS else np.bool_ if name == "is_server" else np.float64
    return np.require(column, dtype=dtype, requirements=("C", "W"))
