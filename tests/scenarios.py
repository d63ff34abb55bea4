"""Scenes of whole jobs on pools, short to write."""

from jobcast.domain.hardware import pools_cluster
from jobcast.pipelines.experiments.rigid_jobs import rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario


def pool_scenario(trace, pools, *, from_s=None, until_s=None, limit=None, **how):
    """Whole jobs of a window on pools whose quotas never change."""
    return rigid_jobs(cut_scenario(trace, pools_cluster(pools), from_s=from_s, until_s=until_s, limit=limit), **how)
