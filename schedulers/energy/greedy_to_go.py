"""The cost-to-go of a schedule, and a local search for the least one, compiled.

What a decision is worth shows in what it leaves: running jobs go on to their end, and those that wait start in order
of their pressure (equation 2), each in the configuration in which it costs least, on the GPUs of a kind that are free
first; GPUs that are left idle are free from the next call on. It departs from equation 1 (Filippini et al.: ANDREAS,
FiCloud 2021), which charges a node its first-ending job alone and a job that waits rho times what waiting costs:

    sum over jobs of  weight x hours late + energy + (price of a kind x GPUs + impatience) x hours on them
                      + impatience x hours until it starts
    energy            of a node with jobs: exact until they are over; of a job that waits: as if alone on its node
    price, impatience what a GPU is worth to jobs that are still to come, and that time is: see `AndreasSettings`

Restarts and what is lost since the last snapshot are in the times. For what waits, GPUs of a kind are one pool. The
search starts at the schedules of Algorithm 1 and tries one job elsewhere, or waiting, and one in the place of another.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jobcast.domain.arrays import Floats, Ints
from jobcast.domain.compiled import F2, I1, njit, types
from jobcast.domain.energy import POSTPONED
from jobcast.schedulers.energy.greedy import FIRST, LEAST_GAIN, make, name_nodes
from jobcast.schedulers.energy.greedy_state import DRAFT, NONE, QUEUE, Queue, inner, stamp, type_of

# Places in `Plan.sums`: of jobs and nodes in use; of the schedule in all; queues that were looked at, see `STEP`.
OWN, TOTAL, LOOKED = range(3)
# To look at a queue counts as its jobs and GPUs, at least so much.
STEP = 250.0
# Constructions that cost less than so many times the best are searched from. Ours.
NEAR = 1.05
# Of nodes in use the one with the least room, or one of those that are not.
IN_USE, EMPTY = 0, 1


class Outlook(NamedTuple):
    """What is known of the time after a call.

    Attributes
    ----------
    due_s : (n_jobs,) from now on
    late_eur_s : (n_jobs,) of each second after that
    keep_eur : (n_configurations,) price of the GPUs and impatience, while it runs
    rate_eur_s : (n_kinds, most_gpus + 1) of a node with so many GPUs in use
    ends : (n_kinds + 1,) where each kind's GPUs begin in `Plan.until_s`
    idle_s : until GPUs that are not used now can be
    wait_eur_s : impatience
    """

    due_s: Floats
    late_eur_s: Floats
    keep_eur: Floats
    rate_eur_s: Floats
    ends: Ints
    idle_s: float
    wait_eur_s: float


class Plan(NamedTuple):
    """A schedule that is being changed.

    Attributes
    ----------
    node, config : (n_jobs,) named nodes, or `POSTPONED`
    free, used : (n_nodes,) free GPUs, and how many jobs
    slots : (n_nodes, most_gpus) its jobs, by their ends
    node_eur : (n_nodes,) energy until its jobs are over
    until_s, list_s : (n_gpus,) when GPUs are free, ascending kind by kind: now, and as the list goes on
    sums : (3,) see `OWN`, `TOTAL`, `LOOKED`
    """

    node: Ints
    config: Ints
    free: Ints
    used: Ints
    slots: Ints
    node_eur: Floats
    until_s: Floats
    list_s: Floats
    sums: Floats


OUTLOOK, PLAN = type_of(Outlook), type_of(Plan)


def new_plan(queue: Queue, gpus: int) -> Plan:
    """An empty plan for a queue, on so many GPUs."""
    jobs, nodes = np.zeros((2, len(queue.back)), dtype=np.int64), np.zeros((2, len(queue.kind_of)), dtype=np.int64)
    slots = np.zeros((len(queue.kind_of), int(queue.kind_gpus.max())), dtype=np.int64)
    node_eur = np.zeros(len(queue.kind_of))
    return Plan(jobs[0], jobs[1], nodes[0], nodes[1], slots, node_eur, np.zeros(gpus), np.zeros(gpus), np.zeros(3))


@inner
def _node_eur(queue: Any, look: Any, plan: Any, node: Any) -> Any:
    """Energy of a node until its jobs are over, which are put in the order of their ends."""
    busy, slots = 0, plan.slots
    for at in range(plan.used[node]):
        job = slots[node, at]
        busy += queue.gpus[plan.config[job]]
        while at > 0 and queue.time_s[plan.config[slots[node, at - 1]]] > queue.time_s[plan.config[job]]:
            slots[node, at] = slots[node, at - 1]
            at -= 1
        slots[node, at] = job
    eur, from_s = 0.0, 0.0
    for at in range(plan.used[node]):
        config = plan.config[slots[node, at]]
        eur += look.rate_eur_s[queue.kind_of[node], busy] * (queue.time_s[config] - from_s)
        from_s, busy = queue.time_s[config], busy - queue.gpus[config]
    return eur


@inner
def _later(until_s: Any, at: Any, end: Any, gpus: Any, to_s: Any) -> None:
    """GPUs from a place on, which are free together, are free later; those up to the end are ascending."""
    while at + gpus < end and until_s[at + gpus] < to_s:
        until_s[at] = until_s[at + gpus]
        at += 1
    for place in range(at, at + gpus):
        until_s[place] = to_s


@inner
def _idle(until_s: Any, begin: Any, end: Any, gpus: Any, from_s: Any, to_s: Any) -> None:
    """GPUs that were free at an instant are free at another one."""
    low = begin + np.searchsorted(until_s[begin:end], from_s)
    # Earlier ones move up, those that are free together with them stay.
    while low > begin and until_s[low - 1] > to_s:
        until_s[low + gpus - 1] = until_s[low - 1]
        low -= 1
    for place in range(low, low + gpus):
        until_s[place] = to_s
    _later(until_s, low, end, gpus, to_s)


@inner
def _refresh(queue: Any, look: Any, plan: Any, node: Any, eur: Any) -> None:
    """A node's jobs changed, and what they cost by themselves by so much."""
    node_eur = _node_eur(queue, look, plan, node)
    plan.sums[OWN] += eur + node_eur - plan.node_eur[node]
    plan.node_eur[node] = node_eur


