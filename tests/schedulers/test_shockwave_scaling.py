"""Numbers of workers in the market: an optimum by hand, exhaustive optima of small windows, what plans must keep to."""

from dataclasses import replace
from itertools import count, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobcast.schedulers.shockwave import Shockwave, scaling
from jobcast.schedulers.shockwave.relaxation import relax
from jobcast.schedulers.shockwave.scaling import Numbers, best_columns, numbers_of, scaled, surpluses
from jobcast.schedulers.shockwave.solver import solve
from tests.schedulers.rounds_driver import ROUND_S, Known, active, state
from tests.schedulers.test_shockwave_solver import HEURISTIC, optimum, programme


def numbers(options, asked, held=None):
    """From one mapping of GPUs to speed a job."""
    most = max(map(len, options))
    padded = [[*one.items()] + [[*one.items()][-1]] * (most - len(one)) for one in options]
    gpus, speeds = np.array(padded).transpose(2, 0, 1)
    columns = (gpus == np.array(asked)[:, None]).argmax(axis=1)
    return Numbers(gpus.astype(int), speeds, columns, np.zeros(len(asked), dtype=int) if held is None else held)


def every_optimum(problem, may):
    """By columns of a job's numbers, each number once: the best value over all timetables."""
    ways = [range(len(np.unique(row))) for row in may.gpus]
    return {one: optimum(scaled(problem, may, np.array(one))) for one in product(*ways)}


def test_two_jobs_run_both_where_one_has_fewer_workers():
    """4 GPUs, 2 rounds of 120 s; jobs of 240 s that ask for 3 and for 2 GPUs, on 2 the first is .8 times as fast.

    As asked one of them runs at a time: each for a round less its start, 100 s of 340, which is the best, or one for
    both, 220 s of 340. On 2 GPUs each both run for 220 s, the first as far as in 176 s on 3. Floor 1, weight 1 / 8.
    """
    stretch = [(10.0, 24.0, 16)]
    problem = programme([(1.0, 3, False, stretch, 0.0), (1.0, 2, False, stretch, 0.0)], 4, 2, lam=0.0)
    may = numbers([{1: 0.5, 2: 0.8, 3: 1.0}, {2: 1.0}], [3, 2])
    columns = best_columns(problem, may, may.asked)
    assert may.at(columns)[0].tolist() == [2, 2]
    best = every_optimum(problem, may)
    assert (
        best[1, 0]
        == max(best.values())
        == pytest.approx((np.log((1 + 176 / 340) / 2) + np.log((1 + 220 / 340) / 2)) / 8)
    )
    assert best[2, 0] == pytest.approx(2 * np.log((1 + 100 / 340) / 2) / 8)
    runs = solve(scaled(problem, may, columns), HEURISTIC).runs
    assert runs.tolist() == [[True, True], [True, True]]


