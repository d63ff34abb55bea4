"""HyperSched: accuracy by a deadline. Liaw et al.: HyperSched, SoCC 2019; MLFS, section 2."""

import numpy as np

from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import Floats, TaskDecision, TaskView, decision
from jobcast.schedulers.tasks.baselines import gpu_and_memory, measured_iteration_s, sorted_jobs
from jobcast.schedulers.tasks.gains import gain_until
from jobcast.schedulers.tasks.hosts import CONSOLIDATE
from jobcast.schedulers.tasks.policies import HyperSchedSettings
from jobcast.schedulers.tasks.swapping import place_or_swap


class HyperSched:
    """Most accuracy still to gain before the deadline first; those that gain nothing more give way.

    Jobs that still gain are never displaced, and jobs that do not never displace others: they run on what is left.
    Looks at GPUs and memory only.
    """

    name = "hypersched"

    def __init__(self, settings: HyperSchedSettings | None = None) -> None:
        self.settings = HyperSchedSettings() if settings is None else settings

    def decide(self, view: TaskView) -> TaskDecision:
        """Place by gain before the deadline, instead of those that gain nothing where there is no room."""
        if not len(view.active):
            return decision()
        gain = deadline_gain(view)
        claim = (gain >= self.settings.least_gain).astype(np.float64)
        order = sorted_jobs(view.active, -np.where(claim > 0.0, gain, 0.0))
        return place_or_swap(view, order, limits=gpu_and_memory(), rule=CONSOLIDATE, claim=claim, hold=claim)


def deadline_gain(view: TaskView) -> Floats:
    """(n_jobs,) the accuracy that a job would gain in the epochs that it could end before its deadline from now on."""
    jobs = view.jobs
    left_s = np.maximum(0.0, jobs.deadline_s - view.now_s)
    could = np.minimum(view.limit, view.done + left_s / measured_iteration_s(view))
    return rounded_all(gain_until(view, np.floor(could / jobs.epoch_iterations + 1e-9)))
