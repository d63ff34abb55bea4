"""Shockwave, appendix F, on state spaces small enough to try every deterministic policy."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.market import make_market, nash_welfare, solve
from jobcast.schedulers.market_expected import Chain, solve_expected

pytest.importorskip("cvxpy", reason="the market needs jobcast's extra `market`")

TOLERANCE = 1e-3
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


def test_units_of_utility_do_not_matter():
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
    with pytest.raises(ConfigError, match=message) as raised:
        solve_expected(jobs, units, rounds, budgets)
    assert "\n" not in str(raised.value)


def test_a_programme_is_as_large_as_its_rounds_states_and_allocations(monkeypatch):
    # 2 rounds x 2 x 2 states x (nobody, the first or the second has the unit)
    jobs = [grower(0.5), grower(0.5)]
    monkeypatch.setattr("jobcast.schedulers.market_expected.LARGEST_PROGRAMME", 24)
    found = solve_expected(jobs, 1, 2)
    assert found.visits.size == 24
    monkeypatch.setattr("jobcast.schedulers.market_expected.LARGEST_PROGRAMME", 23)
    with pytest.raises(ConfigError, match="24 rounds x states x allocations; take fewer, at most 23"):
        solve_expected(jobs, 1, 2)
