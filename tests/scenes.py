"""Scenes of whole jobs on pools, short to write."""

from jobcast.domain.hardware import pools_cluster
from jobcast.pipelines.scenes import cut_scene
from jobcast.pipelines.whole_jobs import whole_jobs


def pool_scene(trace, pools, *, from_s=None, until_s=None, limit=None, **how):
    """Whole jobs of a window on pools whose quotas never change."""
    return whole_jobs(cut_scene(trace, pools_cluster(pools), from_s=from_s, until_s=until_s, limit=limit), **how)
