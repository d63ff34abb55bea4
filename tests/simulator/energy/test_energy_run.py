"""Whole runs, computed by hand."""

from math import inf

import numpy as np
import pytest

from jobcast.domain.energy import Deployment, EnergyCluster, EpochTimes
from jobcast.domain.errors import ConfigError, DecisionError
from jobcast.simulator.laws.epochs import Epochs
from jobcast.simulator.log import by_job
from jobcast.simulator.metrics import tardiness_eur, tardiness_s
from tests.simulator.energy.energy_cases import EnergyJob, Told, cluster_of, jobs_of, replayed, workload_of
from tests.simulator.energy.energy_policies import Greedy, OneByOne, Script

NODE = (0.0, 100.0, 180.0)
"""Watts of a node of two GPUs."""


def one_node(**given):
    return cluster_of((1, NODE), **({"pue": 1.5, "price": 0.2} | given))


def rows_of(spans):
    told = by_job(spans)
    columns = (told.job, told.node, told.gpus, told.from_s, told.until_s)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def held_s(log):
    """(n_jobs,) seconds in which jobs held GPUs."""
    return np.bincount(log.spans.job, log.spans.until_s - log.spans.from_s, minlength=len(log))


def test_two_jobs_share_a_node():
    """100 W for 100 s, 180 W for 300 s, 100 W for 200 s: 84 kJ; at PUE 1.5 and 0.2 EUR/kWh 0.007 EUR."""
    jobs = jobs_of(
        EnergyJob(epochs=10, epoch_s=((60.0, 40.0),)),
        EnergyJob(submit_s=100.0, due_s=250.0, weight=3.6, epochs=5, epoch_s=((60.0, 40.0),)),
    )
    policy = Script({0.0: {0: (0, 1)}, 100.0: {1: (0, 1)}})
    log = replayed(workload_of(jobs, one_node()), policy)
    assert policy.calls == [0.0, 100.0, 300.0, 400.0]
    assert (log.events, log.totals["decisions"]) == (6, 4)  # two arrivals, two ends, two points of the grid
    assert log.start_s.tolist() == [0.0, 100.0]
    assert log.end_s.tolist() == [600.0, 400.0]
    assert rows_of(log.spans) == [(0, 0, 1, 0.0, 600.0), (1, 0, 1, 100.0, 400.0)]
    assert log.totals["energy_kwh"] == pytest.approx(84e3 / 3.6e6, rel=1e-12)
    assert log.totals["energy_eur"] == pytest.approx(0.007, rel=1e-12)
    assert log.columns["energy_kwh"] == pytest.approx([57e3 / 3.6e6, 27e3 / 3.6e6], rel=1e-12)
    assert log.columns["energy_eur"] == pytest.approx([0.00475, 0.00225], rel=1e-12)
    assert tardiness_s(log).tolist() == [0.0, 150.0]
    assert tardiness_eur(log) == pytest.approx([0.0, 0.15])
    assert (log.duration_s.tolist(), log.gpus.tolist()) == ([400.0, 200.0], [2, 2])  # alone on both GPUs
    assert not log.preemptions.any()
    assert not log.columns["migrations"].any()
    assert not log.columns["lost_epochs"].any()


def test_a_completion_on_the_grid_is_one_event():
    """3 epochs of 0.1 s take 0.30000000000000004 s; the grid is at 0.3 s."""
    jobs = jobs_of(*(EnergyJob(epochs=3, epoch_s=((0.1,),)) for _ in range(3)))
    policy = Greedy()
    log = replayed(workload_of(jobs, cluster_of((1, (0.0, 100.0)))), policy, period_s=0.3)
    assert policy.calls == pytest.approx([0.0, 0.3, 0.6])
    assert log.end_s == pytest.approx([0.3, 0.6, 0.9])


def test_events_closer_than_half_a_microsecond_are_one_at_the_last_of_them():
    jobs = jobs_of(*(EnergyJob(submit_s=at_s, epoch_s=((30.0,),)) for at_s in (0.0, 300.0 + 2e-7, 300.0 + 4e-7)))
    policy = Greedy()
    log = replayed(workload_of(jobs, cluster_of((2, (0.0, 100.0)))), policy)
    assert policy.calls == [0.0, 300.0 + 4e-7]
    assert log.start_s.tolist() == [0.0, 300.0 + 4e-7, 300.0 + 4e-7]
    assert log.end_s[0] == 300.0 + 4e-7


