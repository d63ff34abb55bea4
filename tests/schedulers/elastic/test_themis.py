"""Themis's order against sorting everybody again after each grant, and by hand."""

from hypothesis import given
from hypothesis import settings as examples

from jobcast.schedulers.elastic.policies import ELASTIC_POLICIES
from tests.simulator.elastic.elastic_cases import Case, cluster_of, dealt, jobs_of, views

THEMIS = ELASTIC_POLICIES["themis"]()


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
    """Two jobs of 30 s on one GPU, both at 0 s, lease 10 s. Contention: 1.5 and 2, so fair times of 45 and 60 s.

    0 s: 30 / 45 < 30 / 60 is false: the first runs. 10 s: the first has met (1 + 1 + 2) / 3 = 4/3 + ... : see below.
    """
    case = Case(jobs_of([(0.0, 30.0, 1), (0.0, 30.0, 1)]), cluster_of(1))
    run = case.run(ELASTIC_POLICIES["themis"]({"lease_s": "10"}))
    run.submit(2)
    assert run.state.contention[:2].tolist() == [1.0, 2.0]
    assert run.state.gpus[:, 0].tolist() == [0.0, 1.0]
    run.finish()
    assert run.log().end_s.tolist() == [60.0, 30.0]
