"""SIA planned in time: its virtual clock against FCFS, its samples and costs against sums by hand."""

from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.switches import ALL_SHARE, Switch, Switches
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.schedulers.sia_plan import (
    BEGIN,
    CHANCES,
    END,
    FUTURES,
    GPUS,
    LEVELS,
    OVER,
    START,
    STEPS_MIN,
    SUBMIT,
    SiaPlan,
    VirtualClock,
    first_within,
    hold,
    lacking,
    level_of,
    minutes_at_risk,
    needed_gpus,
    run_time,
    survival,
)
from jobcast.simulator.engine import Simulation, replay
from jobcast.simulator.forecast_sources import Conservative, Oracle
from jobcast.simulator.workload import Workload
from tests.schedulers.events_driver import in_minutes

HORIZONS_MIN = (5, 10, 20)
EDGES = np.array([1.0, 10.0, 100.0])
NAN = float("nan")


@given(in_minutes())
def test_the_virtual_clock_is_fcfs_where_nobody_is_slowed(workload):
    source = Conservative(workload, HORIZONS_MIN)
    policy = SiaPlan(source, budget_min=0.0)
    found, alone = replay(workload, policy, source), replay(workload, Fcfs())
    if (found.end_s <= alone.end_s + 1e-3).all():
        assert policy._facts[: len(workload.jobs), BEGIN] == pytest.approx(alone.start_s, abs=1e-3)


def lent(budget_min=2.0, switches=ALL_SHARE, run_s=60.0):
    """Starts where pool p has one GPU and three jobs, and pool q an idle one that nobody comes for."""
    jobs = [Job(at, name, "p", float(at), 1) for at, name in enumerate("abc")]
    workload = Workload(jobs, [Outcome(run_s)] * 3, [Pool("p", 1), Pool("q", 1)])
    oracle = Oracle(workload, HORIZONS_MIN)
    return replay(workload, SiaPlan(oracle, budget_min=budget_min, switches=switches), oracle).start_s.tolist()


def test_what_nobody_comes_for_is_lent_at_once():
    assert lent() == [0.0, 1.0, 60.0]


def test_pools_that_are_switched_off_lend_nothing():
    off = Switches(tuple(Switch(pool, k, -inf, False) for pool in "pq" for k in HORIZONS_MIN))
    assert lent(0.0, off) == [0.0, 60.0, 120.0]


def test_a_job_of_mean_width_costs_no_more_than_the_time_until_others_give_gpus_back():
    """Both GPUs of q are expected to be wanted at once, and for longer than an hour."""
    jobs = [Job(at, name, "p", float(at), 2) for at, name in enumerate("ab")]
    workload = Workload(jobs, [Outcome(600.0)] * 2, [Pool("p", 2), Pool("q", 2)])
    source = Conservative(workload, HORIZONS_MIN)
    for budget_min, start_s in ((60.0, 1.0), (15.0, 600.0)):
        assert replay(workload, SiaPlan(source, budget_min=budget_min), source).start_s.tolist() == [0.0, start_s]


def test_who_is_virtually_started_goes_first_though_another_was_early():
    # b borrows q's GPU; c of q is due when it comes, and gets p's as soon as that is free: before d, which is shorter.
    jobs = [Job(0, "a", "p", 0.0, 1), Job(1, "b", "p", 1.0, 1), Job(2, "c", "q", 2.0, 1), Job(3, "d", "p", 3.0, 1)]
    runs = [Outcome(60.0), Outcome(600.0), Outcome(600.0), Outcome(1.0)]
    workload = Workload(jobs, runs, [Pool("p", 1), Pool("q", 1)])
    oracle = Oracle(workload, HORIZONS_MIN)
    starts = replay(workload, SiaPlan(oracle, budget_min=1e9), oracle).start_s.tolist()
    assert starts[1:3] == [1.0, 60.0]
    assert starts[3] > 60.0


def test_a_plan_serves_for_a_minute_and_widths_are_forgotten_by_a_hundredth(monkeypatch):
    """Pool q idles and lends nothing to those of p that wait from 1 s on."""
    made, renew = [], SiaPlan._renew
    monkeypatch.setattr(SiaPlan, "_renew", lambda self, view: (made.append(view.now_s), renew(self, view)))
    monkeypatch.setattr("jobcast.schedulers.sia_plan.FIRST_ROOM", 1)
    rows = [("a", 0.0, 2), ("b", 1.0, 3), ("c", 60.5, 2), ("d", 61.0, 2), ("e", 121.0, 2)]
    jobs = [Job(0, name, "p", at_s, gpus) for name, at_s, gpus in rows]
    workload = Workload(jobs, [Outcome(1e3)] * 5, [Pool("p", 4), Pool("q", 1)])
    source = Conservative(workload, HORIZONS_MIN)
    policy = SiaPlan(source, budget_min=0.0)
    Simulation(workload, policy, source).run(121.0)
    assert made == [1.0, 61.0, 121.0]
    assert policy._width == pytest.approx(2.0 + 0.01 * 0.99**3)