def test_grid_points_at_odd_instants_come_once():
    """Near 1.6e9 s, tenths of seconds do not add up exactly."""
    jobs = jobs_of(EnergyJob(submit_s=1.6e9 + 0.1, epochs=1, epoch_s=((70.35,),)))
    policy = Greedy()
    replayed(workload_of(jobs, cluster_of((1, (0.0, 100.0)))), policy, period_s=0.7)
    assert np.array(policy.calls) - 1.6e9 == pytest.approx(0.1 + 0.7 * np.arange(101), abs=1e-6)


def test_no_epochs_are_won_by_rounding():
    """Of epochs of 1 ms, 2.9995 are done by the stop, as good as 3; then 0.0003 of one of 100 s."""
    submit_s = (0.0, 0.0029995, 0.0329995)
    jobs = jobs_of(*(EnergyJob(at_s, epoch_s=((1e-3,), (100.0,))) for at_s in submit_s))
    steps = {
        0.0: {0: (0, 1)},
        submit_s[1]: {0: (1, 1)},
        submit_s[2]: {0: None, 1: (0, 1), 2: (1, 1)},
        300.0: {0: (0, 1)},
    }
    policy = Script(steps)
    log = replayed(workload_of(jobs, cluster_of((1, (0.0, 100.0)), (1, (0.0, 100.0)))), policy)
    first, second = policy.views[1:3]
    assert (first.left[0], first.left_saved[0]) == pytest.approx((7.0005, 7.0005), abs=1e-9)
    assert (second.left[0], second.left_saved[0]) == pytest.approx((7.0002, 7.0005), abs=1e-9)
    assert log.columns["lost_epochs"][0] == pytest.approx(0.0003, abs=1e-9)


@pytest.mark.parametrize(
    ("snapshot_epochs", "lost", "saved", "end_s"),
    [(1, 0.5, 8.0, 1230.0), (2, 0.5, 8.0, 1230.0), (4, 2.5, 10.0, 1430.0)],
)
def test_a_stopped_job_goes_on_from_its_last_snapshot(snapshot_epochs, lost, saved, end_s):
    """After 250 s of 100 s epochs; it waits until 400 s, and then holds its GPU for 30 s before it gets on."""
    jobs = jobs_of(EnergyJob(epochs=10, epoch_s=((100.0,),)), EnergyJob(submit_s=250.0, epochs=1, epoch_s=((150.0,),)))
    policy = Script({0.0: {0: (0, 1)}, 250.0: {0: None, 1: (0, 1)}, 400.0: {0: (0, 1)}})
    workload = workload_of(jobs, cluster_of((1, (0.0, 100.0))))
    log = replayed(workload, policy, snapshot_epochs=snapshot_epochs, restart_s=30.0)
    at_stop, waiting = policy.views[1], policy.views[2]
    assert (at_stop.now_s, waiting.now_s) == (250.0, 300.0)
    assert (at_stop.left[0], at_stop.left_saved[0]) == (7.5, saved)
    assert (waiting.left[0], waiting.left_saved[0]) == (saved, saved)
    assert waiting.started.tolist() == [True, True]
    assert log.end_s.tolist() == [end_s, 400.0]
    assert log.columns["lost_epochs"].tolist() == [lost, 0.0]
    assert log.preemptions.tolist() == [1, 0]
    assert log.columns["migrations"].tolist() == [0, 0]
    assert rows_of(log.spans) == [(0, 0, 1, 0.0, 250.0), (0, 0, 1, 400.0, end_s), (1, 0, 1, 250.0, 400.0)]
    assert held_s(log).tolist() == [250.0 + end_s - 400.0, 150.0]


def test_a_job_that_gets_another_gpu_at_the_end_of_an_epoch_loses_nothing():
    """3 epochs of 100 s on one GPU, 7 of 60 s on two after 30 s of restart: 300 + 30 + 420 s."""
    jobs = jobs_of(EnergyJob(epochs=10, epoch_s=((100.0, 60.0),)))
    policy = Script({0.0: {0: (0, 1)}, 300.0: {0: (0, 2)}})
    log = replayed(workload_of(jobs, one_node()), policy, restart_s=30.0)
    assert log.end_s.tolist() == [750.0]
    assert (log.columns["migrations"].tolist(), log.preemptions.tolist(), log.columns["lost_epochs"].tolist()) == (
        [1],
        [0],
        [0.0],
    )
    assert log.spans.gpu_s.sum() == 300.0 + 2 * 450.0
    assert rows_of(log.spans) == [(0, 0, 1, 0.0, 300.0), (0, 0, 2, 300.0, 750.0)]
    assert log.totals["energy_kwh"] == pytest.approx((300 * 100 + 450 * 180) / 3.6e6, rel=1e-12)


