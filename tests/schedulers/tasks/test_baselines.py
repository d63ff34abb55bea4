"""What the baselines share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.tasks import GPU, QUEUED
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.tasks.baselines import (
    AFFINITY,
    GrapheneSettings,
    TiresiasSettings,
    amplitude,
    deadline_gain,
    descendants,
    epochs_seen,
    finished_gpu_s,
    gain_speed,
    gain_until,
    gittins_index,
    groups_of,
    pack_by,
    received_share,
    scores,
    second_queue,
    trouble,
)
from jobcast.schedulers.tasks.packing import room_of, wants_of
from jobcast.schedulers.tasks.preemption import (
    GPU_AND_MEMORY,
    attained_gpu_s,
    due,
    job_use,
    measured_iteration_s,
    running_jobs,
    sorted_jobs,
    waiting_jobs,
)
from tests.simulator.tasks import task_cases
from tests.simulator.tasks.task_cases import (
    TaskJob,
    arrays_of,
    checked,
    cluster_of,
    jobs_of,
    loads_of,
    one_job_alone,
    replay_tasks,
    task_views,
    view_of,
    workload_of,
    workloads,
)


def answer(name, view, **settings):
    """A policy's decision, by arrays."""
    return arrays_of(make_policy(name, None, settings).place(view))


def after(name, view, **settings):
    """Where tasks are after it."""
    return task_cases.after(view, make_policy(name, None, settings))


def test_a_job_runs_where_all_its_tasks_are_on_gpus():
    jobs = jobs_of(TaskJob(workers=2), TaskJob(workers=2), TaskJob(), TaskJob(iterations=10.0))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 1, 0, QUEUED, QUEUED, QUEUED], done=[0, 0, 0, 10])
    assert running_jobs(view).tolist() == [0]
    assert waiting_jobs(view).tolist() == [1, 2]  # job 3 is over


def test_the_first_key_counts_first_and_ties_go_by_submission():
    jobs = np.array([3, 1, 0, 2])
    first, second = np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 2.0, 1.0, 1.0])
    assert sorted_jobs(jobs, first, second).tolist() == [2, 3, 1, 0]
    assert sorted_jobs(jobs).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("now_s", "expected"), [(600.0, True), (659.0, True), (660.0, False), (899.0, False)])
def test_one_decision_an_interval_is_due(now_s, expected):
    view = view_of(jobs_of(TaskJob()), cluster_of(1, 1), now_s=now_s)
    assert due(view, 300.0) is expected
    assert due(view, 0.0) is True


def test_an_iteration_takes_as_long_as_it_did_and_before_that_as_long_as_estimated():
    ran_s = np.array([100.0, 5.0, 0.25, 0.0])
    view = view_of(jobs_of(*[TaskJob(iteration_s=2.0)] * 4), cluster_of(1, 2), done=[20, 0, 0.5, 3], ran_s=ran_s)
    assert measured_iteration_s(view).tolist() == [5.0, 2.0, 0.5, 2.0]


def test_service_counts_gpus_and_time():
    jobs = jobs_of(TaskJob(workers=2, gpu=0.5), TaskJob(submit_s=40.0))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 1, 0], now_s=100.0)
    assert attained_gpu_s(view).tolist() == [200.0, 60.0]


def test_use_is_that_of_all_tasks_with_the_parameter_server():
    jobs = jobs_of(TaskJob(workers=2, gpu=(0.5, 0.25), cpu=2.0, memory=3.0, bandwidth=10.0, server=True))
    view = view_of(jobs, cluster_of(1, 1))
    assert job_use(view).tolist() == [[0.75, 6.0, 9.0, 30.0]]


def three(gpu_of, ran_s, waited_s=(0.0, 0.0, 0.0), **given):
    jobs = jobs_of(*[TaskJob(gpu=1.0)] * 3)
    fields = {"ran_s": np.array(ran_s), "waited_s": np.array(waited_s), "now_s": 10_000.0}
    return view_of(jobs, cluster_of(1, 1), gpu_of=gpu_of, **(fields | given))