@inner
def land(queue: Any, look: Any, plan: Any, job: Any, config: Any, node: Any) -> None:
    """Put a job that waits onto a node."""
    kind, gpus = queue.kind_of[node], queue.gpus[config]
    plan.node[job], plan.config[job] = node, config
    plan.slots[node, plan.used[node]] = job
    plan.used[node] += 1
    plan.free[node] -= gpus
    _idle(plan.until_s, look.ends[kind], look.ends[kind + 1], gpus, look.idle_s, queue.time_s[config])
    _refresh(queue, look, plan, node, queue.late_eur[config] + look.keep_eur[config])


@inner
def lift(queue: Any, look: Any, plan: Any, job: Any) -> None:
    """Take a job off its node."""
    node, config, kept = plan.node[job], plan.config[job], 0
    kind, gpus = queue.kind_of[node], queue.gpus[config]
    for slot in range(plan.used[node]):
        if plan.slots[node, slot] != job:
            plan.slots[node, kept] = plan.slots[node, slot]
            kept += 1
    plan.used[node] = kept
    plan.free[node] += gpus
    plan.node[job] = POSTPONED
    _idle(plan.until_s, look.ends[kind], look.ends[kind + 1], gpus, queue.time_s[config], look.idle_s)
    _refresh(queue, look, plan, node, -queue.late_eur[config] - look.keep_eur[config])


@inner
def _start(queue: Any, look: Any, plan: Any, job: Any) -> Any:
    """Start a job of the list where it costs least, and say what that is."""
    best, best_eur = NONE, np.inf
    for config in range(queue.first[job], queue.last[job]):
        last = look.ends[queue.kind[config]] + queue.gpus[config] - 1
        # Kinds may be without nodes.
        if config == queue.stay[job] or last >= look.ends[queue.kind[config] + 1]:
            continue
        from_s = plan.list_s[last]
        late_s = max(0.0, from_s + queue.time_s[config] - look.due_s[job])
        eur = late_s * look.late_eur_s[job] + queue.run_eur[config] + look.keep_eur[config] + from_s * look.wait_eur_s
        if eur < best_eur:
            best, best_eur = config, eur
    # It runs nowhere.
    if best == NONE:
        return 0.0
    begin, end, gpus = look.ends[queue.kind[best]], look.ends[queue.kind[best] + 1], queue.gpus[best]
    _later(plan.list_s, begin, end, gpus, plan.list_s[begin + gpus - 1] + queue.time_s[best])
    return best_eur


