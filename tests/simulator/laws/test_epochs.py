"""Gangs that name no nodes, in a world of epochs: where they lie, what waits, how fast they are there."""

from math import inf

import numpy as np
import pytest

from jobcast.domain.elastic import ElasticView
from jobcast.domain.energy import EpochsDone, EpochTimes
from jobcast.domain.errors import DecisionError
from jobcast.domain.jobs import FLAT_POOL, Job, Outcome, Pool, Succession
from jobcast.domain.policy import ANYWHERE, Cell, Grant
from jobcast.domain.training import Regime, Training
from jobcast.simulator.engine import Simulation
from jobcast.simulator.laws.epochs import Epochs, elastic_jobs
from jobcast.simulator.meters import EnergyMeter, Timed
from jobcast.simulator.workload import Workload
from tests.simulator.energy.accounting import cost_of_spans
from tests.simulator.energy.energy_cases import cluster_of
from tests.simulator.pool_cases import Script

WATTS = (50.0, 100.0, 150.0, 200.0, 250.0)
NODES = cluster_of((1, WATTS[:3]), (2, WATTS), (3, WATTS[:3]))._replace(types=np.array([0, 0, 1]))
"""Node 0 of two GPUs, 1 and 2 of four, all of the first type; 3 to 5 of two of another type."""
TIMES = (10.0, 6.0, 5.0, 4.0)


def gang(job_id, submit_s=0.0, gpus=1, pool=FLAT_POOL, **given):
    return Job(0, job_id, pool, submit_s, gpus, preemptible=True, **given)


def world(*jobs, epoch_s=(TIMES, TIMES, tuple(2.0 * one for one in TIMES)), quota=16, outcomes=None, **given):
    """Jobs of ten epochs; the arguments of a run."""
    outcomes = outcomes or [Outcome(10.0 * TIMES[min(job.gpus, 4) - 1]) for job in jobs]
    pools = [Pool(name, quota) for name in {job.pool for job in jobs}]
    servers = NODES.kind_gpus[NODES.kind_of].tolist()
    workload = Workload(list(jobs), outcomes, pools, servers=servers, successions=given.pop("successions", None))
    epochs = np.full(len(jobs), 10.0)
    return workload, Epochs(EpochTimes(epochs, np.array([epoch_s] * len(jobs))), NODES, **given)


def held(run):
    """Nodes and GPUs of running jobs."""
    return {one.job.job_id: [(cell.server, cell.gpus) for cell in one.cells] for one in run.cluster.running.values()}


def at(instant, made, steps):
    workload, law = made
    return Simulation(workload, Script(steps), law=law).run(instant)


@pytest.mark.parametrize(
    ("widths", "found"),
    [
        ((1, 2, 4), [[(0, 1)], [(1, 2)], [(2, 4)]]),  # the fewest left free; the other type only where it must be
        ((4, 4, 2, 2), [[(1, 4)], [(2, 4)], [(0, 2)], [(3, 2)]]),
        ((8,), [[(1, 4), (2, 4)]]),
        ((5,), [[(1, 4), (2, 1)]]),
        ((3, 3, 6), [[(1, 3)], [(2, 3)], [(3, 2), (4, 2), (5, 2)]]),  # 1 + 1 + 2 of the first type are of two kinds
        ((4, 4, 5), [[(1, 4)], [(2, 4)], [(3, 2), (4, 2), (5, 1)]]),
    ],
)
def test_where_gangs_lie(widths, found):
    names = "abcd"[: len(widths)]
    made = world(*(gang(name, gpus=gpus) for name, gpus in zip(names, widths, strict=True)))
    run = at(0.0, made, {0.0: dict(zip(names, widths, strict=True))})
    assert held(run) == dict(zip(names, found, strict=True))


def test_what_does_not_fit_waits_and_blocks_its_pool():
    jobs = gang("a", gpus=8), gang("b", gpus=7), gang("c"), gang("d", pool="other")
    run = at(0.0, world(*jobs), {0.0: {"a": 8, "b": 7, "c": 1, "d": 1}})
    assert held(run) == {"a": [(1, 4), (2, 4)], "d": [(0, 1)]}


