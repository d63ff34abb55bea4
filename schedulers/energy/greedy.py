"""The best of many random schedules, compiled. Filippini et al.: ANDREAS, FiCloud 2021, section IV.B and Algorithm 1.

Importing numba takes a second, so only what computes imports this file.
"""

from functools import partial
from typing import Any

import numba
import numpy as np

from jobcast.schedulers.energy.greedy_construction import make, name_nodes
from jobcast.schedulers.energy.greedy_descent import LEAST_GAIN, descend
from jobcast.schedulers.energy.greedy_nodes import inner
from jobcast.schedulers.energy.greedy_state import (
    DRAFT,
    FLOATS_2D,
    INTS,
    LACKS,
    LOOKED,
    OPENED,
    QUEUE,
    stamp,
)

types: Any = numba.types
outer: Any = partial(numba.njit, cache=True, nogil=True, no_cfunc_wrapper=True, _nrt=False)
INT, FLOAT = types.int64, types.float64
FIRST = 2
"""Ways from here on take turns; those before are of the first constructions."""
NEAR = 3.0
"""Constructions are descended from that cost less than so many times the best. Ours."""


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
    for number in range(count):
        way = number if number < FIRST else FIRST + (number - FIRST) % (len(ways) - FIRST)
        make(queue, draft, ways[way])
        spare = 2 * draft.counts[LOOKED] * count < most * (number + 1)
        near = spare and draft.total_eur[0] < NEAR * draft.best_eur[0]
        better = _betters(queue, draft)
        if better or near:
            name_nodes(queue, draft)
        if better:
            _note(queue, draft, hold if number == 0 else 0.0)
        if near:
            _descend(queue, draft, most // 2)
    if draft.counts[LOOKED] < most:
        _recall(draft)
        _descend(queue, draft, most)


def _compiled(sources: str) -> Any:
    """`construct`, compiled from these sources: Numba's cache looks at this file and at what a function encloses."""

    @outer(FLOAT(QUEUE, DRAFT, FLOATS_2D, INT, FLOAT, INT, INTS, INTS))
    def construct(
        queue: Any, draft: Any, ways: Any, count: Any, hold: Any, most: Any, node_of: Any, gpus_of: Any
    ) -> Any:
        """The best of so many schedules. Algorithm 1.

        Parameters
        ----------
        queue, draft : jobs and nodes; where schedules are made, as new
        ways : (n_ways, 5) how each construction is made, see `greedy_construction`; from the third on they take turns
            in the rows from 2 on
        count : MaxIt, how many constructions
        hold : by which share the first schedule must be bettered
        most : how many places descents may look at; 0: there are none
        node_of, gpus_of : (n_jobs,) the best schedule, written; the earliest one of several alike

        Returns
        -------
        Its objective, EUR.
        """
        if not sources:
            return np.nan
        _search(queue, draft, ways, count, hold, most)
        for job in range(len(queue.back)):
            node_of[job] = draft.best_node[job]
            gpus_of[job] = 0 if node_of[job] < 0 else queue.gpus[draft.best_config[job]]
        return draft.best_eur[0]

    return construct


construct = _compiled(stamp())
