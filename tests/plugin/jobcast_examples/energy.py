"""Of energy: jobs start where an epoch takes the least energy at that moment, and stay there."""

import numpy as np

from jobcast.domain.energy import POSTPONED, Deployment, EnergyView
from jobcast.schedulers.policies import ENERGY, TIMES, PolicySpec


class Greenest:
    """In order of submission, each on the node and as many of its GPUs as draw the fewest joules an epoch."""

    def schedule(self, view: EnergyView) -> Deployment:
        """Where each active job is from now on."""
        cluster, here = view.cluster, view.active
        node_of, gpus_of = view.node_of[here].copy(), view.gpus_of[here].copy()
        free = cluster.kind_gpus[cluster.kind_of]
        np.subtract.at(free, node_of[node_of != POSTPONED], gpus_of[node_of != POSTPONED])
        gpus = np.arange(1, cluster.power_w.shape[1])
        for row in np.flatnonzero(node_of == POSTPONED):
            joules = np.round(view.jobs.epoch_s[here[row]] * cluster.power_w[:, 1:], 6)[cluster.kind_of]
            joules = np.where(gpus <= free[:, None], joules, np.inf)
            node, column = np.unravel_index(int(joules.argmin()), joules.shape)
            if np.isfinite(joules[node, column]):
                node_of[row], gpus_of[row] = node, column + 1
                free[node] -= column + 1
        return Deployment(node_of, gpus_of)


policy = PolicySpec(
    name="greenest",
    kind=ENERGY,
    make=lambda given, settings: Greenest(),
    summary="the fewest joules an epoch",
    asks=(TIMES,),
    preempts=False,
)
