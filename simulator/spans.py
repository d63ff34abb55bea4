"""Spans in other orders, and those that go on alike in one."""

from dataclasses import replace

import numpy as np

from jobcast.simulator.log import Ints, Spans


def joined(spans: Spans) -> Spans:
    """The same spans in a log's order; those of a job that follow one another on as many GPUs of a node in one.

    Empty ones are left out. Of one job and node they must not overlap.

    >>> two = Spans(*(np.array(column) for column in ([0, 0], [5.0, 0.0], [9.0, 5.0], [2.0, 2.0], [1, 1])))
    >>> one = joined(two)
    >>> one.from_s.tolist(), one.until_s.tolist()
    ([0.0], [9.0])
    """
    kept = np.flatnonzero(spans.until_s > spans.from_s)
    held = _taken(spans, kept[np.lexsort((spans.from_s[kept], spans.node[kept], spans.job[kept]))])
    begins = np.ones(len(held), dtype=np.bool_)
    begins[1:] = held.from_s[1:] != held.until_s[:-1]
    for column in (held.job, held.node, held.gpus):
        begins[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(held))[: len(first)] - 1
    whole = replace(_taken(held, first), until_s=held.until_s[last])
    return _taken(whole, np.lexsort((whole.node, whole.job, whole.until_s)))


def by_job(spans: Spans) -> Spans:
    """The same spans by job, then by begin, then by node."""
    return _taken(spans, np.lexsort((spans.node, spans.from_s, spans.job)))


def _taken(spans: Spans, rows: Ints) -> Spans:
    return Spans(spans.job[rows], spans.from_s[rows], spans.until_s[rows], spans.gpus[rows], spans.node[rows])
