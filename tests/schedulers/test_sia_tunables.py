"""The tunables of SIA, section 5.3: which windows, how much slack, who gets spare GPUs first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.settings import minutes
from jobcast.schedulers.sia import SPARE_ORDERS, Sia
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Oracle, Random
from tests.schedulers.events_driver import in_minutes

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


@pytest.mark.parametrize("value", ["", "5,", "five", "0", "-5", "inf", ()])
def test_minutes_that_are_none_are_refused(value):
    with pytest.raises(ValueError, match="must be minutes such as 5,60"):
        minutes(value)


TUNABLES = st.fixed_dictionaries(
    {
        "windows_min": st.sets(st.sampled_from(HORIZONS_MIN), min_size=1).map(tuple),
        "slack": st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]),
        "order": st.sampled_from(sorted(SPARE_ORDERS)),
        "tick_s": st.sampled_from([None, 77.0]),
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
    neutral = Sia(tuned, windows_min=HORIZONS_MIN[::-1], slack=0.0, order="share")
    assert replay(workload, neutral, tuned).start_s.tolist() == replay(workload, Sia(plain), plain).start_s.tolist()
