"""Max-min shares against filling up drop by drop, and by hand."""

import numpy as np
import pytest
from hypothesis import given

from jobcast.schedulers.registry import make_policy
from tests.simulator.elastic.elastic_cases import Case, cluster_of, dealt, jobs_of, views

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


def test_shares_by_hand():
    """10 GPUs for jobs of at most 1, 8 and 8: 1, 4.5 and 4.5; whole: 1, 5 and 4."""
    case = Case(jobs_of([(0.0, 50.0, 1), (0.0, 50.0, 8), (0.0, 50.0, 8)]), cluster_of(10))
    for policy, expected in ((FAIR, [1.0, 4.5, 4.5]), (WHOLE, [1.0, 5.0, 4.0])):
        run = case.run(policy)
        run.submit(3)
        assert run.state.gpus[:, 0].tolist() == expected


def test_a_least_above_the_level_is_kept():
    """10 GPUs, one job of at least 6: the two others share 4."""
    case = Case(jobs_of([(0.0, 50.0, 8, 6), (0.0, 50.0, 8), (0.0, 50.0, 8)]), cluster_of(10))
    run = case.run(FAIR)
    run.submit(3)
    assert run.state.gpus[:, 0].tolist() == [6.0, 2.0, 2.0]
