"""When whole schedules are asked for, what they are told, and answers that cannot be."""

from math import inf

import numpy as np
import pytest

from jobcast.domain.energy import POSTPONED, Deployment, EpochTimes
from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.schedulers.energy.policies import by_calls
from jobcast.schedulers.energy.whole_schedule import WholeSchedule
from jobcast.schedulers.policies import EnergyMechanism
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.laws.epochs import Epochs
from jobcast.simulator.meters import EnergyMeter
from tests.simulator.energy.energy_cases import EnergyJob, cluster_of, jobs_of, replayed, workload_of
from tests.simulator.energy.energy_policies import Script


def views(**settings):
    """What a policy is shown while a job of epochs of 30 s runs for 120 s from when it is first asked."""
    script = Script({0.0: {0: (0, 1)}, 20.0: {0: (0, 1)}})
    policy = WholeSchedule(script.schedule, "script", on_events=True, restart_s=0.0, **settings)
    jobs = jobs_of(EnergyJob(epochs=4.0, epoch_s=((30.0,),)))
    replayed(workload_of(jobs, cluster_of((1, (0.0, 100.0)))), policy)
    return script.views


def test_calls_are_numbered_and_know_how_far_jobs_are():
    told = [(one.now_s, one.call, *one.started, *one.left, *one.left_saved) for one in views(period_s=45.0)]
    assert told == [(0.0, 0, False, 4.0, 4.0), (45.0, 1, True, 2.5, 3.0), (90.0, 2, True, 1.0, 1.0)]


def test_who_was_measured_is_shown_as_waiting():
    first = views(period_s=300.0, profile_s=20.0)[0]
    assert (first.now_s, first.node_of.tolist(), first.gpus_of.tolist()) == (20.0, [POSTPONED], [0])


def test_the_least_period_is_a_millisecond():
    assert WholeSchedule(print, "own", 0.001, True, 0.0).trigger.period_s == 0.001
    with pytest.raises(ConfigError, match=r"^period_s is 0.0009; it must be at least 0.001 s"):
        WholeSchedule(print, "own", 0.0009, True, 0.0)


class Answer:
    name = "wrong"

    def __init__(self, node, gpus):
        self.answer = Deployment(np.array(node), np.array(gpus))

    def schedule(self, view):
        return self.answer


@pytest.mark.parametrize(
    ("node", "gpus", "told"),
    [
        ([0], [1], r"gives nodes int64\(1,\) and GPUs int64\(1,\) for 2 active jobs"),
        ([0, 0], [1], r"GPUs int64\(1,\) for 2"),
        ([0.0, 0.0], [1, 1], r"nodes float64\(2,\)"),
        ([0, 2], [1, 2], r"cannot start job j1: there is no such cell: Cell\(server=2"),
        ([0, -2], [1, 2], "cannot start job j1: there is no such cell"),
        ([0, 1], [1, 0], "cannot start job j1: it cannot run on 0 GPUs of node 1"),
        ([0, 1], [2, 2], "cannot start job j0: server 0 has 1 GPUs free, it is given 2 of them"),
        ([0, 1], [1, 1], "cannot start job j1: it cannot run on 1 GPUs of node 1"),
        ([0, 0], [1, 1], "cannot start job j1: server 0 has 0 GPUs free"),
    ],
)
def test_what_cannot_be_is_refused(node, gpus, told):
    cluster = cluster_of((1, (0.0, 100.0)), (1, (0.0, 100.0, 180.0)))
    jobs = jobs_of(*(EnergyJob(submit_s=50.0, epoch_s=((9.0,), (inf, 9.0))) for _ in range(2)), cluster=cluster)
    with pytest.raises(DecisionError, match=f"policy wrong at 50.000000 s: .*{told}"):
        replayed(workload_of(jobs, cluster), Answer(node, gpus))


ONE, TWO = (0.0, 100.0), (0.0, 100.0, 150.0)


