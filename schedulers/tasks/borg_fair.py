"""Fair shares between jobs, as TensorFlow on Borg. Verma et al.: Borg, EuroSys 2015; MLFS, section 2."""

import numpy as np

from jobcast.domain.rounding import rounded_all
from jobcast.domain.tasks import Floats, TaskDecision, TaskView, decision
from jobcast.schedulers.tasks.baselines import all_resources, attained_gpu_s, due, sorted_jobs
from jobcast.schedulers.tasks.hosts import BEST_FIT
from jobcast.schedulers.tasks.policies import BorgFairSettings
from jobcast.schedulers.tasks.swapping import place_or_swap


class BorgFair:
    """The job with the least received share first, each task where the least is left over; all resources count."""

    name = "borg_fair"

    def __init__(self, settings: BorgFairSettings | None = None) -> None:
        self.settings = BorgFairSettings() if settings is None else settings

    def decide(self, view: TaskView) -> TaskDecision:
        """Place by received share."""
        if not len(view.active):
            return decision()
        share = received_share(view)
        every_s = self.settings.interval_s
        over = -share if every_s > 0.0 and due(view, every_s) else None
        order = sorted_jobs(view.active, share)
        return place_or_swap(view, order, limits=all_resources(), rule=BEST_FIT, claim=over, hold=over)


def received_share(view: TaskView) -> Floats:
    """(n_jobs,) GPU seconds that jobs had of all that the cluster had since they came."""
    age_s = np.maximum(view.now_s - view.jobs.submit_s, 1.0)
    return rounded_all(attained_gpu_s(view) / (age_s * max(1, len(view.cluster.server_of))))