def test_a_job_of_the_first_queue_takes_the_place_of_one_of_the_second():
    seen = three([0, QUEUED, QUEUED], [4000.0, 100.0, 50.0])
    decided = answer("tiresias", seen)
    assert decided.stop.tolist() == [0]
    assert checked(seen, decided).tolist() == [QUEUED, 0, QUEUED]  # within a queue by submission, not by service


@pytest.mark.parametrize("ran_s", [[3000.0, 0.0, 0.0], [9000.0, 4000.0, 5000.0]])
def test_within_a_queue_nobody_is_displaced(ran_s):
    decided = answer("tiresias", three([0, QUEUED, QUEUED], ran_s))
    assert (decided.stop.size, decided.tasks.size) == (0, 0)


def test_service_is_gpus_times_time():
    jobs = jobs_of(TaskJob(workers=4, gpu=0.5), TaskJob())
    seen = view_of(jobs, cluster_of(1, 4), ran_s=np.array([1000.0, 1000.0]))
    low = second_queue(seen, jobs.gpus * seen.ran_s, TiresiasSettings())
    assert low.tolist() == [True, False]


def test_a_job_rises_when_it_waited_eight_times_as_long_as_its_service_takes():
    def low(ran_s, waited_s, **chosen):
        seen = three([0] * 3, [ran_s, 0.0, 0.0], [waited_s, 0.0, 0.0])
        return second_queue(seen, seen.ran_s, TiresiasSettings(queue_gpu_s=1000.0, **chosen)).tolist()[0]

    assert [low(1500.0, waited_s) for waited_s in (0.0, 7999.0, 8000.0)] == [True, True, False]
    assert [low(ran_s, 8000.0) for ran_s in (1999.0, 2000.0)] == [False, True]  # it keeps its GPUs until then
    assert [low(1500.0, waited_s, promote=0.5) for waited_s in (499.0, 500.0)] == [True, False]
    assert low(1500.0, 1e9, promote=0.0) is True


def test_the_index_prefers_who_is_likely_to_end_soon():
    # Others ended after 1, 1 and 10: of three that begin 2 end within 1 each; who has had 2 needs 8 more.
    assert gittins_index(np.array([1.0, 1.0, 10.0]), np.array([0.0, 2.0, 11.0])).tolist() == pytest.approx(
        [2 / 3, 1 / 8, 0.0]
    )
    assert gittins_index(np.empty(0), np.array([0.0, 3.0])).tolist() == [0.0, 0.0]


@given(
    finished=st.lists(st.integers(1, 20), min_size=1, max_size=12),
    attained=st.lists(st.integers(0, 22), min_size=1, max_size=5),
)
def test_the_index_is_the_best_ratio_by_its_definition(finished, attained):
    found = gittins_index(np.array(finished, dtype=float), np.array(attained, dtype=float))
    for index, service in zip(found, attained, strict=True):
        rest = [whole - service for whole in finished if whole > service]
        ratios = [sum(r <= d for r in rest) / sum(min(r, d) for r in rest) for d in rest]
        assert index == pytest.approx(max(ratios, default=0.0))


def test_the_service_of_finished_jobs_is_read_from_the_view():
    jobs = jobs_of(TaskJob(workers=2), TaskJob(), TaskJob(submit_s=50.0), TaskJob(submit_s=900.0))
    seen = view_of(jobs, cluster_of(1, 2), done=[100, 40, 100, 0], now_s=100.0, ran_s=np.array([30.0, 9.0, 7.0, 0.0]))
    assert finished_gpu_s(seen).tolist() == [60.0, 7.0]


def test_gittins_orders_a_queue_by_index():
    jobs = jobs_of(*[TaskJob(gpu=1.0)] * 4)
    ran_s = np.array([100.0, 1000.0, 200.0, 90.0])  # the first and second are over
    seen = view_of(jobs, cluster_of(1, 1), done=[100, 100, 50, 50], ran_s=ran_s, now_s=5000.0)
    assert after("tiresias", seen) == [QUEUED, QUEUED, 0, QUEUED]
    assert after("tiresias", seen, index="gittins") == [QUEUED, QUEUED, QUEUED, 0]  # 1/20 against 1/800


