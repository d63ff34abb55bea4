import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from jobcast.models.thresholds import best_f1_threshold, gate_threshold

rows = st.lists(st.tuples(st.booleans(), st.integers(0, 8).map(lambda eighths: eighths / 8)), min_size=1, max_size=40)


def columns(drawn):
    return np.array([arrives for arrives, _ in drawn]), np.array([probability for _, probability in drawn])


@given(rows)
def test_no_other_threshold_has_a_better_f1(drawn):
    arrives, probability = columns(drawn)
    if not arrives.any():
        assert best_f1_threshold(arrives, probability) == 0.5
        return
    best = f1_score(arrives, probability >= best_f1_threshold(arrives, probability))
    others = [f1_score(arrives, probability >= p, zero_division=0) for p in np.unique(probability)]
    assert best == pytest.approx(max(others))


@given(rows, st.floats(0, 0.9))
def test_gate_keeps_its_promise_and_the_next_larger_threshold_does_not(drawn, miss_share):
    arrives, probability = columns(drawn)
    threshold = gate_threshold(arrives, probability, miss_share)
    if not arrives.any():
        assert threshold == 0.0
        return
    missed = (probability[arrives] < threshold).mean()
    assert missed <= miss_share + 1e-9
    beyond = np.nextafter(threshold, 2)
    assert (probability[arrives] < beyond).mean() > miss_share - 1e-9


def test_gate_of_twenty_windows_may_miss_one():
    probability = np.linspace(0.05, 1.0, 20)
    assert gate_threshold(np.ones(20, bool), probability, 0.05) == pytest.approx(0.10)
    assert gate_threshold(np.ones(19, bool), probability[1:], 0.05) == pytest.approx(0.10)
