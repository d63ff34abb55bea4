"""Rounds in a law in which GPUs of a job may change: what policies are told of it, what becomes of their answers."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from jobcast.domain.energy import EnergyCluster, EpochTimes
from jobcast.domain.rounds import ActiveJob, RoundState
from jobcast.domain.training import Goodputs
from jobcast.schedulers.placement import NodePlacement
from jobcast.schedulers.rounds import Rounds, expected, speeds_of
from jobcast.simulator.engine import Simulation
from tests.simulator.laws.test_epochs import NODES, TIMES, gang, world


class Numbers:
    """Runs all jobs in each round on so many GPUs, by job; keeps what it was shown."""

    def __init__(self, *rounds):
        self.rounds, self.seen = rounds, []

    def choose(self, state):
        gpus = self.rounds[min(state.index, len(self.rounds) - 1)]
        self.seen.append({one.job.job_id: one for one in state.active})
        return [replace(one.job, gpus=gpus.get(one.job.job_id, one.job.gpus)) for one in state.active]


def speeds(*times_s, asked):
    """By GPUs from one on."""
    return {gpus: pytest.approx(times_s[asked - 1] / one) for gpus, one in enumerate(times_s, 1)}


def played(policy, *jobs, nodes=(), **given):
    workload, law = world(*jobs, **given)
    seats = NodePlacement(nodes) if nodes else None
    return Simulation(workload, Rounds(policy, "numbers", 30.0, 0.0, seats), law=law).run().log()


@pytest.mark.parametrize("nodes", [(), (2, 4, 4)])
def test_a_job_gets_on_by_the_gpus_that_it_is_given(nodes):
    """5 epochs of 6 s on 2 GPUs in the first round, 5 of 4 s on 4 GPUs after it."""
    policy = Numbers({"a": 2}, {"a": 4})
    log = played(policy, gang("a", gpus=4, min_gpus=1), nodes=nodes)
    assert log.end_s.tolist() == [50.0]
    assert log.spans.gpus.tolist() == [2.0, 4.0]
    assert [one["a"].gpus for one in policy.seen] == [0, 2]
    assert [one["a"].run_s for one in policy.seen] == [0.0, 20.0]  # of 40 s on the 4 GPUs asked for


def test_policies_are_told_what_jobs_may_have():
    """Those that tell no fewest GPUs, or may not be stopped, keep their number."""
    policy = Numbers({})
    jobs = (
        gang("a", gpus=2, min_gpus=1),
        gang("b", gpus=4, min_gpus=3),
        gang("c", gpus=2),
        gang("e", gpus=3, min_gpus=3),
    )
    played(policy, *jobs, replace(gang("d", gpus=1, min_gpus=1), preemptible=False))
    told = {name: one.speeds for name, one in policy.seen[0].items()}
    assert told["a"] == speeds(*TIMES, asked=2)
    assert told["b"] == {gpus: speed for gpus, speed in speeds(*TIMES, asked=4).items() if gpus >= 3}
    assert told["c"] == told["d"] == {}
    assert told["e"] == {3: 1.0, 4: pytest.approx(5 / 4)}


@pytest.mark.parametrize("epoch_s", [TIMES[:2], (10.0, 6.0, np.inf, 4.0)])
def test_whose_own_number_takes_for_ever_keeps_it(epoch_s):
    """Nothing is known of 3 GPUs, or no node runs the job on so many."""
    facts = {EpochTimes: EpochTimes(np.ones(1), np.array([[epoch_s] * 3])), EnergyCluster: NODES}
    assert speeds_of(gang("a", gpus=3, min_gpus=1), SimpleNamespace(facts=facts.__getitem__)) == {}


def test_a_number_may_take_all_gpus_of_a_kind():
    """Nodes of the first kind, which are two GPUs in all, are twice as fast on both; other types do not count."""
    policy, others = Numbers({}), (1.0, 0.5, 0.4, 0.3)
    played(policy, gang("a", gpus=1, min_gpus=1), epoch_s=((10.0, 3.0, 2.0, 1.0), TIMES, others))
    assert policy.seen[0]["a"].speeds == {1: 1.0, 2: pytest.approx(10 / 3)}


def test_numbers_that_are_no_faster_than_smaller_ones_are_none():
    policy = Numbers({})
    times = (10.0, 6.0, 6.0, 4.0)
    played(policy, gang("a", gpus=3, min_gpus=1), epoch_s=(times, times, times))
    assert list(policy.seen[0]["a"].speeds) == [1, 2, 3, 4]  # what it asks for it may always have
    policy = Numbers({})
    played(policy, gang("a", gpus=1, min_gpus=1), epoch_s=(times, times, times))
    assert list(policy.seen[0]["a"].speeds) == [1, 2, 4]


def test_goodput_in_a_law_of_epochs_is_the_speedup():
    workload, law = world(gang("a", gpus=2, min_gpus=1), gang("b", gpus=3, min_gpus=2))
    seen = {}

    class Looks(Numbers):
        def choose(self, state):
            seen.setdefault("goodputs", law.facts(run, Goodputs))
            return super().choose(state)

    run = Simulation(workload, Rounds(Looks({}), "looks", 30.0, 0.0), law=law)
    run.run()
    assert seen["goodputs"] == {0: pytest.approx((1.0, 10 / 6)), 1: pytest.approx((0.0, 10 / 6, 2.0))}


def test_a_round_ahead_a_job_has_got_on_by_its_gpus_and_paid_for_a_change():
    job = gang("a", gpus=4, min_gpus=1)
    one = ActiveJob(job, 300.0, 200.0, True, None, {2: 0.5, 4: 1.0}, 4)
    state = RoundState(600.0, 5, 120.0, 20.0, 8, [one])
    (stays,), (changed,) = (expected(state, [replace(job, gpus=gpus)]).active for gpus in (4, 2))
    assert (stays.run_s, stays.gpus) == (320.0, 4)
    assert (changed.run_s, changed.gpus, changed.running) == (250.0, 2, True)  # 100 s at half the speed
