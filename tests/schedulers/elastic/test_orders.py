"""FIFO, SRSF and LAS by hand."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.elastic import ElasticView
from jobcast.schedulers.registry import make_policy
from tests.simulator.elastic.elastic_cases import Case, cluster_of, dealt, jobs_of, policies, views

FIFO, SRSF, LAS = (make_policy(name) for name in ("elastic_fifo", "srsf", "elastic_las"))


def ends(case, policy):
    return case.log(policy).end_s.tolist()


@pytest.mark.parametrize(
    ("policy", "gpus", "rows", "ends_s"),
    [
        # In order of submission: the first takes 3, the second what is left; at 10 s it takes 2, with 10 of 30 s done.
        (FIFO, 4, [(0.0, 30.0, 3), (0.0, 30.0, 2)], [10.0, 20.0]),
        # The second needs 4 at once and waits for all GPUs; the third, behind it, runs on the one that is left.
        (FIFO, 4, [(0.0, 30.0, 3), (0.0, 40.0, 4, 4), (0.0, 5.0, 1)], [10.0, 20.0, 5.0]),
        # By GPUs times time left: at 4 s the first has 6 s left, more than the 5 s of the second.
        (SRSF, 1, [(0.0, 10.0, 1), (4.0, 5.0, 1)], [15.0, 9.0]),
        # By GPU-seconds held: 2 x 3 when the second comes, which runs to its end; then the first goes on.
        (LAS, 2, [(0.0, 20.0, 2), (3.0, 10.0, 2)], [15.0, 8.0]),
        # The first held 0.4 GPU-seconds when the second comes, or less than half of a millisecond, which is none.
        (LAS, 1, [(0.0, 10.0, 1), (0.4, 5.0, 1)], [15.0, 5.4]),
        (LAS, 1, [(0.0, 10.0, 1), (0.0004, 5.0, 1)], [10.0, 15.0]),
        # Jobs that waited, in order of submission.
        (LAS, 1, [(0.0, 4.0, 1), (1.0, 2.0, 1), (1.0, 2.0, 1)], [8.0, 3.0, 5.0]),
    ],
)
def test_ends_by_hand(policy, gpus, rows, ends_s):
    assert ends(Case(jobs_of(rows), cluster_of(gpus)), policy) == pytest.approx(ends_s)


@pytest.mark.parametrize(("speed", "ends_s"), [(1.25, [18.0, 10.0]), (2.0, [8.0, 18.0])])
def test_srsf_counts_the_gpus_that_speed_does_not_repay(speed, ends_s):
    """2 GPUs at speed 1.25: 8 / 1.25 x 2 = 12.8 GPU-seconds, more than 10 on one; linear it is 8."""
    tables = np.full((1, 2, 3), [0.0, 1.0, speed])
    case = Case(jobs_of([(0.0, 8.0, 2), (0.0, 10.0, 1)], tables=tables), cluster_of(1))
    assert ends(case, SRSF) == ends_s


FAIR, WHOLE = make_policy("elastic_fair"), make_policy("elastic_fair", None, {"whole_gpus": "yes"})


def level_by_bisection(least, most, gpus):
    """The level at which shares add up to what there is."""
    low, high = 0.0, float(most.max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle, least, most).sum() <= gpus else (low, middle)
    return low


def admitted(view):
    """Jobs whose leasts fit one after another."""
    found, needed = [], 0.0
    for job in view.active[: view.count]:
        if needed + view.jobs.least[job] <= view.capacity.sum():
            needed += view.jobs.least[job]
            found.append(job)
    return found


@given(views(leasts=(0, 0, 1, 2, 4)))
def test_shares_are_max_min(view):
    jobs, gpus = admitted(view), dealt(FAIR, view)[:, 0]
    least, most = view.jobs.least[jobs], view.most[jobs]
    expected = np.clip(level_by_bisection(least, most, view.capacity.sum()), least, most)
    assert gpus[jobs] == pytest.approx(expected, abs=1e-9)
    assert gpus.sum() == pytest.approx(gpus[jobs].sum())


@given(views())
def test_whole_gpus_go_to_whoever_holds_fewest(view):
    jobs = view.active[: view.count].tolist()
    held, free = dict.fromkeys(jobs, 0), view.capacity.sum()
    while free and (open_to := [job for job in jobs if held[job] < view.most[job]]):
        held[min(open_to, key=held.__getitem__)] += 1
        free -= 1
    gpus = dealt(WHOLE, view)
    assert {job: gpus[job, 0] for job in jobs} == held


THEMIS = make_policy("elastic_themis")


def by_sorting(view):
    """GPUs by active job: sorted again, stably, for each grant."""
    held = dict.fromkeys(view.active[: view.count].tolist(), 0.0)
    queue, free = list(held), float(view.capacity.sum())

    def rho(job):
        share = min(view.capacity.sum() / view.contention[job], view.jobs.most[job])
        ends_s = view.now_s - view.jobs.submit_s[job] + view.left_s[job] / min(free, view.most[job])
        return ends_s / (view.jobs.size_s[job] / share)

    while free > 0 and queue:
        queue = sorted(queue, key=rho, reverse=True)
        job = queue.pop(0)
        got = min(free, view.most[job])
        if got >= view.jobs.least[job]:
            held[job] = got
            free -= got
    return held


@given(views() | views(leasts=(0, 1, 4)))
def test_deals_as_sorting_after_each_grant_does_passing_over_those_whose_least_does_not_fit(view):
    gpus = dealt(THEMIS, view)
    assert {job: gpus[job, 0] for job in view.active[: view.count]} == by_sorting(view)


def test_of_those_left_whoever_waits_for_most_is_next():
    """Six GPUs, jobs of 100 s on 4, 3 and 6, which are also their shares: all are delayed by 1, and the first gets 4.

    On the 2 that are left the second would take 3/2 of the time on its share, the third 6/2: it gets them.
    """
    jobs = jobs_of([(0.0, 100.0, most) for most in (4, 3, 6)])
    none, alone = np.zeros(3), np.ones(3)
    view = ElasticView(0.0, np.array([6.0]), np.arange(3), 3, jobs, jobs.size_s, jobs.most, none, alone)
    assert dealt(THEMIS, view)[:, 0].tolist() == [4.0, 0.0, 2.0]


def test_equal_ones_stay_in_order_of_submission():
    """Two GPUs for three alike that could use three each: the first takes both, at each look."""
    jobs = jobs_of([(0.0, 100.0, 3)] * 3)
    view = ElasticView(0.0, np.array([2.0]), np.arange(3), 3, jobs, jobs.size_s, jobs.most, np.zeros(3), np.ones(3))
    assert dealt(THEMIS, view)[:, 0].tolist() == [2.0, 0.0, 0.0]


def test_where_all_fit_the_first_to_come_takes_the_first_type():
    """A GPU of each of two types for two jobs, of which the second, of a tenth of the work, has been delayed more."""
    jobs = jobs_of([(0.0, 100.0, 1), (0.0, 10.0, 1)], speed=np.array([[1.0, 0.5]]))
    view = ElasticView(50.0, np.ones(2), np.arange(2), 2, jobs, jobs.size_s, jobs.most, np.zeros(2), np.ones(2))
    assert dealt(THEMIS, view).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_takes_turns_by_leases():
    """Jobs of 30 and 25 s on one GPU, both at 0 s, leases of 10 s: rho of both at each lease.

    Jobs met by the first: 1, 4/3, 6/4, 8/5, 10/6; by the second always 2, so its share would have taken 50 s.
    0 s: 30/30, 25/50. 10 s: 30/40, 35/50. 20 s: 30/45, 45/50. 30 s: 40/48, 45/50. 40 s: 50/50, 45/50.
    The first runs from 0 to 20 s and from 40 to 50 s, when it ends; the second from 20 to 40 s and from 50 s.
    """
    case = Case(jobs_of([(0.0, 30.0, 1), (0.0, 25.0, 1)]), cluster_of(1))
    log = case.log(make_policy("elastic_themis", None, {"lease_s": "10"}))
    assert log.end_s.tolist() == [50.0, 55.0]
    assert log.preemptions.tolist() == [1, 1]


def test_without_leases_left_nothing_changes_in_between():
    """As above, a lease longer than both: the first runs through."""
    case = Case(jobs_of([(0.0, 30.0, 1), (0.0, 25.0, 1)]), cluster_of(1))
    assert case.log(THEMIS).end_s.tolist() == [30.0, 55.0]


def test_with_speedups_in_rho_whoever_gains_nothing_by_its_gpus_has_been_delayed_most():
    """Twelve GPUs, three jobs of 30 s that can use all, at once, the third as fast on all as on one.

    They have met 4/3, 2 and 3 jobs, so that their shares are 9, 6 and 4 GPUs. Linearly the first is delayed by 9/12,
    the second by 6/12, the third by 4/12, and they run in this order. The third would take as long on its share as on
    all: with speedups it is delayed by 1, and begins.
    """
    table = np.array([[np.arange(13.0)], [np.minimum(np.arange(13.0), 1.0)]])
    jobs = jobs_of([(0.0, 30.0, 12)] * 3)._replace(model=np.array([0, 0, 1]), speedup=table, speed=np.ones((2, 1)))
    for settings, ends_s in (({}, [2.5, 5.0, 35.0]), ({"rho": "speedup"}, [32.5, 35.0, 30.0])):
        log = Case(jobs, cluster_of(12)).log(make_policy("elastic_themis", None, settings))
        assert log.end_s.tolist() == ends_s


# AFS-L against the tournament written down as the papers tell it.

AFS = make_policy("afs")


def tournament(view):
    """GPUs by active job: for each GPU all pairs are gone through again."""
    held = dict.fromkeys(view.active[: view.count].tolist(), 0)
    playing, free = list(held), int(view.capacity.sum())

    def speed(job, gpus):
        return view.jobs.speedup[view.jobs.model[job], 0, int(gpus)]

    def step(job):
        return 1 if held[job] else max(1, view.jobs.least[job])

    def left_s(job):
        return view.left_s[job] / speed(job, held[job]) if held[job] else inf

    def better(one, other):
        low, high = (other, one) if left_s(other) < left_s(one) else (one, other)
        low_0, low_1 = (speed(low, gpus) for gpus in (held[low], held[low] + step(low)))
        high_0, high_1 = (speed(high, gpus) for gpus in (held[high], held[high] + step(high)))
        if not held[low]:
            return low if low_1 / view.left_s[low] > high_1 / view.left_s[high] else high
        return low if (low_1 - low_0) / low_0 > (high_1 - high_0) / high_1 else high

    while free and playing:
        best = playing[0]
        for other in playing[1:]:
            best = better(best, other)
        if step(best) > free:
            playing.remove(best)
            continue
        free -= step(best)
        held[best] += step(best)
        if held[best] == view.most[best]:
            playing.remove(best)
    return held


@given(views() | views(leasts=(0, 1, 2, 4)))
def test_deals_as_the_tournament_does(view):
    gpus = dealt(AFS, view)
    assert {job: gpus[job, 0] for job in view.active[: view.count]} == tournament(view)


@pytest.mark.parametrize(
    ("rows", "gpus"),
    [
        # Everybody one first. The shorter, on 2 of 3, gains 1 - 1 = 100 % of its speed: more than the other's half.
        ([(0.0, 100.0, 4), (0.0, 30.0, 4)], [1.0, 2.0]),
        # 1 is all that the first can use; the other starts on 4.
        ([(0.0, 100.0, 1, 0), (0.0, 100.0, 4, 4)], [1.0, 0.0]),
    ],
)
def test_three_gpus_by_afs(rows, gpus):
    run = Case(jobs_of(rows), cluster_of(3)).run(AFS)
    run.submit(2)
    assert run.state.gpus[:, 0].tolist() == gpus


def test_prefers_the_efficient_one_to_the_short_one():
    """Of 3 GPUs one is left when both hold one. The shorter, 10 s, gains 0.2; the longer, 40 s, 1 of then 2: a half."""
    flat = np.array([0.0, 1.0, 1.2, *[1.2] * 14])
    linear = np.arange(17.0)
    tables = np.stack([np.stack([flat, flat]), np.stack([linear, linear])])
    case = Case(jobs_of([(0.0, 10.0, 2, 0, 0), (0.0, 40.0, 2, 0, 1)], tables=tables), cluster_of(3))
    run = case.run(AFS)
    run.submit(2)
    assert run.state.gpus[:, 0].tolist() == [1.0, 2.0]


def test_of_equal_jobs_without_gpus_the_later_one_wins():
    case = Case(jobs_of([(0.0, 10.0, 1), (0.0, 10.0, 1), (0.0, 10.0, 1)]), cluster_of(2))
    assert case.log(AFS).end_s.tolist() == [20.0, 10.0, 10.0]


# What holds for every rule whatever it is asked.

POLICIES = policies()


def check(policy, view):
    """Nothing but what is there, to those who are there, as much as they can use and no less than they need."""
    gpus, active = dealt(policy, view), view.active[: view.count]
    assert np.delete(gpus, active, axis=0).sum() == 0.0
    assert (gpus >= 0.0).all()
    assert (gpus.sum(axis=0) <= view.capacity + 1e-9).all()
    held = gpus[active].sum(axis=1)
    assert (held <= view.most[active] + 1e-9).all()
    assert ((held <= 1e-9) | (held >= view.jobs.least[active] - 1e-9)).all()
    if policy.integral:
        assert (gpus == np.round(gpus)).all()
    return held


@pytest.mark.parametrize("types", [1, 2])
@pytest.mark.parametrize("name", POLICIES)
@given(data=st.data())
def test_keeps_leasts_or_gives_nothing_and_without_any_uses_all_that_can_be_used(name, types, data):
    view = data.draw(views(types=types) | views(types=types, leasts=(0, 0, 1, 2, 3, 4, 16)))
    held = check(policies(types=types)[name], view)
    if not view.jobs.least.any():
        usable = min(view.capacity.sum(), view.most[view.active[: view.count]].sum())
        assert held.sum() == pytest.approx(usable, abs=1e-6)
