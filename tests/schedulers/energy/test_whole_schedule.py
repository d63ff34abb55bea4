"""When whole schedules are asked for, what they are told, and answers that cannot be."""

from math import inf

import numpy as np
import pytest

from jobcast.domain.energy import POSTPONED, Deployment
from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.schedulers.energy.whole_schedule import WholeSchedule
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
