"""What a version of completion times keeps: how jobs count, how far intervals reach, jobs to draw from."""

import numpy as np

from jobcast.models.completion.completion_time import CompletionTime, tracker_of
from tests.models.completion.test_job_size import trace_of


def test_intervals_go_on_from_where_training_left_them():
    model = CompletionTime().fit(trace_of(np.random.default_rng(0).uniform(90, 110, 80)), 0.0, 1e4)
    assert set(model.tails_) == {0.5, 0.9}
    assert all(tail <= (1.0 - level) / 2 for level, ends in model.tails_.items() for tail in ends)
    futures_s = np.linspace(50.0, 150.0, 101)
    model.tails_ = {0.5: (0.25, 0.25), 0.9: (0.05, -0.01)}
    mine, bare = (tracker_of(one).intervals(futures_s)[-1] for one in (model, None))
    assert mine.low_s == bare.low_s
    assert mine.high_s > 150.0 > bare.high_s


def test_jobs_that_run_go_on_as_others_did():
    model = CompletionTime().fit(trace_of([100.0] * 40), 0.0, 1e4)
    ((left_s, (half, most)),) = model.running(model.sample(), np.array([1]), np.array([50.0]))
    assert 10.0 < left_s < 110.0
    assert most.low_s <= half.low_s <= left_s <= half.high_s <= most.high_s
    assert model.running(model.sample(), np.zeros(0, np.int64), np.zeros(0)) == []
