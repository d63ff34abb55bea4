"""Means over draws, and their intervals."""

import math

import pytest

from papers.runs import HOLDS, OPEN, REVERSED, Interval, interval_of


def test_an_interval_by_hand():
    # t(.975, 3) = 3.18245; mean 4, variance 10 / 3 of four draws
    found = interval_of([2.0, 6.0, 3.0, 5.0])
    assert found.mean == 4.0
    assert found.high - 4.0 == pytest.approx(3.18245 * math.sqrt(10 / 3) / 2, rel=1e-5)
    assert (found.verdict, Interval(-1, -2, -0.5).verdict, Interval(0, -1, 1).verdict) == (HOLDS, REVERSED, OPEN)
    assert interval_of([7.0]).text() == "7.0"
