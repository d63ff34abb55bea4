import pytest

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.fcfs import Fcfs
from jobcast.schedulers.sia import Sia
from jobcast.simulator.closed_loop_forecasts import KnownDurations, RunRandom
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle, Random
from jobcast.simulator.history import RunHistory


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
    with pytest.raises(ConfigError, match=r"no oracle knows them; take --forecasts registry.*--closed-loop") as caught:
        ask(KnownDurations(made))
    assert "\n" not in str(caught.value)


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


def test_with_it_sia_decides_as_with_random(made):
    history = RunHistory(["p", "q"])
    told, expected = RunRandom(history, seed=1), Random(made, seed=1)
    log, other = replay(made, Sia(told), told, history), replay(made, Sia(expected), expected)
    assert log.start_s.tolist() == other.start_s.tolist()
