"""Priorities of tasks by what they are worth to accuracy and to time. MLFS, section 3.3.1, equations 2 to 6.

What the paper leaves open is read as follows.

- An iteration I, and the loss that it reduced, is an epoch: a metric is seen at the end of each. Before the first one
  the normalised reduction is 1, as after it, when the latest reduction is all there was.
- 1 / (d - t), 1 / r and w of equation 4 are added although their units differ, and the published code has no formula
  for them: each time is counted in its mean over the active jobs, and equation 2 in its mean over their tasks, so that
  no unit decides. With `unit_s` times count in so many seconds, and equation 2 as it is printed.
- Sums over dependent tasks (equations 3 and 5) put a job of many tasks before a short one. Here they are weighted means
  over a task and those that depend on it; with `sums` they are as printed.
- A task's deadline is its job's less the seconds that an iteration goes on after the task: its last run must end then.
  Every iteration needs every task, so what remains to a task is what remains to its job; both are at least a decision.
- A job that is too late has no deadline to keep: the term is 0, or with `late` stays at its largest.
- Dependent tasks are those that a task sends to, the parameter server apart: its edges are the exchange of
  parameters, not the dependency graph, and it has the highest priority of its job.
"""

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.compiled import F1, I1, njit, types
from jobcast.domain.tasks import TaskView
from jobcast.schedulers.tasks.host_selection import DECISION_S, plain
from jobcast.schedulers.tasks.mlfs_settings import Weights
from jobcast.schedulers.tasks.packing import WANTS, Wants, wants_of


@njit(types.void(WANTS, types.int64, types.float64, F1), cache=True)
def add_children(graph: Wants, job: int, gamma: float, value: Floats) -> None:
    """To each task's value (n_tasks,) add gamma times those of its children, which had theirs added before.

    Equations 3 and 5. Tasks are numbered in topological order, so that they are taken from the last to the first.
    """
    begin, end = graph.edge_of[job], graph.edge_of[job + 1]
    edges = np.argsort(-graph.edge_from[begin:end], kind="mergesort")
    for k in range(len(edges)):
        edge = begin + edges[k]
        task, child = graph.edge_from[edge], graph.edge_to[edge]
        # Backward edges are the exchange of parameters, which would make a circle.
        if task < child and not graph.is_server[child]:
            value[task] += gamma * value[child]


@njit(types.void(WANTS, types.int64, F1, F1), cache=True)
def find_tails(graph: Wants, job: int, compute_s: Floats, tail_s: Floats) -> None:
    """Fill tail_s (n_tasks,): seconds that an iteration goes on, at the least, after each task of a job has run."""
    begin, end = graph.edge_of[job], graph.edge_of[job + 1]
    for task in range(graph.task_of[job], graph.task_of[job + 1]):
        tail_s[task] = 0.0
    edges = np.argsort(-graph.edge_from[begin:end], kind="mergesort")
    for k in range(len(edges)):
        edge = begin + edges[k]
        task, child = graph.edge_from[edge], graph.edge_to[edge]
        if task < child:
            tail_s[task] = max(tail_s[task], compute_s[child] + tail_s[child])


@njit(types.void(WANTS, I1, F1, F1), cache=True)
def _all_tails(graph: Wants, jobs: Ints, compute_s: Floats, tail_s: Floats) -> None:
    for job in jobs:
        find_tails(graph, job, compute_s, tail_s)


@njit(types.void(WANTS, I1, types.float64, types.boolean, F1, F1), cache=True)
def _combine(graph: Wants, jobs: Ints, gamma: float, sums: bool, value: Floats, priority: Floats) -> None:
    """Equations 3 and 5, from the values of tasks by themselves; parameter servers come first in their jobs."""
    parts = np.ones(len(value))
    for job in jobs:
        begin, end = graph.task_of[job], graph.task_of[job + 1]
        add_children(graph, job, gamma, value)
        if not sums:
            add_children(graph, job, gamma, parts)
        highest = -np.inf
        for task in range(begin, end):
            if not graph.is_server[task]:
                priority[task] = value[task] / parts[task]
                highest = max(highest, priority[task])
        # The server has the highest of its job: without it no worker runs.
        for task in range(begin, end):
            if graph.is_server[task]:
                priority[task] = highest


