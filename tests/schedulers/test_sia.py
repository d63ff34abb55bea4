import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.switches import Switch, Switches, SwitchRule
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.sia import SPARE_ORDERS, LiveSwitches, Sia
from jobcast.simulator.engine import Simulation, replay
from jobcast.simulator.forecast_sources import Conservative, Noisy, Oracle, Random
from jobcast.simulator.workload import Workload
from tests.schedulers.events_driver import in_minutes

# After SIA, figure 1: green's queue is long while orange idles; j2 runs long, j3 to j5 short, orange bursts at 7.
FIGURE_1 = [
    ("j0", "green", 0, 10, 4),
    ("j1", "orange", 0, 1, 4),
    ("j2", "green", 1, 1000, 4),
    ("j3", "green", 1, 3, 2),
    ("j4", "green", 1, 4, 2),
    ("j5", "green", 2, 2, 4),
    ("j6", "orange", 7, 2, 4),
    ("j7", "orange", 8, 2, 2),
]
QUOTAS = {"green": 4, "orange": 4}


def test_figure_1(workload, starts_of):
    made = workload(FIGURE_1, QUOTAS)
    fcfs = {"j0": 0, "j1": 0, "j2": 10, "j3": 1010, "j4": 1010, "j5": 1014, "j6": 7, "j7": 9}
    assert starts_of(made, "fcfs") == fcfs
    # instantaneous fairness gives orange's GPUs away for 1000 minutes, and j6 and j7 wait
    assert starts_of(made, "mmfs") == {
        "j0": 0, "j1": 0, "j2": 1, "j6": 10, "j7": 12, "j3": 12, "j4": 14, "j5": 18,
    }  # fmt: skip
    # anticipation lends them to j3 and j4, which are over before j6 comes; j5 runs on GPUs that are idle after that
    assert starts_of(made, "sia") == {**fcfs, "j3": 1, "j4": 1, "j5": 11}


def test_dedicated_and_spare_show_in_the_log(workload):
    made = workload(FIGURE_1, QUOTAS)
    oracle = Oracle(made)
    log = replay(made, Sia(oracle), oracle)
    assert dict(zip((job.job_id for job in made.jobs), log.dedicated.tolist(), strict=True)) == {
        "j0": True, "j1": True, "j2": True, "j3": False, "j4": False, "j5": False, "j6": True, "j7": True,
    }  # fmt: skip


class Asked:
    """The oracle, with a record of what it was asked."""

    def __init__(self, workload):
        self._oracle, self.asked = Oracle(workload), []

    def advance(self, now_s):
        self._oracle.advance(now_s)

    def will_jobs_arrive(self, pool, horizon_s):
        self.asked.append((pool, horizon_s))
        return self._oracle.will_jobs_arrive(pool, horizon_s)

    def __getattr__(self, name):
        return getattr(self._oracle, name)


def test_forecasts_are_not_asked_where_they_cannot_matter(workload):
    without_queue = workload([("a", "p", 0, 5, 1), ("b", "q", 3, 5, 1)], {"p": 1, "q": 1})
    source = Asked(without_queue)
    replay(without_queue, Sia(source), source)
    assert source.asked == []
    long_queue = workload([("a", "p", 0, 800, 1), ("b", "p", 0, 800, 1)], {"p": 1, "q": 1})
    source = Asked(long_queue)
    replay(long_queue, Sia(source), source)
    assert source.asked == []
    short_queue = workload([("a", "p", 0, 30, 1), ("b", "p", 0, 30, 1)], {"p": 1, "q": 1})
    source = Asked(short_queue)
    replay(short_queue, Sia(source), source)
    assert source.asked == [("q", 3600.0)]  # p's quota is in use, and no job is short enough for the first window


def test_no_more_pools_are_asked_once_nobody_fits(workload):
    """b needs both idle GPUs: that q, or r, will want its own is enough, for either window."""
    rows = [("a", "p", 0, 30, 2), ("b", "p", 0, 30, 2), ("c", "q", 10, 1, 1), ("d", "r", 10, 1, 1)]
    made = workload(rows, {"p": 2, "q": 1, "r": 1})
    source = Asked(made)
    Simulation(made, Sia(source), source).run(60.0)
    assert [horizon_s for _, horizon_s in source.asked] == [3600.0, 43200.0]