def test_a_gang_goes_back_to_where_it_was():
    steps = {0.0: {"a": 2}, 3.0: {"a": None}, 5.0: {"b": 1, "a": Grant(2, (Cell(4, ANYWHERE, 2),))}}
    steps |= {7.0: {"a": None}, 8.0: {"a": 1}, 9.0: {"a": 3}}
    made = world(gang("a", gpus=2), gang("b"))
    for now_s, nodes in ((0.0, [(0, 2)]), (5.0, [(4, 2)]), (8.0, [(4, 1)]), (9.0, [(1, 3)])):
        assert held(at(now_s, made, steps))["a"] == nodes  # with three GPUs there is no room where it was


def test_to_be_granted_the_same_changes_nothing():
    run = at(4.0, world(gang("a", gpus=2)), {0.0: {"a": 2}, 4.0: {"a": 2}})
    assert (run.law.service(run, run.jobs[0]).starts, held(run)) == (1, {"a": [(0, 2)]})


def test_speed_goes_by_all_gpus_and_is_flat_beyond_those_known():
    jobs = gang("a", gpus=4), gang("b", gpus=8), gang("c", gpus=2)
    steps = {0.0: {"a": Grant(4, (Cell(3, ANYWHERE, 2), Cell(4, ANYWHERE, 2))), "b": 8, "c": 2}}
    log = at(inf, world(*jobs), steps).log()
    assert log.end_s.tolist() == pytest.approx([80.0, 40.0, 60.0])
    assert log.duration_s.tolist() == [40.0, 40.0, 60.0]


@pytest.mark.parametrize(
    ("grant", "told"),
    [
        (0.5, r"it runs on whole GPUs, it is given 0\.5"),
        (Grant(2, (Cell(0, ANYWHERE, 1), Cell(1, ANYWHERE, 1))), "nodes 0, 1 are not of one kind"),
        (Grant(1, (Cell(3, ANYWHERE, 1),)), "it cannot run on 1 GPUs of node 3"),
        (Grant(2, (Cell(9, ANYWHERE, 2),)), "there is no such cell"),
    ],
)
def test_what_a_job_cannot_run_on(grant, told):
    with pytest.raises(DecisionError, match=f"policy script at 0.000000 s: cannot start job a: {told}"):
        at(0.0, world(gang("a"), epoch_s=(TIMES, TIMES, (inf, 9.0, inf, inf))), {0.0: {"a": grant}})


def test_where_nothing_is_known_of_a_kind_no_gang_is_put():
    made = world(gang("a", gpus=4), gang("b", gpus=4), gang("c", gpus=4), epoch_s=(TIMES, TIMES, (inf,) * 4))
    assert held(at(0.0, made, {0.0: {"a": 4, "b": 4, "c": 4}})) == {"a": [(1, 4)], "b": [(2, 4)]}


def test_patience_is_ten_of_the_longest_ways_to_a_snapshot():
    """The slowest kind: 20 s an epoch on one GPU, snapshots after three of ten epochs, 5 s of restart."""
    assert at(0.0, world(gang("a"), snapshot_epochs=3, restart_s=5.0), {}).law.patience_s == 10 * (3 * 20.0 + 5.0)
    assert at(0.0, world(gang("a"), snapshot_epochs=50), {}).law.patience_s == 10 * 10 * 20.0
    never = (inf,) * 4
    assert at(0.0, world(gang("a"), epoch_s=((0.5, *never[1:]), never, never)), {}).law.patience_s == 10 * 0.5
    assert at(0.0, world(gang("a"), snapshot_epochs=None, restart_s=5.0), {}).law.patience_s == 10 * 5.0


def test_run_time_is_that_on_the_gpus_asked_for():
    """On a node that is twice as slow and half as wide, 36 s are 3 epochs: 12 s of its 40 on four GPUs."""
    made = world(gang("a", gpus=4), snapshot_epochs=2)
    steps = {0.0: {"a": Grant(2, (Cell(5, ANYWHERE, 2),))}, 36.0: {}, 40.0: {"a": None}, 41.0: {}}
    run = at(41.0, made, steps)
    seen = {now_s: told["a"] for now_s, told in run.policy.seen.items()}
    assert (seen[36.0].run_s, seen[36.0].done, seen[36.0].saved) == pytest.approx((12.0, 3.0, 2.0))
    assert (seen[41.0].done, seen[41.0].saved, seen[41.0].held_s) == (2.0, 2.0, 40.0)
    assert run.log().columns["lost_epochs"].tolist() == pytest.approx([40.0 / 12.0 - 2.0])


