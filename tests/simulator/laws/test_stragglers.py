"""Slow servers and copies of tasks, by hand and on random jobs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import DecisionError
from jobcast.domain.policy import Decision
from jobcast.domain.tasks import MEMORY, QUEUED
from jobcast.simulator.laws.task_state import SLOT_S
from tests.simulator.tasks.task_cases import (
    TaskJob,
    cluster_of,
    mixed,
    replay_tasks,
    simulation_of,
    workload_of,
    workloads,
)
from tests.simulator.tasks.task_policies import Chaos, Script
from tests.simulator.tasks.test_task_properties import FEW, ROUND_S, check_run

TWO_SERVERS = cluster_of(2, 2)  # GPUs 0, 1 and 2, 3; 32 cores, 1250 MB/s


class Copying(Script):
    """A script whose lines may have `copies`, (task, GPU)."""

    def place(self, view):
        said = self.script.get(round(view.now_s - view.jobs.submit_s[0]), {})
        return super().place(view)._replace(copies=dict(said.get("copies", ())))


def run(rows, script, cluster=TWO_SERVERS, **how):
    policy = Copying(script)
    return replay_tasks(workload_of(rows, cluster), policy, **{"fluctuation": 0.0, "restart_s": 10.0, **how}), policy


ALL_ALONG = {"stragglers": 0.5, "straggler_factor": 3.0, "straggler_h": 1e6}


def seed_of(slow):
    """The first seed under which servers are as slow as that all along."""
    for seed in range(200):
        policy = Script({0: {"put": [(0, 0)]}})
        run, law = simulation_of(workload_of([TaskJob()], TWO_SERVERS), policy, seed=seed, **ALL_ALONG)
        run.run(0.0)
        if law.state.slow.tolist() == slow:
            return seed
    raise AssertionError(f"no seed makes servers as slow as {slow}")


SECOND = {**ALL_ALONG, "seed": seed_of([1.0, 3.0])}
"""The second server is slow by 3 all the time, the first is healthy."""


@pytest.mark.parametrize(("gpus", "seconds"), [((0, 1), 2.0), ((2, 3), 6.0), ((0, 2), 6.0), ((2, 0), 3.0)])
def test_an_iteration_is_as_slow_as_its_slowest_task(gpus, seconds):
    """Side by side, 1 and 2 s: on the slow server 3 and 6."""
    log, _ = run([TaskJob(workers=2, compute_s=(1.0, 2.0))], {0: {"put": list(enumerate(gpus))}}, **SECOND)
    assert log.end_s[0] == pytest.approx(100.0 * seconds)


def test_a_path_is_slow_where_it_passes_and_a_slow_server_sends_as_others_do():
    """1 s on the slow server takes 3, then 0.5 s on the way, then 2."""
    row = TaskJob(workers=2, chain=True, compute_s=(1.0, 2.0), volume_mb=50.0)
    log, _ = run([row], {0: {"put": [(0, 2), (1, 0)]}}, **SECOND)
    assert log.end_s[0] == pytest.approx(100.0 * (3.0 + 0.5 + 2.0))


def test_a_parameter_server_is_slow_too():
    row = TaskJob(compute_s=1.0, server=True, server_compute_s=1.0)
    log, _ = run([row], {0: {"put": [(0, 0), (1, 2)]}}, **SECOND)
    assert log.end_s[0] == pytest.approx(100.0 * (1.0 + 3.0))


def test_of_a_task_and_its_copy_the_first_counts():
    """Side by side, 1 and 2 s; both on the slow server take 6, with a copy of the second on the healthy one 3."""
    row = TaskJob(workers=2, compute_s=(1.0, 2.0))
    log, _ = run([row], {0: {"put": [(0, 2), (1, 3)], "copies": [(1, 0)]}}, **SECOND)
    assert log.end_s[0] == pytest.approx(100.0 * 3.0)
    # The copy holds a GPU of its own as long as the job runs, and half of it is in use as of the others.
    assert log.columns["used_gpu_s"][0] == pytest.approx(3 * 0.5 * 300.0)
    assert np.bincount(log.spans.node, (log.spans.until_s - log.spans.from_s) * log.spans.gpus).tolist() == [
        pytest.approx(300.0),
        pytest.approx(600.0),
    ]


def test_a_copy_elsewhere_gets_and_sends_over_the_network():
    """A chain of 1 and 2 s, both on the slow server: 9. A copy of the second: 3 + .5 + 2; of the first: 1 + .5 + 6."""
    row = TaskJob(workers=2, chain=True, compute_s=(1.0, 2.0), volume_mb=50.0)
    for copied, seconds in (([], 9.0), ([(1, 0)], 3.0 + 0.5 + 2.0), ([(0, 0)], 1.0 + 0.5 + 6.0)):
        log, _ = run([row], {0: {"put": [(0, 2), (1, 2)], "copies": copied}}, **SECOND)
        assert log.end_s[0] == pytest.approx(100.0 * seconds)
        assert log.columns["edge_mb"][0] == pytest.approx(50.0 * 100.0 * len(copied))


def test_both_copies_get_what_is_exchanged_at_the_end():
    """Worker and parameter server on one healthy server: 1 s. With a copy elsewhere the broadcast takes .5 s more."""
    row = TaskJob(compute_s=1.0, server=True, volume_mb=50.0)
    log, _ = run([row], {0: {"put": [(0, 0), (1, 0)], "copies": [(0, 2)]}}, **SECOND)
    assert log.end_s[0] == pytest.approx(100.0 * 1.5)


def test_a_copy_that_joins_a_job_that_runs_costs_what_a_move_does():
    """60 s at 3 s an iteration: 20 done. 10 s and 500 MB at 1250 MB/s later the other 80 take 1 s each.

    To say so again, where it is already, costs nothing.
    """
    log, policy = run([TaskJob()], {0: {"put": [(0, 2)]}} | {at: {"copies": [(0, 0)]} for at in (60, 120)}, **SECOND)
    assert log.end_s[0] == pytest.approx(60.0 + 10.0 + 0.4 + 80.0)
    assert log.columns["moved_mb"][0] == 500.0
    assert log.columns["migrations"][0] == 0.0
    assert policy.seen[2]["copy_of"].tolist() == [0]


def test_ending_a_copy_costs_nothing():
    log, _ = run([TaskJob()], {0: {"put": [(0, 2)], "copies": [(0, 0)]}, 60: {"copies": [(0, QUEUED)]}}, **SECOND)
    assert log.end_s[0] == pytest.approx(60.0 + 40.0 * 3.0)


def test_copies_go_with_their_jobs():
    """One ends and leaves its copy's GPU; one is stopped, and so is its copy."""
    rows = [TaskJob(iterations=50.0, gpu=1.0), TaskJob(gpu=1.0)]
    script = {0: {"put": [(0, 2), (1, 3)], "copies": [(0, 0), (1, 1)]}, 60: {"stop": [1]}, 120: {"put": [(1, 3)]}}
    log, policy = run(rows, script, **SECOND)
    assert [seen["copy_of"].tolist() for seen in policy.seen[:3]] == [[-1, -1], [-1, 1], [-1, -1]]
    assert policy.seen[1]["load"][:, 0].tolist() == [1.0, 1.0]
    assert policy.seen[2]["load"].sum() == 0.0
    assert log.end_s[0] == pytest.approx(50.0)


