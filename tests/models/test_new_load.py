import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.domain.history import PoolHistory
from jobcast.models.new_load import CANDIDATE_WINDOWS, NewLoad

DAY_S = 86400.0
NONE = np.empty(0)


def pool(arrival_s, gpus):
    return PoolHistory(np.asarray(arrival_s, float), np.asarray(gpus, float), NONE, NONE, NONE, NONE)


def hourly(gpus_by_hour, days):
    """One job in the middle of each hour; its width repeats every len(gpus_by_hour) hours."""
    hours = int(days * 24)
    return pool(np.arange(hours) * 3600.0 + 1800.0, np.resize(gpus_by_hour, hours))


def fitted(windows, horizons_min=(60,)):
    model = NewLoad()
    model.horizons_min_, model.windows_ = horizons_min, windows
    return model


def test_largest_of_the_last_windows_by_hand():
    history = pool([600, 4000, 4100, 8000], [8, 2, 1, 4])
    # At 10800 s the last hours brought 4, 3 and 8 GPUs.
    assert fitted((1,)).predict(history, [10800.0]).tolist() == [[4.0]]
    assert fitted((2,)).predict(history, [7200.0]).tolist() == [[8.0]]
    # Two hours at a time: 11 up to 7200 s; 7 up to 10800 s, and 8 in the two hours before.
    assert fitted((1, 2), (60, 120)).predict(history, [7200.0, 10800.0]).tolist() == [[3.0, 11.0], [4.0, 8.0]]


def test_windows_reach_back_to_the_last_large_job():
    # Every fourth hour brings 8 GPUs, the others 1: four windows back always hold an 8.
    model = NewLoad(coverage=0.95).fit({"a": hourly([8, 1, 1, 1], 20)}, 10 * DAY_S, 20 * DAY_S, [60])
    assert model.windows_ == (4,)
    assert model.coverages_ == (1.0,)


def test_less_coverage_needs_fewer_windows():
    # One window alone misses the 8 that follows a 1: a quarter of the windows that begin on the hour.
    model = NewLoad(coverage=0.7).fit({"a": hourly([8, 1, 1, 1], 20)}, 10 * DAY_S, 20 * DAY_S, [60])
    assert model.windows_ == (1,)
    assert model.coverages_[0] == pytest.approx(0.75, abs=0.05)


def test_the_most_windows_where_none_covers_enough():
    growing = pool(np.arange(480) * 3600.0 + 1800.0, np.arange(1, 481))
    assert NewLoad().fit({"a": growing}, 0.0, 20 * DAY_S, [60]).windows_ == (CANDIDATE_WINDOWS[-1],)


@given(st.lists(st.tuples(st.floats(0, 40 * 3600.0), st.integers(1, 8)), max_size=30), st.floats(0, 30 * 3600.0))
def test_the_future_changes_no_estimate(jobs, now_s):
    jobs = sorted(jobs)
    whole = pool([s for s, _ in jobs], [g for _, g in jobs])
    past = pool([s for s, _ in jobs if s <= now_s], [g for s, g in jobs if s <= now_s])
    model = fitted((3,))
    assert np.array_equal(model.predict(whole, [now_s]), model.predict(past, [now_s]))


def test_training_reads_nothing_from_until_on():
    until_s = 10 * DAY_S
    quiet = hourly([1], 20)
    loud = pool(quiet.arrival_s, np.where(quiet.arrival_s >= until_s, 64.0, 1.0))
    first, second = (NewLoad().fit({"a": history}, 0.0, until_s, [60]) for history in (quiet, loud))
    assert (first.windows_, first.coverages_) == (second.windows_, second.coverages_)


def test_file_holds_all_of_it(tmp_path):
    history = hourly([8, 1, 1, 1], 20)
    model = NewLoad(0.9).fit({"a": history}, 10 * DAY_S, 20 * DAY_S, [60, 720])
    model.save(tmp_path / "first")
    read = NewLoad.load(tmp_path / "first")
    read.save(tmp_path / "read")
    assert (tmp_path / "first/metadata.json").read_bytes() == (tmp_path / "read/metadata.json").read_bytes()
    assert np.array_equal(read.predict(history, [15 * DAY_S]), model.predict(history, [15 * DAY_S]))
    assert (read.coverage, read.pools_, read.trained_until_s_) == (0.9, ("a",), 20 * DAY_S)


def test_what_cannot_be_trained_or_read_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="no window of 720min in the training time of 1 pools"):
        NewLoad().fit({"a": hourly([1], 1)}, 0.0, 3600.0, [720])
    with pytest.raises(TrainingError, match="of 0 pools"):
        NewLoad().fit({}, 0.0, DAY_S, [60])
    with pytest.raises(RegistryError, match="cannot be read"):
        NewLoad.load(tmp_path)