def test_a_share_is_what_was_had_of_the_cluster_since_the_job_came():
    jobs = jobs_of(TaskJob(workers=2), TaskJob(submit_s=98.5))
    view = view_of(jobs, cluster_of(1, 4), now_s=100.0, ran_s=np.array([50.0, 1.0]))
    assert received_share(view).tolist() == pytest.approx([100 / 400, 1 / 6])


def test_the_least_share_comes_first_and_then_the_first_submitted():
    jobs = jobs_of(*[TaskJob(gpu=1.0)] * 3)
    view = view_of(jobs, cluster_of(1, 1), now_s=100.0, ran_s=np.array([50.0, 0.0, 0.0]))
    assert after("borg_fair", view) == [QUEUED, 0, QUEUED]


def test_a_task_goes_where_the_least_is_left_over():
    jobs = jobs_of(TaskJob(gpu=0.5, cpu=8.0), TaskJob(gpu=0.3))
    assert after("borg_fair", view_of(jobs, cluster_of(2, 1), gpu_of=[1, QUEUED])) == [1, 1]


@pytest.mark.parametrize("demand", [{"cpu": 20.0}, {"bandwidth": 700.0}, {"memory": 130.0}])
def test_no_resource_is_promised_twice(demand):
    jobs = jobs_of(TaskJob(gpu=0.1, **demand), TaskJob(gpu=0.1, **demand))
    assert after("borg_fair", view_of(jobs, cluster_of(1, 2))) == [0, QUEUED]


def test_running_jobs_make_room_only_where_asked_for():
    jobs = jobs_of(TaskJob(gpu=1.0), TaskJob(gpu=1.0))
    view = view_of(jobs, cluster_of(1, 1), gpu_of=[0, QUEUED], now_s=600.0)
    assert after("borg_fair", view) == [0, QUEUED]
    assert after("borg_fair", view, interval_s=300.0) == [QUEUED, 0]
    assert after("borg_fair", view._replace(now_s=660.0), interval_s=300.0) == [0, QUEUED]


# Baselines in whole replays: nobody is stopped again and again.

MOST_AT_ONCE = 12
"""Jobs of at least 0.3 of a GPU that four GPUs hold."""
MADE = ["slaq", "tiresias", "gandiva", "graphene", "borg_fair", "hypersched"]
BLIND = {
    "gandiva": ["iteration_s", "deadline_s", "urgency", "target"],
    "borg_fair": ["iteration_s", "deadline_s", "urgency", "target"],
    "tiresias": ["iteration_s", "deadline_s", "urgency", "target"],
    "graphene": ["deadline_s", "urgency", "target"],
    "slaq": ["deadline_s", "urgency", "target"],
    "hypersched": ["urgency", "target"],
}


def crowded(seed):
    """Jobs that each fit two servers of two GPUs, several times more than fit at once."""
    rng = np.random.default_rng(seed)
    rows = [
        TaskJob(
            submit_s=submit_s,
            workers=int(rng.choice([1, 2, 4])),
            epochs=20,
            iterations=20.0 * rng.choice([5, 20]),
            gpu=rng.choice([0.3, 0.6, 1.0]),
            memory=rng.choice([2.0, 30.0]),
            compute_s=rng.choice([0.5, 3.0, 9.0]),
            deadline_s=submit_s + rng.choice([600.0, 3600.0, np.inf]),
        )
        for submit_s in np.sort(rng.integers(0, 4000, 25)).astype(float)
    ]
    return workload_of(rows, cluster_of(2, 2))


