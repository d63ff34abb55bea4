"""What a learned scheduler reads of a waiting job, and of a server for a task. After MLFS, section 3.4: the state.

Rows are of about the size of one: logarithms of seconds, MB and counts, shares, and differences of accuracies.
"""

from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.compiled import B1, F1, F2, I1, njit, types
from jobcast.domain.tasks import TaskCluster, TaskJobs, TaskView
from jobcast.schedulers.tasks.host_selection import plain

# Learning algorithms that are told apart (section 4.1: AlexNet, ResNet, MLP, LSTM, SVM); others share the last.
ALGORITHMS = 5
# Columns of a waiting job's row; from `cluster_gpu` to `queue` they are the same for all jobs. `hold` is 1 in the row
# of the choice to leave all that still wait in the queue for now, in which only these columns are not 0.
JOB_FEATURES = (
    "waited",
    "ran",
    "age",
    "remaining",
    "gpus",
    "gpu_shares",
    "gpu_time",
    "to_deadline",
    "slack",
    "late",
    "out_of_reach",
    "urgency",
    "urgent",
    "progress",
    "iteration",
    "first_epochs",
    "gain",
    "accuracy_gap",
    "final_gap",
    "final_known",
    "final_sd",
    "epoch",
    "iterations",
    *(f"algorithm_{number}" for number in range(ALGORITHMS)),
    "largest_part",
    "tasks",
    "depth",
    "width",
    "volume",
    "traffic",
    "cpu",
    "memory",
    "bandwidth",
    "queued_share",
    "cluster_gpu",
    "cluster_cpu",
    "cluster_memory",
    "cluster_bandwidth",
    "queue",
    "hold",
)
# What `device_rl` does not read: deadlines, urgency, accuracy and the model's parts (section 4.1, RL).
ML_FEATURES = (
    "to_deadline",
    "slack",
    "late",
    "out_of_reach",
    "urgency",
    "urgent",
    "first_epochs",
    "gain",
    "accuracy_gap",
    "final_gap",
    "final_known",
    "final_sd",
    "largest_part",
)


class Host(NamedTuple):
    """Columns of a server's row for a task.

    `queue` is 1 in the row of the choice to stop its job, in which columns of servers are 0; the last three are the
    same for all rows.
    """

    gpu: int
    cpu: int
    memory: int
    bandwidth: int
    task_gpu: int
    task_cpu: int
    task_memory: int
    task_bandwidth: int
    above_least_gpu: int
    above_least_cpu: int
    above_least_memory: int
    above_least_bandwidth: int
    freest_gpu: int
    freest_gpu_after: int
    fullest_after: int
    near: int
    below_nearest: int
    job_here: int
    room_for_rest: int
    tasks_left: int
    moves: int
    stays: int
    is_server: int
    queue: int
    job_remaining: int
    job_gpus: int
    waiting: int


HOST = Host(*range(len(Host._fields)))
HOST_FEATURES = Host._fields
JOBS = types.NamedTuple([F1] * 7 + [I1] * 7 + [F2, F1, F1, B1, I1, I1, F1], TaskJobs)
CLUSTER = types.NamedTuple([F2, I1], TaskCluster)
VIEW = types.NamedTuple(
    [types.float64, JOBS, CLUSTER, I1, I1, F2, F1, F2] + [F1] * 10 + [I1, F2],
    TaskView,
)
# Slack at which more makes little difference; deadlines lie up to a day ahead (section 4.1).
_SLACK_S = 6 * 3600.0
# Time to a deadline that there is none of, in the unit of the column; 1 is two days.
_FARTHEST = 1.5
_NO_GAP = 0.0


@njit(types.float64(types.float64), cache=True)
def log_minutes(seconds: float) -> float:
    """0 for no time, 1 for two days."""
    return float(np.log1p(max(seconds, 0.0) / 60.0) / 8.0)


