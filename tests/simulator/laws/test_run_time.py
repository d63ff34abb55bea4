"""Progress of training jobs in the engine: regimes, restarts, and what a policy may see of them."""

from dataclasses import replace
from math import inf

import pytest

from jobcast.domain.errors import DecisionError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Decision, Grant, Trigger
from jobcast.domain.training import Progress, Regime, Training
from jobcast.simulator.engine import Simulation, replay
from jobcast.simulator.laws.run_time import RunTime
from jobcast.simulator.workload import Workload
from tests.simulator.pool_cases import Script

TRAINING = Training("LM", 10, 6, "gns", {10: 60.0, 20: 40.0, 40: 25.0})
REGIMES = (Regime(10, 2.0), Regime(20, 3.0), Regime(40, 1.0))
RUN_S = 2 * 60.0 + 3 * 40.0 + 25.0  # 265 s
ALONE = {0.0: {"a": 1}}
STOPPED = {**ALONE, 100.0: {"a": None}, 200.0: {"a": 1}}


def adaptive(restart_s=0.0):
    job = Job(0, "a", "p", 0.0, 1, preemptible=True, training=TRAINING)
    return Workload([job], [Outcome(RUN_S, REGIMES)], [Pool("p", 1)], restart_s)


def test_a_job_left_alone_runs_through_its_regimes():
    """Arrival, two changes of regime; at its end it is gone."""
    policy = Script(ALONE)
    assert replay(adaptive(), policy).end_s.tolist() == [RUN_S]
    assert {now_s: told["a"].progress for now_s, told in policy.seen.items() if told} == {
        0.0: Progress(0.0, (Regime(10, 0.0),)),
        120.0: Progress(2.0, (Regime(10, 2.0), Regime(20, 0.0))),
        240.0: Progress(5.0, (Regime(10, 2.0), Regime(20, 3.0), Regime(40, 0.0))),
    }


class InTurns:
    """Each second round it is the other job's turn; with `leave` the first is left alone from then on."""

    name = "in_turns"
    trigger = Trigger(on_events=False, period_s=10.0)

    def __init__(self, leave=inf):
        self.leave = leave

    def decide(self, view):
        turn = int(view.now_s // 10.0) % 2 if view.now_s < self.leave else min(view.active)
        stops = {seq: None for seq in view.running if seq != turn}
        return Decision({**stops, **({} if turn in view.running else {turn: Grant(1)})})


def test_starts_that_are_always_cut_short_are_found_out(monkeypatch):
    monkeypatch.setattr(RunTime, "patience", 20)
    jobs = [Job(seq, name, "p", 0.0, 1, preemptible=True) for seq, name in enumerate("ab")]
    made = Workload(jobs, [Outcome(30.0), Outcome(30.0)], [Pool("p", 1)], restart_s=10.0)
    # Patient for ten starts, of a round each, then for 20 decisions.
    with pytest.raises(DecisionError, match=r"at 310\.000000 s: 2 jobs are pending, job a first, while none gets on"):
        replay(made, InTurns())
    # A start of many rounds is none that is cut short.
    made = replace(made, restart_s=5000.0)
    assert replay(made, InTurns(leave=20.0)).end_s.tolist() == [5050.0, 10080.0]


def test_every_start_costs_its_time_and_work_done_is_kept():
    policy = Script(STOPPED)
    log = replay(adaptive(restart_s=20.0), policy)
    # 80 s of progress before the stop, 185 s and 20 s of starting after it.
    assert log.end_s.tolist() == [200.0 + 20.0 + RUN_S - 80.0]
    service = policy.seen[200.0]["a"]
    assert (service.held_s, service.run_s) == (100.0, 80.0)
    assert service.progress == Progress(80.0 / 60.0, (Regime(10, 80.0 / 60.0),))
    assert 200.0 + 20.0 + 40.0 in policy.seen  # the batch size changes 40 s of progress later


def test_starts_cost_nothing_by_default():
    assert replay(adaptive(), Script(STOPPED), law=RunTime()).end_s.tolist() == [100.0 + RUN_S]


def test_resuming_costs_more_than_starting():
    log = replay(adaptive(), Script(STOPPED), law=RunTime(restart_s=20.0, resume_s=7.0))
    assert log.end_s.tolist() == [200.0 + 20.0 + 7.0 + RUN_S - 80.0]


def test_a_job_that_outlives_what_is_believed_may_end_any_time():
    job = Job(0, "a", "p", 0.0, 1)
    run = Simulation(Workload([job], [Outcome(50.0)], [Pool("p", 1)]), Script(ALONE)).wait(20.0)
    ends_s = [run.fork(lambda job, run_s=run_s: run_s).run().end_s(0) for run_s in (10.0, 20.0, 30.0)]
    assert ends_s == pytest.approx([20.001, 20.001, 30.0], abs=1e-9)
    assert run.run().end_s(0) == 50.0


def test_what_is_believed_of_a_training_job_goes_on_at_the_batch_size_that_it_has():
    """At 140 s it has done two epochs at 10, and 20 of 40 s of its third at 20; in truth 40 comes at 240 s."""
    run = Simulation(adaptive(), Script(ALONE)).wait(140.0)
    believed = run.fork(lambda job: 260.0).wait(250.0)
    done = (Regime(10, 2.0), Regime(20, 130.0 / 40.0))
    assert believed.law.service(believed, believed.jobs[0]).progress == Progress(2.0 + 130.0 / 40.0, done)
    assert believed.run().end_s(0) == 260.0
    assert run.run().end_s(0) == RUN_S


def test_a_stop_within_the_start_gains_nothing():
    policy = Script({0.0: {"a": 1}, 15.0: {"a": None}, 30.0: {"a": 1}})
    log = replay(adaptive(restart_s=20.0), policy)
    assert policy.seen[30.0]["a"].run_s == 0.0
    assert log.end_s.tolist() == [30.0 + 20.0 + RUN_S]


def test_the_job_itself_says_nothing_of_its_regimes():
    job = adaptive().jobs[0]
    assert replace(job, training=None) != job
    assert not hasattr(job.training, "regimes")
