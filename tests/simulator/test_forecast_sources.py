import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.horizons import duration_bin
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.training import Progress, Regime, Training
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.simulator.draws import draw_key, uniform
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import (
    Arrivals,
    Conservative,
    KnownDurations,
    Mixed,
    Noisy,
    Oracle,
    Random,
    RunRandom,
    UpcomingLoads,
    bin_durations_s,
)
from jobcast.simulator.history import RunHistory
from jobcast.simulator.workload import Workload
from tests.shared import refused

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


def test_oracle_reads_the_trace_and_is_certain(workload):
    made = workload(ROWS, {"p": 4, "q": 4})
    oracle = Oracle(made)
    oracle.advance(0.0)
    assert [oracle.new_load("p", h) for h in HORIZONS_S] == [1, 4, 4]  # not a itself; d at the very end of an hour
    assert [oracle.will_jobs_arrive("q", h) for h in HORIZONS_S] == [False, True, True]
    assert [oracle.load_quantiles("p", h, (0.01, 0.99)) for h in HORIZONS_S] == [(1, 1), (4, 4), (4, 4)]
    assert [oracle.arrival_probability("q", h) for h in HORIZONS_S] == [0, 1, 1]
    oracle.advance(300.0)
    assert [oracle.new_load("p", h) for h in HORIZONS_S] == [0, 3, 3]
    assert [oracle.duration_bin(job) for job in made.jobs] == [0, 0, 2, 3]
    assert [oracle.duration_s(job) for job in made.jobs] == [100, 300, 4000, 50_000]
    assert oracle.duration_probabilities(made.jobs[2]) == (0, 0, 1, 0)


@pytest.mark.parametrize("horizons", [(5, 60, 720), (10,), (1, 2, 4, 8, 16)])
def test_a_run_time_that_stands_for_a_bin_lies_in_it(horizons):
    durations = bin_durations_s(horizons)
    assert [duration_bin(s, horizons) for s in durations] == list(range(len(horizons) + 1))


def test_the_ratio_of_two_horizons_is_that_of_the_open_bins():
    """Edges of 1, 4, 16 and 64 minutes: the middles are 2, 8 and 32."""
    assert bin_durations_s((4, 16)) == [120.0, 480.0, 1920.0]
    assert bin_durations_s((12,)) == pytest.approx([60 * 12**0.5, 720 * 12**0.5])


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
                exact = oracle.load_quantiles(pool, horizon, LEVELS)
                assert right.load_quantiles(pool, horizon, LEVELS) == exact
                # A no that is always wrong is a yes.
                told = [one.arrival_probability(pool, horizon) for one in (oracle, right, wrong)]
                assert told[0] == told[1] == told[2]
    assert [right.duration_s(job) for job in made.jobs] == [oracle.duration_s(job) for job in made.jobs]
    assert [right.duration_bin(job) for job in made.jobs] == [oracle.duration_bin(job) for job in made.jobs]
    assert [wrong.duration_bin(job) for job in made.jobs] == [drawn.duration_bin(job) for job in made.jobs]
    assert right.duration_probabilities(made.jobs[5]) == oracle.duration_probabilities(made.jobs[5])
    assert wrong.duration_probabilities(made.jobs[5]) == (0.25, 0.25, 0.25, 0.25)


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
    refused(ValueError, "probability must lie in", Noisy, many(3), probability)


def test_answers_about_a_job_depend_on_its_id_not_on_its_place():
    made = many(20)
    later = Workload(
        [Job(0, "0", "p", -1.0, 1), *(replace(job, seq=0) for job in made.jobs)],
        [Outcome(5.0), *made.outcomes],
        made.pools,
    )
    one, other = Random(made, 9), Random(later, 9)
    assert [one.duration_bin(job) for job in made.jobs] == [other.duration_bin(job) for job in later.jobs[1:]]


LEVELS = (0.05, 0.35, 0.65, 0.95)
BINS = (100.0, 1000.0, 10_000.0, 100_000.0)


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


def test_the_oracle_tells_what_is_left_of_regimes():
    """Where one ends the job still reports its size, of which nothing is left."""
    regimes = (Regime(10, 2.0), Regime(20, 3.0), Regime(40, 1.0))
    job = Job(0, "a", "p", 0.0, 1, training=Training("LM", 10, 6, "gns", {10: 60.0, 20: 40.0, 40: 25.0}))
    oracle = Oracle(Workload([job], [Outcome(265.0, regimes)], [Pool("p", 1)]))
    assert oracle.regimes(job, Progress(0.5, (Regime(10, 0.5),))) == (Regime(10, 1.5), *regimes[1:])
    assert oracle.regimes(job, Progress(2.0, regimes[:1])) == (Regime(10, 0.0), *regimes[1:])
    assert oracle.regimes(job, Progress(4.0, (regimes[0], Regime(20, 2.0)))) == (Regime(20, 1.0), regimes[2])
    assert oracle.regimes(job, Progress(6.0, regimes)) == (Regime(40, 0.0),)
    assert oracle.left_quantile_s(job, Progress(4.0, (regimes[0], Regime(20, 2.0))), 0.9) == 65.0


