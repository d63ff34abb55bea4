"""Whole jobs in a world of tasks, by hand: where their tasks go, who waits, and copies that go their own ways."""

from dataclasses import replace

import numpy as np
import pytest

from jobcast.domain.errors import DecisionError, TraceError
from jobcast.domain.jobs import Succession
from jobcast.domain.policy import ANYWHERE, Cell, Decision, Grant, Trigger
from jobcast.domain.tasks import QUEUED, TaskView
from jobcast.simulator.engine import replay
from jobcast.simulator.laws.tasks import Tasks
from tests.contract.random_jobs import check_same
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, mixed, simulation_of, workload_of
from tests.simulator.tasks.task_policies import Fifo

THREE_SERVERS = cluster_of(3, [2, 4, 3])  # GPUs 0, 1; 2 to 5; 6 to 8


class Grants:
    """Gives what is written for a second since the first submission; keeps where tasks were, and who ran."""

    name = "grants"

    def __init__(self, script):
        self.script, self.places, self.running, self.services = script, {}, {}, {}

    def decide(self, view):
        seen = view.facts(TaskView)
        at_s = round(view.now_s - seen.jobs.submit_s[0])
        self.places[at_s], self.running[at_s] = seen.gpu_of.tolist(), list(view.running)
        self.services[at_s] = {job.seq: view.service(job) for job in view.active.values()}
        later = [second for second in self.script if second > at_s]
        wake_s = seen.jobs.submit_s[0] + min(later) if later else np.inf
        change = {seq: None if gpus is None else Grant(*gpus) for seq, gpus in self.script.get(at_s, {}).items()}
        return Decision(change, wake_s=wake_s)


def run(rows, script, *, cluster=THREE_SERVERS, **options):
    policy, workload = Grants(script), workload_of(rows, cluster)
    log = replay(workload.whole(), policy, law=Tasks(workload, fluctuation=0.0, **options))
    return log, policy


def pair(**given):
    return TaskJob(workers=2, **given)


def test_the_server_that_fits_best_and_a_gpu_a_worker():
    rows = [TaskJob(iterations=60.0), pair(), TaskJob(workers=3, server=True)]
    log, policy = run(rows, {0: {0: (1,), 1: (2,), 2: (3,)}})
    assert policy.places[60] == [QUEUED, 6, 7, 2, 3, 4, 2]  # one GPU was left of server 0, then of server 2
    assert log.end_s.tolist() == [60.0, 100.0, 100.0]
    assert policy.running[60] == [1, 2]


@pytest.mark.parametrize(("trigger", "end_s"), [(Trigger(), 110.0), (Trigger(period_s=10.0), 120.0)])
def test_a_limit_that_ends_a_job_at_once_is_an_event_of_its_own_but_for_rounds(trigger, end_s):
    class Limits:
        name, loads = "limits", ()

        def decide(self, view):
            self.loads = (*self.loads, view.facts(TaskView).load[:, 0].sum())
            first = Decision({0: Grant(1)}, wake_s=10.0), Decision(limit={0: 10.0}), Decision({1: Grant(1)})
            return (*first, *[Decision()] * 20)[len(self.loads) - 1]

    policy, workload = Limits(), workload_of([TaskJob(), TaskJob()], THREE_SERVERS)
    policy.trigger = trigger
    log = replay(workload.whole(), policy, law=Tasks(workload, fluctuation=0.0))
    assert log.end_s.tolist() == [10.0, end_s]
    assert policy.loads[:3] == (0.0, 0.5, 0.0)


def test_the_fewest_servers_where_none_has_enough():
    log, policy = run([TaskJob(workers=6), TaskJob(workers=2)], {0: {0: (6,), 1: (2,)}})
    assert policy.places[0] == [QUEUED] * 8
    spans = {(job, node): gpus for job, node, gpus in zip(log.spans.job, log.spans.node, log.spans.gpus, strict=True)}
    assert spans == {(0, 1): 4.0, (0, 2): 2.0, (1, 0): 2.0}