@pytest.mark.parametrize(
    ("asked", "options", "most", "found"),
    [
        ([3, 2], [{1: 0.5, 2: 0.8, 3: 1.0}, {2: 1.0}], 24, ([2, 2], [1, 2])),
        ([1, 3], [{1: 1.0, 3: 3**0.5}, {1: 3**-0.5, 3: 1.0}], 12, ([3, 1], [1, 3])),
    ],
)
def test_where_prices_show_nothing_changes_are_tried_of_few_jobs(asked, options, most, found):
    """Up to 24 other numbers of all jobs one by one, and up to 12 in pairs: jobs of no weight bring some more each."""
    for others, expected in zip((most, most + 1), found, strict=True):
        idle = [3] * ((others - 2) // 3) + [(others - 2) % 3]
        rows = [(1.0, one, False, [(10.0, 24.0, 16)], 0.0) for one in asked]
        rows += [(0.0, 1, False, [(10.0, 24.0, 16)], 0.0)] * len(idle)
        also = [dict.fromkeys(range(1, 2 + more), 1.0) for more in idle]
        problem, may = programme(rows, 4, 2, lam=0.0), numbers([*options, *also], [*asked, *[1] * len(idle)])
        assert may.at(best_columns(problem, may, may.asked))[0].tolist() == [*expected, *[1] * len(idle)]


def tried_columns(monkeypatch, may, gains, values):
    """Columns in the order in which they are tried, if jobs gain so much at the prices; what timetables are worth."""
    problem, tried = programme([(1.0, 1, False, [(1.0, 120.0, 16)], 0.0)] * len(gains), 4, 1), []

    def worth(_problem, _may, columns):
        tried.append(columns.tolist())
        return next(values), None, 0.0

    monkeypatch.setattr(scaling, "_worth", worth)
    monkeypatch.setattr(scaling, "surpluses", lambda *_: np.array(gains))
    return best_columns(problem, may, may.asked).tolist(), tried


def test_all_who_gain_change_then_the_half_that_gains_most_then_one_then_two(monkeypatch):
    """Four of five gain; the last has 2 GPUs and nothing to gain, the third the larger of its numbers only once."""
    may = numbers([{1: 1.0, 2: 1.5}] * 4 + [{1: 1.0, 2: 1.5, 3: 2.0}], [1, 1, 1, 1, 2])
    gains = [[0.0, 4.0, 0.0], [0.0, 1.0, 0.0], [0.0, 3.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, -1.0]]
    at, tried = tried_columns(monkeypatch, may, gains, iter(np.zeros(99)))
    assert at == tried[0] == [0, 0, 0, 0, 1]
    assert tried[1:4] == [[1, 1, 1, 1, 1], [1, 0, 1, 0, 1], [1, 0, 0, 0, 1]]
    one = [[1, 0, 0, 0, 1], [0, 1, 0, 0, 1], [0, 0, 1, 0, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 2]]
    assert tried[4:10] == one
    # Two of the six; of two that are one job's the later one counts.
    assert len(tried) == 10 + 15
    assert [1, 1, 0, 0, 1] in tried[10:]


def test_improvements_end_after_twenty(monkeypatch):
    _, tried = tried_columns(monkeypatch, numbers([{1: 1.0, 2: 1.5}], [1]), [[0.0, 1.0]], count(1.0))
    assert len(tried) == 1 + 20


def test_other_numbers_are_loads_of_their_own():
    """4 GPUs of which a job asks for 3; on 2 of them a second left is half a second of the cluster's."""
    problem = programme([(1.0, 3, False, [(10.0, 24.0, 16)], 0.0), (1.0, 2, False, [(10.0, 24.0, 16)], 0.0)], 4, 2)
    may = numbers([{1: 0.5, 2: 0.8, 3: 1.0}, {2: 1.0}], [3, 2])
    other = scaled(problem, may, np.array([1, 0]))
    assert other.loads.tolist() == pytest.approx([2 / 4, 2 / 4])
    assert other.cautious_s.tolist() == pytest.approx([240.0 / 0.8, 240.0])


def test_who_does_not_scale_has_what_it_asks_for():
    scales = replace(active(0, 2, running=True), speeds={1: 0.6, 2: 1.0, 4: 1.5}, gpus=4)
    may = numbers_of([scales, active(1, 3)], scales=True)
    assert may.gpus.tolist() == [[1, 2, 4], [3, 3, 3]]
    assert may.speeds.tolist() == [[0.6, 1.0, 1.5], [1.0, 1.0, 1.0]]
    assert [may.asked.tolist(), may.held.tolist()] == [[1, 0], [4, 0]]
    assert numbers_of([scales, active(1, 3)], scales=False).gpus.tolist() == [[2], [3]]
    assert [may.column(0, gpus) for gpus in (4, 1, 3)] == [2, 0, 1]


def test_a_job_alone_has_more_workers_than_it_asked_for():
    problem = programme([(1.0, 2, False, [(10.0, 240.0, 16)], 0.0)], 4, 2)
    may = numbers([{1: 0.6, 2: 1.0, 4: 1.5}], [2])
    assert may.at(best_columns(problem, may, may.asked))[0].tolist() == [4]


def test_a_change_that_costs_more_than_it_brings_is_not_made():
    """One round: 120 s as it runs, or 100 s after a start at 1.1 times the speed."""
    problem = programme([(1.0, 2, True, [(10.0, 240.0, 16)], 0.0)], 4, 1, lam=0.0)
    may = numbers([{2: 1.0, 4: 1.1}], [2], held=np.array([2]))
    assert best_columns(problem, may, may.asked).tolist() == [0]
    faster = numbers([{2: 1.0, 4: 1.3}], [2], held=np.array([2]))
    assert best_columns(problem, faster, faster.asked).tolist() == [1]
    same = programme([(1.0, 1, False, [(10.0, 240.0, 16)], 0.0)], 4, 2)
    alike = numbers([{1: 1.0, 2: 1.0}], [1])
    assert best_columns(same, alike, alike.asked).tolist() == [0]


rows_that_scale = st.tuples(
    st.floats(0.2, 6.0),
    st.integers(1, 4),
    st.booleans(),
    st.floats(1.0, 8.0),
    st.floats(20.0, 200.0),
    st.floats(0.3, 1.0),
)


@st.composite
def scaling_programmes(draw):
    found = draw(st.lists(rows_that_scale, min_size=1, max_size=2))
    rows = [(weight, gpus, runs, [(epochs, epoch_s, 16)], 1.0) for weight, gpus, runs, epochs, epoch_s, _ in found]
    lowest = [draw(st.integers(1, row[1])) for row in found]
    options = [
        {gpus: (gpus / row[1]) ** row[5] for gpus in range(low, max(row[1], draw(st.integers(1, 4))) + 1)}
        for row, low in zip(found, lowest, strict=True)
    ]
    problem = programme(
        rows, draw(st.integers(4, 6)), draw(st.integers(1, 2)), draw(st.sampled_from([0.0, 1.0, 100.0]))
    )
    return problem, numbers(options, problem.widths, np.where(problem.running, problem.widths, 0))


# The load of the GPUs decides the makespan: three jobs of 3 of 4 GPUs.
LOADED = programme([(1.0, 3, False, [(10.0, 120.0, 16)], 0.0)] * 3, 4, 1, 100.0)


@example((LOADED, numbers([{2: 0.8, 3: 1.0}] * 3, [3] * 3)))
@settings(max_examples=25)
@given(scaling_programmes())
def test_prices_prove_a_bound_over_all_numbers(case):
    problem, may = case
    relaxed = relax(scaled(problem, may, may.asked))
    bound = surpluses(problem, may, relaxed).max(axis=1).sum() + relaxed.price * problem.gpus * problem.rounds
    best = max(every_optimum(problem, may).values())
    assert best <= bound + 1e-6 * abs(best) + 1e-9
    room, rows = relaxed.price * problem.gpus * problem.rounds, np.arange(problem.jobs)
    asked = surpluses(problem, may, relaxed)[rows, may.asked]
    assert asked.sum() + room == pytest.approx(relaxed.bound, rel=1e-6, abs=1e-9)
    longer = surpluses(problem, may, relaxed, 0.0)[rows, may.asked]
    assert (longer <= asked).all()


@settings(max_examples=25)
@given(scaling_programmes())
def test_numbers_that_are_chosen_are_worth_no_less(case):
    problem, may = case
    columns = best_columns(problem, may, may.asked)
    asked, chosen = (scaled(problem, may, one) for one in (may.asked, columns))
    assert solve(chosen, HEURISTIC).bound >= optimum(chosen) - 1e-9
    # Values before repairs decide, to the digits that rounding leaves.
    assert optimum(chosen) >= solve(asked, replace(HEURISTIC, gap=np.inf)).value * (1 + 1e-6) - 1e-9


def test_most_small_windows_are_solved_to_their_optimum():
    rng, lost, won, found = np.random.default_rng(5), 0.0, 0.0, 0
    for _ in range(12):
        rows, options = [], []
        for _ in range(rng.integers(2, 4)):
            asked, bend = int(rng.integers(1, 5)), rng.uniform(0.3, 1.0)
            stretch = [(rng.uniform(1.0, 8.0), rng.uniform(20.0, 200.0), 16)]
            rows.append((rng.uniform(0.2, 6.0), asked, rng.random() < 0.4, stretch, 1.0))
            options.append({gpus: (gpus / asked) ** bend for gpus in range(int(rng.integers(1, asked + 1)), 5)})
        problem = programme(rows, 5, 2, float(rng.choice([0.0, 1.0, 3.0])))
        may = numbers(options, problem.widths, np.where(problem.running, problem.widths, 0))
        best = every_optimum(problem, may)
        value = optimum(scaled(problem, may, best_columns(problem, may, may.asked)))
        lost, won = lost + max(best.values()) - value, won + max(best.values()) - best[tuple(may.asked.tolist())]
        found += max(best.values()) - value < 1e-9
    assert found >= 10
    assert lost <= 0.03 * won


@st.composite
def states_that_scale(draw):
    """Active jobs, some of which scale, on a cluster that each fits on as it asks."""
    gpus, actives, run_s = draw(st.integers(4, 9)), [], {}
    for seq in range(draw(st.integers(1, 6))):
        asked = draw(st.integers(1, 4))
        numbers = sorted({asked, *draw(st.lists(st.integers(1, 4), max_size=3))})
        speeds = {one: (one / asked) ** 0.7 for one in numbers} if draw(st.booleans()) else {}
        held = draw(st.sampled_from([0, *speeds])) if speeds else draw(st.sampled_from([0, asked]))
        one = active(seq, asked, 300.0 * (held > 0), running=held > 0)
        actives.append(replace(one, speeds=speeds, gpus=held))
        run_s[seq] = draw(st.floats(400.0, 20_000.0))
    return actives, gpus, run_s


@settings(max_examples=25)
@given(states_that_scale())
def test_no_more_gpus_than_there_are_and_none_that_a_job_may_not_have(case):
    actives, gpus, run_s = case
    policy, may = Shockwave(Known(run_s), workers="elastic"), {one.job.seq: one for one in actives}
    for index in range(3):
        chosen = policy.choose(state(actives, gpus, index * ROUND_S))
        assert sum(job.gpus for job in chosen) <= gpus
        assert len({job.seq for job in chosen}) == len(chosen)
        assert all(job.gpus in (may[job.seq].speeds or {may[job.seq].job.gpus: 1.0}) for job in chosen)


@settings(max_examples=25)
@given(states_that_scale())
def test_as_asked_or_where_nobody_scales_jobs_are_the_same_objects(case):
    actives, gpus, run_s = case
    rigid = [replace(one, speeds={}, gpus=one.job.gpus if one.running else 0) for one in actives]
    asked, elastic = (
        Shockwave(Known(run_s), workers=workers).choose(state(here, gpus))
        for workers, here in (("asked", actives), ("elastic", rigid))
    )
    jobs = {one.job.seq: one.job for one in actives}
    assert all(job is jobs[job.seq] for job in (*asked, *elastic))


def test_scaling_to_what_is_asked_for_changes_no_bit():
    problem = programme(
        [(1.3, 3, True, [(7.0, 31.0, 16), (3.0, 17.0, 32)], 2.0), (0.7, 2, False, [(9.0, 77.0, 8)], 0.0)], 4, 5
    )
    may = numbers_of([active(0, 3, 60.0, running=True), active(1, 2)], scales=True)
    same = scaled(problem, may, may.asked)
    for name in ("cautious_s", "loads", "widths", "running", "gains", "left_after_s"):
        assert getattr(same, name).tobytes() == getattr(problem, name).tobytes()
    assert relax(same).bound == relax(problem).bound
