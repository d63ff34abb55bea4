import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.horizons import duration_bin
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.simulator.forecast_sources import Conservative, Noisy, Oracle, Random, bin_durations_s
from jobcast.simulator.workload import Workload

HORIZONS_S = (300.0, 3600.0, 43200.0)
ROWS = [("a", "p", 0, 100, 2), ("b", "p", 300, 300, 1), ("c", "q", 301, 4000, 4), ("d", "p", 3600, 50_000, 3)]
MAKERS = {
    "oracle": Oracle,
    "conservative": Conservative,
    "random": lambda workload: Random(workload, 3, [Job(0, "e", "p", -100.0, 5)]),
    "noisy": lambda workload: Noisy(workload, 0.4, 3, [Job(0, "e", "p", -100.0, 5)]),
}


def many(count=2000):
    jobs = [Job(i, f"{i:04}", "p", 60.0 * i, 1 + i % 3) for i in range(count)]
    outcomes = [Outcome((100.0, 1000.0, 10_000.0, 100_000.0)[i % 4]) for i in range(count)]
    return Workload(jobs, outcomes, [Pool("p", 8), Pool("q", 4)])


def test_oracle_reads_the_trace(workload):
    made = workload(ROWS, {"p": 4, "q": 4})
    oracle = Oracle(made)
    oracle.advance(0.0)
    assert [oracle.new_load("p", h) for h in HORIZONS_S] == [1, 4, 4]  # not a itself; d at the very end of an hour
    assert [oracle.will_jobs_arrive("q", h) for h in HORIZONS_S] == [False, True, True]
    oracle.advance(300.0)
    assert [oracle.new_load("p", h) for h in HORIZONS_S] == [0, 3, 3]
    assert [oracle.duration_bin(job) for job in made.jobs] == [0, 0, 2, 3]
    assert [oracle.duration_s(job) for job in made.jobs] == [100, 300, 4000, 50_000]


def test_conservative_expects_a_full_quota_and_endless_jobs(workload):
    made = workload(ROWS, {"p": 4, "q": 5})
    source = Conservative(made)
    source.advance(1e9)
    assert source.will_jobs_arrive("p", 300.0)
    assert (source.new_load("p", 300.0), source.new_load("q", 300.0)) == (4, 5)
    assert {source.duration_bin(job) for job in made.jobs} == {3}
    assert {duration_bin(source.duration_s(job)) for job in made.jobs} == {3}


@pytest.mark.parametrize("horizons", [(5, 60, 720), (10,), (1, 2, 4, 8, 16)])
def test_a_run_time_that_stands_for_a_bin_lies_in_it(horizons):
    durations = bin_durations_s(horizons)
    assert [duration_bin(s, horizons) for s in durations] == list(range(len(horizons) + 1))


@pytest.mark.parametrize("kind", MAKERS)
def test_answers_do_not_depend_on_the_order_of_questions(kind):
    made = many(50)
    questions = [(t * 450.0, pool, h) for t in range(9) for pool in "pq" for h in HORIZONS_S]

    def answers(order, rng):
        source, found = MAKERS[kind](made), {}
        for at, pool, horizon in order:
            source.advance(at)
            if rng.random() < 0.5:
                source.will_jobs_arrive(pool, rng.choice(HORIZONS_S))
            found[at, pool, horizon] = (source.will_jobs_arrive(pool, horizon), source.new_load(pool, horizon))
            job = rng.choice(made.jobs)
            source.duration_bin(job)
        jobs = {job.seq: (source.duration_bin(job), source.duration_s(job)) for job in made.jobs}
        return found, jobs

    expected = answers(questions, random.Random(0))
    for seed in range(1, 5):
        rng = random.Random(seed)
        assert answers(rng.sample(questions, len(questions)), rng) == expected


def test_random_tosses_a_fair_coin_at_each_instant_and_draws_uniform_bins():
    made = many()
    source = Random(made, seed=1)
    tosses = []
    for t in range(4000):
        source.advance(float(t))
        tosses.append((source.will_jobs_arrive("p", 300.0), source.will_jobs_arrive("q", 300.0)))
    for pool in range(2):
        assert abs(sum(toss[pool] for toss in tosses) / 4000 - 0.5) < 0.03
    assert abs(sum(a == b for a, b in tosses) / 4000 - 0.5) < 0.03
    bins = [source.duration_bin(job) for job in made.jobs]
    assert all(abs(bins.count(b) / len(bins) - 0.25) < 0.04 for b in range(4))
    assert all(duration_bin(source.duration_s(job)) == b for job, b in zip(made.jobs, bins, strict=True))
    assert bins != [Random(made, seed=2).duration_bin(job) for job in made.jobs]


