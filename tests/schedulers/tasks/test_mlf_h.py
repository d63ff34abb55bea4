"""Decisions of MLF-H. MLFS, section 3.3."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.policy import NOTHING
from jobcast.domain.tasks import GPU, QUEUED
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.tasks.mlf_h import MlfH
from jobcast.schedulers.tasks.mlfs_settings import HeuristicSettings
from jobcast.schedulers.tasks.packing import limits_of
from tests.schedulers.tasks.test_packing import place_jobs
from tests.simulator.tasks import task_cases
from tests.simulator.tasks.task_cases import (
    Seen,
    TaskJob,
    arrays_of,
    checked,
    cluster_of,
    jobs_of,
    loads_of,
    one_job_alone,
    task_views,
    view_of,
)

OWN = ["mlf_h", "mlf_c", "mlfs"]


def after(view, **settings):
    return task_cases.after(view, make_policy("mlf_h", None, settings))


@pytest.mark.parametrize(
    ("first", "second", "switch"),
    [({"urgency": 1.0}, {"urgency": 9.0}, "urgency"), ({"deadline_s": 9e4}, {"deadline_s": 3600.0}, "deadline")],
)
def test_the_more_urgent_job_and_the_closer_deadline_come_first(first, second, switch):
    view = view_of(jobs_of(TaskJob(**first, gpu=0.8), TaskJob(**second, gpu=0.8)), cluster_of(1, 1))
    assert after(view) == [QUEUED, 0]
    assert after(view, **{switch: "no"}) == [0, QUEUED]


def test_tasks_that_talk_stay_together_unless_bandwidth_is_ignored():
    jobs = jobs_of(TaskJob(workers=2, chain=True, volume_mb=100.0, gpu=0.3))
    view = view_of(jobs, cluster_of(2, 4))
    assert after(view) == [0, 1]
    assert after(view, bandwidth="false") == [0, 4]


def test_a_task_leaves_an_overloaded_gpu_for_another_server():
    """0.4 three times on a GPU: the lowest priority, the last job's, goes to the idle server."""
    jobs = jobs_of(TaskJob(urgency=9.0, gpu=0.4), TaskJob(urgency=5.0, gpu=0.4), TaskJob(urgency=1.0, gpu=0.4))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0, 0])
    assert after(view) == [0, 0, 1]
    assert after(view, migration="false") == [0, 0, 0]
    assert after(view, move_at="1") == [0, 0, 1]
    assert after(view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0, 1], factor=1.2), move_at="1") == [0, 0, 1]


def test_waiting_jobs_and_leaving_tasks_share_one_queue():
    """One place on the other server: the waiting job gets it if it is the more urgent one, else the leaving task."""
    rows = [TaskJob(urgency=5.0, gpu=0.5), TaskJob(urgency=4.0, gpu=0.5)]
    urgent = jobs_of(*rows, TaskJob(urgency=9.0, gpu=0.8))
    modest = jobs_of(*rows, TaskJob(urgency=1.0, gpu=0.8))
    assert after(view_of(urgent, cluster_of(2, 1), gpu_of=[0, 0, QUEUED]), evict="queue") == [0, QUEUED, 1]
    assert after(view_of(urgent, cluster_of(2, 1), gpu_of=[0, 0, QUEUED])) == [0, 0, 1]
    assert after(view_of(modest, cluster_of(2, 1), gpu_of=[0, 0, QUEUED])) == [0, 1, QUEUED]


def test_a_leaving_task_without_a_new_server_stays_or_takes_its_job_to_the_queue():
    jobs = jobs_of(TaskJob(workers=2, gpu=0.5), TaskJob(gpu=0.8))
    view = view_of(jobs, cluster_of(2, 1), gpu_of=[0, 0, 1])
    assert after(view, evict="queue") == [QUEUED, QUEUED, 1]
    assert after(view) == [0, 0, 1]


