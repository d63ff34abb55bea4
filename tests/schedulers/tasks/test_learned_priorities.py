"""MLF-H with learned corrections."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.bad_answers import Reason
from jobcast.domain.errors import RegistryError
from jobcast.domain.tasks import QUEUED
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.tasks.learned_priorities import (
    RANK_FEATURES,
    SHAPES,
    Corrections,
    LearnedPriorities,
    corrections_of,
    learned_from,
    rank_rows,
)
from jobcast.schedulers.tasks.mlf_h import MlfH
from jobcast.schedulers.tasks.mlf_rl import fault_of
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.schedulers.tasks.network import Networks
from tests.schedulers.tasks.test_task_network import arrays as networks
from tests.simulator.tasks.task_cases import TaskJob, after, cluster_of, jobs_of, task_views, view_of


def arrays(seed=None):
    rng = np.random.default_rng(seed)
    return {name: np.zeros(shape) if seed is None else 0.3 * rng.normal(size=shape) for name, shape in SHAPES.items()}


def by_columns(*, queue=(), hosts=(0.0,) * 6, limits=(0.0, 0.0), **weights):
    found = arrays() | {"hosts": np.array(hosts), "limits": np.array(limits)}
    for row, given_ in enumerate((weights, dict(queue))):
        for name, weight in given_.items():
            found["ranks"][row, RANK_FEATURES.index(name)] = weight
    return LearnedPriorities(corrections_of(found))


@given(task_views())
def test_without_corrections_it_is_mlf_h(view):
    policy = LearnedPriorities(corrections_of(arrays()))
    assert after(view, policy) == after(view, MlfH())


@given(task_views(), st.integers(0, 99))
def test_decisions_are_sound_and_repeat(view, seed):
    policy = LearnedPriorities(corrections_of(arrays(seed)))
    assert after(view, policy) == after(view, policy)


def test_the_order_of_waiting_jobs_is_learned():
    view = view_of(jobs_of(TaskJob(gpu=0.8, iterations=500), TaskJob(gpu=0.8, iterations=50)), cluster_of(1, 1))
    assert after(view, by_columns()) == [QUEUED, 0]
    assert after(view, by_columns(remaining=50.0)) == [0, QUEUED]


def test_who_gives_way_is_learned():
    """The waiting job has ten times the priority, twice as much is needed; e^3 of the running one keeps it there."""
    jobs = jobs_of(TaskJob(gpu=0.8, iterations=50_000), TaskJob(gpu=0.8, iterations=500))
    view = view_of(jobs, cluster_of(1, 1), gpu_of=[0, QUEUED])
    assert after(view, by_columns()) == [QUEUED, 0]
    assert after(view, by_columns(running=10.0)) == [0, QUEUED]
    assert after(view, by_columns(queue={"running": 100.0})) == [0, QUEUED]  # one job waits: 0.09 of a full queue


def test_how_far_servers_are_filled_is_learned_up_to_a_bound():
    view = view_of(jobs_of(TaskJob(gpu=0.5), TaskJob(gpu=0.5)), cluster_of(1, 1))
    assert after(view, by_columns()) == [0, QUEUED]
    assert after(view, by_columns(limits=(0.2, 0.0))) == [0, 0]
    hosts = np.array([1.0, 25.0, -25.0, 0.0, 0.0, 0.0])
    learned = Corrections(np.zeros((2, len(RANK_FEATURES))), hosts, np.array([9.0, 0.1]))
    policy = LearnedPriorities(learned, HeuristicSettings(h_r=0.8))
    assert policy.settings.h_r == 1.25
    assert policy.hosts == pytest.approx(np.exp([1.0, 20.0, -20.0, 0.0, 0.0, 0.0]))
    assert policy.settings.leave_at == pytest.approx(0.8 * np.exp(0.1))


def test_the_choice_of_servers_is_learned():
    """Two tasks that exchange data: the second goes to the first's server, or to the one that is least used."""
    jobs = jobs_of(TaskJob(workers=2, gpu=0.2, chain=True, volume_mb=10.0))
    view = view_of(jobs, cluster_of(2, 1))
    assert after(view, by_columns()) == [0, 0]
    assert after(view, by_columns(hosts=(0.0, -9.0, 0.0, 0.0, 0.0, 0.0))) == [0, 1]


def test_rows_tell_who_runs_and_how_many_wait():
    view = view_of(jobs_of(TaskJob(gpu=0.8), TaskJob(gpu=0.8)), cluster_of(1, 1), gpu_of=[0, QUEUED])
    rows = rank_rows(view)
    assert rows[:, RANK_FEATURES.index("running")].tolist() == [1.0, 0.0]
    np.testing.assert_allclose(rows[:, RANK_FEATURES.index("queue")], np.log1p(1) / 7.0)


def test_arrays_tell_which_kind_was_learned_and_wrong_ones_are_refused():
    assert isinstance(learned_from(arrays()), Corrections)
    assert isinstance(learned_from(networks()), Networks)
    with pytest.raises(RegistryError, match=r"weights of hosts are \(3,\), this version needs \(6,\); train"):
        learned_from(arrays() | {"hosts": np.zeros(3)})


def test_weights_that_are_no_numbers_are_found():
    assert fault_of(corrections_of(arrays())) is None
    assert fault_of(corrections_of(arrays() | {"limits": np.array([np.nan, 0.0])}))[0] == Reason.NOT_FINITE
    assert fault_of(corrections_of(arrays() | {"hosts": np.full(6, 1e9)}))[0] == Reason.OUT_OF_RANGE


def test_mlfs_runs_it_under_load_control():
    policy = make_policy("mlfs", corrections_of(arrays()), {"hold": "3"})
    assert policy.name == "mlfs"
    assert isinstance(policy.policy, LearnedPriorities)
    assert policy.policy.settings.hold == 3.0
    assert make_policy("mlf_rl", corrections_of(arrays()), {}).name == "mlf_rl"
