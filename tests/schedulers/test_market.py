"""What Shockwave's section 4 and appendices C to E prove of the market's equilibrium, on small instances."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.market import finish_time_fairness, make_market, nash_welfare, solve

pytest.importorskip("cvxpy", reason="the market needs jobcast's extra `market`")

TOLERANCE = 1e-3
"""Relative. The solver's own error is below 1e-4; a coefficient next to a tie doubles it."""
EQUAL = st.just(None)
FREE = st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0, 5.0]), min_size=4, max_size=4)


@st.composite
def markets(draw, budgets=FREE, kinds=("linear", "leontief")):
    """Up to 4 jobs, 2 resources and 5 rounds; rounds and resources of no use are among them."""
    kind = draw(st.sampled_from(kinds))
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 2), st.integers(1, 5)))
    steps = st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 4.0])
    coefficients = draw(arrays(float, shape, elements=steps))
    if kind == "linear":
        coefficients[:, 0, 0] += 0.25  # every job wants something
    else:
        coefficients[:, 0, :] += 0.25  # nobody gains without the first resource
        coefficients[coefficients == 4.25] = np.inf
        coefficients[:, :, 0] = np.minimum(coefficients[:, :, 0], 4.0)
    paid = draw(budgets)
    return make_market(coefficients, None if paid is None else paid[: shape[0]], kind)


@given(markets())
def test_equilibrium_is_feasible_and_what_has_a_price_is_sold_out(market):
    found = solve(market)
    sold = found.allocation.sum(axis=0)
    assert (found.allocation >= 0.0).all()
    assert (sold <= 1.0 + 1e-6).all()
    assert found.prices * (1.0 - sold) == pytest.approx(0.0, abs=TOLERANCE * market.budgets.sum())
    assert found.utilities == pytest.approx(market.utilities(found.allocation))


@given(markets())
def test_every_budget_is_spent_to_the_last(market):
    found = solve(market)
    assert (found.allocation * found.prices).sum(axis=(1, 2)) == pytest.approx(market.budgets, rel=TOLERANCE)
    assert found.prices.sum() == pytest.approx(market.budgets.sum(), rel=TOLERANCE)


@given(markets())
def test_maximal_bang_per_buck(market):
    """Appendix D.2: no budget buys more, at these prices, than the job has: with the two above, an equilibrium."""
    found = solve(market)
    cheapest = market.unit_costs(found.prices).min(axis=1)
    assert found.utilities == pytest.approx(market.budgets / cheapest, rel=TOLERANCE)


@given(markets(budgets=EQUAL))
def test_sharing_incentive_under_equal_budgets(market):
    """Corollary 4.0.1 (b): an equal share of everything is what everybody has at least, and nobody envies anybody."""
    found = solve(market)
    assert (found.ftf <= 1.0 + TOLERANCE).all()
    for other in found.allocation:
        envied = market.utilities(np.broadcast_to(other, market.coefficients.shape))
        assert (envied <= found.utilities * (1.0 + TOLERANCE)).all()


@given(markets(), st.integers(0, 2**32 - 1))
def test_no_other_allocation_has_a_smaller_product_of_ftf(market, seed):
    """Corollary 4.0.1 (a) with budgets as exponents, by which equation 1 weighs."""
    rng = np.random.default_rng(seed)
    found = solve(market)
    least = market.budgets @ np.log(found.ftf)
    jobs, resources, rounds = market.coefficients.shape
    for near in (0.0, 0.9, 0.99):
        other = np.moveaxis(rng.dirichlet(np.full(jobs, 0.3), (resources, rounds)), -1, 0)
        utilities = market.utilities(near * found.allocation + (1.0 - near) * other)
        rho = finish_time_fairness(market, np.maximum(utilities, 1e-300))
        assert market.budgets @ np.log(rho) >= least - TOLERANCE
        assert nash_welfare(np.maximum(utilities, 1e-300), market.budgets) <= found.welfare * (1.0 + TOLERANCE)


def test_two_jobs_by_hand():
    """The job that speeds up takes the second round, the steady one the first; both rounds cost 1."""
    found = solve(make_market([[1.0, 2.0], [1.0, 1.0]]))
    assert found.allocation[:, 0] == pytest.approx(np.array([[0.0, 1.0], [1.0, 0.0]]), abs=TOLERANCE)
    assert found.prices[0] == pytest.approx([1.0, 1.0], rel=TOLERANCE)
    assert found.ftf == pytest.approx([0.75, 1.0], rel=TOLERANCE)
    assert found.welfare == pytest.approx(2**0.5, rel=TOLERANCE)


