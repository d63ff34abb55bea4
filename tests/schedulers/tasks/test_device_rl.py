"""Placement by learned weights, for completion times alone."""

import numpy as np
import pytest

from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.registry import find_policy, make_policy
from jobcast.schedulers.tasks.features import HOST_FEATURES, JOB_FEATURES
from jobcast.schedulers.tasks.mlf_rl import MlfRl, device_rl
from jobcast.schedulers.tasks.network import Layers, Networks
from tests.simulator.tasks.task_cases import TaskJob, checked, cluster_of, jobs_of, view_of


def layers(names, **weights):
    """One hidden unit that adds up some features with their weights."""
    first = np.zeros((len(names), 1))
    for name, weight in weights.items():
        first[names.index(name), 0] = weight
    return Layers(first, np.zeros(1), np.ones((1, 1)), np.zeros(1), np.ones(1))


def networks(**weights):
    return Networks(layers(JOB_FEATURES, **weights), layers(HOST_FEATURES, gpu=-1.0))


@pytest.mark.parametrize(("sign", "expected"), [(1.0, [QUEUED, 0]), (-1.0, [0, QUEUED])])
def test_weights_say_which_job_comes_first(sign, expected):
    jobs = jobs_of(TaskJob(gpu=0.8, iterations=100.0), TaskJob(gpu=0.8, iterations=5000.0))
    view = view_of(jobs, cluster_of(1, 1))
    policy = make_policy("device_rl", networks(remaining=sign), {})
    assert policy.name == "device_rl"
    assert checked(view, policy.place(view)).tolist() == expected


def test_nothing_leaves_overloaded_servers():
    jobs = jobs_of(TaskJob(gpu=0.7), TaskJob(gpu=0.7))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0])
    assert checked(view, device_rl(networks()).place(view)).tolist() == [0, 0]


def test_nobody_gives_way_to_a_far_more_urgent_job():
    jobs = jobs_of(TaskJob(gpu=0.8, urgency=1.0, iterations=5000.0), TaskJob(gpu=0.8, urgency=10.0, iterations=10.0))
    view = view_of(jobs, cluster_of(1, 1), gpu_of=[0, QUEUED])
    assert checked(view, MlfRl(networks()).place(view)).tolist() == [QUEUED, 0]
    assert checked(view, device_rl(networks()).place(view)).tolist() == [0, QUEUED]
    assert not find_policy("device_rl").preempts


def test_servers_are_filled_as_far_as_is_set():
    jobs = jobs_of(TaskJob(gpu=0.5), TaskJob(gpu=0.5))
    view = view_of(jobs, cluster_of(1, 1))
    assert checked(view, device_rl(networks()).place(view)).tolist() == [0, 0]
    assert checked(view, device_rl(networks(), 0.9).place(view)).tolist() == [0, QUEUED]
