"""Sizes that agree with whom the rule serves: what an order by size gives away, and that one without gives nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.elastic import ElasticJobs
from jobcast.models.completion.job_completions import ArrivalModel
from jobcast.pipelines.experiments.elastic.rollouts import Forecasters, Past, agreeing_sizes, play_futures
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.elastic.run import ElasticCluster, ElasticReplay


def stopped(policy, sizes, gpus=2.0):
    """Jobs of one GPU each, all submitted at once, and the run right after the last of them."""
    count = len(sizes)
    ones = np.ones(count)
    jobs = ElasticJobs(
        submit_s=np.zeros(count),
        size_s=np.array(sizes, dtype=np.float64),
        least=np.zeros(count),
        most=ones,
        model=np.zeros(count, dtype=np.int64),
        stage_of=np.arange(count + 1),
        stage_end=ones,
        stage_most=ones.copy(),
        speedup=np.tile(np.arange(2.0), (1, 2, 1)),
        speed=np.ones((1, 1)),
    )
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
    run, _ = stopped("elastic_fair", [50.0, 5_000.0, 6_000.0], gpus=1.0)
    run.advance(200.0)
    assert np.isfinite(run.state.end_s[0])
    past = Past(
        np.array([-200.0, -100.0, 0.0]),
        np.array([50.0, np.nan, np.nan]),
        np.zeros(3),
        np.ones(3),
        np.zeros(3, np.int64),
    )
    ends = play_futures(run, 2, Forecasters(None, ArrivalModel().fit(past.submit_s), past), futures=4, seed=0)
    assert np.isfinite(ends).all()
    assert (ends > 11_050.0).all()  # the three alone take 11,050 s on one GPU; whatever arrives delays the last
