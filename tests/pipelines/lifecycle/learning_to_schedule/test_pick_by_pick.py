"""Decisions built pick by pick agree with those that are made at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.tasks import QUEUED
from jobcast.pipelines.lifecycle.learning_to_schedule.pick_by_pick import HOSTS, JOBS, Picking
from jobcast.pipelines.lifecycle.learning_to_schedule.policy_gradient import as_taught, best
from jobcast.schedulers.tasks.mlf_h import MlfH
from jobcast.schedulers.tasks.mlf_rl import MlfRl
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.schedulers.tasks.network import networks_of
from tests.schedulers.tasks.test_task_network import arrays
from tests.simulator.tasks.task_cases import TaskJob, checked, cluster_of, jobs_of, task_views, view_of


def picked(view, choose):
    picks, heads, answer = Picking(view, HeuristicSettings()).picks(), [], None
    while True:
        try:
            choice = picks.send(answer)
        except StopIteration as decided:
            return decided.value, heads
        assert len(choice.rows) > 1
        assert 0 <= choice.taught < len(choice.rows)
        heads.append(choice.head)
        answer = choose(choice)


@given(task_views(), st.integers(0, 99))
def test_picking_the_best_score_each_time_is_the_policys_decision(view, seed):
    networks = networks_of(arrays(seed))
    decided, _ = picked(view, best(networks))
    np.testing.assert_array_equal(checked(view, decided), checked(view, MlfRl(networks).place(view)))


@given(task_views(), st.integers(0, 99))
def test_any_picks_make_a_sound_decision(view, seed):
    rng = np.random.default_rng(seed)
    decided, _ = picked(view, lambda choice: int(rng.integers(len(choice.rows))))
    checked(view, decided)


@given(task_views())
def test_mlf_hs_picks_place_jobs_as_mlf_h_does_where_nothing_moves(view):
    resting = view_of(view.jobs, view.cluster, now_s=view.now_s, done=view.done)
    decided, _ = picked(resting, as_taught)
    one_task_each = np.diff(view.jobs.task_of) == 1
    if one_task_each.all():  # MLF-H takes tasks of a job by priority, MLF-RL by number
        theirs = checked(resting, MlfH().place(resting))
        np.testing.assert_array_equal(checked(resting, decided), theirs)


def test_holding_leaves_the_rest_in_the_queue_and_is_only_offered_while_a_job_runs():
    jobs = jobs_of(TaskJob(gpu=0.1), TaskJob(gpu=0.1), TaskJob(gpu=0.1))
    running = view_of(jobs, cluster_of(1, 1), gpu_of=[0, QUEUED, QUEUED])
    decided, heads = picked(running, lambda choice: len(choice.rows) - 1)
    assert (len(decided.tasks), heads) == (0, [JOBS])
    idle = view_of(jobs, cluster_of(1, 1))
    decided, heads = picked(idle, lambda choice: len(choice.rows) - 1)
    assert sorted(decided.tasks) == [0, 1, 2]
    assert heads == [JOBS, JOBS]


def test_hosts_are_picked_where_several_servers_can_take_a_task():
    view = view_of(jobs_of(TaskJob(workers=2, gpu=0.2)), cluster_of(2, 1))
    decided, heads = picked(view, lambda choice: 1)
    assert heads == [HOSTS, HOSTS]
    assert checked(view, decided).tolist() == [1, 1]
