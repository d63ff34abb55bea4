"""Local descent: one job at a time is moved or postponed while the objective falls; compiled.

Nodes have their names here. Importing numba takes a second, so only what computes imports this file.
"""

from typing import Any

import numpy as np

from jobcast.domain.energy import POSTPONED
from jobcast.schedulers.energy.greedy_nodes import inner
from jobcast.schedulers.energy.greedy_state import LOOKED, OPENED

LEAST_GAIN = 1e-9
"""By which share an objective must be lower to count as lower; less is rounding."""


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
    if _ends_first(queue, draft, config, node):
        draft.first_s[node], draft.first_eur[node] = queue.time_s[config], queue.run_eur[config]


@inner
def _lift(queue: Any, draft: Any, job: Any) -> None:
    """Take a job off its node."""
    node, config = draft.try_node[job], draft.try_config[job]
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
            if _ends_first(queue, draft, draft.try_config[other], node):
                draft.first_s[node] = queue.time_s[draft.try_config[other]]
                draft.first_eur[node] = queue.run_eur[draft.try_config[other]]
    draft.used[node] = kept
    if kept == 0:
        draft.counts[OPENED] -= 1
    draft.total_eur[0] += draft.first_eur[node]


@inner
def _ends_first(queue: Any, draft: Any, config: Any, node: Any) -> Any:
    """Whether a job with a configuration would be the first to end on a node."""
    time_s, first_s = queue.time_s[config], draft.first_s[node]
    return time_s < first_s or (time_s == first_s and queue.run_eur[config] < draft.first_eur[node])


@inner
def _extra_eur(queue: Any, draft: Any, config: Any, node: Any) -> Any:
    """What a job would add to the objective, besides that it no longer waits."""
    if _ends_first(queue, draft, config, node):
        return queue.late_eur[config] + queue.run_eur[config] - draft.first_eur[node]
    return queue.late_eur[config]


@inner
def _cheapest(queue: Any, draft: Any, job: Any, most_eur: Any, opens: Any) -> Any:
    """The configuration and node of a job that cost the least and less than so much; -1 and -1 where there are none."""
    best_config, best_node = -1, -1
    held, held_gpus, stay = queue.held_node[job], queue.held_gpus[job], queue.stay[job]
    for config in range(queue.first[job], queue.last[job]):
        kind, gpus, tried = queue.kind[config], queue.gpus[config], False
        begin = queue.kind_first[kind]
        for place in range(begin, begin + queue.kind_nodes[kind]):
            node = queue.by_kind[place]
            draft.counts[LOOKED] += 1
            empty = draft.used[node] == 0
            if draft.free[node] < gpus or (opens and not empty):
                continue
            if (node == held and gpus == held_gpus) != (config == stay):
                continue
            if empty and tried:
                continue
            tried = tried or empty
            extra_eur = _extra_eur(queue, draft, config, node)
            if extra_eur < most_eur - LEAST_GAIN * abs(most_eur):
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
    if to_node != POSTPONED:
        _land(queue, draft, job, to_config, to_node)
    elif not waits and node != POSTPONED:
        _land(queue, draft, job, config, node)
    return to_node != POSTPONED or waits


@inner
def descend(queue: Any, draft: Any, most: Any) -> None:
    """Change the schedule tried until no single job can be put elsewhere, or postponed, for less.

    Nodes in use stay as many as constraint 4n asks for. Jobs may be postponed while there is room for them. It ends
    when `most` places were looked at, by all descents together.
    """
    _load(queue, draft)
    falls = True
    while falls and draft.counts[LOOKED] < most:
        falls = False
        for job in range(len(queue.back)):
            if draft.counts[LOOKED] < most:
                falls = _settle(queue, draft, job) or falls
