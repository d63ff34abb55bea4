"""Switches that a run throws itself: the rule of `jobcast drift`, by what the run has seen so far."""

import numpy as np

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.switches import Switch, SwitchRule
from jobcast.schedulers.sia import LiveSwitches, Sia
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Noisy, Oracle
from jobcast.simulator.workload import Workload

RULE = SwitchRule(most_missed=0.5, days=1.0, least_arrivals=2)
HOUR_S = 3600.0


def at(time_s):
    return Job(0, "j", "p", time_s, 1)


def test_two_misses_switch_off_and_hits_switch_on_again():
    live, told = LiveSwitches(RULE), []
    for hour, forecast in enumerate((False, False, True, True, True)):
        now_s = hour * (HOUR_S + 1.0)
        told.append(live.shares("p", HOUR_S, now_s, forecast))
        live.arrived(at(now_s + 60.0))
    # Scored at the next question: one window is too few, then 2 of 2 missed, 2 of 3, 2 of 4.
    assert told == [True, True, False, False, True]
    turns = [(row.sharing, row.from_s) for row in live.rows]
    assert turns == [(False, 2 * (HOUR_S + 1.0)), (True, 4 * (HOUR_S + 1.0))]
    assert live.rows[0] == Switch("p", 60.0, 2 * (HOUR_S + 1.0), False)


def test_windows_without_arrivals_and_other_pools_do_not_count():
    live = LiveSwitches(RULE)
    for hour in range(10):
        assert live.shares("p", HOUR_S, hour * (HOUR_S + 1.0), False)
        live.arrived(Job(0, "j", "q", hour * (HOUR_S + 1.0) + 60.0, 1))


def test_misses_of_long_ago_are_forgotten():
    live = LiveSwitches(RULE)
    for hour in range(3):
        sharing = live.shares("p", HOUR_S, hour * (HOUR_S + 1.0), False)
        live.arrived(at(hour * (HOUR_S + 1.0) + 60.0))
    assert not sharing
    assert live.shares("p", HOUR_S, 3 * 86400.0, True)  # the window of hour 2 began more than a day ago


def two_days(count=1200):
    """Pool p is always asked for more than it has; q and r idle most of the time, for minutes."""
    rng = np.random.default_rng(0)
    jobs = [
        Job(0, f"j{n:03}", "pqr"[n % 3], float(s), 1) for n, s in enumerate(np.sort(rng.integers(0, 2 * 86400, count)))
    ]
    duration_s = np.where(np.arange(count) % 3 == 0, 1500.0, rng.integers(60, 240, count))
    return Workload(jobs, [Outcome(float(s)) for s in duration_s], [Pool(name, 2) for name in "pqr"])


def test_a_run_with_exact_forecasts_switches_nothing():
    workload = two_days()
    logs = []
    for adapt in (False, True):
        source = Oracle(workload)
        policy = Sia(source, adapt=adapt)
        logs.append(replay(workload, policy, source))
        assert policy.figures() == ({"switched": 0.0} if adapt else {})
    assert logs[0].start_s.tolist() == logs[1].start_s.tolist()


def test_a_run_with_wrong_forecasts_switches_off():
    workload = two_days()
    source = Noisy(workload, 1.0, 0)  # says the opposite
    policy = Sia(source, adapt=True)
    replay(workload, policy, source)
    assert policy.figures()["switched"] > 0
