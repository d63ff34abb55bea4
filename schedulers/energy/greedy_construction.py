"""A random construction of a schedule, compiled. Filippini et al.: ANDREAS, FiCloud 2021, Algorithm 1, lines 5 to 17.

Importing numba takes a second, so only what computes imports this file.
"""

from typing import Any

import numpy as np

from jobcast.domain.energy import POSTPONED
from jobcast.schedulers.energy.greedy_nodes import (
    ANYWHERE,
    CLOSED_ONLY,
    OPEN_ONLY,
    inner,
    own_room,
    put_on,
    room_for,
    unclaim,
)
from jobcast.schedulers.energy.greedy_state import FREE, LOOKED, MISSED, OPENED

KEEP, SWAP, DRAW, ORDER, CAP = range(5)
"""Columns of ways to make a schedule: probabilities that a running job stays, that a job of the least weight goes back
a place (`MOST_SWAP` at most) and that a job draws its candidate; an order of `Queue.order`; how GPUs are capped."""
FREELY, ONE_CAP, CAPS = 0, 1, 2
"""How many GPUs jobs get while there is another way: any number; at most so many, drawn once; drawn for each job."""
MOST_SWAP = 0.9
"""No job goes back a place for certain."""
GOLDEN, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""SplitMix64: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014."""
MOST_GPUS = 1 << 30
"""No cap."""
UNIT = 1.0 / (1 << 53)


@inner
def _uniform(draft: Any) -> Any:
    """A random number from 0 to below 1."""
    state = draft.random[0] + GOLDEN
    draft.random[0] = state
    state = (state ^ (state >> np.uint64(30))) * MIX_1
    state = (state ^ (state >> np.uint64(27))) * MIX_2
    state ^= state >> np.uint64(31)
    return float(state >> np.uint64(11)) * UNIT


@inner
def _clear(queue: Any, draft: Any) -> None:
    """All jobs postponed, all nodes closed."""
    draft.node[:] = POSTPONED
    draft.done[:] = False
    draft.name[:] = -1
    draft.named[:] = -1
    for node in range(len(queue.kind_of)):
        draft.claims[node] = queue.claims[node]
    draft.opened[:] = 0
    draft.head[:] = -1
    draft.counts[:LOOKED] = 0
    total = 0.0
    for job in range(len(queue.back)):
        total += queue.waiting_eur[job]
    draft.total_eur[0] = total
    for kind in range(len(queue.kind_gpus)):
        draft.limit[kind] = queue.kind_gpus[kind] + 1
        draft.counts[FREE] += queue.kind_gpus[kind] * queue.kind_nodes[kind]


@inner
def _try(queue: Any, draft: Any, job: Any, config: Any, where: Any) -> Any:
    """Give a job a configuration if there is room."""
    kind, gpus = queue.kind[config], queue.gpus[config]
    if gpus >= draft.limit[kind]:
        return False
    if config == queue.stay[job]:
        node = own_room(queue, draft, queue.held_node[job], gpus, where)
    else:
        node = room_for(queue, draft, kind, gpus, where)
        if node < 0 and where == ANYWHERE:
            draft.limit[kind] = gpus
    if node < 0:
        return False
    put_on(queue, draft, job, config, node)
    return True


@inner
def _try_all(queue: Any, draft: Any, job: Any, begin: Any, end: Any, where: Any, cap: Any) -> Any:
    """Give a job the first configuration of some, of at most `cap` GPUs, for which there is room."""
    for config in range(begin, end):
        gpus = queue.gpus[config]
        if gpus <= cap and gpus < draft.limit[queue.kind[config]] and _try(queue, draft, job, config, where):
            return True
    return False


@inner
def _candidate(queue: Any, draft: Any, job: Any, draw: Any) -> Any:
    """The best configuration of a job, or with probability `draw` any of D*, the likelier the cheaper."""
    first = queue.first[job]
    if draw <= 0.0 or _uniform(draft) >= draw:
        return first
    most, below = queue.chosen[job] - 1, _uniform(draft)
    while first < most:
        middle = (first + most) // 2
        if queue.below[middle] > below:
            most = middle
        else:
            first = middle + 1
    return first


@inner
def _assign(queue: Any, draft: Any, job: Any, turns: Any, draw: Any, cap: Any) -> None:
    """The turn of a job: its candidate, else anything up to the cap, else what D* has for open nodes, then closed ones.

    `turns` is how many jobs may still open a node, this one included.
    """
    if draft.done[job]:
        return
    unclaim(queue, draft, job)
    first, chosen, last = queue.first[job], queue.chosen[job], queue.last[job]
    if first == last:
        return
    forced = queue.least_nodes - draft.counts[OPENED] >= turns
    config = _candidate(queue, draft, job, draw)
    if queue.gpus[config] <= cap and _try(queue, draft, job, config, CLOSED_ONLY if forced else ANYWHERE):
        return
    if forced and _try_all(queue, draft, job, first, last, CLOSED_ONLY, MOST_GPUS):
        return
    if cap < MOST_GPUS and _try_all(queue, draft, job, first, last, ANYWHERE, cap):
        return
    if _try_all(queue, draft, job, first, chosen, OPEN_ONLY, MOST_GPUS):
        return
    if not _try_all(queue, draft, job, first, chosen, ANYWHERE, MOST_GPUS):
        draft.missed[draft.counts[MISSED]] = job
        draft.counts[MISSED] += 1


@inner
def _keep(queue: Any, draft: Any, keep: Any) -> None:
    """Leave running jobs where they run, each with a probability."""
    for place in range(len(queue.back)):
        job = queue.order[0, place]
        if queue.stay[job] >= 0 and (keep >= 1.0 or _uniform(draft) < keep):
            unclaim(queue, draft, job)
            _try(queue, draft, job, queue.stay[job], ANYWHERE)


@inner
def make(queue: Any, draft: Any, way: Any) -> None:
    """Make a schedule. Algorithm 1, lines 5 to 17.

    Each job goes back a place, and perhaps further, with `swap` times its probability. A job for which nothing of D*
    has room gets what is left after all others, since no GPU should idle while a job waits (constraint 4n).
    """
    _clear(queue, draft)
    if way[KEEP] > 0.0:
        _keep(queue, draft, way[KEEP])
    n_jobs, most, order = len(queue.back), draft.head.shape[2] - 1, int(way[ORDER])
    cap, job = MOST_GPUS, queue.order[order, 0]
    for place in range(1, n_jobs + 1):
        if draft.counts[FREE] == 0:
            break
        turn = job
        if place < n_jobs:
            follower = queue.order[order, place]
            goes_back = way[SWAP] > 0.0 and _uniform(draft) < min(way[SWAP] * queue.back[job], MOST_SWAP)
            turn, job = (follower, job) if goes_back else (job, follower)
        if way[CAP] == CAPS or (way[CAP] == ONE_CAP and place == 1):
            cap = 1 + int(_uniform(draft) * most)
        _assign(queue, draft, turn, n_jobs - place + 1, way[DRAW], cap)
    for missed in range(draft.counts[MISSED]):
        if draft.counts[FREE] == 0:
            break
        job = draft.missed[missed]
        _try_all(queue, draft, job, queue.chosen[job], queue.last[job], ANYWHERE, MOST_GPUS)


@inner
def name_nodes(queue: Any, draft: Any) -> None:
    """Write the schedule to be tried, with names for the nodes that still have none."""
    for kind in range(len(queue.kind_gpus)):
        begin, name = queue.kind_first[kind], -1
        for node in range(begin, begin + draft.opened[kind]):
            if draft.name[node] >= 0:
                continue
            name += 1
            while queue.kind_of[name] != kind or draft.named[name] >= 0:
                name += 1
            draft.name[node] = name
            draft.named[name] = node
    for job in range(len(queue.back)):
        node = draft.node[job]
        draft.try_node[job] = POSTPONED if node < 0 else draft.name[node]
        draft.try_config[job] = draft.config[job]
