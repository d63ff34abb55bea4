"""The best of many random schedules, compiled. Filippini et al.: ANDREAS, FiCloud 2021, section IV.B and Algorithm 1.

First random constructions (lines 5 to 17), then local descents, in which one job at a time is moved or postponed while
the objective falls, and nodes have their names. Importing numba takes a second, so only what computes imports this.
"""

from functools import partial
from typing import Any

import numpy as np

from jobcast.domain.compiled import F2, I1, njit, types
from jobcast.domain.energy import POSTPONED
from jobcast.schedulers.energy.greedy_state import (
    ANYWHERE,
    CLOSED_ONLY,
    DRAFT,
    FREE,
    LACKS,
    LOOKED,
    MISSED,
    NONE,
    OPEN_ONLY,
    OPENED,
    QUEUE,
    ends_first,
    inner,
    own_room,
    put_on,
    room_for,
    stamp,
    unclaim,
)

# Columns of ways to make a schedule: whether running jobs stay; probabilities that a job of the least weight goes back
# a place (`MOST_SWAP` at most) and that a job draws its candidate; an order of `Queue.order`; how GPUs are capped.
KEEP, SWAP, DRAW, ORDER, CAP = range(5)
# How many GPUs jobs get while there is another way: any number; at most so many, drawn once; drawn for each job.
FREELY, ONE_CAP, CAPS = 0, 1, 2
# No job goes back a place for certain.
MOST_SWAP = 0.9
# SplitMix64: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
GOLDEN, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
# No cap.
MOST_GPUS = int(np.iinfo(np.int64).max)
UNIT = 1.0 / (1 << 53)


@inner
def uniform(draft: Any) -> Any:
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
    draft.name[:] = NONE
    draft.named[:] = NONE
    for node in range(len(queue.kind_of)):
        draft.claims[node] = queue.claims[node]
    draft.opened[:] = 0
    draft.head[:] = NONE
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
        # No node of the kind has so many free, and within a construction none will: noted for all others.
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
    # No draw where none is asked for: plain constructions leave the stream alone.
    if draw <= 0.0 or uniform(draft) >= draw:
        return first
    return first + np.searchsorted(queue.below[first : queue.chosen[job] - 1], uniform(draft), side="right")


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
    # From here on each job that is left has to open a node, or 4n cannot be met.
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
def _keep(queue: Any, draft: Any) -> None:
    """Leave running jobs where they run."""
    for place in range(len(queue.back)):
        job = queue.order[0, place]
        if queue.stay[job] >= 0:
            unclaim(queue, draft, job)
            _try(queue, draft, job, queue.stay[job], ANYWHERE)


@inner
def make(queue: Any, draft: Any, way: Any) -> None:
    """Make a schedule. Algorithm 1, lines 5 to 17.

    Each job goes back a place, and perhaps further, with `swap` times its probability. A job for which nothing of D*
    has room gets what is left after all others, since no GPU should idle while a job waits (constraint 4n).
    """
    _clear(queue, draft)
    if way[KEEP]:
        _keep(queue, draft)
    n_jobs, most, order = len(queue.back), draft.head.shape[2] - 1, int(way[ORDER])
    cap, job = MOST_GPUS, queue.order[order, 0]
    for place in range(1, n_jobs + 1):
        # Nothing is free any more: all that follow wait.
        if draft.counts[FREE] == 0:
            break
        turn = job
        if place < n_jobs:
            follower = queue.order[order, place]
            goes_back = way[SWAP] > 0.0 and uniform(draft) < min(way[SWAP] * queue.back[job], MOST_SWAP)
            # The one that goes back meets the next place again, and may go back further.
            turn, job = (follower, job) if goes_back else (job, follower)
        if way[CAP] == CAPS or (way[CAP] == ONE_CAP and place == 1):
            cap = 1 + int(uniform(draft) * most)
        _assign(queue, draft, turn, n_jobs - place + 1, way[DRAW], cap)
    for missed in range(draft.counts[MISSED]):
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


# By which share an objective must be lower to count as lower; less is rounding.
LEAST_GAIN = 1e-9


@inner
def _load(queue: Any, draft: Any) -> None:
    """Fill nodes as the schedule to be changed has it."""
    draft.counts[OPENED] = 0
    total_eur = 0.0
    for node in range(len(queue.kind_of)):
        draft.free[node] = queue.kind_gpus[queue.kind_of[node]]
        draft.used[node] = 0
        draft.first_s[node] = np.inf
        draft.first_eur[node] = 0.0
    for job in range(len(queue.back)):
        total_eur += queue.waiting_eur[job]
    draft.total_eur[0] = total_eur
    for job in range(len(queue.back)):
        if draft.try_node[job] != POSTPONED:
            _land(queue, draft, job, draft.try_config[job], draft.try_node[job])


