"""Of elastic jobs: a GPU each, then what is left in order of submission."""

import numpy as np
from numba import njit

from jobcast.domain.arrays import Floats
from jobcast.domain.elastic import ElasticPolicy, ElasticView
from jobcast.domain.elastic_kernels import RULE, grant
from jobcast.schedulers.policies import ELASTIC, PolicySpec


@njit(RULE, cache=True)
def one_each(view: ElasticView, numbers: Floats, gpus: Floats) -> None:
    """A GPU for each job, or its least; what is left to whoever came first."""
    free = view.capacity.copy()
    for i in range(view.count):
        job = view.active[i]
        grant(view, job, free, max(1.0, view.jobs.least[job]), gpus)
    for i in range(view.count):
        job = view.active[i]
        grant(view, job, free, view.most[job] - gpus[job].sum(), gpus)


policy = PolicySpec(
    name="one_each",
    kind=ELASTIC,
    make=lambda gpu_types, settings: ElasticPolicy("one_each", one_each, np.zeros(1)),
    summary="a GPU each, then in order of submission",
)