def task_deadlines(view: TaskView) -> Floats:
    """(n_tasks,) by when the last run of each task must end, of active jobs; infinite where there is no deadline."""
    tail_s = np.zeros(len(view.jobs.job_of))
    _all_tails(wants_of(view), view.active, plain(view.jobs.compute_s), tail_s)
    return view.jobs.deadline_s[view.jobs.job_of] - tail_s


def learning_worth(view: TaskView, weights: Weights) -> Floats:
    """(n_jobs,) L_J x 1 / I x normalised reduction of loss: equation 2 without the task's share of the model."""
    jobs = view.jobs
    level = jobs.urgency if weights.urgency else np.ones(len(jobs.urgency))
    epoch = 1.0 + np.floor(view.done / jobs.epoch_iterations + 1e-9)
    share = np.where(epoch > 1.0, 0.0, 1.0)
    np.divide(view.last_gain, view.all_gain, out=share, where=view.all_gain > 0.0)
    return level / epoch * share


def task_priorities(view: TaskView, weights: Weights) -> Floats:
    """(n_tasks,) P_{k,J} of equation 6, of active jobs; 0 for others."""
    jobs, unit_s = view.jobs, weights.unit_s
    # At least a decision, or a term would pass all others as its time nears 0.
    left_s = np.maximum((view.limit - view.done) * jobs.iteration_s, DECISION_S)
    by_job = weights.gamma_r * _unit(left_s[view.active], unit_s) / left_s
    by_job += weights.gamma_w * view.waited_s / _unit(view.waited_s[view.active], unit_s)
    learned = learning_worth(view, weights)[jobs.job_of] * jobs.size_share
    if unit_s is None:
        learned /= _unit(learned[active_tasks(view)])
    # Equations 3 and 5 are linear: what they add up may be weighed by equation 6 before.
    value = weights.alpha * learned + (1.0 - weights.alpha) * (_hurry(view, weights) + by_job[jobs.job_of])
    priority = np.zeros(len(value))
    _combine(wants_of(view), view.active, weights.gamma, weights.sums, value, priority)
    return priority


def active_tasks(view: TaskView) -> Bools:
    """(n_tasks,) those of active jobs."""
    active = np.zeros(len(view.jobs.submit_s), dtype=np.bool_)
    active[view.active] = True
    return np.asarray(active[view.jobs.job_of])


def _unit(values: Floats, unit: float | None = None) -> float:
    """What values (n,) are counted in: the unit, or their mean where there is none; 1 where that is 0."""
    mean = unit if unit is not None else float(values.mean()) if len(values) else 0.0
    return mean if mean > 0.0 else 1.0


def job_order(view: TaskView, priority: Floats) -> Ints:
    """Active jobs as their first tasks come in a queue by priority (n_tasks,); of equals the earlier one first."""
    highest = np.maximum.reduceat(priority, view.jobs.task_of[:-1])[view.active]
    return view.active[np.argsort(-highest, kind="stable")]


def _hurry(view: TaskView, weights: Weights) -> Floats:
    """(n_tasks,) the deadline's term of equation 4; 0 for tasks without a deadline to keep, and for all without it."""
    due_s = view.jobs.deadline_s
    kept = (weights.deadline & np.isfinite(due_s) & ((due_s > view.now_s) | weights.late))[view.jobs.job_of]
    kept &= active_tasks(view)
    left_s = np.maximum(task_deadlines(view)[kept] - view.now_s, DECISION_S)
    term = np.zeros(len(kept))
    term[kept] = weights.gamma_d * _unit(left_s, weights.unit_s) / left_s
    return term
