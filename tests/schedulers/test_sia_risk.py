"""SIA by risk against SIA and FCFS, against sums by hand, and its parts against plain loops."""

from itertools import pairwise, product
from math import inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Grant
from jobcast.domain.switches import Switch, Switches
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.schedulers.sia import Sia
from jobcast.schedulers.sia_plan import SiaPlan
from jobcast.schedulers.sia_risk import EDGE_RATIO, Candidates, SiaRisk, median_bin, minutes_at_risk, overstays
from jobcast.simulator.engine import Simulation, Stand, replay
from jobcast.simulator.forecast_sources import Conservative, Oracle
from jobcast.simulator.workload import Workload
from tests.schedulers.events_driver import in_minutes

HORIZONS_MIN = (5, 10, 20)
MINUTE_S = 60.0
NAMES = "pqr"


def starts(workload, policy, source=None):
    return replay(workload, policy, source).start_s.tolist()


@pytest.mark.parametrize(
    ("chances", "median"),
    [((0.5, 0.25, 0.25), 0), ((0.25, 0.25, 0.5), 1), ((0.25, 0.125, 0.125, 0.5), 2), ((0.25, 0.25, 0.0, 0.5), 1)],
)
def test_a_bin_that_just_as_many_jobs_outlive_is_the_median(chances, median):
    assert median_bin(chances) == median


@settings(max_examples=30)
@given(in_minutes(), st.booleans())
def test_exact_forecasts_and_no_budget_slow_no_job_and_lend_as_sia_does(workload, ticks):
    oracle = Oracle(workload, HORIZONS_MIN)
    tick_s = 77.0 if ticks else None
    found = replay(workload, SiaRisk(oracle, budget_min=0.0, tick_s=tick_s), oracle)
    assert (found.end_s <= replay(workload, Fcfs()).end_s).all()
    assert found.start_s.tolist() == starts(workload, Sia(oracle, tick_s=tick_s), oracle)


@settings(max_examples=30)
@given(in_minutes(), st.sampled_from([0.0, 5.0]))
def test_conservative_forecasts_give_fcfs(workload, budget_min):
    source = Conservative(workload, HORIZONS_MIN)
    assert starts(workload, SiaRisk(source, budget_min=budget_min), source) == starts(workload, Fcfs())


@settings(max_examples=30)
@given(in_minutes())
def test_switched_off_pools_lend_nothing(workload):
    oracle = Oracle(workload, HORIZONS_MIN)
    off = Switches(tuple(Switch(pool.name, k, -inf, False) for pool in workload.pools for k in HORIZONS_MIN))
    assert starts(workload, SiaRisk(oracle, budget_min=0.0, switches=off), oracle) == starts(workload, Fcfs())


class Told:
    """The same answers always: loads of pool q by horizon are `gpus` with a probability, else nothing."""

    horizons_min = (5, 60, 720)

    def __init__(self, chances, gpus, probability):
        self._chances, self._gpus, self._probability = chances, gpus, probability

    def advance(self, now_s):
        pass

    def duration_probabilities(self, job):
        return self._chances[job.job_id]

    def load_quantiles(self, pool, horizon_s, levels):
        none = 1.0 - self._probability[horizon_s / MINUTE_S] if pool == "q" else 1.0
        return tuple(self._gpus if level > none else 0.0 for level in levels)


# p's one GPU is busy with a; b may borrow one of q's two, both of which q needs if jobs arrive.
LENT = [("a", "p", 0, 1000, 1), ("b", "p", 0, 3, 1)]
SURE = {"a": (0.0, 0.0, 0.0, 1.0), "b": (1.0, 0.0, 0.0, 0.0)}


def first_bin_minutes(probability):
    """By hand: missed by t with a probability that rises in 5 minutes from 0; D log-uniform from 5/12 to 5 minutes.

    E[integral from 0 to D of probability x t / 5] = probability x E[D^2] / 10.
    """
    low = 5 / EDGE_RATIO
    return probability * (25 - low**2) / (2 * log(EDGE_RATIO)) / 10