def run(cluster, rows, applications, profile_s=20.0, **settings):
    """Spans by job: (node, GPUs, from, until); figures; kWh in all. Queued first in, first out."""
    world = workload_of(jobs_of(*rows, cluster=cluster), cluster)
    numbers = None if applications is None else np.array(applications)
    law = Epochs(EpochTimes(world.jobs.epochs, world.true_s, numbers), cluster, **settings)
    policy = make_policy("energy_fifo", None, {"profile_s": profile_s})
    log = replay(world.workload, policy, law=law, meters=(EnergyMeter(cluster),))
    spans = log.spans
    found = {
        job: [
            (int(spans.node[at]), int(spans.gpus[at]), round(spans.from_s[at], 6), round(spans.until_s[at], 6))
            for at in np.flatnonzero(spans.job == job)
        ]
        for job in range(len(rows))
    }
    return found, policy.figures(), log


def test_the_first_job_runs_on_each_number_of_gpus_and_then_all_are_scheduled():
    # 2 nodes. In 25 s on 1 GPU j0 does 2.5 epochs, of which 2 are saved; then 4.17 of 6 s on both, of which 4 are; the
    # 4 that are left take 24 s where it is put. On 2 GPUs its energy is the least. j1 waits for all that.
    rows = [EnergyJob(epoch_s=((10.0, 6.0),)), EnergyJob(epoch_s=((10.0, 6.0),))]
    spans, figures, log = run(cluster_of((2, TWO)), rows, [0, 0], profile_s=25.0)
    assert spans == {0: [(1, 1, 0, 25), (1, 2, 25, 50), (0, 2, 50, 74)], 1: [(1, 2, 50, 110)]}
    assert figures == {
        "profiles": 2,
        "profiling_gpu_h": pytest.approx((25 + 2 * 25) / 3600),
        "profiling_kwh": pytest.approx((25 * 100 + 25 * 150) / 3.6e6),
    }
    assert log.totals["energy_kwh"] == pytest.approx((25 * 100 + 25 * 150 + 24 * 150 + 60 * 150) / 3.6e6)
    assert log.columns["lost_epochs"].tolist() == pytest.approx([0.5 + 1 / 6, 0.0])


def test_kinds_measure_beside_one_another():
    # Each kind has one node, which measures; j1 takes the other while j0 is measured, then they change places.
    rows = [EnergyJob(epochs=8, epoch_s=((10.0,), (20.0,))), EnergyJob(epochs=8, epoch_s=((10.0,), (20.0,)))]
    spans, figures, _ = run(cluster_of((1, ONE), (1, ONE)), rows, [0, 1])
    assert spans[0] == [(0, 1, 0, 20), (1, 1, 20, 40), (0, 1, 40, 90)]
    assert spans[1] == [(1, 1, 0, 20), (0, 1, 20, 40), (0, 1, 90, 140)]
    assert figures["profiles"] == 4


def test_what_runs_on_a_node_that_is_withheld_goes_on_and_nothing_else_starts_there():
    rows = [
        EnergyJob(),  # measured on node 1 until 20, 2 of its 10 epochs done
        EnergyJob(),  # scheduled at 20, on node 1 for 100 s
        EnergyJob(submit_s=30.0),  # new: it waits for node 1
        EnergyJob(submit_s=40.0),  # known: it waits for node 0, which is free at 100
        EnergyJob(submit_s=50.0),  # known: node 1 is its own again once j2 is measured
    ]
    spans, _, _ = run(cluster_of((2, ONE)), rows, [0, 0, 1, 0, 0])
    assert spans == {
        0: [(1, 1, 0, 20), (0, 1, 20, 100)],
        1: [(1, 1, 20, 120)],
        2: [(1, 1, 120, 220)],  # the schedule leaves it where it was measured: it goes on
        3: [(0, 1, 100, 200)],
        4: [(0, 1, 200, 300)],
    }


def test_a_job_that_ends_sooner_has_been_measured_and_the_next_one_is_on_more_gpus():
    times = ((5.0, 4.0),)
    rows = [EnergyJob(submit_s=2.0, epochs=1, epoch_s=times), EnergyJob(submit_s=3.0, epochs=5, epoch_s=times)]
    spans, figures, _ = run(cluster_of((1, TWO)), rows, [0, 0], profile_s=6.0)
    # 6 s on both: 1 epoch of 4 s is saved, 4 are left, which cost less on 1 GPU.
    assert spans == {0: [(0, 1, 2, 7)], 1: [(0, 2, 7, 13), (0, 1, 13, 33)]}
    assert figures["profiling_gpu_h"] == pytest.approx((5 + 2 * 6) / 3600)


