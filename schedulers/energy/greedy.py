"""Random constructions of a schedule, compiled. Filippini et al.: ANDREAS, FiCloud 2021, section IV.B and Algorithm 1.

Nodes of a kind are alike, so a construction opens nodes without a name and names them when a running job stays (its
node is then the one it runs on) or at the end. Open nodes lie in lists by their room. GPUs of a named node that
running jobs hold, whose turn is still to come, are claimed: other jobs take them last.

Importing numba takes a second, so only what computes imports this file.
"""

from functools import partial
from typing import Any

import numba
import numpy as np

from jobcast.domain.energy import POSTPONED
from jobcast.schedulers.energy.greedy_state import DRAFT, FLOATS_2D, FREE, INTS, MISSED, OPENED, QUEUE

types: Any = numba.types
inner: Any = partial(numba.njit, cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
"""For what only compiled code calls: without the ways in from Python, which take longer to compile than it does.

`_nrt`: counting references to the arrays of a tuple takes ten times as long as the rest, and nothing is allocated here.
"""
outer: Any = partial(numba.njit, cache=True, nogil=True, no_cfunc_wrapper=True, _nrt=False)

UNNAMED, NAMED, CLAIMED = 0, 1, 2
"""Lists of open nodes: without a name by room; with one by room that nobody claims; with claims by room and claims."""
ANYWHERE, OPEN_ONLY, CLOSED_ONLY = 0, 1, 2
"""Where a job may be put: what nobody claims of open nodes, then closed nodes, then what is claimed; or one of two."""
MOST_SWAP = 0.9
"""No job goes back a place for certain."""
LEAST_GAIN = 1e-9
"""By which share an objective must be lower to count as lower; less is rounding."""
GOLDEN, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""SplitMix64: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014."""
UNIT = 1.0 / (1 << 53)
INT, BOOL, FLOAT, VOID = types.int64, types.boolean, types.float64, types.void


@inner(FLOAT(DRAFT))
def _uniform(draft: Any) -> Any:
    """A random number from 0 to below 1."""
    state = draft.random[0] + GOLDEN
    draft.random[0] = state
    state = (state ^ (state >> np.uint64(30))) * MIX_1
    state = (state ^ (state >> np.uint64(27))) * MIX_2
    state ^= state >> np.uint64(31)
    return float(state >> np.uint64(11)) * UNIT


@inner(VOID(QUEUE, DRAFT))
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
    draft.counts[:] = 0
    total = 0.0
    for job in range(len(queue.order)):
        total += queue.waiting_eur[job]
    draft.total_eur[0] = total
    for kind in range(len(queue.kind_gpus)):
        draft.limit[kind] = queue.kind_gpus[kind] + 1
        draft.counts[FREE] += queue.kind_gpus[kind] * queue.kind_nodes[kind]


@inner(VOID(DRAFT, INT, INT, INT, INT))
def _link(draft: Any, which: Any, kind: Any, room: Any, node: Any) -> None:
    """Put a node at the front of a list."""
    row = 1 if which == CLAIMED else 0
    follower = draft.head[which, kind, room]
    draft.head[which, kind, room] = node
    draft.before[row, node] = -1
    draft.after[row, node] = follower
    if follower >= 0:
        draft.before[row, follower] = node


@inner(VOID(DRAFT, INT, INT, INT, INT))
def _unlink(draft: Any, which: Any, kind: Any, room: Any, node: Any) -> None:
    """Take a node out of a list."""
    row = 1 if which == CLAIMED else 0
    before, after = draft.before[row, node], draft.after[row, node]
    if before >= 0:
        draft.after[row, before] = after
    else:
        draft.head[which, kind, room] = after
    if after >= 0:
        draft.before[row, after] = before


@inner(VOID(DRAFT, INT, INT))
def _enlist(draft: Any, kind: Any, node: Any) -> None:
    """Put an open node into its lists."""
    free, name = draft.free[node], draft.name[node]
    if name < 0:
        _link(draft, UNNAMED, kind, free, node)
        return
    claims = draft.claims[name]
    _link(draft, NAMED, kind, max(free - claims, 0), node)
    if claims > 0:
        _link(draft, CLAIMED, kind, free, node)


@inner(VOID(DRAFT, INT, INT))
def _delist(draft: Any, kind: Any, node: Any) -> None:
    """Take an open node out of its lists, before anything about it changes."""
    free, name = draft.free[node], draft.name[node]
    if name < 0:
        _unlink(draft, UNNAMED, kind, free, node)
        return
    claims = draft.claims[name]
    _unlink(draft, NAMED, kind, max(free - claims, 0), node)
    if claims > 0:
        _unlink(draft, CLAIMED, kind, free, node)


@inner(INT(QUEUE, DRAFT, INT))
def _open(queue: Any, draft: Any, kind: Any) -> Any:
    """Open a node of a kind, and say which; -1 where none is closed."""
    if draft.opened[kind] >= queue.kind_nodes[kind]:
        return -1
    node = queue.kind_first[kind] + draft.opened[kind]
    draft.opened[kind] += 1
    draft.counts[OPENED] += 1
    draft.free[node] = queue.kind_gpus[kind]
    draft.first_s[node] = np.inf
    draft.first_eur[node] = 0.0
    _enlist(draft, kind, node)
    return node


@inner(INT(DRAFT, INT, INT, INT))
def _fitting(draft: Any, which: Any, kind: Any, gpus: Any) -> Any:
    """The node of a list with the least room for so many GPUs, or -1."""
    for room in range(gpus, draft.head.shape[2]):
        if draft.head[which, kind, room] >= 0:
            return draft.head[which, kind, room]
    return -1


@inner(INT(QUEUE, DRAFT, INT, INT, INT))
def _room(queue: Any, draft: Any, kind: Any, gpus: Any, where: Any) -> Any:
    """A node for so many GPUs: an open one with the least room, a closed one, one with claims; or -1."""
    if where != CLOSED_ONLY:
        for room in range(gpus, queue.kind_gpus[kind] + 1):
            if draft.head[NAMED, kind, room] >= 0:
                return draft.head[NAMED, kind, room]
            if draft.head[UNNAMED, kind, room] >= 0:
                return draft.head[UNNAMED, kind, room]
    node = -1 if where == OPEN_ONLY else _open(queue, draft, kind)
    return _fitting(draft, CLAIMED, kind, gpus) if node < 0 and where == ANYWHERE else node


@inner(INT(QUEUE, DRAFT, INT, INT, INT))
def _own_room(queue: Any, draft: Any, held: Any, gpus: Any, where: Any) -> Any:
    """The unnamed node that is, or becomes, the node that a job holds; -1 where there is no room on it."""
    node, kind = draft.named[held], queue.kind_of[held]
    if node >= 0:
        return node if draft.free[node] >= gpus and where != CLOSED_ONLY else -1
    if where != CLOSED_ONLY:
        node = _fitting(draft, UNNAMED, kind, draft.claims[held] + gpus)
    if node < 0:
        node = _open(queue, draft, kind)
    if node < 0:
        node = _fitting(draft, UNNAMED, kind, gpus)
    if node >= 0:
        _delist(draft, kind, node)
        draft.name[node] = held
        draft.named[held] = node
        _enlist(draft, kind, node)
    return node


@inner(VOID(QUEUE, DRAFT, INT))
def _unclaim(queue: Any, draft: Any, job: Any) -> None:
    """A running job whose turn has come no longer claims GPUs."""
    held = queue.held_node[job]
    draft.done[job] = True
    if held == POSTPONED:
        return
    node, kind = draft.named[held], queue.kind_of[held]
    if node >= 0:
        _delist(draft, kind, node)
    draft.claims[held] -= queue.held_gpus[job]
    if node >= 0:
        _enlist(draft, kind, node)


@inner(VOID(QUEUE, DRAFT, INT, INT, INT))
def _put(queue: Any, draft: Any, job: Any, config: Any, node: Any) -> None:
    """Put a job onto an open node."""
    kind, gpus, time_s = queue.kind[config], queue.gpus[config], queue.time_s[config]
    _delist(draft, kind, node)
    draft.free[node] -= gpus
    _enlist(draft, kind, node)
    draft.counts[FREE] -= gpus
    draft.node[job] = node
    draft.config[job] = config
    total_eur, run_eur = queue.late_eur[config] - queue.waiting_eur[job], queue.run_eur[config]
    least_s, least_eur = draft.first_s[node], draft.first_eur[node]
    if time_s < least_s or (time_s == least_s and run_eur < least_eur):
        total_eur += run_eur - least_eur
        draft.first_s[node] = time_s
        draft.first_eur[node] = run_eur
    draft.total_eur[0] += total_eur


@inner(BOOL(QUEUE, DRAFT, INT, INT, INT))
def _try(queue: Any, draft: Any, job: Any, config: Any, where: Any) -> Any:
    """Give a job a configuration if there is room."""
    kind, gpus = queue.kind[config], queue.gpus[config]
    if gpus >= draft.limit[kind]:
        return False
    if config == queue.stay[job]:
        node = _own_room(queue, draft, queue.held_node[job], gpus, where)
    else:
        node = _room(queue, draft, kind, gpus, where)
        if node < 0 and where == ANYWHERE:
            draft.limit[kind] = gpus
    if node < 0:
        return False
    _put(queue, draft, job, config, node)
    return True


@inner(BOOL(QUEUE, DRAFT, INT, INT, INT, INT))
def _try_all(queue: Any, draft: Any, job: Any, begin: Any, end: Any, where: Any) -> Any:
    """Give a job the first configuration of some for which there is room."""
    for config in range(begin, end):
        if queue.gpus[config] < draft.limit[queue.kind[config]] and _try(queue, draft, job, config, where):
            return True
    return False


@inner(INT(QUEUE, DRAFT, INT, FLOAT, FLOAT))
def _candidate(queue: Any, draft: Any, job: Any, draw: Any, late: Any) -> Any:
    """The best configuration of a job, or with probability `draw` any, the likelier the cheaper.

    Any of D*, or with probability `late` any at all.
    """
    first = queue.first[job]
    if draw <= 0.0 or _uniform(draft) >= draw:
        return first
    chances, most = queue.below, queue.chosen[job] - 1
    if late > 0.0 and _uniform(draft) < late:
        chances, most = queue.below_any, queue.last[job] - 1
    below = _uniform(draft)
    while first < most:
        middle = (first + most) // 2
        if chances[middle] > below:
            most = middle
        else:
            first = middle + 1
    return first


@inner(VOID(QUEUE, DRAFT, INT, INT, FLOAT, FLOAT))
def _assign(queue: Any, draft: Any, job: Any, turns: Any, draw: Any, late: Any) -> None:
    """The turn of a job: its candidate, else what D* has for open nodes, else for closed ones."""
    if draft.done[job]:
        return
    _unclaim(queue, draft, job)
    first, chosen, last = queue.first[job], queue.chosen[job], queue.last[job]
    if first == last:
        return
    forced = queue.least_nodes - draft.counts[OPENED] >= turns
    if _try(queue, draft, job, _candidate(queue, draft, job, draw, late), CLOSED_ONLY if forced else ANYWHERE):
        return
    if forced and _try_all(queue, draft, job, first, last, CLOSED_ONLY):
        return
    if _try_all(queue, draft, job, first, chosen, OPEN_ONLY):
        return
    if not _try_all(queue, draft, job, first, chosen, ANYWHERE):
        draft.missed[draft.counts[MISSED]] = job
        draft.counts[MISSED] += 1


@inner(VOID(QUEUE, DRAFT, FLOAT))
def _keep(queue: Any, draft: Any, keep: Any) -> None:
    """Leave running jobs where they run, each with a probability."""
    for job in queue.order:
        if queue.stay[job] >= 0 and (keep >= 1.0 or _uniform(draft) < keep):
            _unclaim(queue, draft, job)
            _try(queue, draft, job, queue.stay[job], ANYWHERE)


@inner(FLOAT(QUEUE, DRAFT, FLOAT, FLOAT, FLOAT, FLOAT))
def _construct(queue: Any, draft: Any, keep: Any, swap: Any, draw: Any, late: Any) -> Any:
    """Make a schedule; returns its objective. Algorithm 1, lines 5 to 17.

    Each job goes back a place, and perhaps further, with `swap` times its probability. A job for which nothing of D*
    has room gets what is left after all others, since no GPU should idle while a job waits (constraint 4n).
    """
    _clear(queue, draft)
    if keep > 0.0:
        _keep(queue, draft, keep)
    n_jobs = len(queue.order)
    job = queue.order[0]
    for place in range(1, n_jobs + 1):
        if draft.counts[FREE] == 0:
            break
        turn = job
        if place < n_jobs:
            follower = queue.order[place]
            if swap > 0.0 and _uniform(draft) < min(swap * queue.back[job], MOST_SWAP):
                turn = follower
            else:
                job = follower
        _assign(queue, draft, turn, n_jobs - place + 1, draw, late)
    for missed in range(draft.counts[MISSED]):
        if draft.counts[FREE] == 0:
            break
        job = draft.missed[missed]
        _try_all(queue, draft, job, queue.chosen[job], queue.last[job], ANYWHERE)
    return draft.total_eur[0]


@inner(VOID(QUEUE, DRAFT, INTS, INTS))
def _save(queue: Any, draft: Any, node_of: Any, gpus_of: Any) -> None:
    """Note a schedule, naming the nodes that still have no name."""
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
    for job in range(len(queue.order)):
        node = draft.node[job]
        node_of[job] = POSTPONED if node < 0 else draft.name[node]
        gpus_of[job] = 0 if node < 0 else queue.gpus[draft.config[job]]


@outer(FLOAT(QUEUE, DRAFT, FLOATS_2D, INT, FLOAT, INTS, INTS))
def construct(queue: Any, draft: Any, ways: Any, count: Any, hold: Any, node_of: Any, gpus_of: Any) -> Any:
    """The best of so many schedules. Algorithm 1.

    Parameters
    ----------
    queue, draft : jobs and nodes; where schedules are made
    ways : (n_ways, 4) `keep`, `swap`, `draw` and `late` of each construction; from the third on they take turns in
        the rows from 2 on
    count : MaxIt, how many constructions
    hold : by which share the first schedule must be bettered
    node_of, gpus_of : (n_jobs,) the best schedule, written; the earliest one of several alike

    Returns
    -------
    Its objective, EUR.
    """
    best_eur, least_gain = np.inf, max(hold, LEAST_GAIN)
    for number in range(count):
        way = number if number < 2 else 2 + (number - 2) % (len(ways) - 2)
        total_eur = _construct(queue, draft, ways[way, 0], ways[way, 1], ways[way, 2], ways[way, 3])
        if number == 0 or total_eur < best_eur - least_gain * abs(best_eur):
            if number > 0:
                least_gain = LEAST_GAIN
            best_eur = total_eur
            _save(queue, draft, node_of, gpus_of)
    return best_eur
