"""Stretches that follow one another become one."""

import numpy as np

from jobcast.simulator.energy.log import Segments, merged


def rows_after(*rows):
    job, node, gpus, from_s, until_s = zip(*rows, strict=True)
    whole = [np.array(column, dtype=np.int64) for column in (job, node, gpus)]
    found = merged(Segments(*whole, np.array(from_s), np.array(until_s)))
    columns = (found.job, found.node, found.gpus, found.from_s, found.until_s)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_by_job_and_time():
    rows = [(1, 0, 1, 0.0, 5.0), (0, 0, 1, 7.0, 9.0), (0, 1, 1, 0.0, 5.0)]
    assert rows_after(*rows) == [(0, 1, 1, 0.0, 5.0), (0, 0, 1, 7.0, 9.0), (1, 0, 1, 0.0, 5.0)]


def test_what_goes_on_alike_is_one_stretch():
    rows = [(0, 0, 1, 0.0, 5.0), (0, 0, 1, 5.0, 6.0), (0, 0, 1, 6.0, 9.0), (0, 0, 2, 9.0, 10.0), (1, 0, 2, 10.0, 11.0)]
    assert rows_after(*rows) == [(0, 0, 1, 0.0, 9.0), (0, 0, 2, 9.0, 10.0), (1, 0, 2, 10.0, 11.0)]


def test_pauses_and_other_nodes_part_stretches():
    rows = [(0, 0, 1, 0.0, 5.0), (0, 0, 1, 5.5, 6.0), (0, 1, 1, 6.0, 7.0)]
    assert rows_after(*rows) == rows


def test_empty_stretches_are_left_out():
    assert rows_after((0, 0, 1, 5.0, 5.0), (0, 0, 1, 5.0, 6.0)) == [(0, 0, 1, 5.0, 6.0)]
    assert rows_after((0, 0, 1, 5.0, 5.0)) == []
