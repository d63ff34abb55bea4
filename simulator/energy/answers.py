"""What a policy may not answer, and how it is told."""

from collections.abc import Sequence

import numpy as np

from jobcast.domain.energy import POSTPONED, Deployment, EnergyCluster, Floats, Ints


def fault_of(
    decided: Deployment, active: Ints, cluster: EnergyCluster, true_s: Floats, job_ids: Sequence[str]
) -> str | None:
    """What is wrong with an answer about active jobs, in words with a job's name; None where nothing is.

    Parameters
    ----------
    decided : the answer
    active : (n_active,)
    cluster : nodes
    true_s : (n_jobs, n_kinds, most_gpus) true seconds an epoch
    job_ids : (n_jobs,)
    """
    node, gpus = np.asarray(decided.node_of), np.asarray(decided.gpus_of)
    if node.shape != active.shape or gpus.shape != active.shape:
        return f"gives nodes of shape {node.shape} and GPUs of shape {gpus.shape} for {len(active)} active jobs"
    if node.dtype.kind not in "iu" or gpus.dtype.kind not in "iu":
        return f"gives nodes of type {node.dtype} and GPUs of type {gpus.dtype}; both must be whole numbers"
    waits, unknown = node == POSTPONED, (node < POSTPONED) | (node >= len(cluster.kind_of))
    if unknown.any():
        row = int(np.argmax(unknown))
        return f"puts job {job_ids[active[row]]} on node {node[row]}, of which there are {len(cluster.kind_of)}"
    idle = waits & (gpus != 0)
    if idle.any():
        row = int(np.argmax(idle))
        return f"postpones job {job_ids[active[row]]} with {gpus[row]} GPUs; they must be 0"
    kind = cluster.kind_of[np.where(waits, 0, node)]
    odd = ~waits & ((gpus < 1) | (gpus > cluster.kind_gpus[kind]))
    if odd.any():
        row = int(np.argmax(odd))
        has = cluster.kind_gpus[kind[row]]
        return f"gives job {job_ids[active[row]]} {gpus[row]} GPUs of node {node[row]}, which has {has}"
    stuck = ~waits & ~np.isfinite(true_s[active, kind, np.maximum(gpus, 1) - 1])
    if stuck.any():
        row = int(np.argmax(stuck))
        return f"puts job {job_ids[active[row]]} on {gpus[row]} GPUs of node {node[row]}, where it cannot run"
    used = np.bincount(node[~waits], weights=gpus[~waits], minlength=len(cluster.kind_of))
    full = used > cluster.kind_gpus[cluster.kind_of]
    if full.any():
        where = int(np.argmax(full))
        row = int(np.flatnonzero(node == where)[-1])
        has = cluster.kind_gpus[cluster.kind_of[where]]
        return f"puts job {job_ids[active[row]]} on node {where}: {used[where]:g} GPUs in use there, of {has}"
    return None
