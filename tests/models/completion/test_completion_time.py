"""What a version of completion times keeps: how jobs count, how far intervals reach, jobs to draw from."""

import numpy as np
import pytest

from jobcast.models.completion.completion_time import CompletionTime, ServedCompletionTime, tracker_of
from jobcast.models.completion.intervals import Position
from jobcast.models.evaluation.sizes import run_time_errors
from tests.models.completion.test_job_size import trace_of


def test_intervals_go_on_from_where_training_left_them():
    model = CompletionTime().fit(trace_of(np.random.default_rng(0).uniform(90, 110, 80)), 0.0, 1e4)
    assert all(one.ended for one in model.known_)
    assert 60 < len(model.known_) <= 78  # those before whom others had ended
    futures_s = np.linspace(50.0, 150.0, 101)
    model.known_ = [Position(1.05, True)] * 30
    mine, bare = (tracker_of(one).intervals(futures_s)[-1] for one in (model, None))
    assert mine.high_s > 150.0 > bare.high_s


def test_the_last_burst_of_training_says_little_of_jobs_long_after_it():
    """Ninety jobs of about 100 s, then ten of 10,000 s, which have .90 of the weight while they are the last ones.

    By hand: .9 (1 - e^-5) + .1 x 10 / 100. Two jobs later .90 / e + (1 - 1 / e) x .1 = .40, in the end .1.
    """
    model = CompletionTime().fit(trace_of([*np.random.default_rng(0).uniform(90, 110, 90), *[1e4] * 10]), 0.0, 2e4)
    model.settings_.recency_, model.settings_.recent_share_, model.settings_.shift_ = 2.0, 0.9, 0.0
    model.known_ = [Position(1.05, True)] * 30
    # A hundred jobs in 20,000 s of training: one each 200 s.
    told = {count: model.submitted(np.full(100, 1), np.full(100, 2e4 + 200.0 * count)) for count in (0, 2, 10_000)}
    short = {count: np.mean([median_s < 5000.0 for median_s, _ in jobs]) for count, jobs in told.items()}
    assert short[0] < 0.1
    assert 0.6 < short[2] < 1.0
    assert short[10_000] == 1.0
    # Nor do positions count any longer.
    model.known_ = []
    ends = (told[10_000], model.submitted(np.full(100, 1), np.full(100, 2e4 + 2e6)))
    ours, bare = ([one.high_s for _, intervals in jobs for one in intervals] for jobs in ends)
    assert ours == pytest.approx(bare)


@pytest.mark.parametrize("seed", [0, 7])
def test_intervals_hold_what_they_promise_long_after_training(seed):
    """Of experiments whose jobs are alike: 90 % are promised; with the last ones' lessons for good 80 and 72 % held."""
    rng = np.random.default_rng(seed)
    logs = np.repeat(rng.standard_normal(60), 10) + 0.3 * rng.standard_normal(600)
    trace = trace_of(300.0 * np.exp(logs))
    model = CompletionTime().fit(trace.between(None, 2000.0), 0.0, 2000.0)
    held = run_time_errors(model, trace.between(3000.0, None)).covered
    assert held.mean() > 0.88


def test_jobs_that_run_go_on_as_others_did():
    model = CompletionTime().fit(trace_of([100.0] * 40), 0.0, 1e4)
    ((left_s, (half, most)),) = model.running(model.sample(), np.array([1]), np.array([50.0]))
    assert 10.0 < left_s < 110.0
    assert most.low_s <= half.low_s <= left_s <= half.high_s <= most.high_s
    assert model.running(model.sample(), np.zeros(0, np.int64), np.zeros(0)) == []


def test_a_served_version_is_asked_about_an_instant():
    """Where nobody names one, as of the end of training; positions of then count for nothing long after it."""
    model = CompletionTime().fit(trace_of(np.random.default_rng(0).uniform(90, 110, 80)), 0.0, 1e4)
    model.known_ = [Position(1.05, True)] * 30
    served = ServedCompletionTime(model)
    jobs = served.example()
    then, long_after = (served.predict(jobs, {"at": at_s}) for at_s in (1e4, 1e9))
    assert served.predict(jobs).equals(then)
    assert served.predict(jobs, {"at": np.nan}).equals(then)
    model.known_ = []
    assert long_after.to_numpy() == pytest.approx(served.predict(jobs).to_numpy())
    assert (long_after["high_90_s"] < then["high_90_s"]).all()
