"""Sizes of jobs alike and as declared: by hand, censored, as others erred, towards what neighbours declared."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TrainingError
from jobcast.models.completion.job_size import LARGER, DeclaredSizes, JobSize
from jobcast.models.completion.known_jobs import KnownJobs, keys_of
from jobcast.traces.table import Trace
from tests.scenarios import frame_of


def trace_of(run_s, **columns):
    submit_s = [10.0 * i for i in range(len(run_s))]
    return Trace.from_frame(frame_of(submit_s, duration=list(map(float, run_s)), **columns), name="t")


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


def test_who_is_not_heard_of_may_have_ended_as_long_ago_as_ends_take_to_be_told():
    late = replace(trace_of([5.0, 100.0, 5.0], gpus=[1, 2, 1]), known_after_s=15.0)
    known = KnownJobs.of(late, 0.0, 39.0)
    assert known.ended.tolist() == [True, False, False]
    # The third one started 19 s ago, and has ended.
    assert known.run_s.tolist() == [5.0, 14.0, 4.0]


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


COUNT, SPREAD = 300, 0.4


def declared(true_s, seed=0, bias=1.0):
    """Of which the first half has ended."""
    told_s = bias * true_s * np.exp(SPREAD * np.random.default_rng(seed).standard_normal(len(true_s)))
    ended_s = np.where(np.arange(len(true_s)) < len(true_s) // 2, true_s, np.nan)
    return DeclaredSizes.of(told_s, ended_s, np.ones(len(true_s)))


def drawn(sizes, futures=100):
    rows, done_s = np.arange(len(sizes.told_s)), np.zeros(len(sizes.told_s))
    return np.array([sizes.draw(rows, done_s, np.random.default_rng(number)) for number in range(futures)])


def test_declarations_that_were_right_are_believed():
    sizes = DeclaredSizes.of(np.array([5.0, 50.0, 500.0]), np.array([5.0, np.nan, np.nan]), np.ones(3))
    assert sizes.exact
    assert sizes.draw(np.arange(3), np.zeros(3), np.random.default_rng(0)).tolist() == [5.0, 50.0, 500.0]
    assert sizes.draw(np.array([1]), np.array([60.0]), np.random.default_rng(0))[0] == pytest.approx(60.0, abs=0.01)


@pytest.mark.parametrize("bias", [1.0, 3.0])
def test_a_burst_of_equals_takes_as_long_as_it_takes(bias):
    """Errors have mean 1.08 and go both ways: adding up what each declared would overstate the whole by a fifth."""
    true_s = np.full(COUNT, 1e4)
    assert drawn(declared(true_s, bias=bias)).sum(axis=1).mean() == pytest.approx(true_s.sum(), rel=0.06)


def test_sizes_that_scatter_widely_are_as_declared_and_held_as_often_as_drawn():
    true_s = np.exp(np.random.default_rng(1).normal(9.0, 3.5, COUNT))
    sizes = declared(true_s)
    assert sizes.scale.mean() > 0.9
    low_s, high_s = np.quantile(drawn(sizes), [0.05, 0.95], axis=0)
    assert ((low_s <= true_s) & (true_s <= high_s)).mean() == pytest.approx(0.9, abs=0.06)


@given(st.lists(st.floats(0.0, 1e8), min_size=1, max_size=20), st.integers(0, 99))
def test_every_job_is_larger_than_what_it_has_done(done, seed):
    sizes = declared(np.exp(np.random.default_rng(seed).normal(9.0, 2.0, 40)), seed)
    done_s = np.array(done)
    found = sizes.draw(np.arange(len(done)), done_s, np.random.default_rng(seed))
    assert (found > done_s).all()
    assert np.isfinite(found).all()