def test_steps_of_a_plan_grow_up_to_four_days():
    assert (STEPS_MIN[0], STEPS_MIN[-1]) == (0, 4 * 24 * 60)
    assert (np.diff(STEPS_MIN, 2) >= 0).all()
    assert not any(edge % 10 for edge in STEPS_MIN if edge >= 60)
    assert {15, 30, 45, 60} <= set(STEPS_MIN)  # the quarters of an hour


def test_a_virtual_end_that_is_to_come_makes_no_room_before():
    """A job that ran from 5 to 15 s would have begun at 50 s."""
    facts, clock = np.full((2, CHANCES), NAN), VirtualClock(0, 3)
    facts[:, [GPUS, SUBMIT]] = (2.0, 5.0), (2.0, 7.0)
    facts[0, [START, END]] = 5.0, 15.0
    clock.begin(facts[0], 50.0)
    clock.queue.append(1)
    assert clock.next_s(facts) == 60.0
    assert [[*clock.advance(facts, now_s)] for now_s in (59.0, 60.0)] == [[], [1]]
    assert (facts[0, OVER], facts[1, BEGIN]) == (60.0, 60.0)


def test_who_is_early_is_on_its_pools_quota_as_long_as_that_lasts(monkeypatch):
    """Of three GPUs of p two are in use; two jobs go before one that needs all: one has what is left, one q's."""
    given, decide = {}, SiaPlan.decide

    def decided(policy, view):
        found = decide(policy, view)
        given.update(found.change)
        return found

    monkeypatch.setattr(SiaPlan, "decide", decided)
    jobs = [Job(at, str(at), "p", float(at), gpus) for at, gpus in enumerate((2, 3, 1, 1))]
    workload = Workload(jobs, [Outcome(100.0)] * 4, [Pool("p", 3), Pool("q", 1)])
    oracle = Oracle(workload, HORIZONS_MIN)
    Simulation(workload, SiaPlan(oracle, budget_min=1e9), oracle).run(5.0)
    assert {seq: grant.dedicated for seq, grant in given.items()} == {0: True, 2: True, 3: False}


def test_survival_and_quantiles_of_log_uniform_bins():
    chances = np.array([0.5, 0.5])
    assert [survival(chances, EDGES, t) for t in (0.5, 10.0, 100.0)] == [1.0, 0.5, 0.0]
    assert survival(np.array([0.12, 0.88]), EDGES, 10.0) == 0.88  # to the bit: all of the bin is still to come
    assert [survival(chances, EDGES, 10.0**power) for power in (0.5, 1.5)] == pytest.approx([0.75, 0.25])
    assert [run_time(chances, EDGES, 0.0, level) for level in (0.25, 0.75)] == pytest.approx([10.0**0.5, 10.0**1.5])
    assert run_time(np.array([0.0, 1.0, 0.0]), np.array([1.0, 10.0, 100.0, 1e3]), 0.0, 0.5) == pytest.approx(10.0**1.5)
    # Nobody ends between 10 and 100 s: half of them beyond. None ends before the first edge.
    assert run_time(np.array([0.5, 0.0, 0.5]), np.array([1.0, 10.0, 100.0, 1e3]), 0.0, 0.5) == pytest.approx(100.0)
    assert run_time(chances, EDGES, 0.0, 0.0) == pytest.approx(1.0)
    # Who has outlived the first bin is in the second.
    assert run_time(chances, EDGES, 10.0, 0.5) == pytest.approx(10.0**1.5)
    # No bin allows it: log-uniform up to twelve times as long.
    assert run_time(chances, EDGES, 200.0, 0.5) == pytest.approx(200.0 * 12.0**0.5)


@pytest.mark.parametrize("number", [0, 1, 12345, 2_000_000_000])
def test_each_level_stands_for_one_future(number):
    levels = [(place + 0.5) / FUTURES for place in range(FUTURES)]
    assert sorted(level_of(number, future) for future in range(FUTURES)) == levels
    assert list(LEVELS) == levels  # forecasts of loads are asked for the same


