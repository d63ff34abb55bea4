"""Runs that begin amid things: cut anywhere, and rebuilt from what is known there, a run goes on as it would have."""

import numpy as np
import pytest

from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Grant
from jobcast.domain.training import Phase
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import Simulation, Stand
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.history import RunHistory
from jobcast.simulator.laws.goodput import Goodput, ScalableWork
from jobcast.simulator.workload import Workload
from tests.shared import refused
from tests.simulator.elastic import elastic_cases
from tests.simulator.test_forks import tasks

ROWS = [("pq"[at % 2], 40.0 * at, 100.0 + 37.0 * (at % 5), 1 + at % 3) for at in range(14)]
SIZES = [(10.0 * at, 50.0 + 30.0 * (at % 4), 8, 0, at % 4) for at in range(12)]


def rigid(policy, rows):
    """A run of some rows, whose names stay those that they have among all."""
    jobs = [Job(0, f"{at:02}", pool, submit_s, gpus) for at, (pool, submit_s, _, gpus) in rows]
    workload = Workload(jobs, [Outcome(row[2]) for _, row in rows], [Pool("p", 3), Pool("q", 3)])
    source = Oracle(workload)
    return Simulation(workload, make_policy(policy, source, {}), source)


def elastic(policy, rows):
    """The same of elastic jobs with stages."""
    case = elastic_cases.Case(elastic_cases.jobs_of([row for _, row in rows]), elastic_cases.cluster_of(8))
    return case.simulation(elastic_cases.policies()[policy])


def rebuilt(run, make, policy, rows, at_s):
    """The run begun anew at an instant from who is there, what they did and hold; and where its jobs are in the old."""
    left = [at for at in range(len(rows)) if np.isnan(run.end_s(at))]
    known = {}
    for seq, held in run.cluster.running.items():
        known[left.index(seq)] = Stand(run.law.done(seq, at_s), held.grant, held.start_s)
    for seq in run.cluster.active:
        if seq not in run.cluster.running:
            known[left.index(seq)] = Stand(run.law.done(seq, at_s))
    return make(policy, [(at, rows[at]) for at in left]).begin(at_s, known), left


@pytest.mark.parametrize(
    ("make", "policy", "rows"),
    [
        *((rigid, policy, ROWS) for policy in ("fcfs", "ssf", "mmfs", "sia")),
        *((elastic, policy, SIZES) for policy in ("srsf", "elastic_fifo")),
    ],
)
@pytest.mark.parametrize("at_s", [45.0, 130.0, 290.0])
def test_a_run_that_is_cut_and_rebuilt_goes_on_the_same(make, policy, rows, at_s):
    run = make(policy, list(enumerate(rows))).wait(at_s)
    again, left = rebuilt(run, make, policy, rows, at_s)
    assert [again.end_s(seq) for seq in range(len(left))] == [pytest.approx(np.nan, nan_ok=True)] * len(left)
    again.run()
    run.run()
    assert [again.end_s(seq) for seq in range(len(left))] == pytest.approx([run.end_s(seq) for seq in left], abs=1e-6)


def test_what_is_held_since_when_is_known():
    again = rigid("fcfs", [(0, ROWS[0]), (1, ROWS[1])]).begin(60.0, {0: Stand(55.0, Grant(1), 5.0)})
    assert (again.cluster.running[0].start_s, again.held_s(0)) == (5.0, 55.0)
    assert again.run().end_s(0) == 60.0 + 100.0 - 55.0
    assert again.end_s(1) == 60.0 + 137.0  # waited since 40 s, starts as soon as the policy is asked
    assert again.log().spans.node.tolist() == [-1, -1]  # known by number alone


@pytest.mark.parametrize(("done", "stage"), [(39.9, 0), (40.0, 1), (40.1, 1)])
def test_a_job_that_has_done_a_stage_is_at_the_next(done, stage):
    jobs = elastic_cases.jobs_of([(0.0, 100.0, 4)], stages={0: [(0.4, 4), (1.0, 2)]})
    run = elastic_cases.Case(jobs, elastic_cases.cluster_of(8)).simulation(elastic_cases.policies()["elastic_fifo"])
    assert run.begin(500.0, {0: Stand(done)}).law.stage[0] == stage


def test_who_has_done_something_and_holds_nothing_was_stopped_once():
    run = rigid("fcfs", list(enumerate(ROWS[:3]))).begin(90.0, {0: Stand(55.0, Grant(1)), 1: Stand(0.5), 2: Stand()})
    told = [run.law.service(run, run.jobs[seq]) for seq in range(3)]
    assert [(one.done, one.starts, one.changes) for one in told] == [(55.0, 1, 0), (0.5, 1, 1), (0.0, 0, 0)]


def test_the_past_knows_when_jobs_came_and_began_and_that_once():
    jobs = [Job(0, f"{at:02}", "p", submit_s, gpus) for at, (_, submit_s, _, gpus) in enumerate(ROWS[:3])]
    workload = Workload(jobs, [Outcome(row[2]) for row in ROWS[:3]], [Pool("p", 3)])
    history = RunHistory(["p"])
    run = Simulation(workload, make_policy("fcfs"), history=history)
    run.begin(60.0, {0: Stand(55.0, Grant(1), 5.0)})
    past = history.pool("p")
    assert (past.arrival_s.tolist(), past.start_s.tolist(), past.end_s.tolist()) == ([0.0, 40.0], [5.0], [np.inf])
    log = run.run().log()
    assert log.start_s.tolist() == [5.0, 60.0, 197.0]
    past = history.pool("p")
    assert past.arrival_s.tolist() == [0.0, 40.0, 80.0]
    assert (past.start_s.tolist(), past.end_s.tolist()) == ([5.0, 60.0, 197.0], [105.0, 197.0, 371.0])


def test_jobs_that_scale_are_in_the_phase_of_their_work():
    works = [ScalableWork(0.0, 1, (Phase(100.0, (1.0, 1.8), (8, 16)), Phase(300.0, (2.0, 3.7), (16, 32))))] * 3
    jobs = [Job(at, f"{at}", "all", 0.0, 1, preemptible=True) for at in range(3)]
    workload = Workload(jobs, [Outcome(work.exclusive_s()) for work in works], [Pool("all", 2)])
    run = Simulation(workload, make_policy("pollux"), law=Goodput(works))
    run.begin(50.0, {0: Stand(140.0, Grant(1)), 1: Stand(100.0), 2: Stand(300.0)})
    assert run.law.next_s() == 50.0 + 160.0 / 2.0
    assert [run.law.phase[seq] for seq in range(3)] == [1, 1, 1]
    assert run.run().over


def test_what_cannot_be_is_refused():
    run = rigid("fcfs", [(0, ROWS[0]), (1, ROWS[1])])
    refused(DecisionError, "cannot change job 01: it is submitted only at 40", run.begin, 10.0, {1: Stand()})
    with pytest.raises(DecisionError, match="cannot start job 00: it needs 1 GPUs, it is given 2"):
        rigid("fcfs", [(0, ROWS[0])]).begin(10.0, {0: Stand(1.0, Grant(2))})
    refused(ConfigError, "jobs of tasks begin in an empty cluster", lambda: tasks("mlf_h").begin(10.0, {0: Stand(1.0)}))
