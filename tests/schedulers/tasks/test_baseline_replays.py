"""Baselines in whole replays: the engine refuses nothing, all jobs end, and nobody is stopped again and again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.schedulers.registry import make_policy
from jobcast.simulator.task_workload import TaskTruth, TaskWorkload
from tests.simulator.tasks.task_cases import (
    TaskJob,
    arrays_of,
    checked,
    cluster_of,
    curve_at,
    jobs_of,
    replay_tasks,
    task_views,
)

PREEMPTING = ("slaq", "tiresias", "hypersched")
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


def crowded(seed, count=25):
    """Jobs that each fit two servers of two GPUs, several times more than fit at once."""
    rng = np.random.default_rng(seed)
    rows = []
    for submit_s in np.sort(rng.integers(0, 4000, count)).astype(float):
        workers, epochs = int(rng.choice([1, 2, 4])), int(rng.choice([2, 5, 20]))
        rows.append(
            TaskJob(
                submit_s=submit_s,
                workers=workers,
                epochs=epochs,
                iterations=float(epochs * rng.choice([5, 20])),
                gpu=float(rng.choice([0.3, 0.6, 1.0])),
                cpu=float(rng.choice([1.0, 5.0])),
                memory=float(rng.choice([2.0, 30.0])),
                bandwidth=float(rng.choice([20.0, 150.0])),
                compute_s=float(rng.choice([0.5, 3.0, 9.0])),
                volume_mb=20.0,
                server=workers > 1 and bool(rng.integers(2)),
                deadline_s=submit_s + float(rng.choice([600.0, 3600.0, np.inf])),
                target=0.6,
            )
        )
    jobs = jobs_of(*rows)
    longest = max(row.epochs for row in rows)
    metric = np.full((count, longest + 1), np.nan)
    for number, row in enumerate(rows):
        metric[number, : row.epochs + 1] = curve_at(np.arange(row.epochs + 1), row.epochs)
    truth = TaskTruth(metric, np.full(count, 100.0))
    return TaskWorkload(jobs, truth, cluster_of(2, 2), tuple(f"j{number}" for number in range(count)))


def replayed(name, seed, **given):
    return replay_tasks(crowded(seed), make_policy(name, None, given), seed=seed)


@pytest.mark.parametrize("name", MADE)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=4)
def test_all_jobs_run_to_their_end(name, seed):
    log = replayed(name, seed)
    assert np.isfinite(log.end_s).all()
    assert (log.columns["done"] >= log.columns["iterations"] * (1 - 1e-9)).all()
    if name not in PREEMPTING:
        assert log.preemptions.sum() == 0
    if name in ("graphene", "borg_fair"):
        assert log.columns["migrations"].sum() == 0


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