def replayed(name, seed, **given):
    return replay_tasks(crowded(seed), make_policy(name, None, given), seed=seed)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_slaq_stops_a_job_at_most_once_an_interval(seed):
    log = replayed("slaq", seed, interval_s=600.0)
    assert log.preemptions.sum() > 0
    assert (log.preemptions <= np.ceil((log.end_s - log.submit_s) / 600.0)).all()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tiresias_stops_jobs_only_for_those_that_start_in_the_first_queue(seed):
    assert replayed("tiresias", seed, queue_gpu_s=1e12).preemptions.sum() == 0
    preemptions = replayed("tiresias", seed, queue_gpu_s=1000.0, promote=0.0).preemptions
    assert 0 < preemptions.sum() <= len(preemptions) * MOST_AT_ONCE
    assert preemptions.max() <= len(preemptions)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_hypersched_stops_nobody_who_gains(seed):
    assert replayed("hypersched", seed, least_gain=0.0).preemptions.sum() == 0
    preemptions = replayed("hypersched", seed, least_gain=0.3).preemptions
    assert 0 < preemptions.sum() <= len(preemptions) * MOST_AT_ONCE


@pytest.mark.parametrize("name", MADE)
@given(view=task_views(partial=True))
@settings(max_examples=25)
def test_a_policy_asks_for_what_can_be_and_sees_only_what_it_may(name, view):
    policy = make_policy(name)
    decided = arrays_of(policy.place(view))
    checked(view, decided)
    hidden = {field: getattr(view.jobs, field) * 1.7 + 1.0 for field in BLIND[name]}
    other = arrays_of(policy.place(view._replace(jobs=view.jobs._replace(**hidden), final_mean=view.final_mean + 1.0)))
    assert [column.tolist() for column in other] == [column.tolist() for column in decided]


# Gains by the curve c - a / (k + 1).


def one(done, **given):
    return view_of(jobs_of(TaskJob(iterations=100.0, epochs=10)), cluster_of(1, 1), done=[done], **given)


@pytest.mark.parametrize(("done", "expected"), [(0.0, 0), (9.9, 0), (10.0, 1), (59.0, 5)])
def test_only_ended_epochs_are_seen(done, expected):
    assert epochs_seen(one(done)).tolist() == [expected]


def test_the_next_gain_after_one_epoch_is_a_third_of_the_first():
    view = one(10.0, last_gain=np.array([0.3]))
    assert amplitude(view).tolist() == pytest.approx([0.6])  # 0.3 x 1 x 2
    assert gain_until(view, np.array([2.0])).tolist() == pytest.approx([0.1])  # 0.6 x (1/2 - 1/3)


@given(a=st.floats(0.01, 1.0), seen=st.integers(1, 9), later=st.integers(0, 30))
def test_a_curve_of_this_shape_is_foretold_exactly(a, seen, later):
    gained = np.array([a / seen - a / (seen + 1)])
    view = one(10.0 * seen, last_gain=gained)
    expected = max(0.0, a / (seen + 1) - a / (later + 1))
    assert gain_until(view, np.array([float(later)]))[0] == pytest.approx(expected, abs=1e-12)


def test_before_the_first_epoch_all_may_be_gained():
    view = one(5.0)
    assert gain_until(view, np.array([4.0])).tolist() == pytest.approx([0.8])  # 1 - 1/5
    assert gain_until(view, np.array([0.0])).tolist() == [0.0]


def test_a_metric_that_fell_gains_nothing():
    assert gain_until(one(50.0, last_gain=np.array([-0.1])), np.array([10.0])).tolist() == [0.0]


def two(gpu_of, *, now_s=600.0, **given):
    """Two jobs of one GPU with ten epochs of ten iterations, of which they ended four; the first gained less last."""
    jobs = jobs_of(TaskJob(gpu=1.0, iteration_s=1.0), TaskJob(gpu=1.0, iteration_s=1.0))
    fields = {
        "done": [40.0, 40.0],
        "last_gain": np.array([0.01, 0.1]),
        "all_gain": np.array([0.5, 0.5]),
        "ran_s": np.array([40.0, 40.0]),
        "now_s": now_s,
    }
    return view_of(jobs, cluster_of(1, 1), gpu_of=gpu_of, **(fields | given))


