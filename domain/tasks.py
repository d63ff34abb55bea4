"""Jobs of tasks: what a policy sees of jobs that are split over servers, and what it may answer.

Wang, Liu, Shen: Job Scheduling for Large-Scale Machine Learning Clusters, CoNEXT 2020 (MLFS), section 3.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.policy import NOTHING, Decision, Trigger, View

RESOURCES = ("gpu", "cpu", "memory", "bandwidth")
"""Columns of demands and capacities: GPUs, cores, GB, MB/s."""
GPU, CPU, MEMORY, BANDWIDTH = range(4)
QUEUED = -1
"""In place of a GPU: the task is on none."""
ALL_ITERATIONS, OPT_STOP, TARGET_ONLY = 1, 2, 3
"""What a user asks for: all iterations, until accuracy grows no more, until the target is reached. Section 3.5."""


class TaskJobs(NamedTuple):
    """Jobs and their tasks by column, jobs in order of submission; the tasks of a job follow one another.

    Attributes
    ----------
    submit_s : (n_jobs,) seconds from the epoch
    deadline_s : (n_jobs,) the same, infinite where there is none
    urgency : (n_jobs,) 1 to 10, above 8 is urgent
    target : (n_jobs,) accuracy that is required, NaN where none is
    iterations : (n_jobs,) most that it runs
    epoch_iterations : (n_jobs,) iterations an epoch; a metric is seen at the end of each epoch
    iteration_s : (n_jobs,) estimate of an iteration's seconds with all tasks near one another and none held up
    option, may_become : (n_jobs,) what the user asks for, and the furthest that load control may change it to
    algorithm : (n_jobs,) index of the learning algorithm
    gpus : (n_jobs,) GPUs that were asked for: its workers
    task_of : (n_jobs + 1,) where a job's tasks begin
    edge_of : (n_jobs + 1,) where a job's edges begin
    job_of : (n_tasks,) whose task it is
    demand : (n_tasks, 4) what it uses at rest of a GPU (a share), cores, GB and MB/s; a parameter server uses no GPU
    compute_s : (n_tasks,) seconds an iteration where nothing holds it up
    size_share : (n_tasks,) its share of the model's parameters, S_k / S_J; 0 for a parameter server
    is_server : (n_tasks,) whether it is the job's parameter server
    edge_from, edge_to : (n_edges,) tasks; a later task waits for what it is sent, an edge to an earlier task carries
        what is exchanged at the iteration's end: a server's broadcast, a ring of all-reduce
    volume_mb : (n_edges,) MB an iteration
    """

    submit_s: Floats
    deadline_s: Floats
    urgency: Floats
    target: Floats
    iterations: Floats
    epoch_iterations: Floats
    iteration_s: Floats
    option: Ints
    may_become: Ints
    algorithm: Ints
    gpus: Ints
    task_of: Ints
    edge_of: Ints
    job_of: Ints
    demand: Floats
    compute_s: Floats
    size_share: Floats
    is_server: Bools
    edge_from: Ints
    edge_to: Ints
    volume_mb: Floats


class TaskCluster(NamedTuple):
    """Servers.

    Attributes
    ----------
    capacity : (n_servers, 4) GPUs, cores, GB, MB/s
    server_of : (n_gpus,) the server that a GPU is in, ascending
    """

    capacity: Floats
    server_of: Ints


class TaskView(NamedTuple):
    """The cluster at an instant. Nothing in it may be changed.

    Attributes
    ----------
    now_s : seconds from the epoch
    jobs, cluster : all jobs of the run, of which a policy looks at the active ones, and the servers
    active : (n_active,) jobs submitted and not over, in order of submission
    gpu_of : (n_tasks,) the GPU that a task is on, or QUEUED; a parameter server is on the server of that GPU
    load : (n_servers, 4) what the tasks on a server use at present
    gpu_load : (n_gpus,) the same of each GPU
    task_load : (n_tasks, 4) what each task uses at present, at rest where it is queued
    done : (n_jobs,) iterations, with the fraction of the running one
    limit : (n_jobs,) iterations after which it will stop; at first all
    waited_s : (n_jobs,) seconds in which none of its tasks were on a GPU, since its submission
    ran_s : (n_jobs,) seconds in which all of its tasks were
    accuracy : (n_jobs,) the metric at the end of the latest epoch, NaN before the first
    last_gain, all_gain : (n_jobs,) what that epoch gained, and all so far, at least 0; NaN before the first
    earlier : (n_jobs,) best metric as of an eighth of the job's epochs before the latest, NaN for younger jobs
    final_mean, final_sd : (n_jobs,) forecast of the metric after all iterations; NaN where there is none yet
    copy_of : (n_tasks,) the GPU that a copy of a task is on, or QUEUED; `load` and `gpu_load` have it with them
    step_s : (n_tasks, 2) seconds that a task and its copy last took for their part of an iteration where they are now;
        NaN before the first iteration there
    """

    now_s: float
    jobs: TaskJobs
    cluster: TaskCluster
    active: Ints
    gpu_of: Ints
    load: Floats
    gpu_load: Floats
    task_load: Floats
    done: Floats
    limit: Floats
    waited_s: Floats
    ran_s: Floats
    accuracy: Floats
    last_gain: Floats
    all_gain: Floats
    earlier: Floats
    final_mean: Floats
    final_sd: Floats
    copy_of: Ints
    step_s: Floats


class TaskRule:
    """A policy that goes by what tasks do alone, and is asked on a grid of instants.

    Attributes
    ----------
    trigger : when; MLFS asks each minute
    settings : of the policy; those of its class where none are given
    """

    name = ""
    trigger = Trigger(on_events=False, period_s=60.0)
    settings: Any = None

    def __init__(self, settings: Any = None) -> None:
        if settings is not None:
            self.settings = settings

    def decide(self, view: View) -> Decision:
        """What to change now."""
        seen = view.facts(TaskView)
        return self.place(seen) if len(seen.active) else NOTHING

    def place(self, view: TaskView) -> Decision:
        """The same, where any job is active."""
        raise NotImplementedError


AccuracyForecast = Callable[[Ints, Floats, Ints, Ints], tuple[Floats, Floats]]
"""(jobs, metric by epoch (n, longest) padded with NaN, epochs seen (n,), epochs in all (n,)) -> mean and standard
deviation of the metric after all epochs, each (n,)."""


def by_sender(edge_from: Ints) -> Ints:
    """(n_edges,) edges by the task that they come from.

    >>> by_sender(np.array([2, 0, 1, 0])).tolist()
    [1, 3, 2, 0]
    """
    return np.argsort(edge_from, kind="stable").astype(np.int64)