@pytest.mark.parametrize("probability", [0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_the_expected_slowdown_is_compared_with_the_budget(workload, probability):
    made = workload(LENT, {"p": 1, "q": 2})
    expected = first_bin_minutes(probability)
    for budget_min, start in ((0.97 * expected, 1000), (1.03 * expected, 0)):
        source = Told(SURE, 2.0, {5: probability, 60: 1.0, 720: 1.0})
        log_ = replay(made, SiaRisk(source, budget_min=budget_min, relief_min=1e9), source)
        assert log_.start_s[1] / MINUTE_S == start


@pytest.mark.parametrize("policy", [SiaRisk, SiaPlan])
def test_it_begins_amid_a_run_with_who_holds_what(policy):
    """Only b waits: it is lent q's GPU."""
    jobs = [Job(0, "a", "p", 0.0, 1), Job(1, "b", "p", 1.0, 1)]
    workload = Workload(jobs, [Outcome(100.0), Outcome(100.0)], [Pool("p", 1), Pool("q", 1)])
    oracle = Oracle(workload, HORIZONS_MIN)
    run = Simulation(workload, policy(oracle), oracle).begin(50.0, {0: Stand(50.0, Grant(1.0), 0.0)})
    assert run.run().log().start_s.tolist() == [0.0, 50.0]


def test_what_leaves_the_gpus_alone_costs_nothing(workload):
    made = workload(LENT, {"p": 1, "q": 3})
    source = Told(SURE, 2.0, {5: 0.9, 60: 1.0, 720: 1.0})
    assert replay(made, SiaRisk(source, budget_min=0.0), source).start_s[1] == 0


def test_an_unlikely_long_run_counts_by_its_probability(workload):
    made = workload(LENT, {"p": 1, "q": 2})
    last = minutes_at_risk((5, 60, 720), 30.0)[3]
    for probability in (0.01, 0.2):
        source = Told({**SURE, "b": (1.0 - probability, 0.0, 0.0, probability)}, 2.0, {5: 0.0, 60: 0.0, 720: 0.0})
        for budget_min, start in ((0.99 * probability * last[-1], 1000), (1.01 * probability * last[-1], 0)):
            found = replay(made, SiaRisk(source, budget_min=budget_min, relief_min=30.0), source)
            assert found.start_s[1] / MINUTE_S == start


@pytest.mark.parametrize("horizons", [(5, 60, 720), (10,), (1, 2, 4)])
def test_minutes_at_risk_without_relief_are_the_mean_run_times(horizons):
    table = minutes_at_risk(horizons, inf)
    edges = [horizons[0] / EDGE_RATIO, *horizons, horizons[-1] * EDGE_RATIO]
    means = [(high - low) / log(high / low) for low, high in pairwise(edges)]
    assert table.sum(axis=1) == pytest.approx(means, rel=1e-3)
    assert (table >= 0).all()
    assert (table[:-1, -1] == 0).all()  # nothing after the last horizon is at stake for jobs that end before
    assert all(table[number, number + 2 :].sum() == 0 for number in range(len(horizons)))
    # None comes within a million of the longest run times.
    assert (table == minutes_at_risk(horizons, 1e6 * edges[-1])).all()


def test_relief_bounds_what_a_borrower_costs():
    costs = [minutes_at_risk((5, 60, 720), relief_min).sum(axis=1) for relief_min in (1.0, 10.0, 100.0, inf)]
    assert all((less <= more + 1e-9).all() for less, more in pairwise(costs))
    assert costs[1][3] == pytest.approx(10.0, rel=0.01)


@given(st.data())
def test_the_chance_of_being_missed_is_that_of_all_combinations(data):
    pools, horizons, atoms = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2)), 3
    small = st.integers(0, 4).map(float)
    pending, unused = (np.array(data.draw(st.lists(small, min_size=pools, max_size=pools))) for _ in range(2))
    flat = data.draw(st.lists(small, min_size=pools * horizons * atoms, max_size=pools * horizons * atoms))
    loads = np.sort(np.array(flat).reshape(pools, horizons, atoms), axis=2)
    weights, free = np.array([0.5, 0.3, 0.2]), data.draw(st.integers(1, 6))
    found = overstays(pending, unused, loads, weights, free, np.eye(horizons + 2))
    assert found.shape == (free + 1, horizons + 2)
    for gpus in range(free + 1):
        left = free - gpus
        missed = [float(np.minimum(pending, unused).sum() > left)]
        for horizon in range(horizons):
            chance = 0.0
            for picks in product(range(atoms), repeat=pools):
                load = np.array([loads[pool, horizon, pick] for pool, pick in enumerate(picks)])
                if np.minimum(pending + load, unused).sum() > left:
                    chance += float(np.prod(weights[list(picks)]))
            missed.append(max(chance, missed[-1]))
        assert found[gpus].tolist() == pytest.approx([*missed, 1.0])


def test_what_is_certain_is_missed_with_certainty():
    """Ten tenths add up to less than 1."""
    loads, weights = np.full((1, 1, 10), 2.0), np.full(10, 0.1)
    found = overstays(np.zeros(1), np.full(1, 3.0), loads, weights, 2, np.eye(3))
    assert found[:, 1].tolist() == [0.0, 1.0, 1.0]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), st.booleans()), max_size=200), st.integers(0, 3))
def test_candidates_are_found_in_order_of_submission(rows, free):
    overstay = np.arange(3.0) + np.arange(free + 1.0)[:, None]
    jobs, kept = Candidates(3), []
    for seq, (gpus, lane, gone) in enumerate(rows):
        chances = np.eye(3)[lane]
        job = Job(seq, str(seq), "p", float(seq), gpus)
        jobs.add(job, lane, tuple(chances))
        kept.append((job, lane))
        if gone:
            taken = kept.pop(seq * 7 % len(kept))
            jobs.take(taken[0])
            jobs.take(taken[0])
    assert jobs.narrowest == min((job.gpus for job, _ in kept), default=inf)
    for max_lane, budget in product(range(3), (0.5, 1.5, 3.0)):
        fitting = [
            job for job, lane in kept if lane <= max_lane and job.gpus <= free and overstay[job.gpus, lane] <= budget
        ]
        assert jobs.first(max_lane, overstay, budget) == (fitting[0] if fitting else None)


@pytest.mark.parametrize("leave", [0.0, 0.5, 0.9, 1.0])
def test_candidates_keep_their_order_when_room_is_made(leave):
    rng, candidates, left = np.random.default_rng(1), Candidates(1), []
    for seq in range(300):
        job = Job(seq, str(seq), "p", float(seq), 1 + seq % 2)
        candidates.add(job, seq % 3, [1.0])
        left.append(job)
        if rng.random() < leave:
            candidates.take(left.pop(int(rng.integers(len(left)))))
        assert candidates.narrowest == min((job.gpus for job in left), default=inf)
        for lane, free in ((0, 1), (2, 2)):
            found = [job for job in left if job.seq % 3 <= lane and job.gpus <= free]
            assert candidates.first(lane, np.zeros((free + 1, 1)), 0.0) is (found[0] if found else None)