def test_a_job_goes_back_to_the_server_that_it_was_on():
    """The second server fits, the first fits better; it was on the second."""
    rows = [pair(iterations=200.0), pair(iterations=50.0)]
    script = {0: {1: (2,), 0: (2,)}, 60: {0: None}, 80: {0: (2,)}}
    log, policy = run(rows, script)
    assert policy.places[60] == [6, 7, QUEUED, QUEUED]
    assert log.columns["moved_mb"][0] == 0.0
    assert log.end_s[0] == pytest.approx(80.0 + 10.0 + 140.0)
    assert log.preemptions.tolist() == [1, 0]


def test_what_a_job_has_received():
    """Stopped from 60 to 80 s, it holds GPUs without iterating for 10 s more."""
    rows = [pair(submit_s=7.0, iterations=200.0), TaskJob(submit_s=7.0, iterations=200.0)]
    _, policy = run(rows, {0: {0: (2,), 1: (1,)}, 60: {0: None}, 80: {0: (2,)}, 100: {}})
    assert [policy.services[at_s][1].starts for at_s in (0, 60)] == [0, 1]
    told = {at_s: policy.services[at_s][0] for at_s in (0, 60, 80, 100)}
    assert [told[at_s].starts for at_s in told] == [0, 1, 1, 2]
    assert [told[at_s].held_s for at_s in told] == pytest.approx([0.0, 60.0, 60.0, 80.0])
    assert [told[at_s].done for at_s in told] == [told[at_s].run_s for at_s in told] == pytest.approx([0, 60, 60, 70])


def factor(fluctuation, seed, task, slot):
    """A normal draw of its own for each task and slot of five minutes (Box-Muller), cut at two deviations."""
    key = mixed(mixed(mixed(seed) ^ task) ^ slot)
    first, second = ((key >> 11) + 1) / 2**53, (mixed(key) >> 11) / 2**53
    drawn = np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)
    return max(0.1, 1.0 + fluctuation * max(-2.0, min(2.0, drawn)))