@inner
def total_eur(queue: Any, look: Any, plan: Any, most_eur: Any) -> Any:
    """The cost-to-go; some of it where that is so much already."""
    eur = plan.sums[OWN]
    plan.sums[LOOKED] += max(STEP, float(len(plan.list_s) + len(plan.node)))
    for gpu in range(len(plan.list_s)):
        plan.list_s[gpu] = plan.until_s[gpu]
    for job in queue.order[0]:
        if eur >= most_eur:
            break
        if plan.node[job] == POSTPONED:
            eur += _start(queue, look, plan, job)
    return eur


@inner
def _gains(queue: Any, look: Any, plan: Any) -> Any:
    """Whether the schedule as it is now costs less than the one noted; noted if so."""
    bar_eur = plan.sums[TOTAL] - LEAST_GAIN * abs(plan.sums[TOTAL])
    eur = total_eur(queue, look, plan, bar_eur)
    if eur < bar_eur:
        plan.sums[TOTAL] = eur
    return eur < bar_eur


@inner
def fits_node(queue: Any, job: Any, config: Any, node: Any) -> Any:
    """Whether it is the configuration for this node: where it runs with what it holds a job stays."""
    same = node == queue.held_node[job] and queue.gpus[config] == queue.held_gpus[job]
    return same == (config == queue.stay[job])


@inner
def _room(queue: Any, plan: Any, job: Any, config: Any, which: Any) -> Any:
    """A node for a configuration, or `NONE`."""
    gpus, best = queue.gpus[config], NONE
    if config == queue.stay[job]:
        node = queue.held_node[job]
        return node if which == IN_USE and plan.free[node] >= gpus else NONE
    begin = queue.kind_first[queue.kind[config]]
    for place in range(begin, begin + queue.kind_nodes[queue.kind[config]]):
        node = queue.by_kind[place]
        fits = plan.free[node] >= gpus and (plan.used[node] == 0) == (which == EMPTY)
        if fits and (best == NONE or plan.free[node] < plan.free[best]) and fits_node(queue, job, config, node):
            best = node
    return best


@inner
def _elsewhere(queue: Any, look: Any, plan: Any, job: Any) -> Any:
    """Put a job that waits where that gains, if anywhere."""
    for config in range(queue.first[job], queue.last[job]):
        for which in (IN_USE, EMPTY):
            node = _room(queue, plan, job, config, which)
            if node != NONE:
                land(queue, look, plan, job, config, node)
                if _gains(queue, look, plan):
                    return True
                lift(queue, look, plan, job)
    return False


@inner
def _move(queue: Any, look: Any, plan: Any, job: Any) -> Any:
    """Let a job wait, or put it elsewhere, if that gains."""
    node, config = plan.node[job], plan.config[job]
    if node != POSTPONED:
        lift(queue, look, plan, job)
        if _gains(queue, look, plan):
            return True
    if _elsewhere(queue, look, plan, job):
        return True
    if node != POSTPONED:
        land(queue, look, plan, job, config, node)
    return False


@inner
def _replace(queue: Any, look: Any, plan: Any, job: Any, other: Any) -> Any:
    """Put a job onto the node of another one, which goes elsewhere or waits, if that gains."""
    node, config, other_node, other_config = plan.node[job], plan.config[job], plan.node[other], plan.config[other]
    lift(queue, look, plan, other)
    if node != POSTPONED:
        lift(queue, look, plan, job)
    for new in range(queue.first[job], queue.last[job]):
        fits = queue.kind[new] == queue.kind_of[other_node] and plan.free[other_node] >= queue.gpus[new]
        if fits and fits_node(queue, job, new, other_node):
            land(queue, look, plan, job, new, other_node)
            if _gains(queue, look, plan) or _elsewhere(queue, look, plan, other):
                return True
            lift(queue, look, plan, job)
    if node != POSTPONED:
        land(queue, look, plan, job, config, node)
    land(queue, look, plan, other, other_config, other_node)
    return False