@pytest.mark.parametrize("name", ["sia", "sia_risk", "sia_plan"])
def test_a_tick_asks_again_while_jobs_wait_and_gpus_idle(workload, name):
    made = workload([("a", "p", 0, 10, 1), ("b", "p", 0, 900, 1)], {"p": 1, "q": 1})
    source = Conservative(made)
    plain, ticked = (replay(made, make_policy(name, source, tick), source) for tick in ({}, {"tick_s": 120}))
    assert plain.end_s.tolist() == ticked.end_s.tolist()
    assert ticked.events == plain.events + 5  # at 2, 4, 6, 8 and 10 minutes
    assert plain.events == 4


def test_no_tick_asks_while_no_gpu_idles(workload):
    made = workload([("a", "p", 0, 10, 1), ("b", "p", 0, 900, 1)], {"p": 1})
    oracle = Oracle(made)
    assert replay(made, Sia(oracle, tick_s=120.0), oracle).events == replay(made, Sia(oracle), oracle).events == 4


@pytest.mark.parametrize(("minutes", "lane"), [(5, 0), (6, 1), (60, 1), (720, 2), (721, 3)])
def test_a_lane_is_the_bin_of_the_duration(workload, minutes, lane):
    made = workload([("a", "p", 0, minutes, 1)], {"p": 1})
    job = made.jobs[0]
    assert isinstance(job, Job)
    assert Sia(Oracle(made)).lane(job) == lane


# The tunables of SIA, section 5.3: which windows, how much slack, who gets spare GPUs first.

MINUTE_S = 60.0
HORIZONS_MIN = (5, 10, 20)


def starts(workload, **settings):
    """Start minutes by job id under exact forecasts."""
    oracle = Oracle(workload)
    log = replay(workload, Sia(oracle, **settings), oracle)
    return {job.job_id: at / MINUTE_S for job, at in zip(workload.jobs, log.start_s.tolist(), strict=True)}


@pytest.mark.parametrize(
    ("windows_min", "expected"),
    [
        (None, {"b": 0, "c": 0, "d": 0}),
        ((5, 60, 720), {"b": 0, "c": 0, "d": 0}),
        ((5,), {"b": 0, "c": 900, "d": 900}),  # longer jobs wait for their pool's own GPUs
        ((60,), {"b": 0, "c": 0, "d": 900}),  # the shorter ones are eligible in a longer window
        ((720, 5), {"b": 0, "c": 0, "d": 0}),
    ],
)
def test_windows_that_are_used(workload, windows_min, expected):
    jobs = [("a", "p", 0, 900, 3), ("b", "p", 0, 4, 1), ("c", "p", 0, 50, 1), ("d", "p", 0, 700, 1)]
    made = workload(jobs, {"p": 3, "q": 3})
    assert starts(made, windows_min=windows_min) == {"a": 0, **expected}


def test_a_longer_window_alone_reserves_more(workload):
    # q's job at 30 forbids nothing within 5 minutes, and everything within an hour
    made = workload([("a", "p", 0, 900, 2), ("b", "p", 0, 4, 2), ("c", "q", 30, 1, 2)], {"p": 2, "q": 2})
    assert starts(made, windows_min=(5,))["b"] == 0
    assert starts(made, windows_min=(60,))["b"] == 31


@pytest.mark.parametrize(("windows_min", "named"), [((5, 61), "61"), ((0.5,), "0.5")])
def test_windows_that_are_no_horizons_are_refused(workload, windows_min, named):
    made = workload([("a", "p", 0, 1, 1)], {"p": 1})
    with pytest.raises(ConfigError, match=f"windows_min are .*{named}.*; choose from 5, 60, 720"):
        Sia(Oracle(made), windows_min=windows_min)


@pytest.mark.parametrize(("slack", "lent"), [(0.0, 4), (0.25, 3), (0.3, 2), (0.5, 2), (1.0, 0)])
def test_slack_keeps_a_share_of_each_quota_free(workload, slack, lent):
    # q idles: of its 4 GPUs slack x 4 stay free, also the part of a GPU that nobody could use
    jobs = [("a", "p", 0, 900, 1), *((f"b{n}", "p", 0, 4, 1) for n in range(4))]
    made = workload(jobs, {"p": 1, "q": 4})
    assert sum(at == 0 for job, at in starts(made, slack=slack).items() if job != "a") == lent