def test_what_tasks_use_is_the_same_on_every_machine():
    assert mixed(0) == 0xE220A8397B1DCDAF  # as published

    class Watching(Grants):
        loads = ()

        def decide(self, view):
            self.loads = (*self.loads, view.facts(TaskView).task_load[:, 0].copy())
            return super().decide(view)

    workload = workload_of([TaskJob(workers=8, gpu=0.5, iterations=400.0)], THREE_SERVERS)
    policy = Watching({0: {0: (8,)}, 10: {}, 310: {}})
    replay(workload.whole(), policy, law=Tasks(workload, fluctuation=0.6, seed=5))
    origin_s = workload.whole().jobs[0].submit_s
    for at_s, found in zip((10, 310), policy.loads[1:], strict=False):
        slot = int((origin_s + at_s) // 300)
        assert found == pytest.approx([0.5 * factor(0.6, 5, task, slot) for task in range(8)])


def test_what_does_not_fit_waits_and_so_does_what_comes_after_it():
    rows = [TaskJob(workers=8), pair(iterations=30.0), TaskJob(iterations=20.0)]
    log, _ = run(rows, {0: {0: (8,), 1: (2,), 2: (1,)}, 100: {1: (2,), 2: (1,)}})
    assert log.start_s.tolist() == [0.0, 100.0, 100.0]


def test_memory_is_used_to_the_last_byte():
    """Two workers, or a worker and its parameter server, need all of a server's 244 GB."""
    log, _ = run([TaskJob(workers=4, memory=122.0)], {0: {0: (4,)}}, cluster=cluster_of(2, 4))
    assert log.spans.gpus.tolist() == [2.0, 2.0]
    log, policy = run([TaskJob(memory=122.0, server=True)], {0: {0: (1,)}, 10: {}}, cluster=cluster_of(2, 4))
    assert policy.places[10] == [0, 0]


def test_gpus_in_use_are_nobodys():
    _, policy = run([TaskJob(), TaskJob()], {0: {0: (1,)}, 10: {1: (1,)}, 20: {}})
    assert policy.places[20] == [0, 1]
    full = [TaskJob(memory=200.0), TaskJob(memory=100.0)]  # the second finds a GPU beside the first, but not the memory
    _, policy = run(full, {0: {0: (1,)}, 10: {1: (1,)}, 20: {}})
    assert policy.places[20] == [0, 6]


def test_a_job_goes_back_to_the_first_server_too():
    """Of servers of 4 and 2 GPUs the second fits better once it is free; the job was on the first."""
    rows = [pair(iterations=50.0), pair(iterations=200.0)]
    script = {0: {0: (2,), 1: (2,)}, 60: {1: None}, 80: {1: (2,)}, 90: {}}
    log, policy = run(rows, script, cluster=cluster_of(2, [4, 2]))
    assert policy.places[60] == [QUEUED, QUEUED, 0, 1]
    assert policy.places[90] == [QUEUED, QUEUED, 0, 1]
    assert log.columns["moved_mb"][1] == 0.0


def test_named_cells_are_kept_to():
    rows = [pair(), TaskJob()]
    cells = (Cell(2, ANYWHERE, 1), Cell(1, 3, 1))
    workload, policy = workload_of(rows, THREE_SERVERS), Grants({0: {0: (2, cells), 1: (1, (Cell(2, 0, 1),))}})
    whole = replace(workload.whole(), servers=(2, 4, 3))
    with pytest.raises(DecisionError, match="cannot start job job-1: where it is put GPUs are taken"):
        replay(whole, policy, law=Tasks(workload))
    policy = Grants({0: {0: (2, cells), 1: (1,)}})
    replay(whole, policy, law=Tasks(workload, fluctuation=0.0, restart_s=0.0))
    assert policy.places == {0: [QUEUED] * 3}
    cells = (Cell(1, 1, 1), Cell(1, ANYWHERE, 1), Cell(1, ANYWHERE, 1))
    policy, workload = Grants({0: {0: (3, cells)}, 10: {}}), workload_of([TaskJob(workers=3)], THREE_SERVERS)
    replay(replace(workload.whole(), servers=(2, 4, 3)), policy, law=Tasks(workload))
    assert policy.places[10] == [3, 2, 4]


@pytest.mark.parametrize(("count", "successions"), [(3, None), (2, {"job-1": Succession(("job-0",), 1.0)})])
def test_other_jobs_and_closed_loops_are_refused(count, successions):
    whole = replace(workload_of([TaskJob()] * 2, THREE_SERVERS).whole(), successions=successions)
    with pytest.raises(TraceError, match="the jobs of tasks are not those that arrive"):
        replay(whole, Grants({}), law=Tasks(workload_of([TaskJob()] * count, THREE_SERVERS)))


def test_more_gpus_than_asked_for_are_refused():
    with pytest.raises(DecisionError, match="cannot start job job-0: it needs 2 GPUs, it is given 3"):
        run([pair()], {0: {0: (3,)}})


def test_a_copy_of_a_law_goes_its_own_way():
    """A run that is copied in the middle ends as the one that was not, whichever goes on first."""
    rows = [TaskJob(submit_s=20.0 * number, workers=2, iterations=90.0 + 7.0 * number) for number in range(8)]
    workload = workload_of(rows, THREE_SERVERS)
    whole = simulation_of(workload, Fifo(), seed=3)[0].run().log()
    run_, law = simulation_of(workload, Fifo(), seed=3)
    run_.run(150.0)
    other = law.fork()
    before = [column.copy() for column in other.state]
    again = run_.run().log()
    check_same(whole, again)
    for name, one, two in zip(other.state._fields, other.state, before, strict=True):
        assert np.array_equal(one, two, equal_nan=one.dtype.kind == "f"), name
    assert other.next_s() < float(np.max(again.end_s))