def test_an_epoch_is_saved_that_is_missed_by_less_than_the_clock_tells():
    """At 10 s an epoch the half microsecond that two events may lie apart is 5e-8 epochs."""
    _, law = world(gang("a"), snapshot_epochs=2)
    for done, saved in ((4.0, 4.0), (4.0 - 4e-8, 4.0 - 4e-8), (4.0 - 6e-8, 2.0), (5.0, 4.0)):
        assert law.saved(done, 0.1, 0.0) == saved
    assert law.saved(5.0, 0.1, 4.5) == 4.5  # what it started from is never lost


def test_whoever_plans_for_all_jobs_is_told_what_each_is():
    """Job a stops at 25 s and loads its snapshot from 30 to 35 s."""
    made = world(gang("a"), gang("b", gpus=2), snapshot_epochs=2, restart_s=5.0)
    steps = {0.0: {"a": 1, "b": 2}, 25.0: {"a": None}, 30.0: {"a": 1}, 33.0: {}, 48.0: {}}
    for instant, done in ((25.0, [2.0, 25 / 6]), (33.0, [2.0, 33 / 6]), (48.0, [3.3, 48 / 6])):
        run = at(instant, made, steps)
        told, each = run.cluster.facts(EpochsDone), [run.law.service(run, job) for job in run.jobs]
        assert told.done.tolist() == pytest.approx(done) == [one.done for one in each]
        assert told.saved.tolist() == pytest.approx([one.saved for one in each])
        assert told.starts.tolist() == [one.starts for one in each]


def test_where_the_reference_type_is_too_small_the_trace_tells_the_run_time():
    """Ten epochs take 40 s in the trace; two of them are done on another type in twice 8 s."""
    never = (inf,) * 4
    made = world(gang("a", gpus=2), epoch_s=(never, never, (16.0, 8.0, inf, inf)), outcomes=[Outcome(40.0)])
    run = at(16.0, made, {0.0: {"a": Grant(2, (Cell(3, ANYWHERE, 2),))}, 16.0: {}})
    told = run.policy.seen[16.0]["a"]
    assert (told.done, told.run_s) == pytest.approx((2.0, 8.0))


def test_nobody_gets_on_who_waits_or_comes_no_further_for_long():
    """Patience is ten times the longest way to a snapshot: an epoch of 20 s on the slowest GPU."""
    waiting = at(5.0, world(gang("a")), {0.0: {}, 5.0: {}})
    assert not waiting.law.got_on(waiting)
    run = at(15.0, world(gang("a")), {0.0: {"a": 1}, 15.0: {"a": None}})
    assert not run.law.got_on(run)
    for since_s, on in ((200.0, True), (200.5, False)):
        run = at(15.0, world(gang("a")), {0.0: {"a": 1}, 15.0: {}})
        run.law.furthest[0], run.law.on_s = 9.0, 15.0 - since_s  # further than it is now
        assert run.law.got_on(run) is on


def test_regimes_are_shown_as_shares_of_the_epochs():
    """30 epochs of 2 s and 20 of 1 s are 80 s on a GPU, ten epochs of the law; on a kind half as fast they take 160."""
    regimes = (Regime(32, 30.0), Regime(64, 20.0))
    job = gang("a", training=Training("m", 32, 50, "gns", {32: 2.0, 64: 1.0}))
    times = ((8.0, 6.0, 5.0, 4.0),) * 2 + ((16.0, 12.0, 10.0, 8.0),)
    made = world(job, epoch_s=times, outcomes=[Outcome(80.0, regimes)])
    steps = {0.0: {"a": Grant(1, (Cell(3, ANYWHERE, 1),))}, 140.0: {}}
    run = at(inf, made, steps)
    told = {now_s: one["a"].progress for now_s, one in run.policy.seen.items()}
    assert sorted(told) == pytest.approx([0.0, 120.0, 140.0])
    assert [one.batch_size for one in told[120.0].regimes] == [32, 64]
    assert told[140.0].epochs == pytest.approx(40.0)
    assert run.end_s(0) == pytest.approx(160.0)


