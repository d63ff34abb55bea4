"""Cuts of the learning rate that nobody declared."""

import numpy as np
import pytest

from jobcast.models.curves.milestones import FIRST_CUTS, untold_sd

SIZES = (0.4, 0.15, 0.05)


def test_the_upper_end_by_hand():
    """All of a run ahead: a jump with probability .2; .75 of such jumps are less than 1 + .5 x .6745 of the usual one.

    The usual one is 1 - .6 x .85 x .95 = .5155 of the way.
    """
    found = untold_sd(np.array([0.0]), np.array([[1.0]]), SIZES)
    assert 1.6449 * found[0, 0] == pytest.approx(0.5155 * (1 + 0.5 * 0.6745), rel=1e-4)


def test_as_long_as_fewer_than_one_in_twenty_jumped_nothing_is_added():
    """One in twenty is a quarter of .2: reached where a quarter of the first cuts have come."""
    begin, until = FIRST_CUTS
    place = begin + np.array([-1.0, 0.24, 0.6]) * (until - begin)
    found = untold_sd(np.array([0.1]), place[None], SIZES)[0]
    assert found[:2].tolist() == [0.0, 0.0]
    assert found[2] > 0


def test_it_falls_with_what_was_seen_and_rises_with_time():
    seen, share = np.array([0.1, 0.4, 0.5, 0.7, 0.8]), np.linspace(0.3, 1.0, 15)
    found = untold_sd(seen, np.tile(share, (5, 1)), SIZES)
    assert (np.diff(found, axis=1) >= 0).all()
    assert (np.diff(found[:, -1]) <= 0).all()
    assert found[0, -1] > 3 * found[2, -1]
    assert (found[3:] == 0).all()


def test_larger_jumps_of_other_jobs_widen_it():
    share = np.array([[1.0]])
    assert untold_sd(np.array([0.2]), share, (0.8, 0.1, 0.1)) > untold_sd(np.array([0.2]), share, SIZES)