def test_units_of_utility_do_not_matter():
    for kind, coefficients in (("linear", [[1e9, 2e9], [1e-9, 1e-9]]), ("leontief", [[2e9, 1e9], [1e-9, 1e-9]])):
        found = solve(make_market(coefficients, kind=kind))
        assert found.allocation[:, 0] == pytest.approx(np.array([[0.0, 1.0], [1.0, 0.0]]), abs=TOLERANCE)


def test_two_leontief_jobs_by_hand():
    """One round; a needs 1 GPU and 1 CPU, b 1 GPU and half a CPU: GPUs bind, each gains half, CPUs are free."""
    found = solve(make_market([[[1.0], [1.0]], [[1.0], [0.5]]], kind="leontief"))
    assert found.utilities == pytest.approx([0.5, 0.5], rel=TOLERANCE)
    assert found.allocation[..., 0] == pytest.approx(np.array([[0.5, 0.5], [0.5, 0.25]]), rel=TOLERANCE)
    assert found.prices[:, 0] == pytest.approx([2.0, 0.0], abs=TOLERANCE)


def test_a_leontief_job_stays_away_from_rounds_of_no_use():
    found = solve(make_market([[[1.0, np.inf]], [[1.0, 1.0]]], kind="leontief"))
    assert found.allocation[:, 0] == pytest.approx(np.array([[1.0, 0.0], [0.0, 1.0]]), abs=TOLERANCE)
    assert np.isinf(found.market.unit_costs(found.prices)[0, 1])


def test_what_is_of_no_use_costs_infinitely_much_at_price_0_too():
    prices = np.array([[2.0, 0.0]])
    assert make_market([[1.0, 0.0], [4.0, 5.0]]).unit_costs(prices).tolist() == [[2.0, np.inf], [0.5, 0.0]]
    leontief = make_market([[1.0, np.inf], [4.0, 5.0]], kind="leontief")
    assert leontief.unit_costs(prices).tolist() == [[2.0, np.inf], [8.0, 0.0]]


def test_what_nobody_wants_is_free_and_unsold():
    found = solve(make_market([[1.0, 0.0], [3.0, 0.0]]))
    assert found.prices[0] == pytest.approx([2.0, 0.0], abs=TOLERANCE)
    assert (found.allocation[:, 0, 1] == 0.0).all()


@pytest.mark.parametrize(
    ("coefficients", "budgets", "kind", "message"),
    [
        ([[1.0]], [0.0], "linear", "the budget of job 0 is 0; give every job"),
        ([[1.0], [1.0]], [1.0, -2.0], "linear", "the budget of job 1 is -2"),
        ([[1.0]], [np.nan], "linear", "the budget of job 0 is nan"),
        ([[1.0]], [1.0, 1.0], "linear", r"shape \(2,\) for 1 jobs"),
        ([[1.0, 1.0], [0.0, 0.0]], None, "linear", "job 1 wants nothing"),
        ([[np.inf], [1.0]], None, "leontief", "job 0 wants nothing"),
        ([[1.0, 0.0]], None, "leontief", "job 0 needs no resource in round 1"),
        ([[1.0, -1.0]], None, "linear", "job 0, resource 0, round 1 is -1"),
        ([[1.0, np.inf]], None, "linear", "round 1 is inf"),
        ([[[1.0], [np.nan]]], None, "leontief", "resource 1, round 0 is nan"),
        ([1.0], None, "linear", r"coefficients of shape \(1,\)"),
        ([[]], None, "linear", "each above 0"),
        ([[1.0]], None, "cobb-douglas", "no utility is called 'cobb-douglas'; choose one of linear, leontief"),
    ],
)
def test_impossible_markets_are_refused_in_one_line(coefficients, budgets, kind, message):
    with pytest.raises(ConfigError, match=message) as raised:
        make_market(coefficients, budgets, kind)
    assert "\n" not in str(raised.value)


def test_cvxpy_is_imported_only_to_solve(monkeypatch):
    modules = "jobcast.schedulers.market, jobcast.schedulers.market_expected"
    code = f"import sys, {modules}; sys.exit('cvxpy' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ConfigError, match=r"CVXPY is not installed; .* jobcast\[market\]"):
        solve(make_market([[1.0]]))
