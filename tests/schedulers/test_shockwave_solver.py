"""Equation 11 solved: exhaustive optima of small windows, and what every timetable must satisfy."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from jobcast.domain.rounding import rounded_all
from jobcast.schedulers.shockwave import solver
from jobcast.schedulers.shockwave.programme import Programme, work_of
from jobcast.schedulers.shockwave.relaxation import majorant_slopes, relax
from jobcast.schedulers.shockwave.solver import Limits, improve, incumbent, repair, share_lost, solve, timetable

HEURISTIC = Limits(60.0, cells=0)


def programme(rows, gpus, rounds, lam=3.0):
    """Rows of (weight, GPUs, running, [(epochs, seconds an epoch, batch size), ...], epochs done)."""
    work = work_of([row[3] for row in rows], [row[4] for row in rows])
    widths = np.array([row[1] for row in rows])
    return Programme(
        work=work,
        cautious_s=work.left_s,
        loads=widths / gpus,
        weights=np.array([float(row[0]) for row in rows]),
        floor=1.0,
        widths=widths,
        running=np.array([row[2] for row in rows], dtype=bool),
        gpus=gpus,
        rounds=rounds,
        round_s=120.0,
        restart_s=20.0,
        makespan_price=lam / float(work.left_s.sum()),
    )


stretches = st.lists(
    st.tuples(st.floats(0.5, 8.0), st.floats(20.0, 200.0), st.sampled_from([16, 32])), min_size=1, max_size=3
)
job_rows = st.tuples(st.floats(0.2, 6.0), st.sampled_from([1, 2, 4]), st.booleans(), stretches, st.floats(0.0, 5.0))


@st.composite
def programmes(draw, most_jobs=8, most_rounds=6):
    rows = draw(st.lists(job_rows, min_size=1, max_size=most_jobs))
    gpus, lam = draw(st.integers(4, 9)), draw(st.sampled_from([0.0, 0.01, 1.0, 100.0]))
    return programme(rows, gpus, draw(st.integers(1, most_rounds)), lam)


def optimum(problem):
    """The best value over all timetables that fit, by trying them all."""
    masks = [
        mask
        for mask in product([False, True], repeat=problem.jobs)
        if int(problem.widths @ np.array(mask)) <= problem.gpus
    ]
    return max(problem.value(np.array(columns).T) for columns in product(masks, repeat=problem.rounds))


def divisible_optimum(problem):
    """Equation 11 of rounds that can be divided, and of capacity over the whole window: a linear programme."""
    counts, n = np.arange(problem.rounds + 1), problem.jobs
    held, left_s = np.kron(problem.widths, counts), np.repeat(np.eye(n), problem.rounds + 1, axis=1)
    left_s = left_s * problem.left_after_s.ravel()
    at_most = np.vstack([np.append(held, 0.0), np.append(problem.loads @ left_s, -1.0), np.c_[left_s, -np.ones(n)]])
    one_each = np.c_[np.repeat(np.eye(n), problem.rounds + 1, axis=1), np.zeros(n)]
    room = np.append(problem.gpus * problem.rounds, np.zeros(1 + n))
    cost = np.append(-problem.gains.ravel(), problem.makespan_price)
    return -linprog(cost, A_ub=at_most, b_ub=room, A_eq=one_each, b_eq=np.ones(n)).fun


LONG = [(1.0, gpus, False, [(epochs, 120.0, 16)], 0.0) for gpus, epochs in ((1, 12.0), (2, 12.0), (2, 2.0))]


# There is room to leave nobody more than ten rounds, but that costs more than the makespan is worth.
@example(programme(LONG, 4, 3, 0.3))
@given(programmes())
def test_the_bound_is_the_optimum_of_what_can_be_divided(problem):
    relaxed = relax(problem)
    assert relaxed.bound == pytest.approx(divisible_optimum(problem), rel=1e-6, abs=1e-9)
    assert relaxed.theta + relaxed.nu.sum() == pytest.approx(1.0)


@given(programmes(most_jobs=4, most_rounds=3))
def test_the_optimum_lies_between_value_and_bound(problem):
    best, solution = optimum(problem), solve(problem, HEURISTIC)
    assert solution.value <= best + 1e-9
    assert best <= solution.bound + 1e-9


# One of two that ran has to wait, and starts anew.
@example(programme([(1.0, 4, True, [(10.0, 120.0, 16)], 0.0)] * 2, 4, 2, 0.0))
# The load decides, and is no whole number of seconds: 73 rounds of 7 GPUs.
@example(programme([(1.0, 1, True, [(10.0, 120.0, 16)], 0.0)] * 8, 7, 1, 100.0))
@settings(max_examples=25)
@given(programmes(most_jobs=4, most_rounds=3))
def test_highs_finds_the_optimum_of_small_windows(problem):
    best, begin = optimum(problem), solve(problem, HEURISTIC)
    runs, bound = improve(problem, begin.runs, 0.0, 5_000, 20.0)
    assert problem.value(runs) == pytest.approx(best, abs=1e-6)
    assert best - 1e-6 <= bound <= best + 1e-5 * (1.0 + abs(best))


def test_highs_without_time_leaves_an_incumbent_in_many_pieces_as_it_is():
    job = [(9.0, 120.0, 16)]
    problem = programme([(1.0, 1, False, job, 0.0), (1.0, 2, True, job, 0.0), (1.0, 1, False, job, 0.0)], 4, 9)
    rows = [True, False] * 4 + [True], [False, True, True, False, False, False, True, False, False], [False] * 9
    for begin in (np.array(rows), np.array([rows[2], rows[0], [True] * 9])):
        assert improve(problem, begin, 0.0, 20, 0.0)[0].tolist() == begin.tolist()


def test_who_is_worth_more_on_average_begins():
    """Two rounds each on one GPU for four: the first job has most of its epochs early, the other gains evenly.

    8 of 10 epochs in 100 s and two in 120 s: log(1.8 / 1) in the first round, log(2 / 1.8) in the second.
    1.2 times log(1 + 100 / 220), and the rest of log(2): less at first, more in both.
    """
    rows = [(1.0, [(8.0, 12.5, 16), (2.0, 60.0, 16)]), (1.2, [(10.0, 22.0, 16)])]
    problem = programme([(weight, 1, False, job, 0.0) for weight, job in rows], 1, 4, 0.0)
    first, other = np.diff(2 * problem.gains, axis=1)[:, :2]
    assert first == pytest.approx([np.log(1.8), np.log(2 / 1.8)])
    assert other == pytest.approx([1.2 * np.log(320 / 220), 1.2 * np.log(440 / 320)])
    assert first[0] > other[0]
    assert solve(problem, HEURISTIC).runs.tolist() == [[False, False, True, True], [True, True, False, False]]


def test_what_is_as_good_as_it_has_to_be_is_not_repaired(monkeypatch):
    problem = programme([(1.0, 1, False, [(10.0, 120.0, 16)], 0.0)] * 2, 1, 3)
    value = solve(problem, HEURISTIC).value
    monkeypatch.setattr(solver, "repair", None)
    runs, found = incumbent(problem, replace(relax(problem), bound=value), 0.0)
    assert (problem.value(runs), found) == (value, value)


def test_what_rounding_may_have_taken_is_added_to_the_bound():
    problem = programme(
        [(100.0, 1, False, [(9.0, 120.0, 16)], 0.0), (40.0, 1, False, [(3.0, 120.0, 16)], 0.0)], 2, 1, 0.0
    )
    _, bound = improve(problem, np.ones((2, 1), dtype=bool), 0.0, 20, 60.0)
    # Both run; the largest of each job is what idling costs it: 140 log(2) / 4.
    rounding = 2.0**-24 * 140.0 * np.log(2.0) / 4.0
    assert bound - rounded_all(problem.gains[:, 1]).sum() == pytest.approx(rounding, abs=1e-9)


def test_highs_is_asked_where_the_gap_is_wide_and_what_it_finds_is_taken(monkeypatch):
    rows = [(3.0, 1, False, 1.0), (2.0, 1, False, 7.0), (3.0, 3, True, 2.0)]
    problem = programme([(*row, [(epochs, 120.0, 16)], 0.0) for *row, epochs in rows], 4, 2)
    begin, found = solve(problem, HEURISTIC), solve(problem, Limits(60.0))
    assert (begin.asked, found.asked) == (False, True)
    assert found.value == pytest.approx(optimum(problem))
    assert found.value > begin.value
    assert found.gap < 0.005 < begin.gap
    assert solve(problem, Limits(60.0, gap=begin.gap)).asked is False
    cells = problem.jobs * problem.rounds
    assert [solve(problem, Limits(60.0, cells=most)).asked for most in (cells - 1, cells)] == [False, True]
    assert Limits(60.0) == Limits(60.0, gap=0.005, cells=400, nodes=20)
    monkeypatch.setattr(solver, "improve", lambda *_: (np.zeros_like(begin.runs), begin.bound))
    assert (solve(problem, Limits(60.0)).runs == begin.runs).all()
    monkeypatch.setattr(solver, "improve", lambda *_: None)
    given_up = solve(problem, Limits(60.0))
    assert given_up.asked
    assert (given_up.value, given_up.bound) == (begin.value, begin.bound)


@given(programmes())
def test_timetables_fit_and_leave_no_gpu_idle_in_vain(problem):
    solution = solve(problem, HEURISTIC)
    used = problem.widths @ solution.runs
    assert used.max() <= problem.gpus
    assert solution.bound >= solution.value - 1e-9
    assert solution.value == pytest.approx(problem.value(solution.runs))
    assert solution.gap >= 0.0


@given(programmes())
def test_every_candidate_stays_within_the_window(problem):
    relaxed = relax(problem)
    for counts in relaxed.counts:
        assert counts.min() >= 0
        assert counts.max() <= problem.rounds
        assert problem.widths @ counts <= problem.gpus * problem.rounds


@given(stretches, st.floats(0.0, 5.0))
def test_epochs_follow_the_order_of_regimes(regimes, done):
    work = work_of([regimes], [done])
    ends = np.cumsum([epochs * epoch_s for epochs, epoch_s, _ in regimes])
    epochs = np.cumsum([epochs for epochs, _, _ in regimes])
    expected = (done + epochs) / (done + epochs[-1])
    assert work.fraction(ends[None, :])[0] == pytest.approx(expected)


def test_beyond_its_last_regime_a_job_goes_on_at_that_pace():
    # 2 epochs in 240 s, 1 in 60 s and 2 more in 120 s, of 3; of the other 1 in 60 s and 2 more in 120 s.
    work = work_of([[(2.0, 120.0, 32), (1.0, 60.0, 64)], [(1.0, 60.0, 32)]], [0.0, 0.0])
    assert work.fraction(np.array([[420.0], [180.0]])).ravel() == pytest.approx([5 / 3, 3.0])


def test_epochs_take_some_time():
    assert work_of([[(4.0, 0.5, 32), (1.0, 0.0, 32)]], [0.0]).epoch_s.tolist() == [[0.5, 1e-100]]


@given(st.lists(st.floats(-5.0, 5.0), min_size=2, max_size=8))
def test_majorants_are_concave_and_nowhere_below(values):
    row = np.array([values])
    slopes = majorant_slopes(row)[0]
    above = np.concatenate([[0.0], np.cumsum(slopes)]) + values[0]
    assert (np.diff(slopes) <= 1e-9).all()
    assert (above >= row[0] - 1e-9).all()
    assert above[-1] == pytest.approx(values[-1])


def test_a_job_that_runs_is_not_stopped_for_an_equal_one():
    long = [(40.0, 120.0, 32)]
    rows = [(1.0, 1, index < 2, long, 10.0) for index in range(4)]
    solution = solve(programme(rows, 2, 6, lam=0.0), HEURISTIC)
    assert solution.runs[:2, 0].all()


def test_pieces_cost_a_restart_each():
    problem = programme([(1.0, 1, False, [(10.0, 120.0, 32)], 0.0)], 1, 4, lam=0.0)
    whole, cut = np.array([[True, True, False, False]]), np.array([[True, False, True, False]])
    expected = [np.log((1.0 + run_s / 1300.0) / 2.0) for run_s in (220.0, 200.0)]  # 11 rounds less a start
    assert [problem.value(whole), problem.value(cut)] == pytest.approx(expected)


def test_less_than_the_dust_of_a_round_is_left():
    problem = programme([(1.0, 1, True, [(1e-12, 120.0, 32)], 0.0)], 1, 2)
    assert problem.gains.tolist() == [pytest.approx([np.log(0.5)] * 3)]
    assert problem.left_after_s.tolist() == [[0.0, 0.0, 0.0]]
    assert problem.makespan_s(problem.left_after_s[:, 0]) == 0.0


@pytest.mark.parametrize(
    ("jobs", "gpus", "running", "repaired"), [(3, 1, [2], [2]), (2, 2, [1], [0, 1]), (2, 2, [0, 1], [0, 1])]
)
def test_a_repair_stops_nobody_for_an_equal_or_where_there_is_room(jobs, gpus, running, repaired):
    problem = programme([(1.0, 1, False, [(10.0, 120.0, 32)], 0.0)] * jobs, gpus, 1)
    everybody = np.arange(jobs)
    runs, value = repair(problem, np.isin(everybody, running)[:, None], np.ones(jobs), np.inf)
    assert np.flatnonzero(runs).tolist() == repaired
    assert value == problem.value(runs)


def test_a_repair_takes_rounds_of_the_least_urgent_of_those_that_fit():
    """The longest job, of two of three GPUs, decides the makespan; of three others two have to give way."""
    rows = [(1.0, 2, True, [(90.0, 120.0, 32)], 0.0)] + [(1.0, 1, True, [(9.0, 120.0, 32)], 0.0)] * 3
    runs, _ = repair(
        programme(rows, 3, 1, 100.0), np.array([[False]] + [[True]] * 3), np.array([4.0, 2.0, 3.0, 1.0]), 0.0
    )
    assert np.flatnonzero(runs).tolist() == [0, 2]


def test_the_longest_job_runs_throughout_where_it_decides_the_makespan():
    short = [(1.0, 1, True, [(20.0, 120.0, 32)], 0.0) for _ in range(8)]
    solution = solve(programme([*short, (1.0, 2, False, [(200.0, 120.0, 32)], 0.0)], 8, 20), HEURISTIC)
    assert solution.runs[-1].all()


def test_the_gap_of_a_thousand_jobs_is_small():
    rng = np.random.default_rng(7)
    rows = [
        (
            float(rng.uniform(0.5, 8.0)),
            int(rng.choice([1, 2, 4, 8], p=[0.6, 0.3, 0.09, 0.01])),
            bool(rng.random() < 0.15),
            [(float(rng.uniform(5, 60)), float(rng.uniform(20, 120)), 32), (20.0, 30.0, 64)],
            float(rng.uniform(0, 30)),
        )
        for _ in range(1000)
    ]
    assert solve(programme(rows, 256, 20), Limits(60.0)).gap <= 0.005


def test_timetables_are_worth_what_they_were():
    """Of 40 windows of some jobs, before HiGHS is asked: values and bounds in all."""
    rng, found = np.random.default_rng(0), []
    for _ in range(40):
        rows = [
            (
                float(rng.uniform(0.5, 4.0)),
                int(rng.choice([1, 2, 4])),
                bool(rng.random() < 0.3),
                [(float(rng.uniform(1.0, 20.0)), float(rng.uniform(30.0, 200.0)), 16)],
                float(rng.uniform(0.0, 5.0)),
            )
            for _ in range(rng.integers(4, 12))
        ]
        gpus, rounds, lam = rng.integers(4, 9), rng.integers(4, 16), rng.choice([0.3, 1.0, 3.0, 10.0])
        found.append(solve(programme(rows, int(gpus), int(rounds), float(lam)), HEURISTIC))
    assert sum(one.value for one in found) == pytest.approx(-37.725009441294404, rel=1e-9)
    assert sum(one.bound for one in found) == pytest.approx(-35.85570752048494, rel=1e-9)


def test_a_gap_is_told_against_what_idling_costs_where_values_near_nothing():
    problem = programme([(1.0, 1, False, [(4.0, 100.0, 16)], 0.0)], 4, 3)
    solution = solve(problem, HEURISTIC)
    idle = abs(problem.value(np.zeros_like(solution.runs)))
    off = replace(solution, value=-0.05 * idle, bound=0.05 * idle)
    assert off.gap > 1.0
    assert share_lost(problem, off) == pytest.approx(0.1)
    for dust in (-1e-10, 1e-10):
        same = replace(off, bound=off.value + dust)
        assert (same.gap, share_lost(problem, same)) == (0.0, 0.0)
    least = replace(off, value=-1e-9, bound=0.0)
    assert (least.gap, share_lost(problem, least)) == (1.0, pytest.approx(1e-9 / idle))


@given(programmes())
def test_the_price_clears_the_window(problem):
    # Shockwave, section 4: what is worth more than its price is bought, and where it has one nothing is left over.
    relaxed, room = relax(problem), problem.gpus * problem.rounds
    bought = int(problem.widths @ (relaxed.slopes > relaxed.price * (1 + 1e-6)).sum(axis=1))
    wanted = int(problem.widths @ (relaxed.slopes >= relaxed.price * (1 - 1e-6)).sum(axis=1))
    assert bought <= room
    assert relaxed.price == 0.0 or wanted >= room


def dealt(jobs, gpus, rounds, counts, urgency, hold=np.inf):
    """A timetable of (GPUs, running, seconds left) where no round beyond the counts is worth more than another."""
    problem = programme([(1.0, *job, [(left_s / 120.0, 120.0, 16)], 0.0) for *job, left_s in jobs], gpus, rounds)
    runs = timetable(problem, np.array(counts), np.array(urgency), np.zeros((len(jobs), rounds)), hold)
    return runs.astype(int).tolist()


@given(st.data())
def test_rounds_that_fit_are_dealt_to_jobs_of_a_gpu(data):
    gpus, rounds = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    counts = data.draw(
        st.lists(st.integers(0, rounds), min_size=1, max_size=8).filter(lambda c: sum(c) <= gpus * rounds)
    )
    jobs = [(1, data.draw(st.booleans()), 1200.0) for _ in counts]
    urgency = [data.draw(st.floats(0.1, 9.0)) for _ in counts]
    runs = dealt(jobs, gpus, rounds, counts, urgency, data.draw(st.sampled_from([1.5, np.inf])))
    assert all(sum(row) >= count for row, count in zip(runs, counts, strict=True))


@pytest.mark.parametrize(
    ("other", "hold", "first"), [(1.4, 1.5, [1, 0]), (1.6, 1.5, [0, 1]), (1.6, np.inf, [1, 0]), (0.9, 1.5, [1, 0])]
)
def test_a_job_that_runs_gives_way_to_one_that_is_so_much_more_urgent(other, hold, first):
    """Where one of them has to wait; the other way round, who starts runs in the second round."""
    jobs = [(1, True, 1200.0), (1, False, 1200.0)]
    assert dealt(jobs, 1, 2, [1, 1], [1.0, other], hold)[0] == first


def test_who_is_owed_more_than_can_wait_goes_first_however_urgent_others_are():
    wait = (1, False, 1200.0)
    # One of three rounds of the only GPU, and two: both fit in either order, so that the more urgent one begins.
    assert dealt([wait, wait], 1, 3, [1, 2], [2.0, 1.0]) == [[1, 0, 0], [0, 1, 1]]
    # On two GPUs the job that is owed both rounds cannot wait.
    assert dealt([wait] * 3, 2, 2, [1, 1, 2], [3.0, 2.0, 1.0]) == [[1, 0], [0, 1], [1, 1]]
    # Where not all fit into the only round the gang goes first; where it can wait, who is more urgent.
    gang = (2, False, 1200.0)
    assert dealt([wait, gang], 2, 1, [1, 1], [2.0, 1.0]) == [[0], [1]]
    assert [row[0] for row in dealt([wait, gang], 2, 3, [1, 1], [2.0, 1.0])] == [1, 0]


@pytest.mark.parametrize(("left_s", "most"), [(240.0, 3), (241.0, 4), (1200.0, 6)])
def test_idle_gpus_serve_a_job_for_the_rounds_that_it_may_need(left_s, most):
    """So many as it has left, and one more for a start."""
    assert dealt([(1, False, left_s)], 1, 6, [0], [1.0]) == [[1] * most + [0] * (6 - most)]
