"""What the simulator's sources say of their own uncertainty."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.simulator.forecast_sources import Conservative, Noisy, Oracle, Random
from jobcast.simulator.workload import Workload

HORIZONS_S = (300.0, 3600.0, 43200.0)
LEVELS = (0.05, 0.35, 0.65, 0.95)
BINS = (100.0, 1000.0, 10_000.0, 100_000.0)
ROWS = [("a", "p", 0, 100, 2), ("b", "p", 300, 300, 1), ("c", "q", 301, 4000, 4), ("d", "p", 3600, 50_000, 3)]
MAKERS = {
    "oracle": Oracle,
    "conservative": Conservative,
    "random": lambda workload: Random(workload, 3, [Job(0, "e", "p", -100.0, 5)]),
    "noisy": lambda workload: Noisy(workload, 0.4, 3, [Job(0, "e", "p", -100.0, 5)]),
}


def many(count=2000):
    jobs = [Job(i, f"{i:04}", "p", 60.0 * i, 1 + i % 3) for i in range(count)]
    return Workload(jobs, [Outcome(BINS[i % 4]) for i in range(count)], [Pool("p", 8), Pool("q", 4)])


@pytest.mark.parametrize("kind", MAKERS)
def test_distributions_are_distributions(kind):
    made = many(60)
    source = MAKERS[kind](made)
    for job in made.jobs:
        chances = source.duration_probabilities(job)
        assert len(chances) == 4
        assert min(chances) >= 0
        assert sum(chances) == pytest.approx(1.0)
        assert max(chances) == chances[source.duration_bin(job)]
    for at in range(0, 4000, 500):
        source.advance(float(at))
        for pool in "pq":
            for horizon_s in HORIZONS_S:
                assert 0 <= source.arrival_probability(pool, horizon_s) <= 1
                told = source.load_quantiles(pool, horizon_s, LEVELS)
                assert list(told) == sorted(told)
                assert list(told) == [source.load_quantile(pool, horizon_s, level) for level in LEVELS]


def test_the_oracle_is_certain(workload):
    made = workload(ROWS, {"p": 4, "q": 4})
    oracle = Oracle(made)
    oracle.advance(0.0)
    assert [oracle.load_quantiles("p", h, (0.01, 0.99)) for h in HORIZONS_S] == [(1, 1), (4, 4), (4, 4)]
    assert [oracle.arrival_probability("q", h) for h in HORIZONS_S] == [0, 1, 1]
    assert oracle.duration_probabilities(made.jobs[2]) == (0, 0, 1, 0)


def test_the_pessimist_is_certain_too(workload):
    made = workload(ROWS, {"p": 4, "q": 5})
    source = Conservative(made)
    source.advance(9.0)
    assert source.load_quantiles("q", 300.0, (0.01, 0.99)) == (5, 5)
    assert source.arrival_probability("q", 300.0) == 1
    assert source.duration_probabilities(made.jobs[0]) == (0, 0, 0, 1)


def test_random_admits_that_it_knows_nothing():
    made = many(20)
    source = Random(made, 3)
    for at in range(0, 1200, 60):
        source.advance(float(at))
        assert source.arrival_probability("p", 300.0) == 0.5
        largest = source.new_load("p", 300.0)
        assert source.load_quantiles("p", 300.0, (0.5, 0.51)) == (0.0, largest)
    assert {source.duration_probabilities(job) for job in made.jobs} == {(0.25, 0.25, 0.25, 0.25)}


def test_noise_of_none_is_certain_and_of_one_is_certain_of_the_opposite():
    made = many(300)
    oracle, right, wrong = Oracle(made), Noisy(made, 0.0), Noisy(made, 1.0)
    for at in range(0, 30_000, 700):
        for source in (oracle, right, wrong):
            source.advance(float(at))
        for pool in "pq":
            for horizon_s in HORIZONS_S:
                exact = oracle.load_quantiles(pool, horizon_s, LEVELS)
                assert right.load_quantiles(pool, horizon_s, LEVELS) == exact
                truth = oracle.arrival_probability(pool, horizon_s)
                assert right.arrival_probability(pool, horizon_s) == truth
                assert wrong.arrival_probability(pool, horizon_s) == truth  # a no that is always wrong is a yes
    job = made.jobs[5]
    assert right.duration_probabilities(job) == oracle.duration_probabilities(job)
    assert wrong.duration_probabilities(job) == (0.25, 0.25, 0.25, 0.25)


@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_noise_is_told_as_large_as_it_is(noise):
    made = many()
    oracle, noisy = Oracle(made), Noisy(made, noise, seed=4)
    told = [noisy.duration_probabilities(job)[oracle.duration_bin(job)] for job in made.jobs]
    likely = 1 - noise + noise / 4
    assert set(map(round, [100 * one for one in told])) == {round(100 * likely), round(25 * noise)}
    share = sum(one > 0.5 for one in told) / len(told)
    assert share == pytest.approx(likely, abs=0.03)


@given(st.lists(st.integers(1, 4000), min_size=1, max_size=8), st.integers(0, 9))
def test_a_no_gives_nothing_away_of_the_jobs_that_come_all_the_same(times, seed):
    worlds = []
    for widths in (1, 7):
        jobs = [Job(0, f"{i:02}", "p", float(at), widths) for i, at in enumerate(sorted(times))]
        source = Noisy(Workload(jobs, [Outcome(1.0)] * len(jobs), [Pool("p", 9)]), 0.5, seed)
        source.advance(0.0)
        worlds.append(
            [source.load_quantiles("p", h, LEVELS) for h in HORIZONS_S if not source.will_jobs_arrive("p", h)]
        )
    assert worlds[0] == worlds[1]