def test_the_pessimist_is_certain_too(workload):
    made = workload(ROWS, {"p": 4, "q": 5})
    source = Conservative(made)
    source.advance(9.0)
    assert source.load_quantiles("q", 300.0, (0.01, 0.99)) == (5, 5)
    assert source.arrival_probability("q", 300.0) == 1
    assert source.duration_probabilities(made.jobs[0]) == (0, 0, 0, 1)
    assert source.will_jobs_arrive("p", 300.0)
    assert [source.new_load(pool, 300.0) for pool in ("p", "q", "nowhere")] == [4, 5, 0]
    assert {source.duration_bin(job) for job in made.jobs} == {3}
    assert {duration_bin(source.duration_s(job)) for job in made.jobs} == {3}


def test_random_admits_that_it_knows_nothing():
    made = many(20)
    source = Random(made, 3)
    for at in range(0, 1200, 60):
        source.advance(float(at))
        assert source.arrival_probability("p", 300.0) == 0.5
        largest = source.new_load("p", 300.0)
        assert source.load_quantiles("p", 300.0, (0.5, 0.51)) == (0.0, largest)
    assert {source.duration_probabilities(job) for job in made.jobs} == {(0.25, 0.25, 0.25, 0.25)}


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


JOB = Job(0, "a", "p", 0.0, 1)


class Part:
    """Answers with its own number, and counts how often it is moved."""

    def __init__(self, number, horizons_min=(5, 60)):
        self.number, self.horizons_min, self.moved_to = number, horizons_min, []

    def advance(self, now_s):
        self.moved_to.append(now_s)

    def will_jobs_arrive(self, pool, horizon_s):
        return bool(self.number)

    def new_load(self, pool, horizon_s):
        return 10.0 * self.number

    def duration_bin(self, job):
        return self.number

    def duration_s(self, job):
        return 100.0 * self.number


class Unsure(Part):
    def duration_probabilities(self, job):
        return [0.0] * self.number + [1.0]

    def arrival_probability(self, pool, horizon_s):
        return self.number / 10

    def load_quantile(self, pool, horizon_s, level):
        return self.number * level

    def load_quantiles(self, pool, horizon_s, levels):
        return tuple(self.number * level for level in levels)


def test_each_question_goes_to_its_part():
    mixed = Mixed(Part(0), Part(1), Part(2))
    assert mixed.will_jobs_arrive("p", 300.0) is False
    assert mixed.new_load("p", 300.0) == 10.0
    assert (mixed.duration_bin(JOB), mixed.duration_s(JOB)) == (2, 200.0)
    assert tuple(mixed.horizons_min) == (5, 60)


def test_uncertainty_is_that_of_the_part_that_answers():
    mixed = Mixed(Unsure(1), Unsure(2), Unsure(3))
    assert mixed.arrival_probability("p", 300.0) == 0.1
    assert mixed.load_quantile("p", 300.0, 0.5) == 1.0
    assert mixed.load_quantiles("p", 300.0, (0.5, 1.0)) == (1.0, 2.0)
    assert mixed.duration_probabilities(JOB) == [0.0, 0.0, 0.0, 1.0]


def test_a_part_that_tells_no_uncertainty_is_no_reason_for_others_not_to():
    mixed = Mixed(Part(1), Part(1), Unsure(0))
    assert mixed.duration_probabilities(JOB) == [1.0]
    assert not hasattr(mixed, "arrival_probability")


def test_a_source_of_several_parts_is_moved_once_an_instant():
    shared, other = Part(1), Part(2)
    mixed = Mixed(shared, other, shared)
    mixed.advance(5.0)
    mixed.advance(7.0)
    assert shared.moved_to == other.moved_to == [5.0, 7.0]


def test_parts_must_answer_about_the_same_horizons():
    refused(ValueError, "different horizons", Mixed, Part(0), Part(1, (5, 60, 720)), Part(2))


@pytest.fixture
def made(workload):
    rows = [(f"{n:02d}", "pq"[n % 2], 100 * n + 7 * (n % 3), 50 + 400 * (n % 5), 1 + n % 3) for n in range(40)]
    return workload(rows, {"p": 4, "q": 3})


