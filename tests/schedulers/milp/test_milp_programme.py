"""Which starts are offered, and what the programme makes of them."""

from itertools import pairwise
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Pool
from jobcast.schedulers.milp.instance import make_instance
from jobcast.schedulers.milp.programme import (
    branch_and_bound,
    build,
    every_step,
    linear_relaxation,
    relax,
    sized_by_duration,
    with_tails,
)
from tests.schedulers.milp.milp_cases import cost, draw, random_schedule, usage


def test_starts_lie_as_far_apart_as_the_job_is_long():
    """A job of 12 steps has every third start at 4 a duration; one of up to 7 steps has all of them."""
    _, instance = draw(11, jobs=14, quotas=(2, 1), span=4, longest=12)
    steps = every_step(instance)
    offered = sized_by_duration(instance, steps, 4)
    for job in range(len(instance)):
        window = range(instance.submit[job], instance.cutoff[job] + 1)
        mine = steps.start[(steps.job == job) & offered].tolist()
        apart = max(1, instance.duration[job] // 4)
        assert mine == sorted({*window[::apart], window[-1]})
    assert offered.sum() < len(offered)


def test_what_no_computer_can_hold_is_refused():
    """By hand: ten jobs of a million steps wait 0, 1, ... 9 million steps on one GPU: 45,000,010 starts."""
    jobs = [Job(0, f"{index}", "p", 0.0, 1) for index in range(10)]
    instance = make_instance(jobs, [1e6] * 10, [Pool("p", 1)], 1.0)
    with pytest.raises(ConfigError, match="10 jobs have 45,000,010 possible starts, more than 10,000,000; take fewer"):
        every_step(instance)


@given(st.integers(0, 10**6), st.integers(0, 6))
def test_rows_refuse_exactly_what_exceeds_capacity(seed, reach):
    """Any choice of one start a job: the rows hold where usage stays within the GPUs, and only there."""
    _, instance = draw(seed, jobs=6, quotas=(3, 2), span=5, longest=6)
    steps = every_step(instance)
    columns = steps.columns(instance, np.ones(len(steps.job), dtype=bool))
    programme = build(instance, columns)
    relaxed = with_tails(instance, steps, np.ones(len(steps.job), dtype=bool), np.full(len(instance), reach))
    assert np.array_equal(relaxed.tail, relaxed.start - instance.submit[relaxed.job] > reach)
    loose = build(instance, relaxed)
    rng = np.random.default_rng(seed)
    choices = [[int(rng.integers(s, m + 1)) for s, m in zip(instance.submit, instance.cutoff, strict=True)]]
    choices += [instance.submit.tolist(), instance.cutoff.tolist(), random_schedule(instance, rng)]
    for start in choices:
        fits = usage(instance, start).sum(axis=0).max() <= instance.gpus
        values = columns.of(np.array(start))
        assert bool((programme.matrix @ values <= programme.high + 1e-9).all()) == bool(fits)
        assert programme.cost @ values == sum(start) - instance.submit.sum()
        if fits:
            tails = relaxed.of(np.array(start))
            assert (loose.matrix @ tails <= loose.high + 1e-9).all()
            assert (loose.matrix @ tails >= loose.low - 1e-9).all()
            assert loose.cost @ tails <= programme.cost @ values


@given(st.integers(0, 10**6), st.integers(0, 6))
def test_a_row_each_for_stretches_that_may_be_too_much_and_tell_something_new(seed, reach):
    """Where more jobs may run than fit, unless all of them run in the next one too, or in the last that was kept."""
    _, instance = draw(seed, jobs=6, quotas=(3, 2), span=5, longest=6)
    steps = every_step(instance)
    columns = with_tails(instance, steps, np.ones(len(steps.job), dtype=bool), np.full(len(instance), reach))
    programme = build(instance, columns)
    assert (programme.at + programme.length).tolist() == [*programme.at[1:], columns.end.max()]
    runs = [(columns.begin <= at) & (at < columns.end) for at in programme.at]
    full = [instance.width[np.unique(columns.job[one])].sum() > instance.gpus for one in runs]
    ends = np.isin(programme.at + programme.length, columns.end[columns.begin < columns.end])
    kept = np.flatnonzero(full & ends).tolist()
    begins = columns.begin[columns.begin < columns.end]
    new = [
        place
        for last, place in pairwise([-1, *kept])
        if last < 0 or ((programme.at[last] < begins) & (begins <= programme.at[place])).any()
    ]
    assert programme.capacity_of.tolist() == new


def programme_of(seed, beta, jobs=30):
    _, instance = draw(seed, jobs=jobs, quotas=(4, 3), span=12, longest=8)
    steps = every_step(instance)
    columns = steps.columns(instance, np.ones(len(steps.job), dtype=bool))
    return instance, columns, build(instance, columns, beta)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_an_incumbent_is_taken_without_any_time(beta):
    instance, columns, programme = programme_of(5, beta)
    solved = branch_and_bound(programme, columns.of(instance.cutoff), 0.0)
    assert solved.accepted
    assert not solved.proved
    assert programme.cost @ solved.values == pytest.approx(cost(instance, instance.cutoff.tolist(), beta))


def test_a_schedule_beyond_capacity_is_not_taken():
    instance, columns, programme = programme_of(5, 0.0)
    assert usage(instance, instance.submit).sum(axis=0).max() > instance.gpus
    solved = branch_and_bound(programme, columns.of(instance.submit), 0.0)
    assert not solved.accepted
    assert solved.values is None


def test_a_schedule_found_that_costs_more_than_the_incumbent_is_another():
    instance, columns, programme = programme_of(5, 0.0, jobs=15)
    solved = branch_and_bound(programme, columns.of(instance.submit), 60.0)
    assert programme.cost @ solved.values > programme.cost @ columns.of(instance.submit)
    assert solved.proved
    assert not solved.accepted


def test_no_time_for_the_relaxation():
    assert relax(programme_of(5, 0.0)[2], 0.0) is None


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 2.5]))
def test_starts_that_join_round_by_round_come_to_the_relaxation_of_all_of_them(seed, beta):
    _, instance = draw(seed, jobs=8, quotas=(3, 2), span=6, longest=6)
    steps = every_step(instance)
    first = (steps.start == instance.submit[steps.job]) | (steps.start == instance.cutoff[steps.job])
    found = linear_relaxation(instance, steps, first, beta, perf_counter() + 60.0)
    whole = relax(build(instance, steps.columns(instance, np.ones(len(steps.job), dtype=bool)), beta), 60.0)
    assert found.bound == pytest.approx(whole.cost, abs=1e-5)
    assert np.bincount(steps.job, found.share) == pytest.approx(np.ones(len(instance)))
    rng = np.random.default_rng(seed)
    for start in [instance.cutoff.tolist(), *(random_schedule(instance, rng) for _ in range(3))]:
        least = found.bound + found.reduced[steps.at(np.array(start), instance)].max()
        assert cost(instance, start, beta) >= least - 1e-5


def test_one_job_costs_nothing():
    _, instance = draw(0, jobs=1)
    steps = every_step(instance)
    programme = build(instance, steps.columns(instance, np.ones(len(steps.job), dtype=bool)))
    assert relax(programme, 10.0).cost == 0.0
