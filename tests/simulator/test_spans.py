"""Spans that follow one another become one."""

import numpy as np

from jobcast.simulator.log import Spans
from jobcast.simulator.spans import by_job, joined


def rows_after(*rows):
    job, node, gpus, from_s, until_s = zip(*rows, strict=True)
    times = [np.array(column, dtype=float) for column in (from_s, until_s, gpus)]
    found = by_job(joined(Spans(np.array(job), *times, np.array(node))))
    columns = (found.job, found.node, found.gpus, found.from_s, found.until_s)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_by_job_and_time():
    rows = [(1, 0, 1, 0.0, 5.0), (0, 0, 1, 7.0, 9.0), (0, 1, 1, 0.0, 5.0)]
    assert rows_after(*rows) == [(0, 1, 1, 0.0, 5.0), (0, 0, 1, 7.0, 9.0), (1, 0, 1, 0.0, 5.0)]


def test_in_a_logs_order_ends_come_first():
    rows = [(1, 0, 1.0, 0.0, 5.0), (0, 1, 1.0, 7.0, 9.0), (0, 0, 1.0, 7.0, 9.0), (0, 1, 1.0, 0.0, 5.0)]
    job, node, gpus, from_s, until_s = (np.array(column) for column in zip(*rows, strict=True))
    found = joined(Spans(job, from_s, until_s, gpus, node))
    assert found.until_s.tolist() == [5.0, 5.0, 9.0, 9.0]
    assert found.job.tolist() == [0, 1, 0, 0]
    assert found.node.tolist() == [1, 0, 0, 1]


def test_what_goes_on_alike_is_one_span():
    rows = [(0, 0, 1, 0.0, 5.0), (0, 0, 1, 5.0, 6.0), (0, 0, 1, 6.0, 9.0), (0, 0, 2, 9.0, 10.0), (1, 0, 2, 10.0, 11.0)]
    assert rows_after(*rows) == [(0, 0, 1, 0.0, 9.0), (0, 0, 2, 9.0, 10.0), (1, 0, 2, 10.0, 11.0)]


def test_what_goes_on_beside_another_node_is_one_span():
    rows = [(0, 0, 1, 0.0, 5.0), (0, 1, 1, 2.0, 6.0), (0, 0, 1, 5.0, 8.0)]
    assert rows_after(*rows) == [(0, 0, 1, 0.0, 8.0), (0, 1, 1, 2.0, 6.0)]


def test_pauses_and_other_nodes_part_spans():
    rows = [(0, 0, 1, 0.0, 5.0), (0, 0, 1, 5.5, 6.0), (0, 1, 1, 6.0, 7.0)]
    assert rows_after(*rows) == rows


def test_empty_spans_are_left_out():
    assert rows_after((0, 0, 1, 5.0, 5.0), (0, 0, 1, 5.0, 6.0)) == [(0, 0, 1, 5.0, 6.0)]
    assert rows_after((0, 0, 1, 5.0, 5.0)) == []