def test_speed_is_the_next_gain_as_a_share_of_all_per_second():
    # a = 0.01 x 4 x 5; next: a (1/5 - 1/6) = 0.2 / 30; of 0.5 in 10 s
    assert gain_speed(two([0, QUEUED])).tolist() == pytest.approx([0.2 / 30 / 0.5 / 10, 2.0 / 30 / 0.5 / 10])


def test_an_unseen_job_gains_all_that_it_will_have_in_its_first_epoch():
    nan = np.full(2, np.nan)
    view = two([0, QUEUED], done=[5.0, 0.0], last_gain=nan, all_gain=nan, ran_s=np.array([10.0, 0.0]))
    assert gain_speed(view).tolist() == pytest.approx([1 / 20, 1 / 10])


def test_a_job_that_never_gained_has_no_speed():
    assert gain_speed(two([0, QUEUED], last_gain=np.zeros(2), all_gain=np.zeros(2))).tolist() == [0.0, 0.0]


def test_the_faster_gain_comes_first():
    view = two([QUEUED, QUEUED])
    assert after("slaq", view) == [QUEUED, 0]


def test_it_takes_a_slower_jobs_place_only_at_the_end_of_an_interval():
    assert answer("slaq", two([0, QUEUED])).stop.tolist() == [0]
    between = two([0, QUEUED], now_s=660.0)
    assert answer("slaq", between).stop.size == 0
    assert answer("slaq", between, interval_s=60.0).stop.tolist() == [0]
    assert answer("slaq", two([QUEUED, 0])).stop.size == 0


def test_a_quick_job_beats_a_slow_one_of_the_same_gain():
    view = two([QUEUED, QUEUED], last_gain=np.array([0.05, 0.05]), ran_s=np.array([40.0, 400.0]))
    assert after("slaq", view) == [0, QUEUED]


def test_measured_times_replace_estimates():
    view = two([0, QUEUED])
    slower = view._replace(jobs=view.jobs._replace(iteration_s=view.jobs.iteration_s * 99.0))
    assert gain_speed(slower).tolist() == gain_speed(view).tolist()


def pair(deadlines, gpu_of=(QUEUED, QUEUED), **given):
    jobs = jobs_of(*[TaskJob(gpu=1.0, iteration_s=1.0, deadline_s=deadline_s) for deadline_s in deadlines])
    return view_of(jobs, cluster_of(1, 1), gpu_of=gpu_of, **given)


def test_a_job_gains_what_the_epochs_before_its_deadline_bring():
    # epochs of 10 s: none, four and all ten fit
    assert deadline_gain(pair([9.0, 45.0])).tolist() == pytest.approx([0.0, 0.8])
    assert deadline_gain(pair([np.inf, 1e9])).tolist() == pytest.approx([10 / 11, 10 / 11])


def test_after_epochs_the_last_gain_tells_what_comes():
    view = pair([160.0, 90.0], done=[25.0, 25.0], last_gain=np.array([0.1, 0.1]), now_s=60.0, ran_s=np.full(2, 50.0))
    # a = 0.1 x 2 x 3; at 2 s each the first can be at 75 iterations, the second at 40, of ten an epoch
    assert deadline_gain(view).tolist() == pytest.approx([0.6 * (1 / 3 - 1 / 8), 0.6 * (1 / 3 - 1 / 5)])


def test_a_stop_that_was_set_ends_the_gain():
    assert deadline_gain(pair([1e9, 1e9], limit=np.array([40.0, 100.0]))).tolist() == pytest.approx([0.8, 10 / 11])


def test_who_gains_most_before_the_deadline_comes_first():
    assert after("hypersched", pair([30.0, 100.0])) == [QUEUED, 0]
    assert after("hypersched", pair([100.0, 30.0])) == [0, QUEUED]


