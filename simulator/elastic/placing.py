"""Which nodes elastic jobs hold their GPUs on: what stays, stays; what grows is packed."""

import numpy as np

from jobcast.domain import tolerance
from jobcast.domain.elastic_kernels import FLOATS, FLOATS_2D, INTS, njit, types
from jobcast.simulator.elastic.state import Floats, Ints


@njit(types.void(types.int64, FLOATS_2D, INTS, FLOATS_2D), cache=True)
def _shrink(job: int, gpus: Floats, node_type: Ints, on_node: Floats) -> None:
    for kind in range(gpus.shape[1]):
        excess = -gpus[job, kind]
        for node in range(len(node_type)):
            if node_type[node] == kind:
                excess += on_node[job, node]
        while excess > tolerance.GPUS:
            least = -1
            for node in range(len(node_type)):
                held = on_node[job, node]
                if node_type[node] == kind and held > 0.0 and (least < 0 or held < on_node[job, least]):
                    least = node
            if least < 0:
                break
            part = min(excess, on_node[job, least])
            on_node[job, least] -= part
            excess -= part


@njit(types.void(types.int64, FLOATS_2D, INTS, FLOATS, FLOATS_2D), cache=True)
def _grow(job: int, gpus: Floats, node_type: Ints, free: Floats, on_node: Floats) -> None:
    for kind in range(gpus.shape[1]):
        wanted = gpus[job, kind]
        for node in range(len(node_type)):
            if node_type[node] == kind:
                wanted -= on_node[job, node]
        while wanted > tolerance.GPUS:
            best, best_rank, best_free = -1, 3, 0.0
            for node in range(len(node_type)):
                if node_type[node] != kind or free[node] <= tolerance.GPUS:
                    continue
                rank = 2
                if on_node[job, node] > 0.0:
                    rank = 0
                elif free[node] >= wanted - tolerance.GPUS:
                    rank = 1
                tighter = free[node] < best_free if rank == 1 else free[node] > best_free
                if best < 0 or rank < best_rank or (rank == best_rank and tighter):
                    best, best_rank, best_free = node, rank, free[node]
            if best < 0:
                break
            part = min(wanted, free[best])
            on_node[job, best] += part
            free[best] -= part
            wanted -= part


@njit(types.int64(types.int64, FLOATS_2D, INTS, FLOATS, FLOATS_2D), cache=True)
def _spread(job: int, gpus: Floats, node_type: Ints, node_gpus: Floats, on_node: Floats) -> int:
    used, needed = 0, 0.0
    for kind in range(gpus.shape[1]):
        widest = 0.0
        for node in range(len(node_type)):
            if node_type[node] == kind:
                widest = max(widest, node_gpus[node])
                if on_node[job, node] > tolerance.GPUS:
                    used += 1
        if gpus[job, kind] > tolerance.GPUS:
            needed += np.ceil((gpus[job, kind] - tolerance.GPUS) / widest)
    return 1 if used > needed + tolerance.GPUS else 0


@njit(types.void(INTS, types.int64, FLOATS_2D, INTS, FLOATS, FLOATS_2D, INTS), cache=True)
def place(
    active: Ints, count: int, gpus: Floats, node_type: Ints, node_gpus: Floats, on_node: Floats, locality: Ints
) -> None:
    """Bring `on_node` and `locality` in line with what active jobs hold by type.

    A job that shrinks leaves the nodes first on which it holds least. One that grows takes free GPUs of nodes that it
    is on, then of the fullest node that can take all the rest, else of the emptiest. PCS, section 4 (locality).

    Parameters
    ----------
    active, count : ids of active jobs, of which the first `count` hold
    gpus : (n_jobs, n_types) what each holds from now on
    node_type, node_gpus : (n_nodes,)
    on_node : (n_jobs, n_nodes), changed
    locality : (n_jobs,), changed: 1 where a job lies on more nodes than it needs
    """
    free = node_gpus.copy()
    for i in range(count):
        _shrink(active[i], gpus, node_type, on_node)
        free -= on_node[active[i]]
    grown = np.zeros(count)
    for i in range(count):
        grown[i] = gpus[active[i]].sum() - on_node[active[i]].sum()
    for i in np.argsort(-grown, kind="mergesort"):
        if grown[i] <= tolerance.GPUS:
            break
        _grow(active[i], gpus, node_type, free, on_node)
    for i in range(count):
        locality[active[i]] = _spread(active[i], gpus, node_type, node_gpus, on_node)
