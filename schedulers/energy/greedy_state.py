"""What the compiled greedy reads and writes, and the open nodes of a schedule in the making, in lists by their room.

Nodes of a kind are alike, so a construction opens nodes without a name and names them when a running job stays (its
node is then the one it runs on) or at the end. GPUs of a named node that running jobs hold, whose turn is still to
come, are claimed: other jobs take them last.

Importing numba takes a second, so only what computes imports this file.
"""

import hashlib
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import B1, F1, F2, I1, I2, I3, njit, types
from jobcast.domain.energy import POSTPONED

# For what only compiled code calls: without the ways in from Python, which take longer to compile than it does.
# `_nrt`: counting references to the arrays of a tuple takes ten times as long as the rest, and nothing is allocated
# here.
inner: Any = partial(njit, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)

# No node, no neighbour, no configuration.
NONE = -1
# Lists of open nodes: without a name by room; with one by room that nobody claims; with claims by room and claims.
UNNAMED, NAMED, CLAIMED = 0, 1, 2
# Where a job may be put: what nobody claims of open nodes, then closed nodes, then what is claimed; or one of two.
ANYWHERE, OPEN_ONLY, CLOSED_ONLY = 0, 1, 2


@inner
def _link(draft: Any, which: Any, kind: Any, room: Any, node: Any) -> None:
    """Put a node at the front of a list."""
    row = 1 if which == CLAIMED else 0
    # In front: of nodes with the same room the one used last is taken first.
    follower = draft.head[which, kind, room]
    draft.head[which, kind, room] = node
    draft.before[row, node] = NONE
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
    # In two lists at once: by what is free to all, and by what is free at the worst.
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
    """Open a node of a kind, and say which; `NONE` where none is closed."""
    if draft.opened[kind] >= queue.kind_nodes[kind]:
        return NONE
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
    """The node of a list with the least room for so many GPUs, or `NONE`."""
    for room in range(gpus, draft.head.shape[2]):
        if draft.head[which, kind, room] >= 0:
            return draft.head[which, kind, room]
    return NONE


@inner
def room_for(queue: Any, draft: Any, kind: Any, gpus: Any, where: Any) -> Any:
    """A node for so many GPUs: an open one with the least room, a closed one, one with claims; or `NONE`."""
    if where != CLOSED_ONLY:
        for room in range(gpus, queue.kind_gpus[kind] + 1):
            if draft.head[NAMED, kind, room] >= 0:
                return draft.head[NAMED, kind, room]
            if draft.head[UNNAMED, kind, room] >= 0:
                return draft.head[UNNAMED, kind, room]
    node = NONE if where == OPEN_ONLY else open_node(queue, draft, kind)
    return fitting(draft, CLAIMED, kind, gpus) if node < 0 and where == ANYWHERE else node


@inner
def own_room(queue: Any, draft: Any, held: Any, gpus: Any, where: Any) -> Any:
    """The unnamed node that is, or becomes, the node that a job holds; `NONE` where there is no room on it."""
    node, kind = draft.named[held], queue.kind_of[held]
    if node >= 0:
        return node if draft.free[node] >= gpus and where != CLOSED_ONLY else NONE
    if where != CLOSED_ONLY:
        node = fitting(draft, UNNAMED, kind, draft.claims[held] + gpus)
    if node < 0:
        node = open_node(queue, draft, kind)
    # All nodes are open: one that has room for this job alone will do.
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
def ends_first(queue: Any, draft: Any, config: Any, node: Any) -> Any:
    """Whether a job with a configuration would be the first to end on a node, and so pay for it.

    Of those that end together that is the cheapest.
    """
    time_s, first_s = queue.time_s[config], draft.first_s[node]
    return time_s < first_s or (time_s == first_s and queue.run_eur[config] < draft.first_eur[node])


@inner
def put_on(queue: Any, draft: Any, job: Any, config: Any, node: Any) -> None:
    """Put a job onto an open node."""
    kind, gpus = queue.kind[config], queue.gpus[config]
    _delist(draft, kind, node)
    draft.free[node] -= gpus
    _enlist(draft, kind, node)
    draft.counts[FREE] -= gpus
    draft.node[job] = node
    draft.config[job] = config
    total_eur = queue.late_eur[config] - queue.waiting_eur[job]
    if ends_first(queue, draft, config, node):
        total_eur += queue.run_eur[config] - draft.first_eur[node]
        draft.first_s[node], draft.first_eur[node] = queue.time_s[config], queue.run_eur[config]
    draft.total_eur[0] += total_eur


# Places in `Draft.counts`.
FREE, MISSED, OPENED, LOOKED, LACKS = range(5)


