"""SIA, section 5.3: sharing is switched off for pools and windows whose forecasts err."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as given_settings
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.switches import Switch, Switches
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.sia import Sia
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Noisy, Oracle
from jobcast.simulator.workload import Workload

NAMES = "pqr"
HORIZONS_MIN = (5, 10, 20)
ALWAYS = -np.inf


@st.composite
def workloads(draw):
    quotas = {name: draw(st.integers(1, 4)) for name in NAMES}
    count = draw(st.integers(1, 20))
    jobs, outcomes = [], []
    for number in range(count):
        pool = draw(st.sampled_from(NAMES))
        at_s = 60.0 * draw(st.integers(0, 40))
        jobs.append(Job(0, f"j{number:02}", pool, at_s, draw(st.integers(1, quotas[pool]))))
        outcomes.append(Outcome(60.0 * draw(st.integers(1, 30))))
    return Workload(jobs, outcomes, [Pool(name, quota) for name, quota in quotas.items()])


def every(sharing, pools=NAMES):
    return Switches(tuple(Switch(pool, k, ALWAYS, sharing) for pool in pools for k in HORIZONS_MIN))


def log_of(workload, source=None, **settings):
    source = source or Noisy(workload, 0.3, 1, horizons_min=HORIZONS_MIN)
    return replay(workload, Sia(source, **settings), source)


def columns(log):
    return [log.start_s.tolist(), log.end_s.tolist(), log.dedicated.tolist(), log.events]


@given_settings(max_examples=60)
@given(workloads())
def test_all_on_changes_nothing(workload):
    assert columns(log_of(workload, switches=every(True))) == columns(log_of(workload))


@given_settings(max_examples=60)
@given(workloads())
def test_all_off_lends_nothing_and_equals_first_come_first_served(workload):
    log = log_of(workload, switches=every(False))
    assert log.dedicated.all()
    fcfs = replay(workload, make_policy("fcfs", None, {}), None)
    assert log.start_s.tolist() == fcfs.start_s.tolist()


@given_settings(max_examples=60)
@given(workloads(), st.integers(0, 40), st.sampled_from(NAMES))
def test_a_switch_changes_nothing_before_its_instant(workload, minute, pool):
    late = Switches(tuple(Switch(pool, k, 60.0 * minute, False) for k in HORIZONS_MIN))
    plain, switched = log_of(workload), log_of(workload, switches=late)
    before = plain.start_s < 60.0 * minute
    assert plain.start_s[before].tolist() == switched.start_s[before].tolist()


@given_settings(max_examples=60)
@given(workloads(), st.sets(st.sampled_from(NAMES)))
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


def test_a_setting_that_is_no_switches_is_refused(workload):
    made = workload([("a", "p", 0, 1, 1)], {"p": 1})
    with pytest.raises(ConfigError, match="policy sia: setting switches must be switches of sharing, got file"):
        make_policy("sia", Oracle(made), {"switches": "file"})
