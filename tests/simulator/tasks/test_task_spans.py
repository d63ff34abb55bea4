"""Who held which GPUs of which server when: by hand, and against what each decision leaves on GPUs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobcast.domain.tasks import QUEUED
from jobcast.simulator.metrics import queued_s
from tests.contract.random_jobs import most_held
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, replay_tasks, simulation_of, workload_of, workloads
from tests.simulator.tasks.task_policies import Chaos, Script
from tests.simulator.tasks.test_task_properties import ROUND_S, after

TWO_SERVERS = cluster_of(2, 2)  # GPUs 0, 1 and 2, 3
FEW = settings(max_examples=40)


def spans_of(rows, script, **options):
    """(job, node, gpus, from, until) of a run by a script, in a log's order."""
    held = replay_tasks(workload_of(rows, TWO_SERVERS), Script(script), fluctuation=0.0, **options).spans
    columns = (held.job, held.node, held.gpus, held.from_s, held.until_s)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_tasks_of_a_job_share_its_gpu_with_nobody():
    """Three tasks on two GPUs, one of them a parameter server, which holds what it is on."""
    rows = [TaskJob(submit_s=1000.0, workers=2, gpu=0.3), TaskJob(submit_s=1000.0, server=True, gpu=0.3)]
    script = {0: {"put": [(0, 1), (1, 1), (2, 0), (3, 2)]}}
    assert spans_of(rows, script) == [
        (0, 0, 1.0, 1000.0, 1100.0),
        (1, 0, 1.0, 1000.0, 1100.0),
        (1, 1, 1.0, 1000.0, 1100.0),
    ]


def test_a_gpu_that_jobs_share_counts_in_parts():
    """The second comes at 60 s and ends at 90; the first alone holds more again."""
    rows = [TaskJob(workers=2, gpu=0.3), TaskJob(gpu=0.3, iterations=30.0)]
    assert spans_of(rows, {0: {"put": [(0, 0), (1, 1)]}, 60: {"put": [(2, 1)]}}) == [
        (0, 0, 2.0, 0.0, 60.0),
        (0, 0, 1.5, 60.0, 90.0),
        (1, 0, 0.5, 60.0, 90.0),
        (0, 0, 2.0, 90.0, 100.0),
    ]


def test_what_leaves_the_share_as_it_is_does_not_part_a_span():
    """A move within the server; a stop and a start at one instant; another job that comes as a third one goes."""
    rows = [TaskJob(gpu=0.2, iterations=300.0), TaskJob(gpu=0.2, iterations=60.0), TaskJob(gpu=0.2, iterations=60.0)]
    script = {
        0: {"put": [(0, 0), (1, 0)]},
        60: {"put": [(2, 0)]},
        120: {"put": [(0, 1)]},
        180: {"put": [(0, 0)]},
        240: {"stop": [0], "put": [(0, 1)]},
    }
    assert spans_of(rows, script, restart_s=0.0) == [
        (1, 0, 0.5, 0.0, 60.0),
        (0, 0, 0.5, 0.0, 120.0),
        (2, 0, 0.5, 60.0, 120.0),
        (0, 0, 1.0, 120.0, 300.0),
    ]


def test_pauses_and_other_servers_part_spans():
    script = {0: {"put": [(0, 0)]}, 60: {"stop": [0]}, 120: {"put": [(0, 0)]}, 180: {"put": [(0, 3)]}}
    assert spans_of([TaskJob(iterations=150.0)], script, restart_s=0.0) == [
        (0, 0, 1.0, 0.0, 60.0),
        (0, 0, 1.0, 120.0, 180.0),
        (0, 1, 1.0, 180.0, pytest.approx(210.4)),
    ]


def test_a_job_that_never_gets_a_gpu_has_no_spans():
    assert spans_of([TaskJob()], {60: {"limited": [0], "limits": [0.0]}}) == []


def held_by_hand(view, decided):
    """(job, server) -> GPUs after a decision, GPU by GPU."""
    gpu_of, found = after(view, decided), {}
    for gpu, server in enumerate(view.cluster.server_of.tolist()):
        sharing = set(view.jobs.job_of[gpu_of == gpu].tolist())
        for job in sharing:
            found[job, server] = found.get((job, server), 0.0) + 1.0 / len(sharing)
    return found


@FEW
@given(workloads(roomy=True), st.integers(0, 99))
def test_spans_are_what_decisions_leave_on_gpus(case, seed):
    """Right after each decision, jobs that a limit ended at it left out; and all of a job's time elsewhere it waits."""
    policy = Chaos(seed)
    run, law = simulation_of(workload_of(*case), policy, round_s=ROUND_S, seed=seed)
    run.run()
    log, dust = run.log(), 1e-6
    spans = log.spans
    for view, decided in zip(policy.views, policy.decided, strict=True):
        soon_s = np.append(log.end_s[log.end_s > view.now_s + dust], view.now_s + ROUND_S).min()
        at_s = 0.5 * (view.now_s + soon_s)
        there = (spans.from_s <= at_s) & (at_s < spans.until_s)
        found = {
            (job, node): gpus
            for job, node, gpus in zip(
                spans.job[there].tolist(), spans.node[there].tolist(), spans.gpus[there].tolist(), strict=True
            )
        }
        assert len(found) == there.sum()
        wanted = held_by_hand(view, decided)
        over = {job for job in view.active.tolist() if log.end_s[job] <= at_s}
        if not over:
            assert found == pytest.approx(wanted)
        else:  # whom they shared with held less until that very instant
            assert found.keys() == {key for key in wanted if key[0] not in over}
    assert queued_s(log) == pytest.approx(law.state.waited_s, abs=1e-6)


@FEW
@given(workloads(roomy=True), st.integers(0, 99))
def test_servers_hold_what_they_have_and_spans_are_as_long_as_they_can_be(case, seed):
    log = replay_tasks(workload_of(*case), Chaos(seed), round_s=ROUND_S, seed=seed)
    spans, cluster = log.spans, case[1]
    for server in range(len(cluster.capacity)):
        here = spans.node == server
        most = most_held(spans.from_s[here], spans.until_s[here], spans.gpus[here])
        assert most <= (cluster.server_of == server).sum() + 1e-9
    rows = list(zip(spans.job.tolist(), spans.node.tolist(), spans.gpus.tolist(), strict=True))
    ends = {(*row, until_s) for row, until_s in zip(rows, spans.until_s.tolist(), strict=True)}
    begins = {(*row, from_s) for row, from_s in zip(rows, spans.from_s.tolist(), strict=True)}
    assert not ends & begins
    assert np.array_equal(np.lexsort((spans.node, spans.job, spans.until_s)), np.arange(len(spans)))
    assert (spans.until_s > spans.from_s).all()
    assert (spans.from_s >= log.submit_s[spans.job]).all()
    assert (spans.until_s <= log.end_s[spans.job]).all()
    assert (spans.node > QUEUED).all()
