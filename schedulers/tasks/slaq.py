"""SLAQ: GPUs go where quality grows fastest. Zhang, Stafman, Or, Freedman: SLAQ, SoCC 2017; MLFS, section 2."""

import numpy as np

from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import Floats, TaskDecision, TaskView, decision
from jobcast.schedulers.tasks.baselines import due, gpu_and_memory, measured_iteration_s, sorted_jobs
from jobcast.schedulers.tasks.gains import epochs_seen, gain_until
from jobcast.schedulers.tasks.hosts import SPREAD
from jobcast.schedulers.tasks.policies import SlaqSettings
from jobcast.schedulers.tasks.swapping import place_or_swap


class Slaq:
    """Greatest loss reduction per second of run time first, normalised by what each job has gained in all.

    A job takes all its GPUs or none, so that the choice is of jobs, not of cores. Looks at GPUs and memory only.
    """

    name = "slaq"

    def __init__(self, settings: SlaqSettings | None = None) -> None:
        self.settings = SlaqSettings() if settings is None else settings

    def decide(self, view: TaskView) -> TaskDecision:
        """Place by speed of gain; at the end of an interval instead of slower running jobs."""
        if not len(view.active):
            return decision()
        speed = gain_speed(view)
        order = sorted_jobs(view.active, -speed)
        over = speed if due(view, self.settings.interval_s) else None
        return place_or_swap(view, order, limits=gpu_and_memory(), rule=SPREAD, claim=over, hold=over)


def gain_speed(view: TaskView) -> Floats:
    """(n_jobs,) the share of all gained so far that the next epoch will add, per second.

    That of a job before the end of its first epoch is 1: all that it will have gained then.
    """
    known = view.all_gain > 0.0
    flat = np.where(np.isnan(view.all_gain), 1.0, 0.0)
    share = np.where(known, gain_until(view, epochs_seen(view) + 1.0) / np.where(known, view.all_gain, 1.0), flat)
    return rounded_all(share / (measured_iteration_s(view) * view.jobs.epoch_iterations))
