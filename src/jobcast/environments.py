"""For whoever trains a scheduler: environments of Gymnasium over the engine. Importing this registers them.

`jobcast/Tasks-v0` puts tasks of training jobs on servers (`tasks`), `jobcast/Queues-v0` starts pending jobs (`queues`).
What their functions take, `gymnasium.make` takes too. What is seen, and what an action is: `Scheduling`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import Cluster
from jobcast.domain.law import EPOCHS, GOODPUT, RUNTIME
from jobcast.models.scheduling.learner import BETAS
from jobcast.pipelines.experiments.clusters import task_cluster
from jobcast.pipelines.experiments.tasks.jobs import task_workload
from jobcast.pipelines.lifecycle.learning_to_schedule.courses import QUEUE, QUEUE_FEATURES, Drawn, QueueCourse
from jobcast.pipelines.lifecycle.learning_to_schedule.environment import Scheduling, register
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import FEATURES
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import EpisodeSettings, TaskCourses
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.simulator.task_workload import TaskWorkload
from jobcast.simulator.workload import Workload
from jobcast.testing import world
from jobcast.traces.generators import generate, generate_tasks

__all__ = ["Scheduling", "queues", "stretches", "tasks"]

GENERATED = {"jobs": 300}
"""What is drawn of MLFS's workload where none is given."""
LAWS = (RUNTIME, EPOCHS, GOODPUT)
"""In which gangs run that name no GPUs."""


def tasks(
    workload: TaskWorkload | None = None, betas: Sequence[float] = BETAS, episode: EpisodeSettings | None = None
) -> Scheduling:
    """Jobs of tasks on servers, as `jobcast train mlf-policy` learns: see `docs/mlf-rl.md` for picks and rewards.

    Parameters
    ----------
    workload : what episodes are drawn from, as of `Experiment.scenario(TASKS)`; by default one of `trace generate mlfs`
    betas : weights of the five objectives
    episode : how many jobs, servers, and what load
    """
    courses = TaskCourses(_generated() if workload is None else workload, HeuristicSettings(), drawn=episode)
    return Scheduling(courses, FEATURES, courses.most, betas)


def queues(draw: Callable[[int], Drawn] | None = None, law: str = RUNTIME, most: int = 65) -> Scheduling:
    """Gangs in pools: which of the pending jobs that fit starts next, or the last row, none for now.

    Rewards add up to minus the mean completion time over the mean run time: -1 where nobody waits.

    Parameters
    ----------
    draw : from a number to a workload and its law (None for run times), such as `stretches` of a trace's; by default
        the small random worlds of `jobcast.testing`
    law : of these: `runtime`, `epochs` or `goodput`
    most : rows of an observation; of more jobs that fit, the oldest are shown
    """
    if law not in LAWS:
        raise ConfigError(f"no queues under law {law}; choose from {', '.join(LAWS)}")

    def drawn(number: int) -> Drawn:
        workload, law_of = world(law, number)
        return workload, law_of()

    make = draw or drawn
    return Scheduling(
        lambda rng: QueueCourse(*make(int(rng.integers(2**31))), most), {QUEUE: len(QUEUE_FEATURES)}, most, (1.0,)
    )


def stretches(workload: Workload, jobs: int = 60) -> Callable[[int], Drawn]:
    """Draws so many jobs in a row of a workload, as of `Experiment.scenario(POOLS)`."""
    count = min(jobs, len(workload.jobs))

    def draw(number: int) -> Drawn:
        first = int(np.random.default_rng(number).integers(0, len(workload.jobs) - count + 1))
        part = slice(first, first + count)
        return replace(workload, jobs=workload.jobs[part], outcomes=workload.outcomes[part], successions=None), None

    return draw


def _generated() -> TaskWorkload:
    trace, pools = generate("mlfs", 0, GENERATED)
    table, curves = generate_tasks("mlfs", 0, GENERATED)
    cluster = task_cluster(Cluster(number=sum(pool.quota for pool in pools)))
    return task_workload(trace, trace.jobs["job_id"].to_list(), table, curves, cluster)


register("jobcast/Tasks-v0", entry_point=f"{__name__}:tasks")
register("jobcast/Queues-v0", entry_point=f"{__name__}:queues")