@njit(types.UniTuple(types.float64, 2)(VIEW, types.int64), cache=True)
def graph_size(view: Any, job: int) -> tuple[float, float]:
    """Depth of a job's task graph in tasks, and how many tasks its widest level holds; without a parameter server."""
    jobs = view.jobs
    begin, end = jobs.task_of[job], jobs.task_of[job + 1]
    level = np.zeros_like(jobs.job_of[begin:end])
    for edge in range(jobs.edge_of[job], jobs.edge_of[job + 1]):
        start, goal = jobs.edge_from[edge], jobs.edge_to[edge]
        # Edges to earlier tasks are the exchange at the end; levels are of one iteration.
        if start < goal and not jobs.is_server[goal]:
            level[goal - begin] = max(level[goal - begin], level[start - begin] + 1)
    wide = np.bincount(level[~jobs.is_server[begin:end]])
    return float(len(wide)), float(wide.max())


@njit(F1(VIEW), cache=True)
def cluster_use(view: Any) -> Any:
    """Utilisation of the whole cluster by resource, (4,)."""
    used = np.zeros(4)
    for resource in range(4):
        most = view.cluster.capacity[:, resource].sum()
        used[resource] = view.load[:, resource].sum() / most if most > 0.0 else 0.0
    return used


@njit(types.void(VIEW, types.int64, F1), cache=True)
def _fill_times(view: Any, job: int, row: Any) -> None:
    jobs = view.jobs
    remaining = (view.limit[job] - view.done[job]) * jobs.iteration_s[job]
    shares = 0.0
    for task in range(jobs.task_of[job], jobs.task_of[job + 1]):
        shares += jobs.demand[task, 0]
    row[0] = log_minutes(view.waited_s[job])
    row[1] = log_minutes(view.ran_s[job])
    row[2] = log_minutes(view.now_s - jobs.submit_s[job])
    row[3] = log_minutes(remaining)
    row[4] = np.log2(max(jobs.gpus[job], 1)) / 5.0
    row[5] = np.log1p(shares) / 3.0
    row[6] = log_minutes(remaining * shares)
    left = jobs.deadline_s[job] - view.now_s
    row[7] = log_minutes(left) if np.isfinite(left) else _FARTHEST
    row[8] = np.tanh((left - remaining) / _SLACK_S)
    row[9] = 1.0 if left < 0.0 else 0.0
    row[10] = 1.0 if left < remaining else 0.0


@njit(types.void(VIEW, types.int64, F1), cache=True)
def _fill_learning(view: Any, job: int, row: Any) -> None:
    jobs = view.jobs
    row[11] = jobs.urgency[job] / 10.0
    row[12] = 1.0 if jobs.urgency[job] > 8.0 else 0.0
    row[13] = view.done[job] / max(jobs.iterations[job], 1.0)
    row[14] = np.log1p(view.done[job]) / 12.0
    row[15] = 1.0 / (1.0 + np.floor(view.done[job] / max(jobs.epoch_iterations[job], 1.0)))
    gained = view.all_gain[job]
    # Before the first epoch the reduction counts as 1, as in equation 2.
    row[16] = view.last_gain[job] / gained if gained > 0.0 else 1.0
    gap = jobs.target[job] - (0.0 if np.isnan(view.accuracy[job]) else view.accuracy[job])
    row[17] = _NO_GAP if np.isnan(gap) else gap
    final = view.final_mean[job] - jobs.target[job]
    row[18] = _NO_GAP if np.isnan(final) else final
    row[19] = 0.0 if np.isnan(view.final_mean[job]) else 1.0
    row[20] = 0.0 if np.isnan(view.final_sd[job]) else view.final_sd[job]
    row[21] = log_minutes(jobs.epoch_iterations[job] * jobs.iteration_s[job])
    row[22] = np.log1p(view.limit[job]) / 12.0
    # One of five columns; algorithms that are not told apart share the last.
    row[23 + max(0, min(jobs.algorithm[job], 4))] = 1.0


