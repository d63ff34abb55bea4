"""Choices and the rows that they chose among."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.scheduling.policy import joined, picks_of


def drawn(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, 2)) for size in sizes], [int(rng.integers(size)) for size in sizes]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.data())
def test_taking_choices_takes_their_rows_along(sizes, data):
    rows, chosen = drawn(sizes)
    which = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=8))
    taken = picks_of(rows, chosen, 2).take(np.array(which, dtype=np.int64))
    assert taken.chosen.tolist() == [chosen[k] for k in which]
    for place, k in enumerate(which):
        np.testing.assert_array_equal(taken.rows[taken.begins[place] : taken.begins[place + 1]], rows[k])


def test_joined_choices_follow_one_another():
    (first, a), (second, b) = drawn([2, 3]), drawn([1], seed=1)
    both = joined([picks_of(first, a, 2), picks_of(second, b, 2)], 2)
    whole = picks_of(first + second, a + b, 2)
    np.testing.assert_array_equal(both.rows, whole.rows)
    assert both.begins.tolist() == whole.begins.tolist() == [0, 2, 5, 6]
    assert both.chosen.tolist() == a + b


def test_no_choices_have_no_rows():
    assert len(joined([], 3)) == len(picks_of([], [], 3)) == 0
    assert joined([], 3).rows.shape == (0, 3)