def test_durations_are_the_oracles_whatever_number_a_job_has(made):
    oracle, known = Oracle(made), KnownDurations(made)
    for job in made.jobs:
        assert known.duration_s(job) == oracle.duration_s(job)
        assert known.duration_bin(job) == oracle.duration_bin(job)
        assert known.duration_probabilities(job)[known.duration_bin(job)] == 1.0
        assert sum(known.duration_probabilities(job)) == 1.0


@pytest.mark.parametrize(
    "ask",
    [
        lambda source: source.jobs,
        lambda source: source.will_jobs_arrive("p", 300.0),
        lambda source: source.new_load("p", 300.0),
        lambda source: source.arrival_probability("p", 300.0),
        lambda source: source.load_quantile("p", 300.0, 0.5),
        lambda source: source.load_quantiles("p", 300.0, (0.5,)),
    ],
)
def test_arrivals_to_come_are_refused_in_one_line(made, ask):
    refused(ConfigError, r"no oracle knows them; take --forecasts registry.*--closed-loop", ask, KnownDurations(made))


def test_in_an_open_run_the_sliding_maximum_of_the_past_is_that_of_the_trace(made):
    history = RunHistory(["p", "q"])
    told, expected = RunRandom(history, seed=3), Random(made, seed=3)
    loads = []

    class Asking(Fcfs):
        def decide(self, view):
            expected.advance(view.now_s)
            for pool in ("p", "q"):
                for horizon_s in (60.0, 300.0, 3600.0):
                    assert told.new_load(pool, horizon_s) == expected.new_load(pool, horizon_s)
                    assert told.will_jobs_arrive(pool, horizon_s) == expected.will_jobs_arrive(pool, horizon_s)
                    loads.append(told.new_load(pool, horizon_s))
            return super().decide(view)

    replay(made, Asking(), told, history)
    assert len(set(loads)) > 5


ARRIVING = st.lists(st.tuples(st.sampled_from("pq"), st.integers(0, 50), st.integers(1, 4)), max_size=20)


def as_jobs(rows):
    return [Job(i, str(i), pool, float(at), gpus) for i, (pool, at, gpus) in enumerate(rows)]


@given(ARRIVING, st.integers(-5, 60), st.integers(1, 10), st.integers(1, 6))
def test_the_sliding_maximum_equals_plain_windows(rows, now, window, windows):
    arrivals = Arrivals(as_jobs(rows))
    for pool in "pqx":
        loads = [
            sum(g for name, at, g in rows if name == pool and now - (i + 1) * window < at <= now - i * window)
            for i in range(windows)
        ]
        assert arrivals.largest_past_load(pool, now, window, windows) == max(loads)


INSTANTS = st.lists(st.integers(-5, 60).map(lambda quarter: quarter / 4), min_size=1, max_size=12)
UPCOMING = st.lists(st.tuples(st.sampled_from("pqr"), st.integers(0, 50), st.integers(1, 4)), max_size=15)


def jobs_of(rows):
    ordered = sorted(rows, key=lambda row: row[1])
    return [Job(seq, f"{seq:02}", pool, at / 4, gpus) for seq, (pool, at, gpus) in enumerate(ordered)]


def plain(jobs, now_s, window_s):
    loads = {}
    for job in jobs:
        if now_s < job.submit_s <= now_s + window_s:
            loads[job.pool] = loads.get(job.pool, 0) + job.gpus
    return loads


@given(UPCOMING, INSTANTS, st.sampled_from([0.25, 1.0, 5.0, 100.0]))
def test_loads_at_any_instants_in_any_order(rows, instants, window_s):
    jobs = jobs_of(rows)
    loads = UpcomingLoads(jobs, window_s)
    for now_s in instants:
        assert loads.at(now_s) == plain(jobs, now_s, window_s)


def test_draws_are_the_same_on_every_machine():
    assert uniform(draw_key(0, "arrival", "p", 300.0), 0.0) == 0.07415964959763954
    assert uniform(draw_key(0, "bin", "j1")) == 0.8718516733809674


def test_draws_are_uniform_and_unrelated():
    by_instant = np.array([uniform(b"k", float(t)) for t in range(20_000)])
    by_key = np.array([uniform(draw_key(0, i)) for i in range(20_000)])
    for draws in (by_instant, by_key):
        assert draws.min() >= 0
        assert draws.max() < 1
        counts = np.histogram(draws, bins=20, range=(0, 1))[0]
        assert ((counts - 1000) ** 2 / 1000).sum() < 43.8  # chi-squared, 19 degrees of freedom, p = 0.001
    assert abs(np.corrcoef(by_instant[:-1], by_instant[1:])[0, 1]) < 0.03
    assert abs(np.corrcoef(by_instant, by_key)[0, 1]) < 0.03
