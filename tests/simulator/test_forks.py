"""Copies of runs: in truth they end as the run itself, in what is believed as that says; neither moves the other."""

from dataclasses import replace
from inspect import ismodule
from itertools import count

import joblib
import numpy as np
import pytest

from jobcast.domain.jobs import Job, Outcome, Pool, Succession
from jobcast.domain.policy import Trigger
from jobcast.domain.training import Phase, Regime, Training
from jobcast.live.completion_forecasts import believed_now, completions
from jobcast.pipelines.experiments.completion_meters import Watcher
from jobcast.pipelines.experiments.forecast_recording import Recording
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.elastic.run import ElasticReplay, replay_elastic
from jobcast.simulator.engine import Simulation
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.laws.goodput import Goodput, ScalableWork
from jobcast.simulator.laws.tasks import Tasks
from jobcast.simulator.meters import EnergyMeter
from jobcast.simulator.workload import Workload
from tests.simulator.elastic import elastic_cases
from tests.simulator.energy import energy_cases
from tests.simulator.tasks import task_cases
from tests.simulator.tasks.task_policies import Script

TRAINING = Training("LM", 10, 6, "gns", {10: 60.0, 20: 40.0, 40: 25.0})
REGIMES = (Regime(10, 2.0), Regime(20, 3.0), Regime(40, 1.0))


def gangs(policy, training=False):
    """Twelve jobs of two pools, half of them training where asked; three at a time."""
    rows = [("pq"[at % 2], 40.0 * at, 100.0 + 37.0 * (at % 5), 1 + at % 3) for at in range(12)]
    jobs = [
        Job(at, f"{at:02}", pool if not training else "all", submit_s, gpus, preemptible=True,
            training=TRAINING if training and at % 2 else None)
        for at, (pool, submit_s, _, gpus) in enumerate(rows)
    ]  # fmt: skip
    outcomes = [
        Outcome(265.0, REGIMES) if job.training else Outcome(duration)
        for job, (*_, duration, _) in zip(jobs, rows, strict=True)
    ]
    pools = [Pool("all", 6)] if training else [Pool("p", 3), Pool("q", 3)]
    workload = Workload(jobs, outcomes, pools, restart_s=5.0)
    source = Oracle(workload)
    return Simulation(workload, make_policy(policy, source, {}), source)


def elastic():
    jobs = elastic_cases.jobs_of([(10.0 * at, 50.0 + 30.0 * (at % 4), 8, 0, at % 4) for at in range(9)])
    case = elastic_cases.Case(jobs, elastic_cases.cluster_of(8, preempt_s=2.0))
    return case.simulation(elastic_cases.policies()["srsf"])


def epochs():
    cluster = energy_cases.cluster_of((2, (0.0, 420.0, 670.0)), (1, (0.0, 240.0)))
    rows = [
        energy_cases.EnergyJob(400.0 * at, 3000.0 + 900.0 * at, 1.0 + at % 3, 8.0, ((90.0, 60.0), (150.0,)))
        for at in range(8)
    ]
    world = energy_cases.workload_of(energy_cases.jobs_of(*rows), cluster)
    policy = make_policy("andreas", None, {"max_iterations": "10"})
    return Simulation(world.workload, policy, law=world.law(restart_s=30.0), meters=[EnergyMeter(cluster)])


def goodput():
    phases = (Phase(100.0, (1.0, 1.8), (8, 16)), Phase(300.0, (2.0, 3.7), (16, 32)))
    works = [ScalableWork(45.0 * at, 1, phases) for at in range(6)]
    jobs = [Job(at, f"{at}", "all", work.submit_s, 1, preemptible=True) for at, work in enumerate(works)]
    workload = Workload(jobs, [Outcome(work.exclusive_s()) for work in works], [Pool("all", 4)])
    return Simulation(workload, make_policy("pollux"), law=Goodput(works))


def tasks(policy):
    rows = [task_cases.TaskJob(submit_s=90.0 * at) for at in range(6)]
    workload = task_cases.workload_of(rows, task_cases.cluster_of(2, 2))
    rule = make_policy(policy)
    rule.trigger = Trigger(on_events=False, period_s=60.0)
    return Simulation(workload.whole(), rule, law=Tasks(workload))


def closed():
    """Six jobs, of which each awaits the one before it."""
    jobs = [Job(at, f"{at}", "p", 10.0 * at, 1 + at % 2) for at in range(6)]
    successions = {f"{at}": Succession((f"{at - 1}",), 5.0) for at in range(1, 6)}
    workload = Workload(jobs, [Outcome(50.0 + at) for at in range(6)], [Pool("p", 2)], successions=successions)
    return Simulation(workload, make_policy("fcfs"))


