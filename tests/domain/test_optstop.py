"""OptStop's rule on standings made by hand: each reason, both directions, and what keeps a run going."""

from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.optstop import OptStop, Standing, Stop
from tests.shared import refused

RULE = OptStop(confidence=0.95, tolerance=0.01, even=0.5, stall_share=0.1)


def standing(achieved=0.8, earlier=0.7, mean=0.9, below=0.02, above=0.02, direction=1.0, sure=True, n=1) -> Standing:
    numbers = (np.full(n, value) for value in (achieved, earlier))
    rest = (np.full(n, value) for value in (mean, below, above, direction))
    return Standing(*numbers, np.full(n, sure), *rest)


def falling(risen: Standing) -> Standing:
    """The same run as an error, 1 - accuracy, which a smaller number is better of."""
    return Standing(
        1 - risen.achieved, 1 - risen.earlier, risen.sure, 1 - risen.mean, risen.above, risen.below, -risen.direction
    )


@pytest.mark.parametrize("turn", [lambda run: run, falling], ids=["rises", "falls"])
@pytest.mark.parametrize(
    ("target", "told"),
    [
        (0.80, Stop.REACHED),
        (0.81, Stop.GO_ON),
        # the forecast is 0.9 +- 0.02: 0.93 lies 1.5 standard deviations above it, 0.935 lies 1.75 above
        (0.93, Stop.GO_ON),
        (0.935, Stop.HOPELESS),
    ],
)
def test_targets(turn, target, told):
    run = turn(standing())
    wanted = target if run.direction[0] > 0 else 1 - target + (1e-9 if told is Stop.REACHED else 0.0)
    assert RULE.decide(run, wanted, wants_best=False).tolist() == [told]


def test_a_probability_by_hand():
    # one standard deviation above the mean: 84.13 %; below the mean the other spread counts
    run = standing(mean=0.9, below=0.05, above=0.02)
    assert run.miss_probability(0.92)[0] == pytest.approx(0.8413, abs=1e-4)
    assert run.miss_probability(0.85)[0] == pytest.approx(0.1587, abs=1e-4)
    assert falling(run).miss_probability(0.08)[0] == pytest.approx(0.8413, abs=1e-4)


@pytest.mark.parametrize(
    ("mean", "earlier", "told"),
    [
        # 1 % of 0.9 is 0.009: the forecast may lie up to 0.909, the gain must be less than 0.009
        (0.908, 0.895, Stop.LEVEL),
        (0.910, 0.895, Stop.GO_ON),
        (0.908, 0.890, Stop.GO_ON),
        (0.905, np.nan, Stop.GO_ON),
    ],
)
def test_a_run_is_level_when_forecast_and_measurements_say_so(mean, earlier, told):
    assert RULE.decide(standing(achieved=0.9, earlier=earlier, mean=mean)).tolist() == [told]


def test_a_run_for_its_target_alone_is_not_stopped_at_a_level():
    level = standing(achieved=0.9, earlier=0.9, mean=0.9)
    assert RULE.decide(level, target=0.91, wants_best=False).tolist() == [Stop.GO_ON]
    assert RULE.decide(level, target=0.89, wants_best=True).tolist() == [Stop.LEVEL]


def test_a_run_short_of_its_target_is_not_level():
    short = standing(achieved=0.9, earlier=0.9, mean=0.9)
    assert RULE.decide(short, target=0.91, wants_best=True).tolist() == [Stop.GO_ON]
    assert RULE.decide(short, wants_best=True).tolist() == [Stop.LEVEL]


def test_a_run_for_its_best_goes_on_beyond_the_target():
    assert RULE.decide(standing(), target=0.5, wants_best=True).tolist() == [Stop.GO_ON]


def test_nothing_is_stopped_before_the_direction_is_known():
    run = standing(achieved=0.9, earlier=0.9, mean=0.9, sure=False, n=2)
    assert RULE.decide(run, target=[0.1, 0.999], wants_best=False).tolist() == [Stop.GO_ON, Stop.GO_ON]


def test_young_runs_are_not_given_up():
    young = standing(earlier=np.nan)
    assert RULE.decide(young, target=0.99).tolist() == [Stop.GO_ON]
    assert RULE.decide(replace(young, earlier=np.array([0.7])), target=0.99).tolist() == [Stop.HOPELESS]


def test_runs_are_given_up_only_where_that_is_wanted():
    assert replace(RULE, give_up=False).decide(standing(), target=0.99).tolist() == [Stop.GO_ON]


@pytest.mark.parametrize("unknown", ["achieved", "mean", "above"])
def test_what_is_not_known_stops_nothing(unknown):
    run = replace(standing(achieved=0.9, earlier=0.9, mean=0.9), **{unknown: np.array([np.nan])})
    assert RULE.decide(run, target=0.99).tolist() == [Stop.GO_ON]


def test_a_certain_forecast_is_taken_at_its_word():
    known = standing(achieved=0.85, earlier=0.7, mean=0.9, below=0.0, above=0.0, n=2)
    assert RULE.decide(known, target=[0.9, 0.91]).tolist() == [Stop.GO_ON, Stop.HOPELESS]


def test_hundreds_at_once_are_decided_each_on_its_own():
    rng = np.random.default_rng(0)
    n = 300
    achieved = rng.uniform(0.5, 0.9, n)
    many = Standing(
        achieved, achieved - rng.uniform(0, 0.02, n), rng.random(n) < 0.9, achieved + rng.uniform(0, 0.02, n),
        np.full(n, 0.01), np.full(n, 0.01), np.ones(n),
    )  # fmt: skip
    target, best = rng.uniform(0.5, 1.0, n), rng.random(n) < 0.5
    decided = RULE.decide(many, target, best)
    for row in range(n):
        alone = Standing(*(getattr(many, name)[row : row + 1] for name in Standing.__slots__))
        assert RULE.decide(alone, target[row], best[row])[0] == decided[row]
    assert set(decided.tolist()) == set(Stop)


@pytest.mark.parametrize(
    ("given", "told"),
    [({"confidence": 0.3}, "confidence must be in"), ({"tolerance": -0.1}, "tolerance"), ({"even": 1.0}, "even")],
)
def test_numbers_outside_of_their_range_are_refused(given, told):
    refused(ConfigError, told, OptStop, **given)
