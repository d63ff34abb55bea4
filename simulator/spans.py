"""Spans in other orders, those that go on alike in one, and those of GPUs that tasks share."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jobcast.domain.tasks import QUEUED
from jobcast.simulator.log import Floats, Ints, Spans


def joined(spans: Spans) -> Spans:
    """The same spans in a log's order; those of a job that follow one another on as many GPUs of a node in one.

    Empty ones are left out. Of one job and node they must not overlap.

    >>> two = Spans(*(np.array(column) for column in ([0, 0], [5.0, 0.0], [9.0, 5.0], [2.0, 2.0], [1, 1])))
    >>> one = joined(two)
    >>> one.from_s.tolist(), one.until_s.tolist()
    ([0.0], [9.0])
    """
    kept = np.flatnonzero(spans.until_s > spans.from_s)
    # By job, then node, then time: neighbours that touch can be joined.
    held = _taken(spans, kept[np.lexsort((spans.from_s[kept], spans.node[kept], spans.job[kept]))])
    begins = np.ones(len(held), dtype=np.bool_)
    # Exactly equal: both are the same instant of the engine, not computed twice.
    begins[1:] = held.from_s[1:] != held.until_s[:-1]
    for column in (held.job, held.node, held.gpus):
        begins[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(held))[: len(first)] - 1
    # The first begins it, the last ends it.
    whole = replace(_taken(held, first), until_s=held.until_s[last])
    return _taken(whole, np.lexsort((whole.node, whole.job, whole.until_s)))


def by_job(spans: Spans) -> Spans:
    """The same spans by job, then by begin, then by node."""
    return _taken(spans, np.lexsort((spans.node, spans.from_s, spans.job)))


def _taken(spans: Spans, rows: Ints) -> Spans:
    return Spans(spans.job[rows], spans.from_s[rows], spans.until_s[rows], spans.gpus[rows], spans.node[rows])


class _Cells(NamedTuple):
    """Stretches cut wherever another of the same key begins or ends: (n_cells,) each.

    `row` : stretch that a cell is of; `slot` : cells of one key and time have the same; `from_s`, `until_s` : when
    """

    row: Ints
    slot: Ints
    from_s: Floats
    until_s: Floats


def _cut(key: Ints, from_s: Floats, until_s: Floats) -> _Cells:
    """Cells of stretches, none of them empty."""
    keys, at_s = np.concatenate([key, key]), np.concatenate([from_s, until_s])
    order = np.lexsort((at_s, keys))
    keys, at_s = keys[order], at_s[order]
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]) | (at_s[1:] != at_s[:-1])
    place = np.empty(len(order), dtype=np.int64)
    # Equal edges of one key share a place.
    place[order] = np.cumsum(fresh) - 1
    instants_s = at_s[fresh]
    first, count = place[: len(key)], place[len(key) :] - place[: len(key)]
    row = np.repeat(np.arange(len(key)), count)
    # Each stretch covers the places from its begin up to its end.
    slot = first[row] + np.arange(len(row)) - (np.cumsum(count) - count)[row]
    return _Cells(row, slot, instants_s[slot], instants_s[np.minimum(slot + 1, len(instants_s) - 1)])


def task_spans(moves: Floats, job_of: Ints, server_of: Ints, until_s: float) -> Spans:
    """GPUs of servers that jobs held, in seconds of the moves.

    A GPU that holds tasks of k jobs counts 1/k for each of them, however many tasks each has on it and however much
    of it they use; a parameter server is a task like others. A job holds GPUs while any task of it is on one.

    Parameters
    ----------
    moves : (n_moves, 3) all that ever happened, of each task in order of time: task, the GPU that it is on from then on
        or `QUEUED`, and when
    job_of : (n_tasks,) whose task it is
    server_of : (n_gpus,) server of each GPU
    until_s : when tasks that are on GPUs at the end are seen last
    """
    moves = moves[np.argsort(moves[:, 0], kind="stable")]
    task, gpu, from_s = moves[:, 0].astype(np.int64), moves[:, 1].astype(np.int64), moves[:, 2]
    # A task stays until its next move; the last one of each task until the end.
    ends_s = np.append(from_s[1:], until_s)
    ends_s[:-1][task[1:] != task[:-1]] = until_s
    there = (gpu != QUEUED) & (ends_s > from_s)
    job, gpu = job_of[task[there]], gpu[there]
    on_gpu = _cut(gpu, from_s[there], ends_s[there])
    # Several tasks of a job on a GPU are one holder.
    _, one = np.unique(on_gpu.slot * (len(job_of) + 1) + job[on_gpu.row], return_index=True)  # a job once a GPU
    slot, row = on_gpu.slot[one], on_gpu.row[one]
    share = 1.0 / np.bincount(slot)[slot]
    return _by_server(job[row], server_of[gpu[row]], share, on_gpu.from_s[one], on_gpu.until_s[one])


def _by_server(job: Ints, server: Ints, share: Floats, from_s: Floats, until_s: Floats) -> Spans:
    """Shares of GPUs added up by job and server; of equal sets of shares the sums are equal to the bit."""
    servers = int(server.max(initial=0)) + 1
    cells = _cut(job * servers + server, from_s, until_s)
    # Shares in ascending order: sums of equal sets do not depend on the order of tasks.
    order = np.lexsort((share[cells.row], cells.slot))
    row, slot = cells.row[order], cells.slot[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = slot[1:] != slot[:-1]
    first = np.flatnonzero(begins)
    gpus = np.add.reduceat(share[row], first) if len(first) else np.zeros(0)
    at = order[first]
    return joined(Spans(job[row[first]], cells.from_s[at], cells.until_s[at], gpus, server[row[first]]))