def regimes_of_epochs(snapshot_epochs=None):
    """Training jobs that count epochs, and change their batch sizes on the way; who is stopped goes back."""
    cluster = energy_cases.cluster_of((4, (0.0, 420.0)))
    rows = [energy_cases.EnergyJob(100.0 * at, 9e9, 1.0, 11.0, ((60.0,),)) for at in range(6)]
    world = energy_cases.workload_of(energy_cases.jobs_of(*rows), cluster)
    jobs = [replace(job, training=TRAINING) for job in world.workload.jobs]
    outcomes = [Outcome(265.0, REGIMES) for _ in jobs]
    workload = replace(world.workload, jobs=jobs, outcomes=outcomes)
    return Simulation(workload, make_policy("las"), law=world.law(snapshot_epochs=snapshot_epochs))


RUNS = {
    **{name: lambda name=name: gangs(name) for name in ("fcfs", "ssf", "sia", "mmfs", "sia_preempt", "themis_np")},
    **{f"training {name}": lambda name=name: gangs(name, True) for name in ("las", "srpt", "gandiva_fair")},
    "elastic": elastic,
    "epochs": epochs,
    "epochs with regimes": regimes_of_epochs,
    "epochs with snapshots": lambda: regimes_of_epochs(4),
    "closed loop": closed,
    "goodput": goodput,
    **{name: lambda name=name: tasks(name) for name in ("mlf_h", "tiresias", "gandiva")},
}


def told(run):
    """What a run's log says of jobs, and a law that keeps what they ran."""
    log = run.log()
    spans = sorted(zip(log.spans.job, log.spans.from_s, log.spans.until_s, log.spans.gpus, log.spans.node, strict=True))
    columns = {key: one.tolist() for key, one in log.columns.items()}
    return spans, log.start_s.tolist(), log.end_s.tolist(), columns, getattr(run.law, "ran", None)


def kept_by(law):
    """A hash of all that it keeps: also of what only a later start, or the end of patience, would show."""
    return joblib.hash({name: kept for name, kept in vars(law).items() if not ismodule(kept)})


