"""AFS-L against the tournament written down as the papers tell it."""

from math import inf

import numpy as np
from hypothesis import given

from jobcast.schedulers.registry import make_policy
from tests.simulator.elastic.elastic_cases import Case, cluster_of, dealt, jobs_of, views

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


@given(views())
def test_deals_as_the_tournament_does(view):
    gpus = dealt(AFS, view)
    assert {job: gpus[job, 0] for job in view.active[: view.count]} == tournament(view)


@given(views(leasts=(0, 1, 2, 4)))
def test_deals_as_the_tournament_does_with_leasts(view):
    gpus = dealt(AFS, view)
    assert {job: gpus[job, 0] for job in view.active[: view.count]} == tournament(view)


def test_gives_every_job_a_gpu_before_anyone_a_second_one():
    """The shorter one, on 2 of 3 GPUs, then gains 1 - 1 = 100 % of its speed: more than the other's half."""
    case = Case(jobs_of([(0.0, 100.0, 4), (0.0, 30.0, 4)]), cluster_of(3))
    run = case.run(AFS)
    run.submit(2)
    assert run.state.gpus[:, 0].tolist() == [1.0, 2.0]


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


def test_what_is_too_little_for_the_rest_is_left_idle():
    """Of 3 GPUs 1 is all that the first can use; the other starts on 4."""
    case = Case(jobs_of([(0.0, 100.0, 1, 0), (0.0, 100.0, 4, 4)]), cluster_of(3))
    run = case.run(AFS)
    run.submit(2)
    assert run.state.gpus[:, 0].tolist() == [1.0, 0.0]
