"""Futures played: agreement with the engine, what is known when, that the run is left as it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.completion.job_completions import SizeForecaster
from jobcast.pipelines.experiments.elastic.completion_prediction import NOBODY
from jobcast.pipelines.experiments.elastic.conformal_intervals import Earlier, fit_sizes_at, forecast_run, knowledge
from jobcast.pipelines.experiments.elastic.rollouts import Forecasters, Past, agreeing_sizes, play_futures
from jobcast.schedulers.policies import ELASTIC
from jobcast.schedulers.registry import make_policy, names_of
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay
from tests.scenarios import elastic_jobs_of

EMPTY = np.zeros(0)
NOTHING = Forecasters(None, None, Past(EMPTY, EMPTY, EMPTY, EMPTY, np.zeros(0, dtype=np.int64)))


def run_of(jobs, policy="srsf", gpus=4.0):
    return ElasticReplay(jobs, jobs.size_s, ElasticCluster(np.array([gpus])), make_policy(policy))


def some_jobs(seed, count=60):
    rng = np.random.default_rng(seed)
    return elastic_jobs_of(
        np.cumsum(rng.exponential(50.0, count)), rng.lognormal(5.0, 1.0, count), rng.integers(1, 5, count)
    )


@pytest.mark.parametrize("policy", names_of(ELASTIC))
@given(seed=st.integers(0, 30))
def test_declared_sizes_without_arrivals_give_the_forecast_at_submission(policy, seed):
    run = run_of(some_jobs(seed), policy)
    run.forecast(40)
    ends = play_futures(run, 39, NOTHING, futures=2, seed=0)
    assert ends == pytest.approx([run.predicted_end_s[39]] * 2)


def test_playing_leaves_the_run_as_it_is():
    run, other = run_of(some_jobs(1)), run_of(some_jobs(1))
    for one in (run, other):
        one.submit(40)
    known = knowledge(run, NOBODY, fit_sizes_at(run, NOBODY))
    play_futures(run, 39, known, futures=20, seed=3)
    for mine, theirs in zip(run.state, other.state, strict=True):
        assert np.array_equal(mine, theirs, equal_nan=True)


def test_draws_depend_on_seed_and_job_alone():
    run = run_of(some_jobs(2))
    run.submit(40)
    known = knowledge(run, NOBODY, fit_sizes_at(run, NOBODY))
    job = int(run.state.active[0])
    first = play_futures(run, job, known, futures=8, seed=5)
    assert (play_futures(run, job, known, futures=4, seed=5) == first[:4]).all()
    assert (play_futures(run, job, known, futures=8, seed=6) != first).any()


@given(seed=st.integers(0, 20), factor=st.sampled_from([0.01, 100.0]))
def test_nothing_after_an_instant_is_known_at_it(seed, factor):
    """Later submissions, and sizes of jobs that have not ended, may be anything."""
    jobs = some_jobs(seed)
    run = run_of(jobs, "elastic_fifo")
    run.submit(40)
    ended = np.isfinite(run.state.end_s)
    later = jobs.size_s * np.where(ended, 1.0, np.maximum(factor, 1.0))
    later[40:] *= factor
    twin = run_of(jobs._replace(size_s=later), "elastic_fifo")
    twin.submit(40)
    if not ended.any():
        return
    for one in (run, twin):
        one.known = knowledge(one, NOBODY, fit_sizes_at(one, NOBODY))
    job = int(run.state.active[0])
    assert play_futures(run, job, run.known, futures=4, seed=1) == pytest.approx(
        play_futures(twin, job, twin.known, futures=4, seed=1)
    )


def test_one_submission_says_nothing_of_gaps():
    run = run_of(elastic_jobs_of([0.0], [5.0], [1]), gpus=8.0)
    run.submit(1)
    with pytest.raises(ValueError, match="at least two submissions"):
        knowledge(run, NOBODY, None)


def test_a_declared_job_among_drawn_ones_keeps_its_size():
    """Alone on its GPUs, 100 s of work on two of them end after 50 s, whatever others are drawn to be."""
    run = run_of(elastic_jobs_of([0.0, 10.0, 20.0], [5.0, 5.0, 100.0], [1, 1, 2]), gpus=8.0)
    run.submit(3)
    sizes = SizeForecaster().fit(np.array([5.0, 5.0]), np.array([1, 1]))
    known = Forecasters(
        sizes.sample(np.array([5.0, 5.0]), np.ones(2, dtype=bool), np.array([1, 1])), None, NOTHING.past
    )
    assert play_futures(run, 2, known, futures=5, seed=0, declared=2) == pytest.approx([70.0] * 5)


def test_later_arrivals_delay_jobs_under_a_preemptive_policy_alone():
    """A stream of short jobs goes before the long one under SRSF; FIFO lets it run."""
    past = Past(np.arange(40.0) * 10 - 400, np.full(40, 9.0), np.zeros(40), np.ones(40), np.zeros(40, dtype=np.int64))
    for policy, least in (("srsf", 105.0), ("elastic_fifo", 100.0)):
        run = run_of(elastic_jobs_of([0.0], [100.0], [1]), policy, gpus=1.0)
        run.submit(1)
        known = Forecasters(None, np.diff(past.submit_s), past)
        ends = play_futures(run, 0, known, futures=6, seed=0)
        assert ends.min() >= least
        assert (policy == "srsf") == (ends.max() > 100.0)


def test_forecasts_along_a_run_know_their_outcomes():
    jobs = some_jobs(7, 80)
    earlier = Earlier(
        Past(np.arange(-30.0, 0.0), np.full(30, 150.0), np.zeros(30), np.ones(30), np.zeros(30, dtype=np.int64)),
        np.arange(-20.0, 10.0),
    )
    found = forecast_run(run_of(jobs), earlier, [10, 40, 70], futures=6, seed=0)
    whole = run_of(jobs)
    whole.submit(80)
    whole.finish()
    at = [10, 40, 70]
    assert found.actual_s == pytest.approx(whole.state.end_s[at] - jobs.submit_s[at])
    assert found.futures_s.shape == (3, 6)
    assert (found.futures_s > 0).all()


def stopped(policy, sizes, gpus=2.0):
    """Jobs of one GPU each, all submitted at once, and the run right after the last of them."""
    count = len(sizes)
    jobs = elastic_jobs_of(np.zeros(count), sizes, np.ones(count), speedup=range(2))
    run = ElasticReplay(jobs, jobs.size_s, ElasticCluster(np.array([gpus])), make_policy(policy))
    run.submit(count)
    return run, jobs


def drawer(seed):
    rng = np.random.default_rng(seed)
    return lambda which: rng.lognormal(5.0, 2.0, len(which))


@given(seed=st.integers(0, 200))
def test_under_srsf_those_that_run_are_drawn_shorter_than_those_that_wait(seed):
    run, jobs = stopped("srsf", [300.0, 10.0, 500.0, 20.0, 400.0])
    draw, active = drawer(seed), np.arange(5)
    sizes = agreeing_sizes(run, jobs, active, draw(active), draw)
    assert max(sizes[1], sizes[3]) <= min(sizes[0], sizes[2], sizes[4])


@pytest.mark.parametrize("policy", ["elastic_fifo", "elastic_las", "elastic_fair"])
def test_a_rule_that_does_not_go_by_size_leaves_the_first_draw(policy):
    run, jobs = stopped(policy, [300.0, 10.0, 500.0, 20.0, 400.0])
    first = drawer(0)(np.arange(5))

    def never(which):
        raise AssertionError(f"{which} drawn anew")

    assert (agreeing_sizes(run, jobs, np.arange(5), first, never) == first).all()


def test_what_cannot_agree_keeps_the_draw_that_is_contradicted_least():
    """Under SRSF jobs 1 and 3 run; when none may be drawn anew, the first draw is as good as any."""
    run, jobs = stopped("srsf", [300.0, 10.0, 500.0, 20.0, 400.0])
    first = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    kept = agreeing_sizes(run, jobs, np.arange(5), first, lambda which: first[which])
    assert (kept == first).all()


def test_the_run_is_left_as_it_is():
    (run, jobs), (other, _) = (stopped("srsf", [300.0, 10.0, 500.0, 20.0, 400.0]) for _ in range(2))
    draw, active = drawer(1), np.arange(5)
    agreeing_sizes(run, jobs, active, draw(active), draw)
    for mine, theirs in zip(run.state, other.state, strict=True):
        assert np.array_equal(mine, theirs, equal_nan=True)


@pytest.mark.slow
def test_with_declared_sizes_arrivals_are_drawn_from_running_jobs_too_and_end():
    """Of three past jobs two still run, so most arrivals are drawn from those; none of them holds GPUs for ever."""
    run, _ = stopped("elastic_fair", [50.0, 500.0, 600.0], gpus=1.0)
    run.advance(200.0)
    assert np.isfinite(run.state.end_s[0])
    past = Past(
        np.array([-200.0, -100.0, 0.0]),
        np.array([50.0, np.nan, np.nan]),
        np.zeros(3),
        np.ones(3),
        np.zeros(3, np.int64),
    )
    ends = play_futures(run, 2, Forecasters(None, np.diff(past.submit_s), past), futures=2, seed=0)
    assert np.isfinite(ends).all()
    assert (ends > 1_150.0).all()  # the three alone take 1,150 s on one GPU; whatever arrives delays the last