@pytest.mark.parametrize("name", RUNS)
def test_a_copy_in_truth_ends_as_the_run_and_changes_nothing_of_it(name):
    """Copied in the middle of it."""
    first, steps = RUNS[name](), 0
    while not first.over:
        first.step()
        steps += 1
    whole, run = told(first), RUNS[name]()
    for _ in range(steps // 2):
        run.step()
    copies, before = [run.fork(), run.fork()], kept_by(run.law)
    assert repr(told(copies[0].run())) == repr(whole)
    assert kept_by(run.law) == before
    assert repr(told(run.run())) == repr(whole)
    assert repr(told(copies[1].run())) == repr(whole)


@pytest.mark.parametrize("name", RUNS)
def test_in_a_copy_of_what_is_believed_nobody_arrives_and_all_that_are_there_end(name):
    run = RUNS[name]()
    while not run.over and run.now_s < run.origin_s + 120.0:
        run.step()
    before, there = repr(told(run)), len(run.cluster.active)
    fork = run.fork(lambda job: 500.0)
    assert fork.run().over
    assert repr(told(run)) == before
    ended = [seq for seq in run.cluster.active if fork.end_s(seq) >= run.now_s]
    assert len(ended) == there


def test_run_times_that_are_believed_replace_the_true_ones():
    run = gangs("fcfs")
    run.run(100.0)  # job 0 of 1 GPU from 0 on, job 1 of 2 from 40 on, job 2 of 3 waits from 80 on
    fork = run.fork(lambda job: {0: 150.0, 1: 20.0, 2: 70.0}[job.seq]).run()
    # its start cost 5 s; job 1 has run longer than was believed: it may end any time
    assert [fork.end_s(seq) for seq in range(3)] == [155.0, pytest.approx(100.0, abs=40.0), 155.0 + 5.0 + 70.0]


def test_sizes_of_elastic_jobs_are_as_declared():
    jobs = elastic_cases.jobs_of([(0.0, 100.0, 4), (10.0, 60.0, 4), (20.0, 30.0, 4)])
    case, policy = elastic_cases.Case(jobs, elastic_cases.cluster_of(4)), elastic_cases.policies()["srsf"]
    size_s = jobs.size_s * np.array([3.0, 0.5, 1.0])
    log = replay_elastic(ElasticReplay(jobs, size_s, case.cluster, policy), predict=True)
    run = case.simulation(policy, size_s=size_s)
    found = []
    while not run.over:
        before = len(run.cluster.active)
        run.step()
        if len(found) < 3 and len(run.cluster.active) > before:
            found.append(run.fork(lambda job: 0.0).run().end_s(len(found)))
    assert found == pytest.approx(log.columns["predicted_end_s"].tolist(), abs=1e-6)


def test_in_a_copy_of_what_is_believed_nobody_follows_those_who_end():
    run = closed().run(0.0)
    fork = run.fork(lambda job: 500.0).run()
    assert len(fork.jobs) == 1
    assert fork.end_s(0) == 500.0
    assert len(run.run().jobs) == 6


def test_others_may_come_in_a_copy_of_what_is_believed():
    """Up to 4,000 of them, each as soon as there is room, for 5 s of its start and 400 s of its run."""
    run = gangs("fcfs").run(0.0)
    coming = ((Job(0, f"new {number}", "p", 500.0 * number, 1), 400.0) for number in count(1))
    fork = run.fork(lambda job: 70.0, coming)
    fork.run()
    ends_s = [75.0, *(500.0 * number + 405.0 for number in range(1, 4001))]
    assert [fork.end_s(seq) for seq in range(len(fork.jobs))] == ends_s
    assert [fork.held_s(seq) for seq in range(len(fork.jobs))] == [75.0] + [405.0] * 4000
    told = [(fork.source.duration_s(job), fork.source.duration_bin(job)) for job in fork.jobs[:2]]
    assert told == [(100.0, 0), (400.0, 1)]  # what is forecast of those that are there, of others what is believed
    assert [fork.source.duration_probabilities(job) for job in fork.jobs[:2]] == [(1, 0, 0, 0), (0, 1, 0, 0)]


def test_believed_jobs_stay_at_the_batch_sizes_that_they_have():
    for run in (gangs("las", True).run(100.0), regimes_of_epochs().run(200.0)):
        for known in run.fork(lambda job: 500.0).law.regimes.values():
            assert len(known.true) == len(known.ends) == len(known.shown) + 1


def test_believed_jobs_that_scale_stay_in_their_phase():
    run = goodput().run(120.0)
    law = run.fork(lambda job: 0.0).law
    for seq in run.cluster.active:
        last = law.works[seq].phases[-1]
        assert last.until == run.law.works[seq].phases[-1].until
        assert last.goodput == run.law.works[seq].phases[run.law.phase[seq]].goodput


def test_believed_metrics_go_straight_to_what_is_forecast_of_their_ends():
    run = tasks("mlf_h").run(200.0)
    state, told = run.law.state, run.law.world.metric.copy()
    seq = next(iter(run.cluster.active))
    state.final_mean[seq] = 2.0
    fork = run.fork(lambda job: 0.0)
    seen, believed = int(state.epoch[seq]), fork.law.world.metric[seq]
    count = int(fork.law.world.epochs[seq])
    assert fork.law.world.fluctuation == fork.law.world.stragglers == 0.0  # at rest, and no server is slow
    assert believed[seen] == told[seq, seen]
    assert believed[count] == 2.0
    assert np.diff(believed[seen : count + 1]) == pytest.approx(np.diff(believed[seen : count + 1])[0])
    assert np.array_equal(run.law.world.metric, told, equal_nan=True)


def test_a_believed_job_of_tasks_runs_all_that_it_declares():
    """It really ends after 70 of 100 iterations of a second."""
    workload = task_cases.workload_of(
        [task_cases.TaskJob()], task_cases.cluster_of(1, 1), metric=np.ones((1, 8)), iterations=np.array([70.0])
    )
    run, _ = task_cases.simulation_of(workload, Script({0: {"put": [(0, 0)]}}), fluctuation=0.0)
    run.run(0.0)
    fork = run.fork(lambda job: 0.0).run()
    assert fork.end_s(0) == pytest.approx(100.0)
    assert fork.log().columns["accuracy"].tolist() == [1.0]
    assert run.run().end_s(0) == pytest.approx(70.0)


def test_time_passes_in_which_nothing_happens():
    run = gangs("fcfs").wait(70.0)
    assert (run.now_s, run.cluster.now_s) == (70.0, 70.0)
    assert run.law.service(run, run.jobs[0]).run_s == 65.0  # the start took 5 s
    assert repr(told(run.run())) == repr(told(gangs("fcfs").run()))


class Counting(Watcher):
    """Keeps what it was shown."""

    def __init__(self):
        self.seen = []

    def watch(self, run):
        """The instant."""
        self.seen.append(run.now_s)


def test_who_watches_is_shown_all_instants_and_no_copy_of_what_is_believed():
    watch = Counting()
    run = gangs("fcfs")
    run = Simulation(run.workload, run.policy, run.source, meters=[watch])
    run.run(100.0)
    assert watch.seen == [0.0, 40.0, 80.0]
    assert not run.fork(lambda job: 1.0).run().meters
    assert watch.seen == [0.0, 40.0, 80.0]
    copy = run.fork()
    assert copy.run().meters[0].seen[:3] == watch.seen
    assert len(watch.seen) == 3


def test_what_a_copy_asks_is_not_kept():
    run = gangs("ssf")
    source = Recording(Oracle(run.workload))
    run = Simulation(run.workload, make_policy("ssf", source, {}), source).run(100.0)
    rows = len(source.of_jobs.rows)
    completions(run, list(run.cluster.active), believed_now(run))
    assert len(source.of_jobs.rows) == rows > 0