def test_a_leaving_task_does_not_part_from_those_it_talks_to_unless_it_may():
    """Both GPUs of the first server are overloaded, by a job of two that talk and two others; the second is idle."""
    jobs = jobs_of(TaskJob(workers=2, chain=True, volume_mb=80.0, gpu=0.5), TaskJob(gpu=0.5), TaskJob(gpu=0.5))
    view = view_of(jobs, cluster_of(2, 2), gpu_of=[0, 1, 0, 1])
    rank = np.array([1.0, 1.0, 2.0, 2.0])
    told = {"limits": limits_of(0.9, 0.9), "moving": np.array([True, False, False, False]), "rank": rank}
    assert place_jobs(view, np.array([0]), **told, part=False).tasks.tolist() == []
    assert place_jobs(view, np.array([0]), **told, part=False, evict=True).stop.tolist() == [0]
    assert place_jobs(view, np.array([0]), **told).gpus.tolist() == [2]


@pytest.mark.parametrize(("hold", "rank", "gives_way"), [(2.0, 1.0, False), (2.0, 1.01, True), (np.inf, 9.0, False)])
def test_a_running_job_gives_way_to_more_than_twice_its_priority(monkeypatch, hold, rank, gives_way):
    view = view_of(jobs_of(TaskJob(gpu=0.8), TaskJob(gpu=1.0)), cluster_of(1, 1), gpu_of=[0, QUEUED])
    monkeypatch.setattr(MlfH, "ranks", lambda policy, view: np.array([0.5, rank]))
    assert MlfH().settings.hold == 2.0
    found = task_cases.after(view, MlfH(HeuristicSettings().model_copy(update={"hold": hold})))
    assert found == ([QUEUED, 0] if gives_way else [0, QUEUED])


def test_nothing_is_decided_where_nothing_waits_and_nothing_is_overloaded():
    view = view_of(jobs_of(TaskJob()), cluster_of(1, 1), gpu_of=[0])
    decided = arrays_of(MlfH().place(view))
    assert [len(column) for column in decided] == [0, 0, 0, 0, 0]
    assert MlfH().decide(Seen(view._replace(active=np.empty(0, dtype=np.int64)))) == NOTHING


@given(task_views(), st.sampled_from(["stay", "queue"]), st.booleans())
def test_jobs_are_whole_hosts_within_limits_and_decisions_the_same_twice(view, evict, bandwidth):
    policy = MlfH(HeuristicSettings(evict=evict, bandwidth=bandwidth))
    decided = arrays_of(policy.place(view))
    gpu_of = checked(view, decided)
    again = arrays_of(policy.place(view))
    assert all((one == other).all() for one, other in zip(decided, again, strict=True))
    for job in view.active:
        held = gpu_of[view.jobs.task_of[job] : view.jobs.task_of[job + 1]] != QUEUED
        assert held.all() or not held.any()
    if one_job_alone(view, gpu_of):  # which may pass all limits but that of memory
        return
    load, gpu_load = loads_of(view.cluster, view.task_load, gpu_of)
    for gpu in np.unique(decided.gpus):
        server = view.cluster.server_of[gpu]
        alone = np.isin(gpu_of, np.flatnonzero(view.cluster.server_of == server)).sum() == 1
        assert alone or (load[server] <= 0.9 * view.cluster.capacity[server] + 1e-6).all()
        users = ((gpu_of == gpu) & (view.task_load[:, GPU] > 0)).sum()
        got_a_user = (view.task_load[decided.tasks[decided.gpus == gpu], GPU] > 0).any()
        assert users == 1 or not got_a_user or gpu_load[gpu] <= 0.9 + 1e-6


@pytest.mark.parametrize("name", OWN)
def test_policies_know_their_names_and_settings(name):
    policy = make_policy(name, None, {"h_r": "0.8", "evict": "stay", "part": "yes", "gamma_w": 0, "p_s": 0.2})
    assert policy.name == name
    heuristic = policy if name == "mlf_h" else policy.policy
    settings = heuristic.settings
    assert (settings.h_r, settings.leave_at, settings.p_s) == (0.8, 0.8, 0.2)
    assert (settings.evict, settings.part, settings.gamma_w) == ("stay", True, 0.0)


def test_learned_policies_want_weights():
    with pytest.raises(ConfigError, match=r"^policy mlf_rl: no learned weights"):
        make_policy("mlf_rl")
