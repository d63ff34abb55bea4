"""Priorities of a diamond of four tasks, computed on paper. MLFS, equations 2 to 6."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.tasks.priorities import (
    Weights,
    job_order,
    learning_worth,
    task_deadlines,
    task_priorities,
)
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, jobs_of, task_views, view_of

HOUR_S = 3600.0
NOW_S = 2 * HOUR_S


def by_hour(**given):
    """Weights of the paper as it prints them, times in hours."""
    return Weights(**{"unit_s": HOUR_S, "sums": True} | given)


def diamond(*, server=False, deadline_s=NOW_S + 1.5 * HOUR_S, **given):
    """Task 0 before 1 and 2, both before 3; 75 of 100 iterations of 36 s are left, two of ten epochs are over.

    They gained 0.3 and 0.1: L_J x 1 / I x reduction is 6 x 1/3 x 1/4 = 0.5.
    """
    row = TaskJob(workers=4, urgency=6.0, iteration_s=36.0, deadline_s=deadline_s, server=server, server_compute_s=9.0)
    jobs = jobs_of(row)
    edges = [(0, 1), (0, 2), (1, 3), (2, 3)] + ([(3, 4), (4, 0), (4, 1), (4, 2), (4, 3)] if server else [])
    begins, ends = (np.array(column, dtype=np.int64) for column in zip(*edges, strict=True))
    jobs = jobs._replace(
        edge_of=np.array([0, len(edges)]),
        edge_from=begins,
        edge_to=ends,
        volume_mb=np.ones(len(edges)),
        size_share=np.array([0.1, 0.2, 0.3, 0.4] + [0.0] * server),
        compute_s=np.array([60.0, 900.0, 1800.0, 1800.0] + [9.0] * server),
    )
    fields = {"last_gain": np.array([0.1]), "all_gain": np.array([0.4])} | given
    return view_of(jobs, cluster_of(1, 4), done=[25.0], now_s=NOW_S, **fields)


def test_tasks_are_due_when_the_rest_of_the_last_iteration_still_fits():
    """After task 3 nothing follows, after 1 and 2 its half hour, after 0 half an hour of task 2 besides."""
    left_h = (task_deadlines(diamond()) - NOW_S) / HOUR_S
    assert left_h.tolist() == [0.5, 1.0, 1.0, 1.5]


def test_edges_are_those_of_the_job():
    """The first job is over; of the second the first task goes before the other, and is due its 2 s earlier."""
    jobs = jobs_of(*[TaskJob(workers=2, chain=True, compute_s=(1.0, 2.0), deadline_s=100.0)] * 2)
    view = view_of(jobs, cluster_of(1, 1), done=[100.0, 0.0], now_s=0.0)
    assert task_deadlines(view)[2:].tolist() == [98.0, 100.0]
    first, last = task_priorities(view, by_hour(gamma_d=0.0))[2:]
    assert first == pytest.approx(1.8 * last)


def test_equations_2_to_6_of_a_diamond():
    """ML: 0.05, 0.1, 0.15, 0.2 by size, with 0.8 of children 0.506, 0.26, 0.31, 0.2.

    Time, hours: 0.3 / 0.75 h that remain and 0.35 x 2 h of waiting are 1.1; deadlines 0.6, 0.3, 0.3, 0.2; with
    children 1.7 + 0.8 x 4.88 = 5.604, 1.4 + 0.8 x 1.3 = 2.44 twice, 1.3. Together 0.3 of the one, 0.7 of the other.
    """
    expected = [0.3 * 0.506 + 0.7 * 5.604, 0.3 * 0.26 + 0.7 * 2.44, 0.3 * 0.31 + 0.7 * 2.44, 0.3 * 0.2 + 0.7 * 1.3]
    np.testing.assert_allclose(task_priorities(diamond(), by_hour()), expected, rtol=1e-12)


def test_without_a_unit_each_term_counts_in_its_mean_over_the_queue():
    """One job: what remains and what it waited are their own means, 1 each; slack 0.5, 1, 1, 1.5 h of 1 h in the mean.

    ML by size, 0.1 to 0.4 of 0.25. With weights 0.8 of those that depend on them: task 1 is (b + 0.8 d) / 1.8.
    """
    value = [
        0.3 * size / 0.25 + 0.7 * (0.65 + 0.3 / slack) for size, slack in ((0.1, 0.5), (0.2, 1), (0.3, 1), (0.4, 1.5))
    ]
    last = value[3]
    second, third = ((one + 0.8 * last) / 1.8 for one in value[1:3])
    first = (value[0] + 0.8 * 1.8 * (second + third)) / (1 + 0.8 * 3.6)
    np.testing.assert_allclose(task_priorities(diamond(), Weights()), [first, second, third, last], rtol=1e-12)


def in_other_units(view, factor):
    """The same view as one that counts time in other units sees it."""
    jobs = view.jobs._replace(
        **{name: getattr(view.jobs, name) * factor for name in ("deadline_s", "submit_s", "iteration_s", "compute_s")}
    )
    return view._replace(jobs=jobs, now_s=view.now_s * factor, waited_s=view.waited_s * factor)


@given(task_views(), st.sampled_from([60.0, 3600.0, 86400.0]), st.booleans())
def test_no_unit_of_time_decides(view, unit, sums):
    """Hours are seconds times 3600; all times here are beyond a minute, the least that counts."""
    hours = in_other_units(view, 1e8)
    found, other = (task_priorities(one, Weights(sums=sums)) for one in (hours, in_other_units(hours, unit)))
    np.testing.assert_allclose(found, other, rtol=1e-9)
    assert task_priorities(view, Weights(unit_s=unit)).shape == found.shape


@given(task_views())
def test_shortest_remaining_time_first_is_the_reciprocal_of_what_remains(view):
    left_s = np.maximum((view.limit - view.done) * view.jobs.iteration_s, 60.0)
    order = job_order(view, task_priorities(view, make_policy("srtf").settings))
    assert (np.diff(left_s[order]) >= -1e-9 * left_s[order][1:]).all()


def test_a_parameter_server_is_as_high_as_the_highest_and_no_child():
    view = diamond(server=True, deadline_s=np.inf)
    without = task_priorities(diamond(deadline_s=np.inf), by_hour())
    priority = task_priorities(view, by_hour())
    np.testing.assert_allclose(priority[:4], without)
    assert priority[4] == priority.max()


@pytest.mark.parametrize(
    ("weights", "highest"),
    [
        (by_hour(urgency=False), 0.3 * 0.506 / 6 + 0.7 * 5.604),
        (by_hour(deadline=False), 0.3 * 0.506 + 0.7 * 1.1 * (1 + 0.8 * (2 * (1 + 0.8)))),
        (by_hour(gamma=0.0), 0.3 * 0.05 + 0.7 * 1.7),
        (by_hour(alpha=1.0), 0.506),
        (by_hour(gamma=0.0, alpha=0.0, unit_s=60.0), 0.3 / 30 + 0.3 / 45 + 0.35 * 120),
    ],
)
def test_terms_can_be_left_out_and_weighed(weights, highest):
    assert task_priorities(diamond(), weights)[0] == pytest.approx(highest, rel=1e-12)


def test_a_deadline_that_has_passed_counts_no_more_unless_late_jobs_are_kept_in_a_hurry():
    late = diamond(deadline_s=NOW_S - 1.0)
    gone, kept = (task_priorities(late, by_hour(late=late_counts, gamma=0.0))[3] for late_counts in (False, True))
    assert gone == task_priorities(late, by_hour(deadline=False, gamma=0.0))[3]
    assert kept - gone == pytest.approx(0.7 * 0.3 * 60.0)  # an hour over a minute


def test_a_task_due_before_its_job_is_at_most_in_a_minutes_hurry():
    close = diamond(deadline_s=NOW_S + 120.0)
    calm = task_priorities(close, by_hour(deadline=False, gamma=0.0))
    hurry = task_priorities(close, by_hour(gamma=0.0)) - calm
    np.testing.assert_allclose(hurry, 0.7 * 0.3 * np.array([60.0, 60.0, 60.0, 30.0]))


def test_before_the_first_epoch_the_reduction_is_1_and_without_any_gain_0():
    jobs = jobs_of(TaskJob(urgency=4.0), TaskJob(urgency=4.0))
    view = view_of(jobs, cluster_of(1, 1), done=[0.0, 10.0], all_gain=np.array([np.nan, 0.0]))
    view = view._replace(last_gain=np.array([np.nan, 0.0]))
    assert learning_worth(view, by_hour()).tolist() == [4.0, 0.0]


def test_jobs_come_with_their_first_tasks_and_the_earlier_of_equals_first():
    view = view_of(
        jobs_of(TaskJob(), TaskJob(workers=2), TaskJob(), TaskJob(submit_s=5.0)), cluster_of(1, 1), now_s=1.0
    )
    assert job_order(view, np.array([2.0, 1.0, 3.0, 2.0, 9.0])).tolist() == [1, 0, 2]


@given(task_views(), st.data())
def test_more_urgent_closer_to_the_end_or_longer_waiting_is_never_later(view, data):
    job = data.draw(st.sampled_from(view.active.tolist())) if len(view.active) else None
    if job is None:
        return
    urgency, waited_s, limit = view.jobs.urgency.copy(), view.waited_s.copy(), view.limit.copy()
    urgency[job] += data.draw(st.sampled_from([0.0, 1.0, 5.0]))
    waited_s[job] += data.draw(st.sampled_from([0.0, 60.0, 9000.0]))
    limit[job] -= data.draw(st.sampled_from([0.0, 0.5])) * (limit[job] - view.done[job])
    raised = view._replace(jobs=view.jobs._replace(urgency=urgency), waited_s=waited_s, limit=limit)
    before, after = (job_order(one, task_priorities(one, by_hour())).tolist() for one in (view, raised))
    assert after.index(job) <= before.index(job)
    assert sorted(after) == sorted(before)