def test_a_stop_while_a_job_restarts_costs_it_no_epochs():
    jobs = jobs_of(EnergyJob(epochs=10, epoch_s=((100.0, 100.0),)))
    policy = Script({0.0: {0: (0, 1)}, 300.0: {0: (0, 2)}, 600.0: {0: (0, 1)}})
    log = replayed(workload_of(jobs, one_node()), policy, restart_s=400.0)
    assert policy.views[2].left.tolist() == [7.0]
    assert log.end_s.tolist() == [600.0 + 400.0 + 700.0]
    assert log.columns["lost_epochs"].tolist() == [0.0]


def test_jobs_get_on_by_the_truth_and_policies_see_beliefs():
    jobs = jobs_of(EnergyJob(epochs=10, epoch_s=((50.0,),)))
    policy = Greedy()
    seen = Script({0.0: {0: (0, 1)}})
    workload = workload_of(jobs, cluster_of((1, (0.0, 100.0))), true_s=[[[100.0]]])
    assert replayed(workload, policy).end_s.tolist() == [1000.0]
    replayed(workload, seen)
    assert seen.views[1].left.tolist() == [7.0]
    assert seen.views[1].jobs.epoch_s.tolist() == [[[50.0]]]


def test_more_gpus_than_a_node_has_take_for_ever_in_views():
    cluster = cluster_of((1, (0.0, 100.0)), (1, NODE))
    policy = Script({0.0: {0: (1, 2)}})
    replayed(workload_of(jobs_of(EnergyJob(epoch_s=((5.0, 3.0), (4.0, 2.0)))), cluster), policy)
    assert policy.views[0].jobs.epoch_s.tolist() == [[[5.0, inf], [4.0, 2.0]]]


def test_facts_cannot_be_written_to():
    class Vandal(Told):
        def seen(self, view):
            nodes = view.facts(EnergyCluster)
            for array in (*view.facts(EpochTimes), *nodes.tariff, *nodes[:3]):
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 0
            return super().seen(view)

    jobs = jobs_of(EnergyJob())
    world = workload_of(jobs, cluster_of((1, (0.0, 100.0))))
    assert replayed(world, Vandal(Greedy())).end_s.tolist() == [100.0]
    jobs.epochs[0] = 3.0  # the user's own array stays as it was


def test_jobs_moved_for_ever_are_noticed():
    class Restless(Greedy):
        def schedule(self, view):
            return Deployment(1 - np.maximum(view.node_of[view.active], 0), np.ones(1, dtype=np.int64))

    jobs = jobs_of(EnergyJob(epochs=2, epoch_s=((400.0,),)))
    with pytest.raises(DecisionError, match=r"policy greedy at .* s: 1 jobs are pending, job j0 first, while none"):
        replayed(workload_of(jobs, cluster_of((2, (0.0, 100.0)))), Restless())


def test_patience_with_a_policy_that_waits_and_with_long_epochs():
    """Two days of waiting, then an epoch of 2,000 calls, stopped once after half of it."""
    late_s, stop_s = 172_800.0, 172_800.0 + 300_000.0
    jobs = jobs_of(EnergyJob(epochs=2, epoch_s=((600_000.0,),)))
    policy = Script({late_s: {0: (0, 1)}, stop_s: {0: None}, stop_s + 300.0: {0: (0, 1)}})
    log = replayed(workload_of(jobs, cluster_of((1, (0.0, 100.0)))), policy)
    assert log.end_s.tolist() == [stop_s + 300.0 + 1_200_000.0]
    assert log.columns["lost_epochs"].tolist() == [0.5]


def test_patience_with_many_short_jobs_on_the_grid_alone(monkeypatch):
    """Each is over before the next call, at which no other has got further than it ever was."""
    monkeypatch.setattr(Epochs, "patience", 10)
    jobs = jobs_of(*(EnergyJob(epochs=1, epoch_s=((50.0,),)) for _ in range(40)))
    log = replayed(workload_of(jobs, cluster_of((1, (0.0, 100.0)))), OneByOne(), on_events=False)
    assert log.end_s.tolist() == [300.0 * job + 50.0 for job in range(40)]


@pytest.mark.parametrize(
    "setting",
    [{"period_s": 0.0}, {"period_s": inf}, {"snapshot_epochs": 0}, {"snapshot_epochs": 1.5}, {"restart_s": -1.0}],
)
def test_settings_out_of_range(setting):
    with pytest.raises(ConfigError, match=next(iter(setting))):
        replayed(workload_of(jobs_of(EnergyJob()), cluster_of((1, (0.0, 100.0)))), Greedy(), **setting)
