"""Themis's order against sorting everybody again after each grant, and by hand."""

from hypothesis import given
from hypothesis import settings as examples

from jobcast.schedulers.registry import make_policy
from tests.simulator.elastic.elastic_cases import Case, cluster_of, dealt, jobs_of, views

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


@examples(max_examples=300)
@given(views())
def test_deals_as_sorting_after_each_grant_does(view):
    gpus = dealt(THEMIS, view)
    assert {job: gpus[job, 0] for job in view.active[: view.count]} == by_sorting(view)


@given(views(leasts=(0, 1, 4)))
def test_passes_over_those_whose_least_does_not_fit(view):
    gpus = dealt(THEMIS, view)
    assert {job: gpus[job, 0] for job in view.active[: view.count]} == by_sorting(view)


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
