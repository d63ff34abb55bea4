from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TrainingError
from jobcast.domain.horizons import duration_bin
from jobcast.models.job_duration import JobDuration, bins_of
from jobcast.traces.table import Trace


def trace(rows):
    """Rows of (submit_s, duration_s, gpus, pool, tag)."""
    names = ("submit_time", "duration", "gpus", "pool", "tag")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    columns["job_id"] = [f"{i:04d}" for i in range(len(rows))]
    return Trace.from_frame(pl.DataFrame(columns), name="test")


TRAINING = [
    (0.0, 10.0, 1, "a", ""),
    (0.0, 1000.0, 1, "a", ""),
    (0.0, 4000.0, 1, "a", ""),
    (0.0, 1000.0, 1, "b", ""),
]


@pytest.fixture
def model():
    return JobDuration(prior_weight=1.0).fit(trace(TRAINING), 5000.0)


def counts(tag=(0, 0, 0, 0), pool_width=(0, 0, 0, 0), pool=(0, 0, 0, 0), everything=(0, 0, 0, 0)):
    return np.array([[tag, pool_width, pool, everything]])


def test_prior_and_run_times_by_hand(model):
    assert model.prior_.tolist() == [0.25, 0.5, 0.25, 0.0]
    assert model.bin_duration_s_[:3] == pytest.approx([10.0, 1000.0, 4000.0])
    # No training job ran for over 12 hours: the geometric mean of 12 and 48 hours stands in.
    assert model.bin_duration_s_[3] == pytest.approx(24 * 3600.0)


def test_run_time_of_a_bin_is_a_geometric_mean():
    model = JobDuration().fit(trace([(0.0, 400.0, 1, "a", ""), (0.0, 900.0, 1, "a", "")]), 5000.0)
    assert model.bin_duration_s_[1] == pytest.approx(600.0)


def test_jobs_that_have_not_ended_do_not_train():
    model = JobDuration().fit(trace(TRAINING), 4000.0)
    assert model.rows_ == 3
    assert model.prior_.tolist() == pytest.approx([1 / 3, 2 / 3, 0.0, 0.0])


def test_three_of_the_same_tag_decide(model):
    assert model.predict(counts(tag=(0, 0, 3, 0), pool_width=(9, 0, 0, 0), pool=(9, 0, 0, 0))).tolist() == [2]


def test_two_of_the_same_tag_are_too_few(model):
    assert model.predict(counts(tag=(0, 0, 2, 0), pool_width=(9, 0, 0, 0), pool=(0, 0, 0, 9))).tolist() == [0]


def test_pool_decides_where_no_job_of_the_width_has_finished(model):
    assert model.predict(counts(pool=(0, 0, 0, 1), everything=(9, 0, 0, 0))).tolist() == [3]


def test_training_data_decide_where_no_job_of_the_pool_has_finished(model):
    assert model.predict(counts(everything=(9, 0, 0, 0))).tolist() == [1]
    assert model.predict_proba(counts()).tolist() == [model.prior_.tolist()]


def test_ties_go_to_the_longer_bin(model):
    assert model.predict(counts(pool_width=(4, 0, 4, 1))).tolist() == [2]


def test_probabilities_by_hand(model):
    # 4 votes and a prior of weight 1: (3 + .25, 1 + .5, .25, 0) / 5.
    assert model.predict_proba(counts(pool_width=(3, 1, 0, 0)))[0] == pytest.approx([0.65, 0.3, 0.05, 0.0])


def test_run_time_stands_for_the_forecast_bin(model):
    assert model.predict_duration_s(counts(pool_width=(0, 5, 0, 0))).tolist() == pytest.approx([1000.0])


jobs = st.lists(
    st.tuples(
        st.integers(0, 20_000).map(float),
        st.sampled_from([1.0, 299.0, 300.0, 2000.0, 3601.0, 50_000.0]),
        st.sampled_from([1, 8]),
        st.sampled_from("ab"),
        st.sampled_from(["", "x"]),
    ),
    min_size=1,
    max_size=25,
)


@given(jobs)
def test_live_and_batch_ways_give_the_same_forecasts(rows):
    given_trace = trace(rows)
    model = JobDuration().fit(trace(TRAINING), 5000.0)
    batch = model.predict_proba(model.counts(given_trace))
    listed, duration_s = given_trace.to_jobs()
    done = sorted(zip(given_trace.end_s.tolist(), range(len(listed)), strict=True))
    for job in listed:
        tracker = model.tracker()
        for end_s, seq in done:
            if end_s <= job.submit_s:
                tracker.add(SimpleNamespace(job=listed[seq], end_s=end_s, duration_s=float(duration_s[seq])))
        assert np.array_equal(model.predict_proba(tracker.row(job)[None])[0], batch[job.seq])
    assert batch.sum(axis=1) == pytest.approx(1.0)


@given(st.floats(0.001, 1e6))
def test_bins_are_those_of_the_domain(duration_s):
    assert bins_of(np.array([duration_s]), (5, 60, 720)).tolist() == [duration_bin(duration_s)]


def test_file_holds_all_of_it(model, tmp_path):
    model.save(tmp_path / "first")
    read = JobDuration.load(tmp_path / "first")
    read.save(tmp_path / "read")
    assert (tmp_path / "first/metadata.json").read_bytes() == (tmp_path / "read/metadata.json").read_bytes()
    some = counts(pool_width=(3, 1, 0, 0))
    assert np.array_equal(read.predict_proba(some), model.predict_proba(some))
    assert vars(read).keys() == vars(model).keys()


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(TrainingError, match="job-duration: no job of test ended in the training time"):
        JobDuration().fit(trace(TRAINING), 5.0)