@inner
def _changes(queue: Any, look: Any, plan: Any, job: Any, most: Any) -> Any:
    """Whether a change of a job gains: the first one that does is made."""
    if _move(queue, look, plan, job):
        return True
    for other in queue.order[0, ::-1]:
        if plan.sums[LOOKED] >= most:
            return False
        if other != job and plan.node[other] != POSTPONED and _replace(queue, look, plan, job, other):
            return True
    return False


@inner
def _descend(queue: Any, look: Any, plan: Any, most: Any) -> None:
    """Change the schedule until nothing gains, or so much was looked at; the most urgent jobs first."""
    place, vain = 0, 0
    while vain < len(plan.node) and plan.sums[LOOKED] < most:
        gained = _changes(queue, look, plan, queue.order[0, place], most)
        vain = 0 if gained else vain + 1
        place = place if gained else (place + 1) % len(plan.node)


@inner
def load(queue: Any, look: Any, plan: Any, node_of: Any, config_of: Any) -> None:
    """Take over a schedule, and price it."""
    plan.sums[OWN] = 0.0
    plan.until_s[:] = look.idle_s
    plan.node[:] = POSTPONED
    plan.node_eur[:] = 0.0
    plan.used[:] = 0
    for node in range(len(queue.kind_of)):
        plan.free[node] = queue.kind_gpus[queue.kind_of[node]]
    for job in range(len(plan.node)):
        if node_of[job] != POSTPONED:
            land(queue, look, plan, job, config_of[job], node_of[job])
    plan.sums[TOTAL] = total_eur(queue, look, plan, np.inf)


@inner
def _search(queue: Any, draft: Any, look: Any, plan: Any, ways: Any, count: Any, hold: Any, most: Any) -> None:
    """Make schedules, change those that are near the best, and note it."""
    for number in range(count):
        make(queue, draft, ways[number if number < FIRST else FIRST + (number - FIRST) % (len(ways) - FIRST)])
        name_nodes(queue, draft)
        load(queue, look, plan, draft.try_node, draft.try_config)
        # Spread evenly, so that late constructions are searched from as well.
        spare = plan.sums[LOOKED] * count < most * (number + 1)
        if number < FIRST or (spare and plan.sums[TOTAL] < NEAR * draft.best_eur[0]):
            _descend(queue, look, plan, most)
        if plan.sums[TOTAL] < draft.best_eur[1]:
            draft.best_eur[0] = plan.sums[TOTAL]
            # What the search makes of the schedule in which all stay is what others must better by the share.
            draft.best_eur[1] = plan.sums[TOTAL] * (1.0 - max(LEAST_GAIN, hold if number == 0 else 0.0))
            for job in range(len(plan.node)):
                draft.best_node[job], draft.best_config[job] = plan.node[job], plan.config[job]


def _compiled(sources: str) -> Any:
    """`search`, compiled from these sources: Numba's cache looks at this file and at what a function encloses."""
    asked = (QUEUE, DRAFT, OUTLOOK, PLAN, F2, types.int64, types.float64, types.float64, I1, I1)
    outer: Any = partial(njit, cache=True, nogil=True, no_cfunc_wrapper=True, _nrt=False)

    @outer(types.float64(*asked))
    def search(
        queue: Any, draft: Any, look: Any, plan: Any, ways: Any, count: Any, hold: Any, most: Any, node_of: Any,
        gpus_of: Any,
    ) -> Any:  # fmt: skip
        """The schedule of least cost-to-go that is found, written; its cost. See `greedy.construct`."""
        # Never so; it makes the sources part of what Numba hashes.
        if not sources:
            return np.nan
        _search(queue, draft, look, plan, ways, count, hold, most)
        for job in range(len(plan.node)):
            node_of[job] = draft.best_node[job]
            gpus_of[job] = 0 if node_of[job] < 0 else queue.gpus[draft.best_config[job]]
        return draft.best_eur[0]

    return search


search = _compiled(stamp())
