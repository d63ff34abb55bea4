"""Exponential smoothing as a rule to beat: what it knows at an instant, and what is said without the extra."""

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.domain.history import PoolHistory
from jobcast.models.evaluation import smoothing
from jobcast.models.evaluation.smoothing import HOUR_S, MODELS, Smoothing, need_statsforecast

DAY_S = 24 * HOUR_S


def pool(arrival_s, gpus=None):
    arrival_s = np.asarray(arrival_s, np.float64)
    none = np.empty(0)
    return PoolHistory(arrival_s, np.ones(len(arrival_s)) if gpus is None else gpus, none, none, none, none)


def by_day(days, seed=0):
    """Twenty jobs an hour from 8:00 to 16:00, one an hour else."""
    rng = np.random.default_rng(seed)
    hours = np.arange(24 * days)
    count = np.where((hours % 24 >= 8) & (hours % 24 < 16), 20, 1)
    return np.sort(HOUR_S * (np.repeat(hours, count) + rng.random(count.sum())))


def test_without_statsforecast_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setattr(smoothing, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"--smoothing: statsforecast is not installed; run `pip install"):
        need_statsforecast()


def test_a_past_that_tells_too_little_is_told_by_its_mean():
    """Two arrivals in two whole hours: one an hour, half of it in half an hour; nothing before anything came."""
    rule = Smoothing("auto_ets", DAY_S, of_gpus=False)
    history = pool([HOUR_S + 1.0, 2 * HOUR_S + 1.0])
    told = rule(history, [0.0, 3 * HOUR_S + 60.0], HOUR_S / 2)
    assert told.tolist() == [0.0, pytest.approx(1 - np.exp(-0.5))]


@pytest.mark.parametrize("name", MODELS)
def test_the_season_of_a_day_is_seen(name):
    pytest.importorskip("statsforecast")
    rule = Smoothing(name, 12 * HOUR_S, of_gpus=False)
    told = rule(pool(by_day(10)), [10 * DAY_S + 3 * HOUR_S, 10 * DAY_S + 10 * HOUR_S], HOUR_S / 12)
    assert told[0] < 0.5 < told[1]


@pytest.mark.parametrize("name", MODELS)
def test_nothing_after_the_last_whole_hour_is_known(name):
    pytest.importorskip("statsforecast")
    arrival_s = by_day(12)
    ticks_s = 9 * DAY_S + 300.0 * np.arange(30)
    whole, known = (
        Smoothing(name, 12 * HOUR_S, of_gpus=True)(pool(one), ticks_s, 12 * HOUR_S)
        for one in (arrival_s, arrival_s[arrival_s <= 9 * DAY_S + 2 * HOUR_S])
    )
    assert whole.tolist() == known.tolist()
    assert (whole > 0).all()
