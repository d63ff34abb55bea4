"""What a version of completion times keeps: how jobs count, how far intervals reach, jobs to draw from."""

import numpy as np

from jobcast.models.completion.completion_time import CompletionTime, tracker_of
from jobcast.models.completion.intervals import Position
from tests.models.completion.test_job_size import trace_of


def test_intervals_go_on_from_where_training_left_them():
    model = CompletionTime().fit(trace_of(np.random.default_rng(0).uniform(90, 110, 80)), 0.0, 1e4)
    assert all(one.ended for one in model.known_)
    assert 60 < len(model.known_) <= 78  # those before whom others had ended
    futures_s = np.linspace(50.0, 150.0, 101)
    model.known_ = [Position(1.05, True)] * 30
    mine, bare = (tracker_of(one).intervals(futures_s)[-1] for one in (model, None))
    assert mine.high_s > 150.0 > bare.high_s


def test_jobs_that_run_go_on_as_others_did():
    model = CompletionTime().fit(trace_of([100.0] * 40), 0.0, 1e4)
    ((left_s, (half, most)),) = model.running(model.sample(), np.array([1]), np.array([50.0]))
    assert 10.0 < left_s < 110.0
    assert most.low_s <= half.low_s <= left_s <= half.high_s <= most.high_s
    assert model.running(model.sample(), np.zeros(0, np.int64), np.zeros(0)) == []