def test_random_loads_are_the_largest_of_the_last_twelve_windows(workload):
    made = workload([("a", "p", 0, 1, 2), ("b", "p", 290, 1, 3), ("c", "p", 3700, 1, 1)], {"p": 4})
    source = Random(made, 0, [Job(0, "e", "p", -50.0, 9)])
    for now, load in ((0.0, 11), (290.0, 9), (300.0, 11), (3599.0, 5), (3600.0, 3), (4000.0, 1)):
        source.advance(now)
        assert source.new_load("p", 300.0) == load, now


TIMES = st.lists(st.integers(0, 10_000), min_size=1, max_size=15)


@given(TIMES, TIMES, st.integers(0, 5000))
def test_random_knows_nothing_of_the_future(past, future, now):
    past = [at for at in past if at <= now]
    worlds = []
    for later in ([], [now + 1 + at for at in future]):
        jobs = [Job(0, f"{i:02}", "p", float(at), 1 + at % 3) for i, at in enumerate([*past, *later])]
        source = Random(Workload(jobs, [Outcome(1.0)] * len(jobs), [Pool("p", 9)]), 5)
        source.advance(float(now))
        worlds.append([(source.will_jobs_arrive("p", h), source.new_load("p", h)) for h in HORIZONS_S])
    assert worlds[0] == worlds[1]


def test_noisy_goes_from_the_truth_to_its_opposite():
    made = many(300)
    oracle, right, wrong = Oracle(made), Noisy(made, 0.0), Noisy(made, 1.0)
    drawn = Random(made)
    for at in range(0, 30_000, 700):
        for source in (oracle, right, wrong, drawn):
            source.advance(float(at))
        for pool in "pq":
            for horizon in HORIZONS_S:
                truth = oracle.will_jobs_arrive(pool, horizon)
                assert right.will_jobs_arrive(pool, horizon) == truth
                assert wrong.will_jobs_arrive(pool, horizon) != truth
                assert right.new_load(pool, horizon) == oracle.new_load(pool, horizon)
                made_up = drawn.new_load(pool, horizon) if not truth else oracle.new_load(pool, horizon)
                assert wrong.new_load(pool, horizon) == made_up
    assert [right.duration_s(job) for job in made.jobs] == [oracle.duration_s(job) for job in made.jobs]
    assert [right.duration_bin(job) for job in made.jobs] == [oracle.duration_bin(job) for job in made.jobs]
    assert [wrong.duration_bin(job) for job in made.jobs] == [drawn.duration_bin(job) for job in made.jobs]


def test_noisy_errs_as_often_as_it_is_told():
    made = many()
    oracle, noisy = Oracle(made), Noisy(made, 0.2, seed=4)
    flips = 0
    for at in range(4000):
        oracle.advance(float(at))
        noisy.advance(float(at))
        flips += oracle.will_jobs_arrive("p", 300.0) != noisy.will_jobs_arrive("p", 300.0)
    assert abs(flips / 4000 - 0.2) < 0.025
    wrong = sum(oracle.duration_bin(job) != noisy.duration_bin(job) for job in made.jobs) / len(made.jobs)
    assert abs(wrong - 0.2 * 0.75) < 0.03  # a uniform draw hits the truth in one of four


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_noisy_takes_a_probability(probability):
    with pytest.raises(ValueError, match="probability must lie in"):
        Noisy(many(3), probability)


def test_answers_about_a_job_depend_on_its_id_not_on_its_place():
    made = many(20)
    later = Workload(
        [Job(0, "0", "p", -1.0, 1), *(replace(job, seq=0) for job in made.jobs)],
        [Outcome(5.0), *made.outcomes],
        made.pools,
    )
    one, other = Random(made, 9), Random(later, 9)
    assert [one.duration_bin(job) for job in made.jobs] == [other.duration_bin(job) for job in later.jobs[1:]]