def test_who_came_first_is_measured_first_also_where_a_later_one_would_fit():
    # j1 holds one of two GPUs; j2 needs both, j3 one: it is the next one.
    rows = [
        EnergyJob(epochs=1, epoch_s=((5.0,),)),
        EnergyJob(submit_s=6.0, epochs=10, epoch_s=((5.0,),)),
        EnergyJob(submit_s=7.0, epochs=1, epoch_s=((np.inf, 5.0),)),
        EnergyJob(submit_s=8.0, epochs=1, epoch_s=((5.0,),)),
    ]
    spans, _, _ = run(cluster_of((1, TWO)), rows, [0, 0, 1, 2])
    assert spans == {0: [(0, 1, 0, 5)], 1: [(0, 1, 6, 56)], 2: [(0, 2, 56, 61)], 3: [(0, 1, 61, 66)]}


def test_a_job_waits_until_it_is_measured_on_all_kinds_that_it_may_run_on():
    # j0 holds the only node of the second kind until 100; j1 is measured on the first at 50, and not scheduled there.
    rows = [EnergyJob(epoch_s=((), (10.0,))), EnergyJob(submit_s=30.0, epoch_s=((10.0,), (10.0,)))]
    spans, figures, _ = run(cluster_of((2, ONE), (1, ONE)), rows, [0, 1])
    assert spans == {0: [(2, 1, 0, 100)], 1: [(1, 1, 30, 50), (2, 1, 100, 120), (0, 1, 120, 180)]}
    assert figures["profiles"] == 3


def test_nodes_are_found_behind_one_that_is_withheld():
    # j0 goes on where it was measured, on the second kind, while the only node of the first measures j1.
    rows = [EnergyJob(epoch_s=((), (10.0,))), EnergyJob(submit_s=20.0, epoch_s=((10.0,),))]
    spans, _, _ = run(cluster_of((1, ONE), (1, ONE)), rows, [0, 1])
    assert spans == {0: [(1, 1, 0, 100)], 1: [(0, 1, 20, 120)]}


def test_the_next_number_of_gpus_costs_a_restart():
    # 2 epochs are saved at 20; then 5 s of a restart, and 8 epochs of 6 s on both GPUs, where the schedule leaves it.
    spans, figures, _ = run(cluster_of((1, TWO)), [EnergyJob(epoch_s=((10.0, 6.0),))], [0], restart_s=5.0)
    assert spans == {0: [(0, 1, 0, 20), (0, 2, 20, 73)]}
    assert figures["profiles"] == 2


def test_jobs_of_which_no_application_is_told_are_all_measured():
    rows = [EnergyJob(epochs=4), EnergyJob(epochs=4)]
    spans, figures, _ = run(cluster_of((1, ONE)), rows, None)
    # j1 is measured when j0 has been; both have 2 epochs left then, and the first goes first.
    assert spans == {0: [(0, 1, 0, 20), (0, 1, 40, 60)], 1: [(0, 1, 20, 40), (0, 1, 60, 80)]}
    assert figures["profiles"] == 2


def test_nothing_is_measured_where_applications_are_known():
    spans, figures, _ = run(cluster_of((1, ONE)), [EnergyJob(), EnergyJob()], [0, 1], profile_s=0.0)
    assert (spans, figures) == ({0: [(0, 1, 0, 100)], 1: [(0, 1, 100, 200)]}, {})


def test_who_answers_the_engine_itself_cannot_leave_nodes_out():
    with pytest.raises(ConfigError, match=r"^policy own: setting profile_s: it makes no whole schedules"):
        by_calls(object(), "own", EnergyMechanism(profile_s="60"))
    rule = object()
    assert by_calls(rule, "own", EnergyMechanism()) is rule
