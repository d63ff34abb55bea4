"""When a run stops. MLFS, section 3.5."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.optstop import OptStopRule

shares = st.floats(0.0, 1.0)


def column(*values):
    return np.array(values, dtype=float)


def test_it_stops_where_the_forecast_stays_below_what_was_achieved_and_a_tolerance():
    """0.9 + 0.005 x 0.9 of tolerance is 0.9045; 1.645 deviations of 0.002 are 0.00329."""
    rule = OptStopRule(confidence=0.95, give_up=False)
    stops = rule.stops(column(0.9, 0.9, 0.9), column(0.9, 0.902, 0.9), column(0.002, 0.002, 0.003), column(0, 0, 0))
    assert stops.tolist() == [True, False, False]


def test_it_gives_up_a_target_only_with_confidence_and_never_one_that_was_reached():
    """0.8 + 1.645 x 0.06 = 0.8987; at a confidence of 0.99 2.326 deviations count."""
    told = column(0.5, 0.5, 0.95), column(0.8, 0.8, 0.8), column(0.06, 0.07, 0.01), column(0.9, 0.9, 0.9)
    assert OptStopRule(confidence=0.95).hopeless(*told).tolist() == [True, False, False]
    assert OptStopRule(confidence=0.99).hopeless(*told).tolist() == [False, False, False]


def test_a_certain_forecast_is_compared_as_it_is():
    assert OptStopRule(tolerance=0.0).finished(column(0.7, 0.7), column(0.7, 0.71), column(0, 0)).tolist() == [
        True,
        False,
    ]


def test_a_metric_that_falls_comes_negative():
    """A word error rate of 0.20 with a forecast of 0.20 is done, one of 0.25 is not."""
    rule = OptStopRule()
    assert rule.finished(-column(0.2, 0.25), -column(0.2, 0.2), column(0, 0)).tolist() == [True, False]


@pytest.mark.parametrize("missing", range(4))
def test_what_is_not_known_stops_nothing(missing):
    told = [0.9, 0.5, 0.01, 0.95]
    told[missing] = np.nan
    rule = OptStopRule()
    columns = [column(value) for value in told]
    assert not rule.hopeless(*columns).any()
    if missing < 3:
        assert not rule.stops(*columns).any()


@given(shares, shares, st.floats(0.0, 0.3), shares)
def test_more_doubt_or_more_confidence_asked_never_stops_more(achieved, mean, sd, target):
    told = column(achieved), column(mean), column(sd), column(target)
    doubted = column(achieved), column(mean), column(sd + 0.1), column(target)
    stops = OptStopRule().stops(*told)
    assert not (OptStopRule().stops(*doubted) & ~stops).any()
    assert not (OptStopRule(confidence=0.999).stops(*told) & ~stops).any()