def test_a_step_is_seen_once_an_iteration_has_gone_on_with_it_and_where_the_task_is():
    script = {0: {"put": [(0, 2)]}, 60: {"copies": [(0, 0)]}, 120: {"put": [(0, 1)]}}
    _, policy = run([TaskJob(iterations=200.0)], script, **SECOND)
    steps = [seen["step_s"][0] for seen in policy.seen[:4]]
    assert np.array_equal(steps, [[np.nan, np.nan], [3.0, np.nan], [3.0, 1.0], [1.0, 1.0]], equal_nan=True)
    script = {0: {"put": [(0, 2)], "copies": [(0, 0)]}, 60: {"stop": [0]}, 120: {"put": [(0, 0)]}}
    _, policy = run([TaskJob(iterations=200.0)], script, **SECOND)
    steps = [seen["step_s"][0] for seen in policy.seen[:4]]
    assert np.array_equal(steps, [[np.nan, np.nan], [3.0, 1.0], [np.nan, np.nan], [1.0, np.nan]], equal_nan=True)
    script = {0: {"put": [(1, 2)], "copies": [(1, 0)]}, 60: {"put": [(1, 1)]}, 120: {"put": [(0, 3)]}}
    _, policy = run([TaskJob()] * 2, script, **SECOND, restart_s=90.0)
    assert np.array_equal(policy.seen[2]["step_s"][1], [np.nan, 1.0], equal_nan=True)  # it has not gone on yet


def test_what_cannot_be_is_refused_with_policy_time_and_job():
    with pytest.raises(DecisionError, match="job-0: task 0 gets a copy on GPU 1, but is on no GPU itself"):
        run([TaskJob()], {0: {"copies": [(0, 1)]}})
    with pytest.raises(DecisionError, match="task 0 goes to GPU 4, of which there are 4"):
        run([TaskJob()], {0: {"put": [(0, 0)], "copies": [(0, 4)]}})
    with pytest.raises(DecisionError, match="job-0: task 0 goes to server 1, which lacks the memory for it"):
        run([TaskJob(memory=200.0)] * 2, {0: {"put": [(0, 0), (1, 2)]}, 60: {"copies": [(0, 3)]}})
    with pytest.raises(DecisionError, match="it is not active"):
        run([TaskJob(iterations=30.0), TaskJob()], {0: {"put": [(0, 0), (1, 1)]}, 60: {"copies": [(0, 2)]}})


