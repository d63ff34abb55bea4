"""OptStop's rule on standings made by hand: each reason, both directions, and what keeps a run going."""

from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.optstop import OptStop, Standing, Stop
from tests.shared import refused

RULE = OptStop(confidence=0.95, tolerance=0.01, even=0.5, stall_share=0.1)


def standing(achieved=0.8, earlier=0.7, mean=0.9, below=0.02, above=0.02, direction=1.0, sure=True) -> Standing:
    return Standing(*(np.full(1, value) for value in (achieved, earlier, sure, mean, below, above, direction)))


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


LEVEL = {"achieved": 0.9, "earlier": 0.9, "mean": 0.9}
CERTAIN = {"achieved": 0.85, "below": 0.0, "above": 0.0}
NAN = float("nan")


@pytest.mark.parametrize(
    ("run", "asked", "told"),
    [
        # level where forecast and measurements say so: 1 % of 0.9 is 0.009, up to which the forecast may lie above, and
        # less than which the gain must be
        ({**LEVEL, "earlier": 0.895, "mean": 0.908}, {}, Stop.LEVEL),
        ({**LEVEL, "earlier": 0.895, "mean": 0.910}, {}, Stop.GO_ON),
        ({**LEVEL, "earlier": 0.890, "mean": 0.908}, {}, Stop.GO_ON),
        ({**LEVEL, "earlier": NAN, "mean": 0.905}, {}, Stop.GO_ON),
        # level, but for its target alone, or short of it
        (LEVEL, {"target": 0.91, "wants_best": False}, Stop.GO_ON),
        (LEVEL, {"target": 0.89, "wants_best": True}, Stop.LEVEL),
        (LEVEL, {"target": 0.91, "wants_best": True}, Stop.GO_ON),
        (LEVEL, {"wants_best": True}, Stop.LEVEL),
        # for its best it goes on beyond the target
        ({}, {"target": 0.5, "wants_best": True}, Stop.GO_ON),
        # before the direction is known nothing is stopped
        ({**LEVEL, "sure": False}, {"target": 0.1, "wants_best": False}, Stop.GO_ON),
        ({**LEVEL, "sure": False}, {"target": 0.999, "wants_best": False}, Stop.GO_ON),
        # young runs are not given up
        ({"earlier": NAN}, {"target": 0.99}, Stop.GO_ON),
        ({}, {"target": 0.99}, Stop.HOPELESS),
        # nor what is not known
        *(({**LEVEL, unknown: NAN}, {"target": 0.99}, Stop.GO_ON) for unknown in ("achieved", "mean", "above")),
        # a certain forecast is taken at its word
        (CERTAIN, {"target": 0.9}, Stop.GO_ON),
        (CERTAIN, {"target": 0.91}, Stop.HOPELESS),
    ],
)
def test_when_a_run_is_level_or_hopeless_and_when_it_goes_on(run, asked, told):
    assert RULE.decide(standing(**run), **asked).tolist() == [told]


def test_runs_are_given_up_only_where_that_is_wanted():
    assert replace(RULE, give_up=False).decide(standing(), target=0.99).tolist() == [Stop.GO_ON]


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