def test_in_a_closed_loop_jobs_keep_their_own_times():
    """Job b follows job c, so that it arrives as the third; its epochs take a third."""
    jobs = gang("a"), gang("b", 1.0), gang("c", 2.0)
    workload, _ = world(*jobs, successions={"c": Succession(("a",), 50.0)})
    slower = np.array([1.0, 3.0, 2.0])[:, None, None]
    law = Epochs(EpochTimes(np.full(3, 10.0), np.array([(TIMES,) * 3] * 3) * slower, np.array([5, 6, 7])), NODES)
    steps = {0.0: {"a": 1}, 1.0: {"b": 1}, 150.0: {"c": 1}}
    run = Simulation(workload, Script(steps), law=law).run()
    assert run.log().end_s.tolist() == pytest.approx([100.0, 301.0, 350.0])
    known = run.cluster.facts(EpochTimes)
    assert known.epoch_s[:, 0, 0].tolist() == [10.0, 30.0, 20.0]
    assert known.applications.tolist() == [5, 6, 7]


def test_elastic_rules_see_what_is_left_on_one_gpu():
    """After 59.7 s job a has half a second of its 100 left, on two GPUs; b 40.3, on one."""
    jobs = gang("a", 1000.0, gpus=2), gang("b", 1000.0)
    run = at(1059.7, world(*jobs), {1000.0: {"a": 2, "b": 1}, 1059.7: {}})
    seen = run.cluster.facts(ElasticView)
    assert (seen.now_s, seen.count, seen.capacity.tolist()) == (pytest.approx(59.7), 2, [16.0])
    assert seen.left_s.tolist() == pytest.approx([0.5, 40.3])
    assert seen.held_gpu_s.tolist() == pytest.approx([2 * 59.7, 59.7])
    assert seen.contention.tolist() == pytest.approx([4 / 3, 2.0])
    assert seen.most.tolist() == [2.0, 1.0]


def test_forks_of_law_and_meter_go_their_own_way():
    workload, law = world(gang("a", gpus=2), gang("b", gpus=4), gang("waits", 1.0))
    meter = EnergyMeter(NODES)
    run = Simulation(workload, Script({0.0: {"a": 2, "b": 4}, 21.0: {"a": None}, 25.0: {"a": 2, "waits": 1}}), law=law)
    run = Simulation(workload, run.policy, law=law, meters=(meter,)).run(21.0)
    begun, other, own = meter.report(run)["columns"]["energy_kwh"].tolist(), meter.fork(), law.fork()
    assert begun == pytest.approx([150.0 * 21.0 / 3.6e6, 250.0 * 21.0 / 3.6e6, 0.0])
    run.run()
    assert other.drawn.sum() < meter.drawn.sum()
    assert (own.starts[0], own.lost[0], law.starts[0]) == (1.0, pytest.approx(0.5), 2.0)
    log = run.log()
    found = cost_of_spans(log.spans, NODES, 0.0, float(log.end_s.max()))
    assert pytest.approx(np.array([found.kwh, found.eur]), rel=1e-9) == meter.drawn.T


def test_jobs_that_swap_nodes_are_metered_one_at_a_time():
    """Two GPUs of the first node, two of the fourth, at 150 W each while both jobs run; a stops at its snapshot."""
    workload, law = world(gang("a", gpus=2), gang("b", gpus=2))
    here, there = Grant(2, (Cell(0, ANYWHERE, 2),)), Grant(2, (Cell(3, ANYWHERE, 2),))
    meter = EnergyMeter(NODES._replace(power_w=NODES.power_w[:, :3]))
    script = Script({0.0: {"a": here, "b": there}, 12.0: {"a": there, "b": here}})
    log = Simulation(workload, script, law=law, meters=(meter,)).run().log()
    assert log.end_s.tolist() == pytest.approx([12.0 + 8 * 12.0, 12.0 + 9 * 6.0])
    assert log.columns["energy_kwh"] * 3.6e6 == pytest.approx(150.0 * log.end_s)
    assert log.columns["migrations"].tolist() == [1.0, 1.0]


