"""Thresholds on probabilities of arrivals, and pools that run like clockwork."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from jobcast.features.corpus import build_corpus
from jobcast.models.will_jobs_arrive import (
    best_f1_threshold,
    bot_pools,
    gate_threshold,
    half_week,
    lasting_gate,
)
from tests.features.pools import arrived

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


@given(rows, st.lists(st.integers(0, 2), min_size=40, max_size=40), st.floats(0, 0.9))
def test_the_lasting_gate_keeps_the_promise_of_the_gate(drawn, periods, miss_share):
    arrives, probability = columns(drawn)
    threshold = lasting_gate(arrives, probability, np.array(periods[: len(arrives)]), miss_share)
    assert threshold <= gate_threshold(arrives, probability, miss_share)


def test_the_lasting_gate_is_the_lower_quartile_of_hard_and_easy_periods():
    """Thresholds of five periods, .1 to .5, each of 20 equal windows: the lower quartile is .2."""
    probability = np.repeat([0.5, 0.3, 0.1, 0.2, 0.4], 20)
    period = np.repeat(np.arange(5), 20)
    assert lasting_gate(np.ones(100, bool), probability, period, 0.5) == pytest.approx(0.2)


def test_periods_with_few_arrivals_have_no_say():
    probability = np.concatenate((np.full(40, 0.5), np.full(19, 0.1), np.full(500, 0.01)))
    period = np.concatenate((np.zeros(40), np.ones(19), np.ones(500)))
    arrives = np.arange(559) < 59
    assert lasting_gate(arrives, probability, period, 0.4) == 0.5
    assert lasting_gate(arrives[40:], probability[40:], period[40:], 0.4) == 0.1


def test_half_weeks_begin_on_monday_and_at_noon_on_thursday():
    monday_s = 1509926400.0  # 2017-11-06
    instants = monday_s + np.array([-1.0, 0.0, 302399.0, 302400.0, 604799.0, 604800.0])
    assert np.diff(half_week(instants)).tolist() == [1.0, 0.0, 1.0, 0.0, 1.0]


DAY_S = 86400.0


def test_the_clockwork_is_found_from_what_was_seen():
    rng = np.random.default_rng(3)
    ticking = np.arange(600.0, 5 * DAY_S, 900.0) + rng.uniform(0, 8, 480)[: len(np.arange(600.0, 5 * DAY_S, 900.0))]
    people = rng.uniform(0, 10 * DAY_S, 3000)
    late = np.arange(5 * DAY_S, 10 * DAY_S, 600.0)
    arrivals = zip("abc", (people, ticking, late), strict=True)
    pools = {name: arrived(arrival_s, run_s=60.0) for name, arrival_s in arrivals}
    corpus = build_corpus(pools, 0.0, 10 * DAY_S, (60,))
    assert bot_pools(corpus, corpus.until(5 * DAY_S)) == ("b",)
    assert bot_pools(corpus, corpus.until(10 * DAY_S)) == ("b", "c")