@inner
def _land(queue: Any, draft: Any, job: Any, config: Any, node: Any) -> None:
    """Put a job that waits onto a node."""
    draft.total_eur[0] += _extra_eur(queue, draft, config, node) - queue.waiting_eur[job]
    if draft.used[node] == 0:
        draft.counts[OPENED] += 1
    draft.slots[node, draft.used[node]] = job
    draft.used[node] += 1
    draft.free[node] -= queue.gpus[config]
    draft.try_node[job], draft.try_config[job] = node, config
    if ends_first(queue, draft, config, node):
        draft.first_s[node], draft.first_eur[node] = queue.time_s[config], queue.run_eur[config]


@inner
def _lift(queue: Any, draft: Any, job: Any) -> None:
    """Take a job off its node."""
    node, config = draft.try_node[job], draft.try_config[job]
    # The node's cost is worked out anew below, from who is left on it.
    draft.total_eur[0] += queue.waiting_eur[job] - queue.late_eur[config] - draft.first_eur[node]
    draft.try_node[job] = POSTPONED
    draft.free[node] += queue.gpus[config]
    draft.first_s[node], draft.first_eur[node] = np.inf, 0.0
    kept = 0
    for slot in range(draft.used[node]):
        other = draft.slots[node, slot]
        if other != job:
            draft.slots[node, kept] = other
            kept += 1
            if ends_first(queue, draft, draft.try_config[other], node):
                draft.first_s[node] = queue.time_s[draft.try_config[other]]
                draft.first_eur[node] = queue.run_eur[draft.try_config[other]]
    draft.used[node] = kept
    if kept == 0:
        draft.counts[OPENED] -= 1
    draft.total_eur[0] += draft.first_eur[node]


@inner
def _extra_eur(queue: Any, draft: Any, config: Any, node: Any) -> Any:
    """What a job would add to the objective, besides that it no longer waits."""
    if ends_first(queue, draft, config, node):
        return queue.late_eur[config] + queue.run_eur[config] - draft.first_eur[node]
    return queue.late_eur[config]


@inner
def _cheapest(queue: Any, draft: Any, job: Any, most_eur: Any, opens: Any) -> Any:
    """The configuration and node of a job that cost the least and less than so much; `NONE` twice where none do."""
    best_config, best_node = NONE, NONE
    held, held_gpus, stay = queue.held_node[job], queue.held_gpus[job], queue.stay[job]
    for config in range(queue.first[job], queue.last[job]):
        kind, gpus = queue.kind[config], queue.gpus[config]
        begin = queue.kind_first[kind]
        for place in range(begin, begin + queue.kind_nodes[kind]):
            node = queue.by_kind[place]
            draft.counts[LOOKED] += 1
            if draft.free[node] < gpus or (opens and draft.used[node] > 0):
                continue
            # Where it runs with what it holds it stays, which is a configuration of its own.
            if (node == held and gpus == held_gpus) != (config == stay):
                continue
            extra_eur = _extra_eur(queue, draft, config, node)
            if extra_eur < most_eur:
                most_eur, best_config, best_node = extra_eur, config, node
    return best_config, best_node


@inner
def _settle(queue: Any, draft: Any, job: Any) -> Any:
    """Put a job where the objective is least, or postpone it; whether that lowers the objective."""
    node, config, before_eur = draft.try_node[job], draft.try_config[job], draft.total_eur[0]
    opens = False
    if node != POSTPONED:
        _lift(queue, draft, job)
        opens = draft.used[node] == 0 and draft.counts[OPENED] < queue.least_nodes
    others_eur = draft.total_eur[0] - queue.waiting_eur[job]
    bar_eur = before_eur - LEAST_GAIN * abs(before_eur) - others_eur
    waits = node != POSTPONED and not opens and queue.waiting_eur[job] < bar_eur
    to_config, to_node = _cheapest(queue, draft, job, queue.waiting_eur[job] if waits else bar_eur, opens)
    if to_node != NONE:
        _land(queue, draft, job, to_config, to_node)
    elif not waits and node != POSTPONED:
        _land(queue, draft, job, config, node)
    return to_node != NONE or waits


