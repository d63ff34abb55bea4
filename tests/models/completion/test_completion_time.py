"""What a version of completion times keeps: how jobs count, how far intervals reach, jobs to draw from."""

import numpy as np

from jobcast.models.completion.completion_time import CompletionTime, ServedCompletionTime, tracker_of
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


def test_it_answers_the_same_when_saved_and_served(tmp_path):
    model = CompletionTime().fit(trace_of(np.random.default_rng(1).uniform(10, 1000, 50)), 0.0, 1e4)
    model.save(tmp_path / "one")
    again = CompletionTime.load(tmp_path / "one")
    again.save(tmp_path / "two")
    assert (tmp_path / "one" / "metadata.json").read_bytes() == (tmp_path / "two" / "metadata.json").read_bytes()
    assert again.tails_ == model.tails_
    form = ServedCompletionTime(again)
    told = form.predict(form.example())
    assert list(told) == list(form.outputs) == ["left_s", "low_50_s", "high_50_s", "low_90_s", "high_90_s"]
    assert (told["low_90_s"] <= told["left_s"]).all()