def slow_slots(seed, servers=40, days=4, **how):
    """(slots, servers) whether each was slow in each slot, seen from the engine's state."""
    cluster = cluster_of(servers, 1)
    job = TaskJob(iterations=1e9, compute_s=1e3)
    run, law = simulation_of(
        workload_of([job], cluster), Script({0: {"put": [(0, 0)]}}), seed=seed, round_s=SLOT_S, **how
    )
    rows = []
    for slot in range(int(days * 86_400 / SLOT_S)):
        run.run(slot * SLOT_S)
        rows.append(law.state.slow > 1.0)
    return np.array(rows)


def is_slow(seed, server, slot, share, straggler_s):
    """A draw for each server and spell; spells begin at an instant of the server's own."""

    def even(number):
        key = (seed * 1_000_003 - 1 - server) % 2**64
        return (mixed(mixed(key) ^ number % 2**64) >> 11) / 2**53

    return even(int(slot * 300.0 / straggler_s + even(-1))) < share


def test_servers_are_slow_for_the_share_of_the_time_and_as_long_as_is_set():
    slow = slow_slots(3, stragglers=0.2, straggler_h=2.0)
    # 40 servers x 48 spells: a standard error of .009.
    assert slow.mean() == pytest.approx(0.2, abs=0.03)
    assert len(np.flatnonzero(np.abs(np.diff(slow.astype(int), axis=0)).sum(axis=1))) > 24  # not all at once
    for server in slow.T:
        at = np.flatnonzero(np.diff(server.astype(int)))
        assert (np.diff(at) % (2 * 3600 / SLOT_S) == 0).all()  # whole spells
    told = [[is_slow(3, server, slot, 0.2, 7200.0) for server in range(40)] for slot in range(0, len(slow), 20)]
    assert slow[::20].tolist() == told


class Duplicating(Chaos):
    """Chaos that also puts copies of tasks anywhere, as long as memory lasts, and ends them."""

    def place(self, view):
        decided = super().place(view)
        rng, hosts, job_of = self.rng, view.cluster.server_of, view.jobs.job_of
        gpu_of = np.where(np.isin(job_of, list(decided.change)), QUEUED, view.gpu_of)
        gpu_of[list(decided.tasks)] = list(decided.tasks.values())
        copy_of = np.where(np.isin(job_of, list(decided.change)) | (gpu_of == QUEUED), QUEUED, view.copy_of)
        free = view.cluster.capacity[:, MEMORY].copy()
        for where in (gpu_of, copy_of):
            np.subtract.at(free, hosts[where[where != QUEUED]], view.jobs.demand[where != QUEUED, MEMORY])
        copies = {}
        for task in np.flatnonzero((gpu_of != QUEUED) & np.isin(job_of, view.active)):
            need = view.jobs.demand[task, MEMORY]
            if copy_of[task] != QUEUED and (rng.random() < 0.2 or free.min() < 0.0):
                free[hosts[copy_of[task]]] += need
                copies[int(task)] = QUEUED
            elif copy_of[task] == QUEUED and rng.random() < 0.3:
                fits = np.flatnonzero(free[hosts] >= need)
                if len(fits):
                    copies[int(task)] = int(rng.choice(fits))
                    free[hosts[copies[int(task)]]] -= need
        if free.min() < -1e-9:  # tasks took the memory of copies: all of these end
            copies = {int(task): QUEUED for task in np.flatnonzero(copy_of != QUEUED)}
        return decided._replace(copies=copies)


@FEW
@given(workloads(roomy=True), st.integers(0, 99), st.sampled_from([0.0, 0.3]))
def test_what_every_run_with_copies_keeps_to(case, seed, stragglers):
    policy = Duplicating(seed)
    log = replay_tasks(workload_of(*case), policy, round_s=ROUND_S, seed=seed, stragglers=stragglers)
    jobs, cluster = case
    check_run(log, policy.views, jobs, cluster)
    for view in policy.views:
        # A copy is of a task that is on a GPU, of a job that is not over.
        copied = np.flatnonzero(view.copy_of != QUEUED)
        assert (view.gpu_of[copied] != QUEUED).all()
        assert np.isin(jobs.job_of[copied], view.active).all()


@FEW
@given(workloads(roomy=True), st.integers(0, 99))
def test_without_stragglers_their_factor_and_length_change_no_bit(case, seed):
    logs = [
        replay_tasks(workload_of(*case), Chaos(seed), round_s=ROUND_S, seed=seed, **how)
        for how in ({}, {"straggler_factor": 5.0, "straggler_h": 0.1}, {"stragglers": 1.0, "straggler_factor": 1.0})
    ]
    for log in logs[1:]:
        assert np.array_equal(log.end_s, logs[0].end_s)
        for name, column in logs[0].columns.items():
            assert np.array_equal(log.columns[name], column, equal_nan=True)


def test_no_policy_answers_with_copies_unless_it_says_so():
    assert Decision().copies == {}
