"""Exponential smoothing as a rule to beat: what it knows at an instant, and what is said without the extra."""

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError
from jobcast.models.evaluation import smoothing
from jobcast.models.evaluation.smoothing import HOUR_S, MODELS, Smoothing, need_statsforecast
from tests.features.pools import arrived
from tests.shared import refused

DAY_S = 24 * HOUR_S


def by_day(days, seed=0):
    """Twenty jobs an hour from 8:00 to 16:00, one an hour else."""
    rng = np.random.default_rng(seed)
    hours = np.arange(24 * days)
    count = np.where((hours % 24 >= 8) & (hours % 24 < 16), 20, 1)
    return np.sort(HOUR_S * (np.repeat(hours, count) + rng.random(count.sum())))


def test_without_statsforecast_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setattr(smoothing, "find_spec", lambda name: None)
    refused(ConfigError, r"--smoothing: statsforecast is not installed; run `pip install", need_statsforecast)


def test_a_past_that_tells_too_little_is_told_by_its_mean():
    """Two arrivals in two whole hours: one an hour, half of it in half an hour; nothing before anything came."""
    rule = Smoothing("auto_ets", DAY_S, of_gpus=False)
    history = arrived([HOUR_S + 1.0, 2 * HOUR_S + 1.0])
    told = rule(history, [0.0, 3 * HOUR_S + 60.0], HOUR_S / 2)
    assert told.tolist() == [0.0, pytest.approx(1 - np.exp(-0.5))]
    assert Smoothing("auto_ets", DAY_S, of_gpus=True)(history, [0.0], HOUR_S).tolist() == [0.0]


@pytest.mark.parametrize("name", MODELS)
def test_the_season_of_a_day_is_seen(name):
    pytest.importorskip("statsforecast")
    rule = Smoothing(name, 12 * HOUR_S, of_gpus=False)
    told = rule(arrived(by_day(10)), [10 * DAY_S + 3 * HOUR_S, 10 * DAY_S + 10 * HOUR_S], HOUR_S / 12)
    assert told[0] < 0.5 < told[1]


@pytest.mark.parametrize("name", MODELS)
def test_nothing_after_the_last_whole_hour_is_known(name):
    pytest.importorskip("statsforecast")
    arrival_s = by_day(12)
    ticks_s = 9 * DAY_S + 300.0 * np.arange(30)
    whole, known = (
        Smoothing(name, 12 * HOUR_S, of_gpus=True)(arrived(one), ticks_s, 12 * HOUR_S)
        for one in (arrival_s, arrival_s[arrival_s <= 9 * DAY_S + 2 * HOUR_S])
    )
    assert whole.tolist() == known.tolist()
    assert (whole > 0).all()


class Fitted:
    """Stands in for what statsforecast fits: 0, 1, 2, ... from where it was fitted on, two less than what came."""

    def __init__(self, counts):
        self.counts = counts

    def forward(self, counts, h, fitted):
        assert fitted
        self.carried, self.hours = len(counts), h
        return {"mean": np.arange(h) - 1.0, "fitted": counts - 2.0}

    def predict(self, h):
        return {"mean": np.arange(h, dtype=np.float64)}

    def predict_in_sample(self):
        return {"fitted": self.counts - 2.0}


@pytest.fixture
def fits(monkeypatch):
    made = []
    monkeypatch.setattr(smoothing, "_fitted", lambda kind, counts: made.append(Fitted(counts)) or made[-1])
    return made


def hourly(hours):
    """One job in even hours, two in odd ones, each a second after the hour."""
    return arrived(np.sort(np.concatenate([HOUR_S * np.arange(hours), HOUR_S * np.arange(1, hours, 2)])) + 1.0)


def test_state_is_carried_for_a_week_and_the_sum_is_linear_within_hours(fits):
    history, rule = hourly(60 * 24), Smoothing("auto_ets", 2 * HOUR_S, of_gpus=False)
    begin = 30 * 24
    at_s = [HOUR_S * (begin + hours) for hours in (0.5, 7 * 24 - 0.5, 7 * 24)]
    told = rule(history, at_s, 2 * HOUR_S)
    # From the middle of the hour on 2 h: half of 0 (not less), all of 0, half of 1; from its beginning 0 and 0.
    assert told.tolist() == pytest.approx([1 - np.exp(-0.5), 1 - np.exp(-0.5), 0.0])
    assert [len(one.counts) for one in fits] == [28 * 24] * 2  # chosen in the first hour asked about, and a week later
    assert fits[0].carried == 28 * 24 + 7 * 24 - 1
    assert fits[0].hours == 3  # 2 h from within an hour on
    assert fits[1].counts.tolist()[:2] == [1.0, 2.0]


def test_gpus_are_the_mean_and_the_spread_of_errors_added_up(fits):
    rule = Smoothing("auto_ces", 3 * HOUR_S, of_gpus=True)
    begin = 30 * 24
    told = rule(hourly(60 * 24), [HOUR_S * begin, HOUR_S * (begin + 23.0), HOUR_S * (begin + 24)], 3 * HOUR_S)
    spread = 1.6448536269514722 * np.sqrt(4.0 * 3.0)  # errors of 2 an hour
    assert told.tolist() == [np.floor(0 + 1 + 2 + spread), np.floor(23 + 24 + 25 + spread), np.floor(3 + spread)]
    assert [len(one.counts) for one in fits] == [28 * 24] * 2


@pytest.mark.parametrize(("hours", "chosen"), [(47, 0), (48, 1)])
def test_two_days_show_a_season(fits, hours, chosen):
    rule = Smoothing("auto_ets", HOUR_S, of_gpus=False)
    (told,) = rule(hourly(100), [HOUR_S * hours], HOUR_S)
    assert len(fits) == chosen
    assert told == pytest.approx(0.0 if chosen else 1 - np.exp(-np.mean([1, 2] * 23 + [1])))
    assert rule(arrived(HOUR_S * np.arange(100.0) + 1.0), [50 * HOUR_S], HOUR_S).tolist() == [
        pytest.approx(1 - np.exp(-1))
    ]
    assert len(fits) == chosen  # what never changes shows none