def test_who_gains_nothing_gives_way():
    plateau = {"done": [50.0, 0.0], "last_gain": np.array([1e-5, np.nan])}
    assert after("hypersched", pair([1e9, 1e9], [0, QUEUED], **plateau)) == [QUEUED, 0]
    assert after("hypersched", pair([9.0, 45.0], [0, QUEUED]), least_gain=0.8) == [QUEUED, 0]  # just enough
    late = pair([10.0, 1e9], [0, QUEUED], now_s=20.0)
    assert after("hypersched", late) == [QUEUED, 0]


def test_who_still_gains_stays():
    gaining = {"done": [50.0, 0.0], "last_gain": np.array([0.05, np.nan])}
    assert after("hypersched", pair([1e9, 1e9], [0, QUEUED], **gaining)) == [0, QUEUED]
    assert after("hypersched", pair([1e9, 1e9], [0, QUEUED], **gaining), least_gain=0.5) == [QUEUED, 0]


def test_who_gains_nothing_displaces_nobody_but_uses_what_is_left():
    flat = {"done": [50.0, 50.0], "last_gain": np.full(2, 1e-5)}
    assert after("hypersched", pair([1e9, 1e9], [0, QUEUED], **flat)) == [0, QUEUED]
    assert after("hypersched", pair([1e9, 1e9], **flat)) == [0, QUEUED]


# Gandiva: first in, first out, affinity, migration.


def test_first_in_first_out_whatever_they_need():
    jobs = jobs_of(
        TaskJob(workers=2, gpu=1.0, iterations=1e6), TaskJob(submit_s=1.0, gpu=1.0, iterations=1.0, epochs=1)
    )
    assert after("gandiva", view_of(jobs, cluster_of(1, 2))) == [0, 1, QUEUED]


def test_who_does_not_fit_is_passed_by():
    jobs = jobs_of(TaskJob(workers=3, gpu=1.0), TaskJob(gpu=1.0))
    assert after("gandiva", view_of(jobs, cluster_of(1, 2))) == [QUEUED, QUEUED, QUEUED, 0]


def test_jobs_with_as_many_gpus_share_servers():
    jobs = jobs_of(TaskJob(gpu=0.2), TaskJob(workers=2, gpu=0.6), TaskJob(gpu=0.2), TaskJob(workers=2, gpu=0.1))
    view = view_of(jobs, cluster_of(3, 2), gpu_of=[0, 2, 3, QUEUED, QUEUED, QUEUED])
    assert after("gandiva", view) == [0, 2, 3, 1, 2, 3]


def test_where_there_is_no_kin_an_empty_server_comes_before_others():
    jobs = jobs_of(TaskJob(gpu=0.1), TaskJob(workers=2, gpu=0.6))
    assert after("gandiva", view_of(jobs, cluster_of(2, 2), gpu_of=[0, QUEUED, QUEUED])) == [0, 2, 3]
    assert after("gandiva", view_of(jobs, cluster_of(1, 2), gpu_of=[0, QUEUED, QUEUED])) == [0, 1, 0]


def test_among_servers_of_others_the_least_used_comes_first():
    """0.4 of 4 GPUs before 0.3 of 2, until the first task makes it 0.7 of 4."""
    jobs = jobs_of(TaskJob(gpu=0.3), TaskJob(gpu=0.4), TaskJob(workers=2, gpu=0.3))
    assert after("gandiva", view_of(jobs, cluster_of(2, [2, 4]), gpu_of=[0, 2, QUEUED, QUEUED])) == [0, 2, 3, 1]
    assert after("gandiva", view_of(jobs_of(TaskJob()), cluster_of(2, 1))) == [0]  # of equals the first


def test_who_is_counted_where_follows_what_is_placed_and_taken_back():
    jobs = jobs_of(TaskJob(gpu=0.5), TaskJob(workers=2, gpu=(0.3, 0.9)), TaskJob(workers=2, gpu=0.2))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, *[QUEUED] * 4])
    room = room_of(view)
    group, counts = groups_of(view, room)
    pack_by(AFFINITY, room, GPU_AND_MEMORY, wants_of(view), np.array([1, 2]), group, counts)
    assert counts.tolist() == [[1, 0], [0, 2]]