def test_slack_comes_on_top_of_the_forecast_and_within_the_quota(workload):
    # q will be asked for 2 of 4 GPUs: with half of them as slack nothing is left, with a quarter 1 GPU is
    jobs = [("a", "p", 0, 900, 1), ("b", "p", 0, 4, 1), ("c", "p", 0, 4, 1), ("d", "q", 4, 900, 2)]
    made = workload(jobs, {"p": 1, "q": 4})
    assert [starts(made, slack=slack)["b"] for slack in (0, 0.25, 0.5)] == [0, 0, 900]
    assert [starts(made, slack=slack)["c"] for slack in (0, 0.25, 0.5)] == [0, 4, 904]
    # q leaves 1 GPU unused, the most that is kept of it; r idles: 0.4 + 0.1 GPUs are kept of 2, 1 + 0.25, 1 + 0.4
    held = workload([("e", "q", 0, 900, 3), *jobs[:2]], {"p": 1, "q": 4, "r": 1})
    assert [starts(held, slack=slack)["b"] for slack in (0.1, 0.25, 0.4)] == [0, 900, 900]


CONTENDERS = [
    ("a", "p", 0, 900, 4),
    ("b", "q", 0, 900, 2),
    ("h", "q", 0, 900, 4),  # q's head: its pool's 2 idle GPUs are kept for it
    ("k", "r", 0, 3.5, 2),
    ("long", "p", 1, 50, 2),
    ("wide", "p", 2, 4, 2),
    ("thin", "p", 3, 50, 1),
    ("later", "q", 3, 50, 2),
]
"""When `k` ends 2 GPUs can be lent. p holds 4 of 4 GPUs, q 2 of 4: who gets them?"""
FOR_ALL = {"p": 4, "q": 4, "r": 2}


def contended(workload, **settings):
    """Start minutes where one window decides, in which all contenders are eligible."""
    return starts(workload(CONTENDERS, FOR_ALL), windows_min=(60,), **settings)


@pytest.mark.parametrize(
    ("order", "first"),
    [("share", {"later"}), ("submission", {"long"}), ("shortest", {"wide"}), ("narrow", {"thin"})],
)
def test_who_comes_first(workload, order, first):
    began = contended(workload, order=order)
    assert {job for job, at in began.items() if at == 3.5} == first


NAMES = "pqr"
ALWAYS = -np.inf


def every(sharing, pools=NAMES):
    return Switches(tuple(Switch(pool, k, ALWAYS, sharing) for pool in pools for k in HORIZONS_MIN))


TUNABLES = st.fixed_dictionaries(
    {
        "windows_min": st.sets(st.sampled_from(HORIZONS_MIN), min_size=1).map(tuple),
        "slack": st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]),
        "order": st.sampled_from(sorted(SPARE_ORDERS)),
        "tick_s": st.sampled_from([None, 77.0]),
        "switches": st.sets(st.sampled_from(NAMES)).map(lambda off: every(False, off)),
    }
)


@given(in_minutes(), TUNABLES)
def test_no_tunable_slows_a_job_under_exact_forecasts(workload, tunables):
    oracle = Oracle(workload, HORIZONS_MIN)
    log = replay(workload, Sia(oracle, **tunables), oracle)
    assert (log.end_s <= replay(workload, make_policy("fcfs", None, {})).end_s).all()


@given(in_minutes(), TUNABLES)
def test_every_setting_equals_fcfs_under_conservative_forecasts(workload, tunables):
    source = Conservative(workload, HORIZONS_MIN)
    log = replay(workload, Sia(source, **tunables), source)
    assert log.start_s.tolist() == replay(workload, make_policy("fcfs", None, {})).start_s.tolist()
    assert log.dedicated.all()


@given(in_minutes(), st.integers(0, 3))
def test_neutral_settings_change_nothing(workload, seed):
    plain, tuned = (Random(workload, seed, horizons_min=HORIZONS_MIN) for _ in range(2))
    neutral = {"windows_min": HORIZONS_MIN[::-1], "slack": 0.0, "order": "share", "switches": every(True)}
    assert columns(log_of(workload, tuned, **neutral)) == columns(log_of(workload, plain))


# SIA, section 5.3: sharing is switched off for pools and windows whose forecasts err.


def log_of(workload, source=None, **settings):
    source = source or Noisy(workload, 0.3, 1, horizons_min=HORIZONS_MIN)
    return replay(workload, Sia(source, **settings), source)


def columns(log):
    return [log.start_s.tolist(), log.end_s.tolist(), log.dedicated.tolist(), log.events]


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
