"""Open nodes of a schedule that is being made, in lists by their room; compiled.

Nodes of a kind are alike, so a construction opens nodes without a name and names them when a running job stays (its
node is then the one it runs on) or at the end. GPUs of a named node that running jobs hold, whose turn is still to
come, are claimed: other jobs take them last.

Importing numba takes a second, so only what computes imports this file.
"""

from functools import partial
from typing import Any

import numba
import numpy as np

from jobcast.domain.energy import POSTPONED
from jobcast.schedulers.energy.greedy_state import FREE, OPENED

inner: Any = partial(numba.njit, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
"""For what only compiled code calls: without the ways in from Python, which take longer to compile than it does.

`_nrt`: counting references to the arrays of a tuple takes ten times as long as the rest, and nothing is allocated here.
"""

UNNAMED, NAMED, CLAIMED = 0, 1, 2
"""Lists of open nodes: without a name by room; with one by room that nobody claims; with claims by room and claims."""
ANYWHERE, OPEN_ONLY, CLOSED_ONLY = 0, 1, 2
"""Where a job may be put: what nobody claims of open nodes, then closed nodes, then what is claimed; or one of two."""


@inner
def _link(draft: Any, which: Any, kind: Any, room: Any, node: Any) -> None:
    """Put a node at the front of a list."""
    row = 1 if which == CLAIMED else 0
    follower = draft.head[which, kind, room]
    draft.head[which, kind, room] = node
    draft.before[row, node] = -1
    draft.after[row, node] = follower
    if follower >= 0:
        draft.before[row, follower] = node


@inner
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


@inner
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


@inner
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


@inner
def open_node(queue: Any, draft: Any, kind: Any) -> Any:
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


@inner
def fitting(draft: Any, which: Any, kind: Any, gpus: Any) -> Any:
    """The node of a list with the least room for so many GPUs, or -1."""
    for room in range(gpus, draft.head.shape[2]):
        if draft.head[which, kind, room] >= 0:
            return draft.head[which, kind, room]
    return -1


@inner
def room_for(queue: Any, draft: Any, kind: Any, gpus: Any, where: Any) -> Any:
    """A node for so many GPUs: an open one with the least room, a closed one, one with claims; or -1."""
    if where != CLOSED_ONLY:
        for room in range(gpus, queue.kind_gpus[kind] + 1):
            if draft.head[NAMED, kind, room] >= 0:
                return draft.head[NAMED, kind, room]
            if draft.head[UNNAMED, kind, room] >= 0:
                return draft.head[UNNAMED, kind, room]
    node = -1 if where == OPEN_ONLY else open_node(queue, draft, kind)
    return fitting(draft, CLAIMED, kind, gpus) if node < 0 and where == ANYWHERE else node


@inner
def own_room(queue: Any, draft: Any, held: Any, gpus: Any, where: Any) -> Any:
    """The unnamed node that is, or becomes, the node that a job holds; -1 where there is no room on it."""
    node, kind = draft.named[held], queue.kind_of[held]
    if node >= 0:
        return node if draft.free[node] >= gpus and where != CLOSED_ONLY else -1
    if where != CLOSED_ONLY:
        node = fitting(draft, UNNAMED, kind, draft.claims[held] + gpus)
    if node < 0:
        node = open_node(queue, draft, kind)
    if node < 0:
        node = fitting(draft, UNNAMED, kind, gpus)
    if node >= 0:
        _delist(draft, kind, node)
        draft.name[node] = held
        draft.named[held] = node
        _enlist(draft, kind, node)
    return node


@inner
def unclaim(queue: Any, draft: Any, job: Any) -> None:
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


@inner
def put_on(queue: Any, draft: Any, job: Any, config: Any, node: Any) -> None:
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