class Queue(NamedTuple):
    """Jobs, their configurations and the nodes; what no construction changes.

    Configurations of job j are those from `first[j]` to before `last[j]`: first the ones to choose from by cost (D*,
    or all by time where that is empty), which end before `chosen[j]`, then the late ones by time.

    Attributes
    ----------
    order : (2, n_jobs) by pressure, and by what postponing costs, descending
    back : (n_jobs,) probability of going back a place, at most
    waiting_eur : (n_jobs,) what the objective adds for a job that is postponed
    held_node, held_gpus : (n_jobs,) where it runs and on how many GPUs, or `POSTPONED` and 0
    first, chosen, last : (n_jobs,)
    stay : (n_jobs,) the configuration that is to go on where it runs, or `NONE`
    kind, gpus : (n_configurations,)
    time_s : (n_configurations,) t
    late_eur : (n_configurations,) what the objective adds for tardiness
    run_eur : (n_configurations,) pi, added where the job ends first on its node
    below : (n_configurations,) probability of this configuration or one before it, of those to choose from
    kind_of : (n_nodes,)
    by_kind : (n_nodes,) nodes kind by kind
    kind_first, kind_nodes, kind_gpus : (n_kinds,) the first of its unnamed nodes, how many nodes, GPUs of each
    claims : (n_nodes,) GPUs that running jobs hold
    least_nodes : how many nodes must be used, as far as they can be (constraint 4n); 0: any
    """

    order: Ints
    back: Floats
    waiting_eur: Floats
    held_node: Ints
    held_gpus: Ints
    first: Ints
    chosen: Ints
    last: Ints
    stay: Ints
    kind: Ints
    gpus: Ints
    time_s: Floats
    late_eur: Floats
    run_eur: Floats
    below: Floats
    kind_of: Ints
    by_kind: Ints
    kind_first: Ints
    kind_nodes: Ints
    kind_gpus: Ints
    claims: Ints
    least_nodes: int


class Draft(NamedTuple):
    """A schedule that is being made.

    Attributes
    ----------
    node : (n_jobs,) unnamed node of each job, or `POSTPONED`
    config : (n_jobs,) its configuration
    done : (n_jobs,) whether its turn is over
    missed : (n_jobs,) jobs that found no room; `counts[MISSED]` of them
    free : (n_nodes,) free GPUs of unnamed nodes
    name : (n_nodes,) node that an unnamed one became, or `NONE`
    named : (n_nodes,) unnamed node that a node became, or `NONE`
    claims : (n_nodes,) GPUs of a node that running jobs hold whose turn is to come
    first_s, first_eur : (n_nodes,) t and pi of the job that ends first
    opened, limit : (n_kinds,) open nodes; so many GPUs or more are known to be free on no node
    head : (3, n_kinds, most_gpus + 1) first node of each list, or `NONE`
    after, before : (2, n_nodes) neighbours in a list; row 1 for the list `CLAIMED`
    slots, used : (n_nodes, most_gpus), (n_nodes,) jobs of each node and how many they are, in a descent
    try_node, try_config : (n_jobs,) the schedule with its nodes named, that a descent changes
    best_node, best_config : (n_jobs,) the best so far
    best_eur : (2,) its objective, and what that of others must be below
    counts : (5,) free GPUs, missed jobs, open nodes; places that descents looked at, nodes of constraint 4n that the
        best schedule lacks
    total_eur : (1,) the objective
    random : (1,) state of the generator
    """

    node: Ints
    config: Ints
    done: NDArray[np.bool_]
    missed: Ints
    free: Ints
    name: Ints
    named: Ints
    claims: Ints
    first_s: Floats
    first_eur: Floats
    opened: Ints
    limit: Ints
    head: Ints
    after: Ints
    before: Ints
    slots: Ints
    used: Ints
    try_node: Ints
    try_config: Ints
    best_node: Ints
    best_config: Ints
    best_eur: Floats
    counts: Ints
    total_eur: Floats
    random: NDArray[np.uint64]


_OTHERS = {
    "least_nodes": types.int64,
    "idle_s": types.float64,
    "wait_eur_s": types.float64,
    "rate_eur_s": F2,
    "done": B1,
    "head": I3,
    "after": I2,
    "before": I2,
    "slots": I2,
    "order": I2,
    "random": types.Array(types.uint64, 1, "C"),
}


def type_of(kind: Any) -> Any:
    """The compiled type of a tuple of columns, by its annotations; those of another shape or type are told apart."""
    own = {name: F1 if column == Floats else I1 for name, column in kind.__annotations__.items()} | _OTHERS
    return types.NamedTuple([own[name] for name in kind._fields], kind)


OF_JOBS = ("node", "config", "missed", "try_node", "try_config", "best_node", "best_config")
OF_NODES = ("free", "name", "named", "claims", "used")
QUEUE, DRAFT = type_of(Queue), type_of(Draft)


def new_draft(queue: Queue, seed: int) -> Draft:
    """An empty draft for a queue, and its random numbers."""
    jobs, nodes, kinds = len(queue.back), len(queue.kind_of), len(queue.kind_gpus)
    rooms = int(queue.kind_gpus.max()) + 1
    return Draft(
        **{name: np.zeros(jobs, dtype=np.int64) for name in OF_JOBS},
        **{name: np.zeros(nodes, dtype=np.int64) for name in OF_NODES},
        done=np.zeros(jobs, dtype=np.bool_),
        first_s=np.zeros(nodes),
        first_eur=np.zeros(nodes),
        opened=np.zeros(kinds, dtype=np.int64),
        limit=np.zeros(kinds, dtype=np.int64),
        head=np.zeros((3, kinds, rooms), dtype=np.int64),
        after=np.zeros((2, nodes), dtype=np.int64),
        before=np.zeros((2, nodes), dtype=np.int64),
        slots=np.zeros((nodes, rooms - 1), dtype=np.int64),
        best_eur=np.full(2, np.inf),
        # Whatever is made first lacks fewer nodes than this, and so becomes the best.
        counts=np.array([0] * LACKS + [np.iinfo(np.int64).max]),
        total_eur=np.zeros(1),
        random=np.array([seed], dtype=np.uint64),
    )


def stamp() -> str:
    """Tells apart the sources of the compiled greedy, for Numba's cache."""
    files = sorted(Path(__file__).parent.glob("greedy*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
