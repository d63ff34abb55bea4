"""MLF-C: fewer iterations while the system is overloaded. MLFS, section 3.5.

Users say whether their jobs run all iterations (i), until accuracy grows no more (ii, OptStop), or until the target is
reached (iii), and how far an overloaded system may change that. The overload degree of a server is the length of its
vector of utilisations, which is up to 2 where all four resources are used up: h_s = 0.9 means 0.45 of each.
"""

from dataclasses import dataclass, field

import numpy as np

from jobcast.domain.optstop import OptStop, Standing, Stop
from jobcast.domain.policy import NOTHING, Decision
from jobcast.domain.rounding import rounded
from jobcast.domain.tasks import ALL_ITERATIONS, OPT_STOP, QUEUED, Ints, TaskRule, TaskView

OVERLOAD = 0.9
"""h_s. MLFS, section 4.1."""


@dataclass(frozen=True, slots=True)
class LoadControlSettings:
    """Settings.

    Attributes
    ----------
    overload : h_s, the overload degree beyond which the system is overloaded
    rule : when OptStop stops a job
    """

    overload: float = OVERLOAD
    rule: OptStop = field(default_factory=OptStop)


def overload_degree(view: TaskView) -> float:
    """O_c: the mean length of the servers' vectors of utilisations, 0 to 2, more where loads exceed capacities."""
    return float(np.linalg.norm(view.load / view.cluster.capacity, axis=1).mean())


def is_overloaded(view: TaskView, most: float) -> bool:
    """Whether tasks of active jobs are in the queue, or the overload degree exceeds `most`."""
    queued = np.logical_or.reduceat(view.gpu_of == QUEUED, view.jobs.task_of[:-1])[view.active]
    return bool(queued.any()) or rounded(overload_degree(view)) > rounded(most)


def options_now(view: TaskView, overloaded: bool) -> Ints:
    """(n_active,) options of active jobs: what users ask for, or the furthest allowed while overloaded."""
    asked = view.jobs.option[view.active]
    if not overloaded:
        return asked
    allowed: Ints = np.maximum(asked, view.jobs.may_become[view.active])
    return allowed


def jobs_to_end(view: TaskView, settings: LoadControlSettings) -> Ints:
    """Active jobs that should run no further iteration, in order of submission.

    Those with OptStop end by its rule. Those that want no more than their targets end when they are reached too.
    """
    jobs, here = view.jobs, view.active
    overloaded = is_overloaded(view, settings.overload)
    option = options_now(view, overloaded)
    achieved, sd = view.accuracy[here], view.final_sd[here]
    standing = Standing(
        achieved, view.earlier[here], np.isfinite(achieved), view.final_mean[here], sd, sd, np.ones(len(here))
    )
    ends = settings.rule.decide(standing, jobs.target[here], option == OPT_STOP) != Stop.GO_ON
    ended: Ints = here[ends & (option != ALL_ITERATIONS) & (view.done[here] < view.limit[here])]
    return ended


class LoadControl(TaskRule):
    """A policy whose jobs end by MLF-C; it sees those that end now no more."""

    def __init__(self, policy: TaskRule, name: str, settings: LoadControlSettings | None = None) -> None:
        self.policy = policy
        self.name = name
        self.settings = LoadControlSettings() if settings is None else settings

    def place(self, view: TaskView) -> Decision:
        """The policy's decision on the jobs that are left, with limits for those that end."""
        ended = jobs_to_end(view, self.settings)
        active = np.setdiff1d(view.active, ended, assume_unique=True)
        left = self.policy.place(view._replace(active=active)) if len(active) else NOTHING
        return left._replace(limit=dict(zip(ended.tolist(), view.done[ended].tolist(), strict=True)) | dict(left.limit))
