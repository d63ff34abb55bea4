"""What Shockwave's section 4 and appendices C to E prove of the market's equilibrium, on small instances."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.market import finish_time_fairness, make_market, nash_welfare, solve
from jobcast.schedulers.market_expected import Chain, solve_expected
from tests.shared import refused

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
    refused(ConfigError, message, make_market, coefficients, budgets, kind)


def test_cvxpy_is_imported_only_to_solve(monkeypatch):
    modules = "jobcast.schedulers.market, jobcast.schedulers.market_expected"
    code = f"import sys, {modules}; sys.exit('cvxpy' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    refused(ConfigError, r"CVXPY is not installed; .* jobcast\[market\]", solve, make_market([[1.0]]))


# Shockwave, appendix F, on state spaces small enough to try every deterministic policy.

few = settings(max_examples=15)


def clock(utilities, units=1):
    """A job whose state is the round: sure to come, whatever it receives."""
    rounds = len(utilities)
    transitions = np.zeros((rounds, units + 1, rounds))
    for at in range(rounds):
        transitions[at, :, min(at + 1, rounds - 1)] = 1.0
    share = np.arange(units + 1) / units
    gains = np.array(utilities, dtype=float)[:, None, None] * share[None, :, None] * np.ones((1, 1, rounds))
    return Chain(np.eye(rounds)[0], transitions, gains)


def grower(chance, small=1.0, large=2.0):
    """Two batch sizes; a round of running enlarges the small one with a chance, from the next round on."""
    transitions = np.array([[[1.0, 0.0], [1.0 - chance, chance]], [[0.0, 1.0], [0.0, 1.0]]])
    gains = np.zeros((2, 2, 2))
    gains[0, 1], gains[1, 1] = small, large
    return Chain(np.array([1.0, 0.0]), transitions, gains)


@st.composite
def chains(draw):
    """Two states, one unit; at most 0.9 of a chance for either, so that all states are reached."""
    chance = st.floats(0.1, 0.9)
    stay = np.array([[draw(chance) for _ in range(2)] for _ in range(2)])
    transitions = np.stack([stay, 1.0 - stay], axis=2)
    gains = draw(arrays(float, (2, 2, 2), elements=st.sampled_from([0.0, 0.5, 1.0, 3.0])))
    gains[:, 1] += 0.5
    first = draw(chance)
    return Chain(np.array([first, 1.0 - first]), transitions, gains)


def expected_utilities(jobs, found, choose, rounds):
    """What a policy is worth to each job, by walking through all joint states; `choose` gives chances by allocation."""
    at = {state: np.prod([job.initial[s] for job, s in zip(jobs, state, strict=True)]) for state in found.states}
    total = np.zeros(len(jobs))
    for index in range(rounds):
        ahead = dict.fromkeys(found.states, 0.0)
        for state, here in at.items():
            for given_, chance in choose(index, state).items() if here > 1e-9 else ():
                for after in found.states:
                    moves = [job.transitions[s, x, n] for job, s, x, n in zip(jobs, state, given_, after, strict=True)]
                    reach = here * chance * np.prod(moves)
                    gains = [job.gains[s, x, n] for job, s, x, n in zip(jobs, state, given_, after, strict=True)]
                    total += reach * np.array(gains)
                    ahead[after] += reach
        at = ahead
    return total


def all_deterministic(jobs, found, rounds):
    """Expected utilities of every deterministic policy of two rounds, (n_policies, n_jobs).

    By round and state, the second round's part does not depend on what was chosen elsewhere but for how likely its
    states are; all combinations are formed from those parts.
    """
    assert rounds == 2
    states, allocations = found.states, found.allocations
    size = len(states)
    move = np.array(
        [[[np.prod([j.transitions[s[i], x[i], n[i]] for i, j in enumerate(jobs)]) for n in states] for x in allocations]
         for s in states]
    )  # fmt: skip
    gain = np.array([[[j.rewards[s[i], x[i]] for i, j in enumerate(jobs)] for x in allocations] for s in states])
    start = np.array([np.prod([j.initial[s[i]] for i, j in enumerate(jobs)]) for s in states])
    choices = np.array(list(product(range(len(allocations)), repeat=size)))
    rows = np.arange(size)
    here = gain[rows, choices]  # (n_choices, n_states, n_jobs), also what a second round is worth by its state
    reached = np.einsum("s,csn->cn", start, move[rows, choices])
    first = np.einsum("s,csi->ci", start, here)
    return (first[:, None] + np.einsum("cn,dni->cdi", reached, here)).reshape(-1, len(jobs))


@few
@given(
    arrays(float, (2, 3), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0])), st.sampled_from([1, 2]), st.floats(0.5, 4)
)
def test_where_all_is_certain_it_is_the_market(utilities, units, budget):
    utilities[:, 0] += 0.5
    found = solve_expected([clock(row, units) for row in utilities], units, 3, [1.0, budget])
    market = solve(make_market(utilities, [1.0, budget]))
    assert found.utilities == pytest.approx(market.utilities, rel=TOLERANCE)


@few
@given(chains(), chains(), st.floats(0.5, 3.0))
def test_against_all_deterministic_policies(one, other, budget):
    """The best mixture of deterministic policies, by its condition of optimality: nothing gains weighted utility."""
    jobs, budgets = [one, other], np.array([1.0, budget])
    found = solve_expected(jobs, 1, 2, budgets)
    values = all_deterministic(jobs, found, 2)
    assert len(values) == 3**4 * 3**4
    assert (values / found.utilities @ budgets).max() == pytest.approx(budgets.sum(), rel=TOLERANCE)
    welfare = nash_welfare(found.utilities, budgets)
    possible = values[(values > 0.0).all(axis=1)]
    assert max(nash_welfare(row, budgets) for row in possible[:: len(possible) // 50 + 1]) <= welfare * (1 + TOLERANCE)


@few
@given(chains(), chains())
def test_the_policy_is_worth_what_is_said(one, other):
    found = solve_expected([one, other], 1, 3)
    assert found.visits.sum(axis=(1, 2)) == pytest.approx(np.ones(3), abs=1e-6)
    assert expected_utilities([one, other], found, found.policy, 3) == pytest.approx(found.utilities, rel=TOLERANCE)


def test_one_job_by_hand():
    """Two rounds: 1, and then 1 or 2 with even chances."""
    found = solve_expected([grower(0.5)], 1, 2)
    assert found.utilities == pytest.approx([2.5], rel=TOLERANCE)
    assert found.policy(0, (0,)) == pytest.approx({(1,): 1.0})
    assert found.policy(0, (1,)) == {}


def test_drawing_lots_can_beat_every_deterministic_policy():
    """One GPU for two rounds; one job gains 1 and then 3, the other 1 a round.

    Deterministic policies reach (4, 0), (1, 1) and (0, 2), welfare 1 at most; half of the first and half of the last
    is (2, 1), the best of the triangle.
    """
    jobs = [grower(1.0, large=3.0), grower(0.0)]
    found = solve_expected(jobs, 1, 2)
    assert found.utilities == pytest.approx([2.0, 1.0], rel=TOLERANCE)
    best = max(np.prod(row) for row in all_deterministic(jobs, found, 2))
    assert best == pytest.approx(1.0)
    assert found.policy(0, (0, 0)) == pytest.approx({(1, 0): 0.5, (0, 1): 0.5}, abs=TOLERANCE)
    assert found.policy(1, (1, 0)) == pytest.approx({(1, 0): 1.0}, abs=TOLERANCE)


def test_units_of_expected_utility_do_not_matter():
    jobs = [grower(1.0, 1e9, 3e9), grower(0.0, 1e-9)]
    assert solve_expected(jobs, 1, 2).utilities == pytest.approx([2e9, 1e-9], rel=TOLERANCE)


BAD = np.ones((1, 2, 1))


@pytest.mark.parametrize(
    ("jobs", "units", "rounds", "budgets", "message"),
    [
        ([], 1, 1, None, "0 jobs, 1 units and 1 rounds"),
        ([grower(0.5)], 1, 0, None, "0 rounds"),
        ([grower(0.5)], 1, 1, [-1.0], "the budget of job 0 is -1"),
        ([grower(0.5), grower(0.5, 0.0, 0.0)], 1, 2, None, "job 1 wants nothing"),
        ([grower(0.5)], 2, 1, None, r"job 0 has transitions of shape \(2, 2, 2\)"),
        ([Chain(np.array([0.5]), BAD, BAD)], 1, 1, None, "initial of job 0 are no probabilities"),
        ([Chain(np.ones(1), 2.0 * BAD, BAD)], 1, 1, None, "transitions of job 0 are no probabilities"),
        ([Chain(np.ones(1), BAD, -BAD)], 1, 1, None, "a gain of job 0 is negative"),
        ([grower(0.5)] * 40, 1, 9, None, "take fewer, at most 50000"),
    ],
)
def test_impossible_ones_are_refused_in_one_line(jobs, units, rounds, budgets, message):
    refused(ConfigError, message, solve_expected, jobs, units, rounds, budgets)


def test_a_programme_is_as_large_as_its_rounds_states_and_allocations(monkeypatch):
    # 2 rounds x 2 x 2 states x (nobody, the first or the second has the unit)
    jobs = [grower(0.5), grower(0.5)]
    monkeypatch.setattr("jobcast.schedulers.market_expected.LARGEST_PROGRAMME", 24)
    found = solve_expected(jobs, 1, 2)
    assert found.visits.size == 24
    monkeypatch.setattr("jobcast.schedulers.market_expected.LARGEST_PROGRAMME", 23)
    refused(ConfigError, "24 rounds x states x allocations; take fewer, at most 23", solve_expected, jobs, 1, 2)
