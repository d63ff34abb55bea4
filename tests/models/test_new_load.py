import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.models.load_data import MOST_WINDOWS
from jobcast.models.load_sliding import SlidingMax
from jobcast.models.new_load import ALGORITHMS, NewLoad
from tests.features.pools import arrived
from tests.shared import kept, refused

DAY_S = 86400.0
HOUR_S = 3600.0


def hourly(gpus_by_hour, days):
    """One job in the middle of each hour; its width repeats every len(gpus_by_hour) hours."""
    hours = int(days * 24)
    return arrived(np.arange(hours) * HOUR_S + 1800.0, np.resize(gpus_by_hour, hours))


def random_pool(seed, days=20, per_day=30):
    rng = np.random.default_rng(seed)
    count = rng.poisson(days * per_day)
    return arrived(np.sort(rng.uniform(0, days * DAY_S, count)), rng.choice([1, 2, 4, 8], count))


def sliding(windows, horizons_min=(60,)):
    model = NewLoad("sliding-max")
    model.horizons_min_, model.rule_ = horizons_min, SlidingMax()
    model.rule_.windows_ = model.rule_.lending_windows_ = windows
    return model


@pytest.fixture(scope="module")
def quantile():
    histories = {"a": random_pool(1), "b": random_pool(2, per_day=6)}
    return NewLoad(coverage=0.9).fit(histories, 0.0, 20 * DAY_S, (60, 720)), histories


def test_largest_of_the_last_windows_by_hand():
    history = arrived([600, 4000, 4100, 8000], [8, 2, 1, 4])
    # At 10800 s the last hours brought 4, 3 and 8 GPUs.
    assert sliding((1,)).predict(history, [10800.0]).tolist() == [[4.0]]
    assert sliding((2,)).predict(history, [7200.0]).tolist() == [[8.0]]
    # Two hours at a time: 11 up to 7200 s; 7 up to 10800 s, and 8 in the two hours before.
    assert sliding((1, 2), (60, 120)).predict(history, [7200.0, 10800.0]).tolist() == [[3.0, 11.0], [4.0, 8.0]]


def test_windows_reach_back_to_the_last_large_job():
    # Every fourth hour brings 8 GPUs, the others 1: four windows back always hold an 8.
    model = NewLoad("sliding-max", 0.95).fit({"a": hourly([8, 1, 1, 1], 20)}, 10 * DAY_S, 20 * DAY_S, [60])
    assert model.rule_.windows_ == (4,)
    assert model.coverages_ == (1.0,)


def test_less_coverage_needs_fewer_windows():
    # One window alone misses the 8 that follows a 1: a quarter of the windows that begin on the hour.
    model = NewLoad("sliding-max", 0.7).fit({"a": hourly([8, 1, 1, 1], 20)}, 10 * DAY_S, 20 * DAY_S, [60])
    assert model.rule_.windows_ == (1,)
    assert model.coverages_[0] == pytest.approx(0.75, abs=0.05)


def test_the_most_windows_where_none_covers_enough():
    growing = arrived(np.arange(480) * HOUR_S + 1800.0, np.arange(1, 481))
    model = NewLoad("sliding-max").fit({"a": growing}, 0.0, 20 * DAY_S, [60])
    assert model.rule_.windows_ == (MOST_WINDOWS,)


def test_a_quantile_covers_what_it_states_on_later_days(quantile):
    """Pools that do not change: the coverage of other days is the one that calibration saw, give or take."""
    model, _ = quantile
    later = {"a": random_pool(11), "b": random_pool(12, per_day=6)}
    ticks_s = np.arange(5 * DAY_S, 19 * DAY_S, 900.0)
    for horizon, horizon_s in enumerate((HOUR_S, 12 * HOUR_S)):
        covered = []
        for history in later.values():
            edges = np.searchsorted(history.arrival_s, [ticks_s, ticks_s + horizon_s], side="right")
            total = np.concatenate(([0.0], np.cumsum(history.arrival_gpus)))
            covered.append(total[edges[1]] - total[edges[0]] <= model.predict(history, ticks_s)[:, horizon])
        assert np.mean(covered) == pytest.approx(model.coverages_[horizon], abs=0.06)
        assert np.mean(covered) >= 0.87