def test_the_task_with_the_least_use_leaves_an_overloaded_gpu_for_the_least_used():
    jobs = jobs_of(TaskJob(gpu=0.7), TaskJob(gpu=0.5), TaskJob(gpu=0.4), TaskJob(gpu=0.3))
    assert after("gandiva", view_of(jobs, cluster_of(1, 3), gpu_of=[0, 0, 1, 2])) == [0, 2, 1, 2]


def test_nothing_moves_below_the_threshold():
    jobs = jobs_of(TaskJob(gpu=0.5), TaskJob(gpu=0.5))
    view = view_of(jobs, cluster_of(1, 2), gpu_of=[0, 0])
    assert after("gandiva", view) == [0, 0]
    assert after("gandiva", view, overload=0.9) == [1, 0]


def test_nothing_moves_where_it_would_overload_again_or_alone():
    crowded = jobs_of(TaskJob(gpu=0.7), TaskJob(gpu=0.5), TaskJob(gpu=0.8))
    assert after("gandiva", view_of(crowded, cluster_of(1, 2), gpu_of=[0, 0, 1])) == [0, 0, 1]
    alone = view_of(jobs_of(TaskJob(gpu=1.0)), cluster_of(1, 2), gpu_of=[0], factor=1.2)
    assert after("gandiva", alone) == [0]


def test_a_parameter_server_relieves_no_gpu():
    jobs = jobs_of(TaskJob(gpu=0.8, server=True), TaskJob(gpu=0.5))
    assert after("gandiva", view_of(jobs, cluster_of(1, 2), gpu_of=[0, 0, 0])) == [0, 0, 1]


def test_a_move_needs_memory():
    jobs = jobs_of(TaskJob(gpu=0.7, memory=50.0), TaskJob(gpu=0.5, memory=50.0), TaskJob(gpu=0.5, memory=100.0))
    for memory, expected in ((149.0, [0, 0, 1]), (150.0, [0, 1, 1])):
        assert after("gandiva", view_of(jobs, cluster_of(2, 1, memory=memory), gpu_of=[0, 0, 1])) == expected


@given(view=task_views())
def test_migration_overloads_no_gpu_and_stops_no_job(view):
    decided = answer("gandiva", view)
    gpu_of = checked(view, decided)
    assert decided.stop.size == 0
    if one_job_alone(view, gpu_of):  # which may pass all limits but that of memory
        return
    _, gpu_load = loads_of(view.cluster, view.task_load, gpu_of)
    assert (gpu_load <= np.maximum(1.0, view.gpu_load) + 1e-6).all()
    moved = (view.gpu_of != QUEUED) & (gpu_of != view.gpu_of)
    assert (view.gpu_load[view.gpu_of[moved]] > 1.0).all()
    assert (view.task_load[moved, GPU] > 0.0).all()


def after_graphene(view, **weights):
    return after("graphene", view, **{"srpt": 0.0, "packing": 0.0, "fairness": 0.0} | weights)


def test_dependants_are_counted_along_a_chain_and_not_through_the_broadcast():
    jobs = jobs_of(TaskJob(workers=3, chain=True, server=True), TaskJob(workers=2, server=True))
    assert descendants(jobs).tolist() == [3, 2, 1, 0, 1, 1, 0]


def test_more_tasks_than_a_word_has_bits():
    jobs = jobs_of(TaskJob(workers=150, chain=True))
    assert descendants(jobs).tolist() == list(range(149, -1, -1))


@given(load=workloads())
def test_dependants_are_all_that_can_be_reached(load):
    jobs, _ = load
    reached = [set() for _ in jobs.job_of]
    edges = sorted(zip(jobs.edge_from.tolist(), jobs.edge_to.tolist(), strict=True), reverse=True)
    for one, other in edges:
        if one < other:
            reached[one] |= {other} | reached[other]
    assert descendants(jobs).tolist() == [len(found) for found in reached]


