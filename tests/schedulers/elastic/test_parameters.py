"""WFQ(T, W, zeta_min): queues by variation, weights, and spaces to search in. PCS, section 3.3."""

from itertools import takewhile
from math import exp, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.elastic.config import WfqConfig, parse_config
from jobcast.schedulers.elastic.parameters import (
    DELTAS,
    SPACES,
    Parameters,
    SizeTable,
    parameter_space,
    raw_space,
    weights,
)

SIZES = st.lists(st.integers(1, 10**7), min_size=1, max_size=60)


def variation_of(values):
    return float(np.var(values) / np.mean(values) ** 2)


def in_queues(sizes, thresholds):
    """The rule's own mapping: the first queue whose threshold is at least the size."""
    queue = np.searchsorted(thresholds, sizes)
    return [np.asarray(sizes)[queue == one] for one in range(len(thresholds))]


def test_queues_by_hand():
    """1, 1, 3: mean 5/3, variance 8/9, C^2 = 0.32; 1, 3 with one 1 less: 0.25. 100 is far from all."""
    table = SizeTable([1, 1, 3, 100])
    assert table.thresholds(0.31) == (1.0, 3.0, inf)
    assert table.thresholds(0.33) == (3.0, inf)
    # 10 and two of 100 vary by 0.37; 100, 100 and 130 by 36,900 x 3 / 330^2 - 1 = 0.0165.
    assert SizeTable([10, 100, 100, 130]).thresholds(0.02) == (10.0, inf)


def test_a_queue_reaches_as_far_as_allowed_even_past_a_bump():
    """1 and 100 alone vary by 0.96, with nine more of 100 by only 0.098: that many fit one queue of 0.1."""
    assert SizeTable([1] + [100] * 10).thresholds(0.1) == (inf,)


@given(SIZES, st.floats(0.001, 2.0))
def test_no_queue_varies_by_more(sizes, share):
    table = SizeTable(sizes)
    limit = share * max(table.variation, 1e-3)
    thresholds = table.thresholds(limit)
    parts = in_queues(sizes, thresholds)
    assert sum(map(len, parts)) == len(sizes)
    assert all(len(part) and variation_of(part) <= limit * (1 + 1e-6) + 1e-6 for part in parts)
    assert list(thresholds) == sorted(set(thresholds))


@given(SIZES)
def test_the_greatest_variation_and_no_cap_are_fifo(sizes):
    table = SizeTable(sizes)
    assert table.variation == pytest.approx(variation_of(sizes), abs=1e-9)
    config = Parameters(table.variation, (3.0,), 0.0, 0.1).config(table)
    assert (config.thresholds, config.rates, config.clip_demand_factor) == ((inf,), (1.0,), 0.0)


@given(SIZES)
def test_the_least_variation_keeps_queues_few(sizes):
    """Of 200 values that fall to a millionth, the last before the first that makes more than twenty queues."""
    table = SizeTable(sizes)
    tried = [table.variation * 1e-6 ** (number / 199) for number in range(200)]
    few = list(takewhile(lambda one: len(table.thresholds(one)) <= 20, tried))
    assert table.least_variation() == pytest.approx(few[-1])


@pytest.mark.parametrize("sizes", [[], [0.0], [1.0, np.nan], [1.0, inf]])
def test_sizes_that_are_none(sizes):
    with pytest.raises(ConfigError, match="more than 0"):
        SizeTable(sizes)


def test_weights_are_those_of_the_paper():
    assert np.divide(weights(3, 2.0), weights(3, 2.0)[0]) == pytest.approx([1, exp(-2), exp(-4)])
    assert sum(weights(5, 1.3)) == pytest.approx(1.0)
    assert weights(4, 0.0) == (0.25,) * 4


