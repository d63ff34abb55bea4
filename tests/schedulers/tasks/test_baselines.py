"""What the baselines share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.tasks.baselines import (
    BorgFair,
    BorgFairSettings,
    Tiresias,
    TiresiasSettings,
    finished_gpu_s,
    gittins_index,
    received_share,
    second_queue,
)
from jobcast.schedulers.tasks.preemption import (
    attained_gpu_s,
    due,
    job_use,
    measured_iteration_s,
    running_jobs,
    sorted_jobs,
    waiting_jobs,
)
from tests.simulator.tasks.task_cases import TaskJob, arrays_of, checked, cluster_of, jobs_of, view_of


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
    decided = arrays_of(Tiresias().place(seen))
    assert decided.stop.tolist() == [0]
    assert checked(seen, decided).tolist() == [QUEUED, 0, QUEUED]  # within a queue by submission, not by service


@pytest.mark.parametrize("ran_s", [[3000.0, 0.0, 0.0], [9000.0, 4000.0, 5000.0]])
def test_within_a_queue_nobody_is_displaced(ran_s):
    decided = arrays_of(Tiresias().place(three([0, QUEUED, QUEUED], ran_s)))
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
    las, gittins = Tiresias(), Tiresias(TiresiasSettings(index="gittins"))
    assert checked(seen, las.place(seen)).tolist() == [QUEUED, QUEUED, 0, QUEUED]
    assert checked(seen, gittins.place(seen)).tolist() == [QUEUED, QUEUED, QUEUED, 0]  # 1/20 against 1/800


def after_borg(view, **settings):
    return checked(view, BorgFair(BorgFairSettings(**settings)).place(view)).tolist()


def test_a_share_is_what_was_had_of_the_cluster_since_the_job_came():
    jobs = jobs_of(TaskJob(workers=2), TaskJob(submit_s=98.5))
    view = view_of(jobs, cluster_of(1, 4), now_s=100.0, ran_s=np.array([50.0, 1.0]))
    assert received_share(view).tolist() == pytest.approx([100 / 400, 1 / 6])


def test_the_least_share_comes_first_and_then_the_first_submitted():
    jobs = jobs_of(*[TaskJob(gpu=1.0)] * 3)
    view = view_of(jobs, cluster_of(1, 1), now_s=100.0, ran_s=np.array([50.0, 0.0, 0.0]))
    assert after_borg(view) == [QUEUED, 0, QUEUED]


def test_a_task_goes_where_the_least_is_left_over():
    jobs = jobs_of(TaskJob(gpu=0.5, cpu=8.0), TaskJob(gpu=0.3))
    assert after_borg(view_of(jobs, cluster_of(2, 1), gpu_of=[1, QUEUED])) == [1, 1]


@pytest.mark.parametrize("demand", [{"cpu": 20.0}, {"bandwidth": 700.0}, {"memory": 130.0}])
def test_no_resource_is_promised_twice(demand):
    jobs = jobs_of(TaskJob(gpu=0.1, **demand), TaskJob(gpu=0.1, **demand))
    assert after_borg(view_of(jobs, cluster_of(1, 2))) == [0, QUEUED]


def test_running_jobs_make_room_only_where_asked_for():
    jobs = jobs_of(TaskJob(gpu=1.0), TaskJob(gpu=1.0))
    view = view_of(jobs, cluster_of(1, 1), gpu_of=[0, QUEUED], now_s=600.0)
    assert after_borg(view) == [0, QUEUED]
    assert after_borg(view, interval_s=300.0) == [QUEUED, 0]
    assert after_borg(view._replace(now_s=660.0), interval_s=300.0) == [0, QUEUED]