def test_trouble_is_the_share_of_dependants_and_the_largest_demand():
    pair = TaskJob(workers=2, chain=True, gpu=0.4, cpu=16.0)
    jobs = jobs_of(TaskJob(workers=3, chain=True, gpu=(0.4, 0.8, 0.4), cpu=16.0), pair, TaskJob(gpu=0.4, cpu=16.0))
    # cores: 16 of 32; GPU: of 1
    expected = [1.0 + 0.5, 0.5 + 0.8, 0.5, 1.0 + 0.5, 0.5, 0.5]
    assert trouble(jobs, cluster_of(2, 1)).tolist() == pytest.approx(expected)


def test_the_most_troublesome_task_takes_the_best_aligned_server():
    jobs = jobs_of(TaskJob(gpu=0.1), TaskJob(workers=2, gpu=(0.3, 0.9)))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, QUEUED, QUEUED])
    assert after_graphene(view, srpt=1.0) == [0, 0, 1]  # the larger one first: server 1 has more free
    wide = view_of(jobs_of(TaskJob(gpu=0.4)), cluster_of(2, [4, 1]))
    assert after_graphene(wide, srpt=1.0) == [4]  # of one GPU it uses more than of four


def test_little_remaining_work_comes_first():
    jobs = jobs_of(TaskJob(gpu=0.8, iterations=1000.0), TaskJob(gpu=0.8, iterations=500.0, epochs=5, iteration_s=1.5))
    view = view_of(jobs, cluster_of(1, 1))
    assert after_graphene(view, srpt=1.0) == [QUEUED, 0]
    assert after_graphene(view_of(jobs, cluster_of(1, 1), done=[600, 0]), srpt=1.0) == [0, QUEUED]


def test_packing_prefers_the_larger_demand_of_what_is_free():
    jobs = jobs_of(TaskJob(gpu=0.6, cpu=1.0), TaskJob(gpu=0.6, cpu=20.0))
    view = view_of(jobs, cluster_of(1, 1))
    assert after_graphene(view, packing=1.0) == [QUEUED, 0]


def test_fairness_prefers_who_lacks_most():
    jobs = jobs_of(TaskJob(gpu=0.8), TaskJob(submit_s=60.0, gpu=0.8))
    view = view_of(jobs, cluster_of(1, 1), now_s=1000.0, ran_s=np.array([300.0, 0.0]))
    # fair: half a GPU of 1000 s and of 940 s; the first had 300 of its 500
    assert scores(view, view.active, GrapheneSettings(srpt=0.0, packing=0.0, fairness=1.0)).tolist() == pytest.approx(
        [200 / 470, 1.0]
    )
    assert after_graphene(view, fairness=1.0) == [QUEUED, 0]


def test_a_score_adds_shares_of_the_largest():
    jobs = jobs_of(TaskJob(gpu=0.5, cpu=8.0), TaskJob(workers=2, gpu=1.0, cpu=0.0), TaskJob(gpu=1.0, cpu=24.0))
    cluster = cluster_of(1, 2, memory=1e9, bandwidth=1e9)
    view = view_of(jobs, cluster, gpu_of=[QUEUED, QUEUED, QUEUED, 0], now_s=0.0)
    # work 50 and 200 GPU seconds; half of the GPUs and a quarter of the cores are free: of them mean tasks have
    # 0.5 / 4 + 8 / 128 and 1 / 4; nobody lacks anything yet
    weights = GrapheneSettings(srpt=1.0, packing=2.0, fairness=1.0)
    assert scores(view, np.array([0, 1]), weights).tolist() == pytest.approx([-0.25 + 2 * 0.75, -1 + 2, 0.0])


@given(view=task_views())
def test_running_jobs_are_left_alone(view):
    decided = answer("graphene", view)
    gpu_of = checked(view, decided)
    assert decided.stop.size == 0
    on = view.gpu_of != QUEUED
    assert (gpu_of[on] == view.gpu_of[on]).all()