@inner
def descend(queue: Any, draft: Any, most: Any) -> None:
    """Change the schedule tried until no single job can be put elsewhere, or postponed, for less.

    Nodes in use stay as many as constraint 4n asks for. Jobs may be postponed while there is room for them. It ends
    when `most` places were looked at, by all descents together.
    """
    _load(queue, draft)
    falls = True
    while falls:
        falls = False
        for job in range(len(queue.back)):
            if draft.counts[LOOKED] < most:
                falls = _settle(queue, draft, job) or falls


outer: Any = partial(njit, cache=True, nogil=True, no_cfunc_wrapper=True, _nrt=False)
INT, FLOAT = types.int64, types.float64
# Ways from here on take turns; those before are of the first constructions.
FIRST = 2
# Constructions are descended from that cost less than so many times the best. Ours.
NEAR = 3.0


@inner
def _lacks(queue: Any, draft: Any) -> Any:
    """How many nodes of constraint 4n the schedule made or tried does not use."""
    return max(queue.least_nodes - draft.counts[OPENED], 0)


@inner
def _betters(queue: Any, draft: Any) -> Any:
    """Whether the schedule made or tried is better: it lacks fewer nodes, or as many and costs less."""
    lacks, least = _lacks(queue, draft), draft.counts[LACKS]
    return lacks < least or (lacks == least and draft.total_eur[0] < draft.best_eur[1])


@inner
def _note(queue: Any, draft: Any, hold: Any) -> None:
    """The schedule tried is the best so far; others must better it by the share `hold`."""
    for job in range(len(draft.node)):
        draft.best_node[job], draft.best_config[job] = draft.try_node[job], draft.try_config[job]
    draft.counts[LACKS] = _lacks(queue, draft)
    draft.best_eur[0] = draft.total_eur[0]
    draft.best_eur[1] = draft.total_eur[0] - max(hold, LEAST_GAIN) * abs(draft.total_eur[0])


@inner
def _descend(queue: Any, draft: Any, most: Any) -> None:
    """Descend from the schedule tried, and note where that leads if it is the best."""
    descend(queue, draft, most)
    if _betters(queue, draft):
        _note(queue, draft, 0.0)


@inner
def _recall(draft: Any) -> None:
    """Try the best schedule again."""
    for job in range(len(draft.node)):
        draft.try_node[job], draft.try_config[job] = draft.best_node[job], draft.best_config[job]


@inner
def _search(queue: Any, draft: Any, ways: Any, count: Any, hold: Any, most: Any) -> None:
    """Make schedules and note the best. Half of the places are looked at on the way, evenly, the others at the end."""
    half = most // 2
    for number in range(count):
        way = number if number < FIRST else FIRST + (number - FIRST) % (len(ways) - FIRST)
        make(queue, draft, ways[way])
        # Spread evenly, so that late constructions are descended from as well.
        spare = draft.counts[LOOKED] * count < half * (number + 1)
        near = spare and draft.total_eur[0] < NEAR * draft.best_eur[0]
        better = _betters(queue, draft)
        if better or near:
            name_nodes(queue, draft)
        if better:
            _note(queue, draft, hold if number == 0 else 0.0)
        if near:
            _descend(queue, draft, half)
    _recall(draft)
    _descend(queue, draft, most)


def _compiled(sources: str) -> Any:
    """`construct`, compiled from these sources: Numba's cache looks at this file and at what a function encloses."""

    @outer(FLOAT(QUEUE, DRAFT, F2, INT, FLOAT, INT, I1, I1))
    def construct(
        queue: Any, draft: Any, ways: Any, count: Any, hold: Any, most: Any, node_of: Any, gpus_of: Any
    ) -> Any:
        """The best of so many schedules. Algorithm 1.

        Parameters
        ----------
        queue, draft : jobs and nodes; where schedules are made, as new
        ways : (n_ways, 5) how each construction is made, see `KEEP` to `CAP`; from the third on they take turns in
            the rows from 2 on
        count : MaxIt, how many constructions
        hold : by which share the first schedule must be bettered
        most : how many places descents may look at; 0: there are none
        node_of, gpus_of : (n_jobs,) the best schedule, written; the earliest one of several alike

        Returns
        -------
        Its objective, EUR.
        """
        # Never so; it makes the sources part of what Numba hashes.
        if not sources:
            return np.nan
        _search(queue, draft, ways, count, hold, most)
        for job in range(len(queue.back)):
            node_of[job] = draft.best_node[job]
            gpus_of[job] = 0 if node_of[job] < 0 else queue.gpus[draft.best_config[job]]
        return draft.best_eur[0]

    return construct


construct = _compiled(stamp())