def test_one_w_a_gpu_type():
    table = SizeTable([1, 100])
    config = Parameters(0.1, (0.0, 2.0), 0.5, 0.3).config(table, ("k80", "v100"))
    assert config.type_rates == {"k80": (0.5, 0.5), "v100": weights(2, 2.0)}
    assert (config.rates, config.delta) == ((0.5, 0.5), 0.3)
    with pytest.raises(ConfigError, match="1 values of W for 2 GPU types"):
        Parameters(0.1, (0.0,), 0.5, 0.1).config(table, ("k80", "v100"))
    assert parameter_space(table, ("k80", "v100")).report(np.full(5, 0.5))["W"] == [1.5, 1.5]


@pytest.mark.parametrize("name", SPACES)
def test_equal_sizes_share_a_queue_wherever_one_searches(name):
    space = SPACES[name](SizeTable([7, 7]), ("",))
    assert set(space.config(np.full(space.dimensions, 0.05)).thresholds) == {inf}


@pytest.mark.parametrize("types", [("",), ("k80", "v100")])
@pytest.mark.parametrize("name", SPACES)
def test_every_point_of_a_space_is_a_configuration(name, types):
    rng = np.random.default_rng(0)
    space = SPACES[name](SizeTable(rng.lognormal(5, 3, 300)), types)
    corners = [np.zeros(space.dimensions), np.ones(space.dimensions)]
    for point in [*corners, *rng.random((30, space.dimensions))]:
        config = space.config(point)
        assert parse_config(config.to_json(), "here") == config
        assert set(config.type_rates or ()) == (set(types) if len(types) > 1 else set())
        assert DELTAS[0] <= config.delta <= DELTAS[1] * (1 + 1e-12)
        assert space.report(point)["zeta_min"] == config.clip_demand_factor


@pytest.mark.parametrize("name", SPACES)
def test_fifo_is_a_point_of_each_space(name):
    space = SPACES[name](SizeTable([1, 5, 5, 2000]), ("",))
    config = space.config(space.fifo)
    assert ((space.fifo >= 0.0) & (space.fifo <= 1.0)).all()
    assert config == WfqConfig(delta=pytest.approx(0.505 if "linear" in name else 0.1))


def test_parameters_span_their_ranges():
    space = parameter_space(SizeTable(np.random.default_rng(1).lognormal(5, 3, 300)))
    low, high = (space.report(np.full(4, end)) for end in (0.0, 1.0))
    assert (low["W"], low["zeta_min"], low["delta"]) == (-3.0, 0.0, pytest.approx(0.01))
    assert (high["T"], high["W"], high["zeta_min"], high["delta"]) == (space.sizes.variation, 6.0, 1.0, 1.0)
    assert low["T"] < 0.1 * high["T"]
    assert len(space.config(np.zeros(4)).rates) > len(space.config(np.ones(4)).rates) == 1


def test_raw_numbers_stand_for_themselves():
    """Ten queues are asked for by the first number; a threshold at the middle is the sizes' geometric mean."""
    space = raw_space(SizeTable([1, 10_000]))
    assert space.dimensions == 1 + 9 + 10 + 2
    point = np.full(space.dimensions, 0.5)
    point[0], point[10:12] = 0.15, [0.0, 1.0]
    config = space.config(point)
    assert config.thresholds == (pytest.approx(100.0), inf)
    assert config.rates == pytest.approx((1 / 1001, 1000 / 1001))
    assert (config.clip_demand_factor, config.delta) == (0.5, pytest.approx(0.1))


def test_on_the_published_scales_the_middle_is_the_arithmetic_mean():
    """Of 1 and 9,999 s; two of at most five queues are asked for. W is linear on either scale."""
    table = SizeTable([1, 9_999])
    raw = raw_space(table, linear=True)
    point = np.full(raw.dimensions, 0.5)
    point[0] = 0.3
    assert raw.dimensions == 1 + 4 + 5 + 2
    assert raw.config(point).thresholds == (pytest.approx(5_000.0), inf)
    assert raw.config(point).delta == pytest.approx(0.505)
    halfway = parameter_space(table, linear=True).report(np.full(4, 0.5))
    assert (halfway["T"], halfway["W"]) == (pytest.approx(table.variation / 2, rel=1e-3), 1.5)
