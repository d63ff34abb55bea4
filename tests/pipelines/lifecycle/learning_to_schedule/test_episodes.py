"""Small workloads drawn out of a large one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TrainingError
from jobcast.domain.tasks import GPU
from jobcast.pipelines.lifecycle.learning_to_schedule.task_courses import (
    EpisodeSettings,
    draw_episode,
    first_servers,
    part_of,
)
from tests.pipelines.lifecycle.learning_to_schedule.learning_cases import small_workload
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, workload_of

WHOLE = small_workload()


@given(st.sets(st.integers(0, 23), min_size=1))
def test_a_part_keeps_the_tasks_and_edges_of_its_jobs(which):
    jobs = np.array(sorted(which))
    part = part_of(WHOLE, jobs)
    part.check()
    for place, job in enumerate(jobs):
        new, old = part.jobs, WHOLE.jobs
        mine, theirs = slice(*new.task_of[place : place + 2]), slice(*old.task_of[job : job + 2])
        np.testing.assert_array_equal(new.demand[mine], old.demand[theirs])
        mine, theirs = slice(*new.edge_of[place : place + 2]), slice(*old.edge_of[job : job + 2])
        np.testing.assert_array_equal(new.volume_mb[mine], old.volume_mb[theirs])
        for name in ("edge_from", "edge_to"):
            own = getattr(new, name)[mine] - new.task_of[place]
            np.testing.assert_array_equal(own, getattr(old, name)[theirs] - old.task_of[job])
        np.testing.assert_array_equal(part.truth.metric[place], WHOLE.truth.metric[job])
        assert part.job_ids[place] == WHOLE.job_ids[job]


@given(st.integers(0, 2**16))
def test_an_episode_offers_the_load_that_was_asked_for(seed):
    settings = EpisodeSettings(jobs=10, servers=(2, 2), load=(0.8, 0.8))
    drawn = draw_episode(WHOLE, settings, np.random.default_rng(seed))
    drawn.check()
    jobs = drawn.jobs
    assert len(drawn) == 10
    assert len(drawn.cluster.capacity) == 2
    shares = np.add.reduceat(jobs.demand[:, GPU], jobs.task_of[:-1])
    work_s = (shares * jobs.iterations * jobs.iteration_s).sum()
    assert np.isclose(work_s / (4 * np.ptp(jobs.submit_s)), 0.8)


def test_deadlines_move_with_submissions():
    drawn = draw_episode(WHOLE, EpisodeSettings(jobs=10, servers=(3, 3)), np.random.default_rng(0))
    rows = [WHOLE.job_ids.index(name) for name in drawn.job_ids]
    allowed = WHOLE.jobs.deadline_s[rows] - WHOLE.jobs.submit_s[rows]
    np.testing.assert_allclose(drawn.jobs.deadline_s - drawn.jobs.submit_s, allowed)


def test_jobs_too_wide_for_the_servers_are_left_out():
    wide, narrow = TaskJob(workers=8, gpu=0.9), TaskJob(gpu=0.5)
    whole = workload_of([wide, narrow, wide, narrow], cluster_of(4, 2))
    drawn = draw_episode(whole, EpisodeSettings(jobs=4, servers=(2, 2)), np.random.default_rng(0))
    assert drawn.job_ids == ["job-1", "job-3"]
    with pytest.raises(TrainingError, match="0 jobs fit on 2 servers"):
        draw_episode(part_of(whole, np.array([0, 2])), EpisodeSettings(servers=(2, 2)), np.random.default_rng(0))


def test_the_first_servers_keep_their_gpus():
    cluster = first_servers(cluster_of(3, [1, 3, 2]), 2)
    assert cluster.server_of.tolist() == [0, 1, 1, 1]
    assert cluster.capacity[:, GPU].tolist() == [1.0, 3.0]