def test_a_fork_in_what_is_believed_keeps_the_last_snapshot():
    """Epochs of 10 s that are believed to take 20: after 25 s the fork stops at 3 epochs, of which 2 are saved."""
    workload, law = world(gang("a"), known_s=np.array([[TIMES] * 3]) * 2.0, snapshot_epochs=2)
    policy = Timed(Script({0.0: {"a": 1}, 25.0: {}, 35.0: {"a": None}, 36.0: {"a": 1}}))
    run = Simulation(workload, policy, law=law, meters=(policy,)).run(25.0)
    fork = run.fork(lambda job: 200.0).run()
    assert fork.log().columns["lost_epochs"].tolist() == [1.0]
    assert fork.end_s(0) == pytest.approx(36.0 + 8 * 20.0)
    totals = run.log().totals
    assert totals["decisions"] == 2
    assert 0.0 <= totals["decision_max_s"] <= totals["decision_s"] < 0.5
    assert run.run().end_s(0) == pytest.approx(36.0 + 8 * 10.0)


def test_a_fork_in_what_is_believed_waits_for_the_snapshot_that_is_loaded():
    workload, law = world(gang("a"), known_s=np.array([[TIMES] * 3]) * 2.0, restart_s=5.0)
    script = Script({0.0: {"a": 1}, 20.0: {"a": None}, 30.0: {"a": 1}, 32.0: {}})
    run = Simulation(workload, script, law=law).run(32.0)
    assert run.fork(lambda job: 200.0).run().end_s(0) == pytest.approx(35.0 + 8 * 20.0)


def test_beyond_the_most_gpus_of_which_a_time_is_known_jobs_gain_nothing_more():
    """Within what is known, beyond it, on nodes of a single GPU; the last one shrinks."""
    inf = np.inf
    epoch_s = np.array([[[8.0, 4.0]], [[8.0, 4.0]], [[8.0, inf]], [[8.0, 4.0]]])
    widths, least = (2, 4, 4, 4), (0, 0, 0, 1)
    jobs = [
        Job(seq, str(seq), "p", 0.0, gpus, min_gpus=fewest)
        for seq, (gpus, fewest) in enumerate(zip(widths, least, strict=True))
    ]
    seen = elastic_jobs(jobs, EpochTimes(np.full(4, 10.0), epoch_s), np.array([True]))
    assert seen.speedup[:, 0].tolist() == [[0.0, 0.0, 2.0], [0.0, 0.0, 2.0], [0.0, 0.0, 1.0], [0.0, 1.0, 2.0]]
    assert seen.size_s.tolist() == [80.0] * 4
    assert seen.most.tolist() == [2.0, 4.0, 4.0, 4.0]


def test_where_no_time_on_one_gpu_is_known_the_fewest_are_so_many_times_as_fast():
    times = np.array([[[inf, 5.0, 4.0], [1.0, 1.0, 1.0]]])  # the other type tells nothing of the first
    jobs = [Job(0, "0", "p", 7.0, 3, min_gpus=2), Job(1, "1", "p", 9.0, 2)]
    seen = elastic_jobs(jobs, EpochTimes(np.full(2, 10.0), np.repeat(times, 2, axis=0)), np.array([True, False]))
    assert {name: column.tolist() for name, column in seen._asdict().items()} == {
        "submit_s": [0.0, 2.0],
        "size_s": [100.0, 100.0],
        "least": [2.0, 0.0],
        "most": [3.0, 2.0],
        "model": [0, 1],
        "stage_of": [0, 1, 2],
        "stage_end": [1.0, 1.0],
        "stage_most": [3.0, 2.0],
        "speedup": [[[0.0, 0.0, 2.0, 2.5]] * 2, [[0.0, 0.0, 2.0, 2.0]] * 2],
        "speed": [[1.0], [1.0]],
    }