def test_levels_are_in_an_order_of_their_own():
    """By Knuth's multiplicative hash, 2654435761 for 1: bits 15 to 18, 14, are where it begins; the step is 7.

    That of 2^15 ends with its last hexadecimal digit, 1, and 15 bits of 0.
    """
    for number, begin, step in ((0, 0, 1), (1, 14, 7), (7, 8, -1), (2**15, 1, 1)):
        places = [int(16 * level_of(number, future)) for future in range(16)]
        assert places == [(begin + step * at) % 16 for at in range(16)]


def test_needs_by_hand():
    """Pool p of 2 GPUs: a holds both, b is queued, nobody else; q of 3 is idle and asked for 1 GPU soon, 9 later."""
    rows = [
        (0, 2, 0.0, 0.0, NAN, 0.0, NAN, 0.0, 1.0),
        (0, 1, 0.0, NAN, NAN, NAN, NAN, 1.0, 0.0),
    ]
    mids = np.array([0.5, 5.0, 9.0, 500.0])
    loads = np.repeat(np.array([[[0.0], [0.0]], [[1.0], [9.0]]]), FUTURES, axis=2)
    until = np.array([0, 0, 1, 1])
    facts = np.array(rows)
    assert facts.shape[1] == CHANCES + 2
    found = needed_gpus(np.arange(2), facts, EDGES, mids, 0.0, np.array([2.0, 3.0]), loads, until)
    # a runs for 10 to 100 s in any future, b after it for at most 10 s.
    assert found.tolist() == [[3.0, 3.0, 5.0, 3.0]] * FUTURES


def test_loads_are_needed_from_the_very_instant_at_which_a_pools_queue_is_over():
    """One that was done early ends virtually in 8 s; then one that waits runs for 10 to 100 s on one of 3 GPUs."""
    rows = [(0, 3, 0.0, 60.0, 70.0, 98.0, 108.0, 0.0, 1.0), (0, 1, 0.0, NAN, NAN, NAN, NAN, 0.0, 1.0)]
    loads, until = np.full((1, 1, FUTURES), 5.0), np.zeros(3, dtype=np.int64)
    mids = np.array([7.0, 8.0, 9.0])
    found = needed_gpus(np.arange(2), np.array(rows), EDGES, mids, 100.0, np.array([3.0]), loads, until)
    assert found.tolist() == [[0.0, 3.0, 3.0]] * FUTURES


def plainly(facts, mids, now_s, quotas, loads, until, future):
    """`needed_gpus` of one future by spans of time: (begin, end, GPUs), seconds from now."""
    real, virtual, clock = [], [[] for _ in quotas], [0.0] * len(quotas)
    for seq, (pool, gpus, _, start, end, begin, _, *chances) in enumerate(facts.tolist()):
        pool, waits = int(pool), np.isnan(start)
        age_s = 0.0 if waits else max(0.0, now_s - start)
        run_s = run_time(np.array(chances), EDGES, age_s, level_of(seq, future)) if np.isnan(end) else end - start
        left_s = run_s if waits else start + run_s - now_s
        if not waits and np.isnan(end):
            real.append((0.0, left_s, gpus))
        span = (0.0, left_s if waits else max(0.0, left_s + max(0.0, begin - start)), gpus)
        if np.isnan(begin):
            instants = sorted({clock[pool], *(one[1] for one in virtual[pool] if one[1] > clock[pool])})
            fits = (at for at in instants if held(virtual[pool], at, begun=False) + gpus <= quotas[pool])
            clock[pool] = next(fits)
            span = (clock[pool], clock[pool] + run_s, gpus)
        virtual[pool].append(span)
        real += [span] if waits else []
    needed = [held(real, mid) for mid in mids]
    for step, mid in enumerate(mids):
        for pool, quota in enumerate(quotas):
            idle = quota - held(virtual[pool], mid)
            if mid >= clock[pool] and idle > 0:
                needed[step] += min(idle, loads[pool, until[step], int(FUTURES * level_of(pool, future))])
    return needed


