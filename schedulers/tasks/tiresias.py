"""Tiresias: least attained service in two queues. Gu et al.: Tiresias, NSDI 2019; MLFS, section 2."""

import numpy as np

from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import Bools, Floats, TaskDecision, TaskView, decision
from jobcast.schedulers.tasks.baselines import attained_gpu_s, gpu_and_memory, sorted_jobs
from jobcast.schedulers.tasks.hosts import CONSOLIDATE
from jobcast.schedulers.tasks.policies import TiresiasSettings
from jobcast.schedulers.tasks.swapping import place_or_swap


class Tiresias:
    """Jobs of the first queue before those of the second, which make room for them; GPUs and memory count only."""

    name = "tiresias"

    def __init__(self, settings: TiresiasSettings | None = None) -> None:
        self.settings = TiresiasSettings() if settings is None else settings

    def decide(self, view: TaskView) -> TaskDecision:
        """Place by queue, then by submission (LAS) or by index (Gittins); only another queue displaces a job."""
        if not len(view.active):
            return decision()
        attained = attained_gpu_s(view)
        low = second_queue(view, attained, self.settings).astype(np.float64)
        index = np.zeros(len(attained))
        if self.settings.index == "gittins":
            index[view.active] = gittins_index(finished_gpu_s(view), attained[view.active])
        order = sorted_jobs(view.active, low, -index)
        return place_or_swap(view, order, limits=gpu_and_memory(), rule=CONSOLIDATE, claim=-low, hold=-low)


def second_queue(view: TaskView, attained: Floats, settings: TiresiasSettings) -> Bools:
    """(n_jobs,) jobs whose service has passed the threshold, raised by as much each time they waited long enough.

    So that one that rose keeps its GPUs for a while, and does not fall as soon as it runs.
    """
    risen = np.zeros(len(attained))
    if settings.promote > 0.0:
        risen = np.floor(rounded_all(view.waited_s * view.jobs.gpus / (settings.promote * settings.queue_gpu_s)))
    low: Bools = attained >= settings.queue_gpu_s * (1.0 + risen)
    return low


def finished_gpu_s(view: TaskView) -> Floats:
    """GPU seconds that each job took which is over by now, in order of submission."""
    over = view.jobs.submit_s <= view.now_s
    over[view.active] = False
    return attained_gpu_s(view)[over]


def gittins_index(finished: Floats, attained: Floats) -> Floats:
    """(n,) for jobs of some attained service, the highest chance of an end per second of service spent on it.

    The most over d of P(S - a <= d | S > a) / E[min(S - a, d) | S > a], where S is the service of a finished job and a
    what has been attained. Tiresias, NSDI 2019. A job that has had more than any finished one has 0.

    >>> gittins_index(np.array([1.0, 1.0, 10.0]), np.array([0.0, 2.0, 10.0])).round(4).tolist()
    [0.6667, 0.125, 0.0]
    """
    services = np.sort(finished)
    index = np.zeros(len(attained))
    for service in np.unique(attained):
        rest = services[np.searchsorted(services, service, side="right") :] - service
        if len(rest):
            ended = np.arange(1, len(rest) + 1)
            spent = np.cumsum(rest) + (len(rest) - ended) * rest
            index[attained == service] = (ended / spent).max()
    return rounded_all(index)