@njit(types.void(VIEW, types.int64, F1), cache=True)
def _fill_graph(view: Any, job: int, row: Any) -> None:
    jobs = view.jobs
    begin, end = jobs.task_of[job], jobs.task_of[job + 1]
    largest, queued, volume = 0.0, 0, 0.0
    # Only what is still queued: the rest is in the load of the cluster.
    needs = np.zeros(4)
    for task in range(begin, end):
        largest = max(largest, jobs.size_share[task])
        if view.gpu_of[task] < 0:
            queued += 1
            for resource in range(4):
                needs[resource] += jobs.demand[task, resource]
    for edge in range(jobs.edge_of[job], jobs.edge_of[job + 1]):
        volume += jobs.volume_mb[edge]
    depth, width = graph_size(view, job)
    row[28] = largest
    row[29] = np.log1p(end - begin) / 4.0
    row[30] = np.log1p(depth) / 4.0
    row[31] = np.log1p(width) / 4.0
    row[32] = np.log1p(volume) / 10.0
    row[33] = np.log1p(volume / max(jobs.iteration_s[job], 1e-9)) / 10.0
    for resource in range(1, 4):
        most = view.cluster.capacity[:, resource].sum()
        row[33 + resource] = needs[resource] / most if most > 0.0 else 0.0
    row[37] = queued / (end - begin)


@njit(F2(VIEW, I1), cache=True)
def job_rows(view: Any, waiting: Any) -> Any:
    """Rows of jobs with tasks in the queue, (n_waiting, n_features); columns by `JOB_FEATURES`."""
    rows = np.zeros((len(waiting), 44))
    used = cluster_use(view)
    for place in range(len(waiting)):
        job, row = waiting[place], rows[place]
        _fill_times(view, job, row)
        _fill_learning(view, job, row)
        _fill_graph(view, job, row)
        row[38:42] = used
        row[42] = np.log1p(len(waiting)) / 7.0
    return rows


@njit(F1(VIEW, types.int64, types.int64), cache=True)
def told_of(view: Any, job: int, waiting: int) -> Any:
    """What rows of servers tell of a task's job: time remaining, GPU shares, and how many jobs wait, (3,)."""
    shares = 0.0
    for task in range(view.jobs.task_of[job], view.jobs.task_of[job + 1]):
        shares += view.jobs.demand[task, 0]
    remaining_s = (view.limit[job] - view.done[job]) * view.jobs.iteration_s[job]
    return np.array([log_minutes(remaining_s), np.log1p(shares) / 3.0, np.log1p(waiting) / 7.0])


@njit(F2(VIEW, types.int64), cache=True)
def hold_row(view: Any, waiting: int) -> Any:
    """The row of leaving all jobs in the queue, (1, n_features), where so many wait."""
    row = np.zeros((1, 44))
    row[0, 38:42] = cluster_use(view)
    row[0, 42] = np.log1p(waiting) / 7.0
    row[0, 43] = 1.0
    return row


@njit(types.boolean(VIEW), cache=True)
def some_job_runs(view: Any) -> bool:
    """Whether all tasks of some job are on GPUs: only then may all others be left in the queue."""
    for job in view.active:
        whole = True
        for task in range(view.jobs.task_of[job], view.jobs.task_of[job + 1]):
            whole = whole and view.gpu_of[task] >= 0
        if whole:
            return True
    return False


@njit(I1(VIEW), cache=True)
def jobs_with_queued_tasks(view: Any) -> Any:
    """Active jobs of which some task is on no GPU, in order of submission."""
    found = np.empty(len(view.active), np.int64)
    count = 0
    for job in view.active:
        for task in range(view.jobs.task_of[job], view.jobs.task_of[job + 1]):
            if view.gpu_of[task] < 0:
                found[count] = job
                count += 1
                break
    return found[:count].copy()


def plain_view(view: TaskView) -> TaskView:
    """A view as compiled code takes it: arrays in one piece that may be written; copied only where they are not."""
    jobs = TaskJobs(*(plain(column) for column in view.jobs))
    cluster = TaskCluster(*(plain(column) for column in view.cluster))
    rest = (plain(column) for column in view[3:])
    return TaskView(float(view.now_s), jobs, cluster, *rest)
