"""SIA, section 5.3: sharing is switched off for pools and windows whose forecasts err."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.switches import Switch, Switches, SwitchRule
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.sia import LiveSwitches, Sia
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Noisy, Oracle
from jobcast.simulator.workload import Workload
from tests.schedulers.events_driver import in_minutes

NAMES = "pqr"
HORIZONS_MIN = (5, 10, 20)
ALWAYS = -np.inf


def every(sharing, pools=NAMES):
    return Switches(tuple(Switch(pool, k, ALWAYS, sharing) for pool in pools for k in HORIZONS_MIN))


def log_of(workload, source=None, **settings):
    source = source or Noisy(workload, 0.3, 1, horizons_min=HORIZONS_MIN)
    return replay(workload, Sia(source, **settings), source)


def columns(log):
    return [log.start_s.tolist(), log.end_s.tolist(), log.dedicated.tolist(), log.events]


@given(in_minutes())
def test_all_on_changes_nothing(workload):
    assert columns(log_of(workload, switches=every(True))) == columns(log_of(workload))


@given(in_minutes())
def test_all_off_lends_nothing_and_equals_first_come_first_served(workload):
    log = log_of(workload, switches=every(False))
    assert log.dedicated.all()
    fcfs = replay(workload, make_policy("fcfs", None, {}), None)
    assert log.start_s.tolist() == fcfs.start_s.tolist()


@given(in_minutes(), st.integers(0, 40), st.sampled_from(NAMES))
def test_a_switch_changes_nothing_before_its_instant(workload, minute, pool):
    late = Switches(tuple(Switch(pool, k, 60.0 * minute, False) for k in HORIZONS_MIN))
    plain, switched = log_of(workload), log_of(workload, switches=late)
    before = plain.start_s < 60.0 * minute
    assert plain.start_s[before].tolist() == switched.start_s[before].tolist()


@given(in_minutes(), st.sets(st.sampled_from(NAMES)))
def test_with_exact_forecasts_no_switch_slows_a_job(workload, off):
    """More reserved than needed: nobody is slowed, as with exact forecasts alone (SIA, section 5.3)."""
    log = log_of(workload, Oracle(workload, HORIZONS_MIN), switches=every(False, off))
    fcfs = replay(workload, make_policy("fcfs", None, {}), None)
    assert (log.end_s <= fcfs.end_s + 1e-6).all()


def test_gpus_of_a_pool_that_is_off_are_not_lent_and_others_are(workload, starts_of):
    """p's short jobs b and c wait for GPUs of q and r, which are idle for ever: 1 GPU each."""
    jobs = [("a", "p", 0, 900, 1), ("b", "p", 0, 4, 1), ("c", "p", 0, 4, 1)]
    pools = {"p": 1, "q": 1, "r": 1}
    made = workload(jobs, pools)
    assert starts_of(made, "sia") == {"a": 0, "b": 0, "c": 0}
    off = {"switches": Switches(tuple(Switch("q", k, ALWAYS, False) for k in (5, 60, 720)))}
    assert starts_of(made, "sia", off) == {"a": 0, "b": 0, "c": 4}


def test_a_window_that_is_on_lends_what_a_smaller_one_keeps(workload, starts_of):
    """The larger window's forecast covers the smaller one's, so that a short job may run by it."""
    made = workload([("a", "p", 0, 900, 1), ("b", "p", 0, 4, 1)], {"p": 1, "q": 1})
    for off, start in (((5,), 0), ((5, 60), 0), ((5, 60, 720), 900)):
        switches = Switches(tuple(Switch("q", k, ALWAYS, False) for k in off))
        assert starts_of(made, "sia", {"switches": switches})["b"] == start


def test_forecasts_of_a_pool_that_is_off_are_not_asked(workload):
    made = workload([("a", "p", 0, 900, 1), ("b", "p", 0, 4, 1)], {"p": 1, "q": 1})
    oracle = Oracle(made)

    class Mute(Oracle):
        def will_jobs_arrive(self, pool, horizon_s):
            raise AssertionError(f"asked about {pool}")

    off = Switches(tuple(Switch("q", k, ALWAYS, False) for k in (5, 60, 720)))
    log = replay(made, Sia(Mute(made), switches=off), oracle)
    assert log.dedicated.all()


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


def test_a_window_holds_its_last_instant():
    """It is not over when asked then, and who arrives then came: two windows are missed."""
    live = LiveSwitches(RULE)
    for begin_s in (0.0, HOUR_S + 1.0):
        assert live.shares("p", HOUR_S, begin_s, False)
        live.arrived(at(begin_s + HOUR_S))
        assert live.shares("p", HOUR_S, begin_s + HOUR_S, False)
    assert not live.shares("p", HOUR_S, 2 * (HOUR_S + 1.0), False)


def test_windows_without_arrivals_and_other_pools_do_not_count():
    live = LiveSwitches(RULE)
    for hour in range(10):
        assert live.shares("p", HOUR_S, hour * (HOUR_S + 1.0), False)
        live.arrived(Job(0, "j", "q", hour * (HOUR_S + 1.0) + 60.0, 1))


@pytest.mark.parametrize(("later_s", "shares"), [(0.0, False), (0.5, True)])
def test_misses_of_long_ago_are_forgotten(later_s, shares):
    live = LiveSwitches(RULE)
    for hour in range(3):
        sharing = live.shares("p", HOUR_S, hour * (HOUR_S + 1.0), False)
        live.arrived(at(hour * (HOUR_S + 1.0) + 60.0))
    assert not sharing
    # A day after the window of hour 1 began: it and that of hour 2 count; later that of hour 2 alone, which is too few.
    assert live.shares("p", HOUR_S, HOUR_S + 1.0 + 86400.0 + later_s, True) == shares


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