def held(spans, at, begun=True):
    """GPUs in use at an instant; where not `begun`, of whom begins later as well."""
    return sum(gpus for begin, end, gpus in spans if at < end and (begin <= at or not begun))


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_needs_are_those_of_spans_of_time(seed):
    """Jobs of two pools in any state: waiting, running, ended; virtually queued or started, before or after."""
    rng, now_s, quotas = np.random.default_rng(seed), 100.0, np.array([3.0, 4.0])
    rows = []
    for _ in range(rng.integers(1, 9)):
        start = rng.choice([NAN, *np.arange(60.0, 101.0, 8.0)])
        end = rng.choice([NAN, start + rng.integers(1, 101 - start)]) if start < now_s else NAN
        begin, chances = rng.choice([NAN, *np.arange(60.0, 101.0, 8.0)]), rng.dirichlet(np.ones(2))
        rows.append((rng.integers(0, 2), rng.integers(1, 4), 0.0, start, end, begin, NAN, *chances))
    facts, mids = np.array(rows), np.array([0.5, 3.0, 8.0, 20.0, 60.0, 150.0])
    loads, until = np.sort(rng.integers(0, 5, (2, 2, FUTURES)).astype(float), axis=2), np.array([0, 0, 0, 1, 1, 1])
    found = needed_gpus(np.arange(len(rows)), facts, EDGES, mids, now_s, quotas, loads, until)
    expected = [plainly(facts, mids, now_s, quotas, loads, until, future) for future in range(FUTURES)]
    assert found == pytest.approx(np.array(expected))


def test_who_holds_gpus_takes_them_from_each_future_for_as_long_as_it_runs():
    """Since 20 s ago, of at most 100 s by its only bin, log-uniform; one that waits runs from now on."""
    mids, chances = np.array([0.5, 5.0, 30.0, 79.0, 99.0]), (0.0, 1.0)
    for start, age_s in ((80.0, 20.0), (NAN, 0.0)):
        left = np.full((FUTURES, 5), 8.0)
        fact = np.array([0, 3, 0.0, start, NAN, NAN, NAN, *chances])
        hold(left, fact, EDGES, mids, 100.0, 7, 3.0)
        runs_s = [run_time(np.array(chances), EDGES, age_s, level_of(7, future)) - age_s for future in range(FUTURES)]
        assert left.tolist() == [[5.0 if mid < run_s else 8.0 for mid in mids] for run_s in runs_s]


def test_the_first_in_order_that_keeps_to_the_budget():
    """Costs by width and bin; who has virtually started is due, and not asked; wider than known is too wide."""
    chances = [(0.5, 0.5), (1.0, 0.0), (0.0, 1.0), (0.0, 1.0)]
    rows = [(0, gpus, 0.0, NAN, NAN, begin, NAN) for gpus, begin in ((2, NAN), (1, 5.0), (1, NAN), (3, NAN))]
    facts = np.array([(*row, *one) for row, one in zip(rows, chances, strict=True)])
    costs = np.array([[0.0, 0.0], [1.0, 4.0], [2.0, 6.0]])
    asked = [(0, 1, 2, 3), (3, 1, 2, 0), (1, 3)]
    found = [first_within(np.array(order), facts, costs, budget) for order in asked for budget in (4.0, 3.9)]
    assert found == [0, -1, 2, -1, -1, -1]


def test_what_is_lacking_by_a_certain_plan():
    left = np.full((FUTURES, 3), 1.0) * np.array([4.0, 1.0, -2.0])
    assert lacking(left, np.array([1.0, 3.0])) == pytest.approx(np.array([[0.0, 0.0, 1.0], [0.0, 2.0, 3.0]]), abs=1e-6)


def test_what_is_lacking_is_that_of_a_normal_distribution():
    left = np.repeat([[2.0], [-2.0]], FUTURES // 2, axis=0)  # mean 0, deviation 2
    at = 1.0 / 2.0
    density, below = exp(-at * at / 2) / (2 * np.pi) ** 0.5, 0.6914624612740131
    assert lacking(left, np.array([1.0]))[0, 0] == pytest.approx(2 * (density + at * below) - 2 / (2 * np.pi) ** 0.5)


def test_minutes_at_risk_by_hand():
    # Without relief: the mean part of a run time, log-uniform from 1 to 10 minutes, that lies within each step.
    edges, steps_s = 60.0 * np.array([1.0, 10.0]), 60.0 * np.array([0.0, 1.0, 20.0])
    found = minutes_at_risk(edges, steps_s, 1e6)
    assert found[0] == pytest.approx([1.0, 9.0 / log(10.0) - 1.0], rel=1e-3)
    # With it, by 64 midpoints: what is left at the end of a step less what was at its beginning.
    ends = [60.0 * 10.0 ** ((level + 0.5) / 64) for level in range(64)]
    left = [[exp(-max(end - step, 0.0) / 120.0) for step in steps_s] for end in ends]
    expected = [sum(2.0 * (row[at + 1] - row[at]) for row in left) / 64 for at in range(2)]
    assert minutes_at_risk(edges, steps_s, 2.0)[0] == pytest.approx(expected, rel=1e-9)
