"""Sizes of jobs alike: by hand, censored, saved, served."""

import numpy as np
import polars as pl
import pytest

from jobcast.domain.errors import TrainingError
from jobcast.models.completion.job_size import LARGER, JobSize
from jobcast.models.completion.known_jobs import KnownJobs, keys_of
from jobcast.traces.table import Trace


def trace_of(run_s, **columns):
    count = len(run_s)
    frame = pl.DataFrame(
        {"job_id": [f"{i:03}" for i in range(count)], "pool": "p", "submit_time": [10.0 * i for i in range(count)]}
        | {"duration": [float(one) for one in run_s], "gpus": 1}
        | columns
    )
    return Trace.from_frame(frame, name="t")


def test_what_is_known_at_an_instant():
    known = KnownJobs.of(trace_of([5.0, 100.0, 5.0], gpus=[1, 2, 1]), 0.0, 50.0)
    assert known.submit_s.tolist() == [-50.0, -40.0, -30.0]
    assert known.ended.tolist() == [True, False, True]
    assert known.run_s.tolist() == [5.0, 40.0, 5.0]
    assert known.work_s.tolist() == [5.0, 80.0, 5.0]
    assert known.known_s.tolist() == [-45.0, np.inf, -25.0]
    again = KnownJobs.read(known.as_dict())
    assert again.as_dict() == known.as_dict()
    assert again.keys == known.keys


def test_nothing_later_is_read():
    model = JobSize().fit(trace_of([10.0] * 20 + [1e6] * 5), 0.0, 200.5)
    assert len(model.past_) == 21
    assert model.forecast([(1, "", "", "")]).max() <= 10.0 * np.exp(0.25) + 1e-9


def test_the_median_of_equals_is_their_size():
    model = JobSize().fit(trace_of([100.0] * 40), 0.0, 1e4)
    (row,) = model.forecast([(1, "", "", "")])
    assert row == pytest.approx([100.0 * np.exp(-0.25), 100.0, 100.0 * np.exp(0.25)])


def test_users_differ_and_unknown_ones_are_as_all():
    run_s, users = [10.0] * 60 + [10_000.0] * 60, ["a"] * 60 + ["b"] * 60
    order = np.random.default_rng(0).permutation(120)
    trace = trace_of(np.array(run_s)[order], user=[users[i] for i in order])
    model = JobSize().fit(trace, 0.0, 1e6)
    mine, theirs, nobody = model.forecast([(1, "a", "", ""), (1, "b", "", ""), (1, "c", "", "")])[:, 1]
    assert (mine, theirs) == (10.0, 10_000.0)
    assert nobody in (10.0, 10_000.0)
    assert len(set(keys_of(trace))) == 2


def test_a_job_is_at_least_as_large_as_what_it_has_done():
    model = JobSize().fit(trace_of([100.0] * 30), 0.0, 1e4)
    (row,) = model.forecast([(1, "", "", "")], np.array([500.0]))
    assert row[1] == LARGER * 500.0
    assert row.min() >= 500.0


def test_too_little_is_refused():
    with pytest.raises(TrainingError, match="1 jobs had ended; run times are learnt from two on"):
        JobSize().fit(trace_of([1.0, 1e9]), 0.0, 100.0)