def test_a_quantile_reserves_less_than_the_sliding_maximum_that_covers_as_much(quantile):
    model, histories = quantile
    largest = NewLoad("sliding-max", coverage=0.9).fit(histories, 0.0, 20 * DAY_S, (60, 720))
    ticks_s = np.arange(10 * DAY_S, 20 * DAY_S, 900.0)
    said = {m: sum(m.predict(h, ticks_s)[:, 0].sum() for h in histories.values()) for m in (model, largest)}
    assert said[model] < said[largest]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.floats(0, 40 * HOUR_S), st.integers(1, 8)), max_size=30), st.floats(0, 30 * HOUR_S))
def test_the_future_changes_no_estimate(quantile, jobs, now_s):
    jobs = sorted(jobs)
    whole = arrived([s for s, _ in jobs], [g for _, g in jobs])
    past = arrived([s for s, _ in jobs if s <= now_s], [g for s, g in jobs if s <= now_s])
    for model in (sliding((3,)), quantile[0]):
        assert np.array_equal(model.predict(whole, [now_s]), model.predict(past, [now_s]))


def test_estimates_are_whole_and_a_longer_window_holds_no_less(quantile):
    model, histories = quantile
    gpus = model.predict(histories["a"], np.arange(0.0, 20 * DAY_S, 7200.0))
    assert np.array_equal(gpus, np.floor(gpus))
    assert (gpus >= 0).all()
    assert (gpus[:, 1] >= gpus[:, 0]).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training_reads_nothing_from_until_on(algorithm, tmp_path):
    until_s = 10 * DAY_S
    quiet = random_pool(3)
    loud = arrived(quiet.arrival_s, np.where(quiet.arrival_s >= until_s, 64.0, quiet.arrival_gpus))
    one, other = (NewLoad(algorithm).fit({"a": history}, 0.0, until_s, [60]) for history in (quiet, loud))
    assert kept(one, tmp_path / "quiet") == kept(other, tmp_path / "loud")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_files_hold_all_of_it(algorithm, tmp_path):
    history = random_pool(4)
    model = NewLoad(algorithm, 0.9).fit({"a": history}, 10 * DAY_S, 20 * DAY_S, [60, 720])
    first = kept(model, tmp_path / "first")
    read = NewLoad.load(tmp_path / "first")
    assert kept(read, tmp_path / "read") == first
    assert np.array_equal(read.predict(history, [15 * DAY_S]), model.predict(history, [15 * DAY_S]))
    assert (read.coverage, read.pools_, read.trained_until_s_) == (0.9, ("a",), 20 * DAY_S)


def test_what_a_scheduler_reserves_is_no_more_than_the_estimate(quantile):
    model, histories = quantile
    X = model.rows(histories["a"], np.arange(5 * DAY_S, 20 * DAY_S, 7200.0))
    assert (model.lend_rows(X) <= model.predict_rows(X)).all()
    assert model.lend_rows(X).sum() < model.predict_rows(X).sum()


def test_a_new_pool_and_an_empty_one_are_answered(quantile):
    model, _ = quantile
    assert (model.predict(random_pool(9, per_day=90), [15 * DAY_S]) > 0).any()
    assert model.predict(arrived([], []), [15 * DAY_S]).shape == (1, 2)


def test_a_time_too_short_for_folds_takes_the_demand_for_the_level():
    history = random_pool(5, days=1, per_day=400)
    model = NewLoad(coverage=0.9).fit({"a": history}, 0.0, DAY_S, [720])
    assert model.coverages_ == (None,)
    assert model.rule_.levels_ == model.rule_.demands_
    assert (model.predict(history, [DAY_S]) > 0).all()


def test_a_pool_in_which_all_jobs_are_alike_is_learnt():
    model = NewLoad(coverage=0.9).fit({"a": hourly([2], 20)}, 0.0, 20 * DAY_S, [60])
    assert model.predict(hourly([2], 21), [20.5 * DAY_S]).tolist() == [[2.0]]


def test_what_cannot_be_trained_or_read_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="no window of 720min in the training time"):
        NewLoad().fit({"a": hourly([1], 1)}, 0.0, HOUR_S, [720])
    refused(TrainingError, "no pool has enough jobs", lambda: NewLoad().fit({}, 0.0, DAY_S, [60]))
    with pytest.raises(RegistryError, match="algorithm 'magic' is not known; choose from quantile, sliding-max"):
        NewLoad("magic").fit({"a": hourly([1], 2)}, 0.0, 2 * DAY_S, [60])
    refused(RegistryError, "cannot be read", NewLoad.load, tmp_path)
