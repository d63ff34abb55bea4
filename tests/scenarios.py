"""Scenes of whole jobs on pools, and elastic jobs as columns, short to write."""

import numpy as np

from jobcast.domain.elastic import ElasticJobs
from jobcast.domain.hardware import pools_cluster
from jobcast.pipelines.experiments.rigid_jobs import rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario


def pool_scenario(trace, pools, *, from_s=None, until_s=None, limit=None, **how):
    """Whole jobs of a window on pools whose quotas never change."""
    return rigid_jobs(cut_scenario(trace, pools_cluster(pools), from_s=from_s, until_s=until_s, limit=limit), **how)


def elastic_jobs_of(submit_s, size_s, most, speedup=range(9), **others):
    """Elastic jobs of one model and one stage each, on up to `most` GPUs; by default g GPUs are g times as fast."""
    count, most = len(size_s), np.array(most, dtype=np.float64)
    columns = {
        "submit_s": np.array(submit_s, dtype=np.float64),
        "size_s": np.array(size_s, dtype=np.float64),
        "least": np.zeros(count),
        "most": most,
        "model": np.zeros(count, dtype=np.int64),
        "stage_of": np.arange(count + 1),
        "stage_end": np.ones(count),
        "stage_most": most.copy(),
        "speedup": np.tile(np.array(speedup, dtype=np.float64), (1, 2, 1)),
        "speed": np.ones((1, 1)),
    }
    return ElasticJobs(**columns | others)
