"""One policy, two drivers: rebuilt from events alone, a view leads to the decision that the simulator saw."""

import numpy as np
import pytest

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.live.event_log import CHANGE, END, GPUS, REQUEUE, START, SUBMIT, Event
from jobcast.live.recorded_jobs import ClusterRecord, in_order
from jobcast.live.standing import standing, too_wide
from jobcast.schedulers.registry import find_policy, make_policy
from jobcast.simulator.engine import Simulation
from jobcast.simulator.forecast_sources import Conservative, Oracle
from jobcast.simulator.workload import Workload

POOLS = [Pool("p", 4), Pool("q", 6), Pool("r", 8)]


class ByName(Oracle):
    """The oracle, which knows jobs by their names: the run that stands at now counts them anew."""

    def __init__(self, workload):
        super().__init__(workload)
        self._by_name = {job.job_id: job for job in workload.jobs}

    def duration_s(self, job):
        return super().duration_s(self._by_name[job.job_id])


def world(seed, count):
    draw = np.random.default_rng(seed)
    at_s = np.cumsum(draw.exponential(300.0, count))
    pools = draw.integers(0, 3, count)
    jobs = [
        Job(0, f"{row:05}", POOLS[pool].name, float(submit_s), int(draw.integers(1, POOLS[pool].quota + 1)))
        for row, (submit_s, pool) in enumerate(zip(at_s, pools, strict=True))
    ]
    return Workload(jobs, [Outcome(float(run_s)) for run_s in draw.lognormal(6.5, 1.2, count)], POOLS)


def news(run, told):
    """Events since the last call, of which `told` keeps the names; a start tells whether its GPUs are dedicated."""
    active, held = run.cluster.active.values(), run.cluster.running.values()
    ends = {job_id: run.end_s(seq) for (kind, job_id), seq in told.items() if kind == START}
    found = [
        *(
            Event(one.submit_s, SUBMIT, one.job_id, one.submit_s, {"pool": one.pool, "gpus": one.gpus})
            for one in active
        ),
        *(Event(one.start_s, START, one.job.job_id, one.start_s, {"dedicated": one.dedicated}) for one in held),
        *(Event(end_s, END, job_id, end_s) for job_id, end_s in ends.items() if not np.isnan(end_s)),
    ]
    found = [one for one in found if (one.kind, one.job_id) not in told]
    seqs = {job.job_id: job.seq for job in run.cluster.active.values()}
    told.update({(one.kind, one.job_id): seqs.get(one.job_id) for one in found})
    return found


def named(decision, jobs):
    """A decision by names of jobs, in its order, for the two runs count jobs differently."""
    return [(jobs[seq].job_id, grant) for seq, grant in decision.change.items()], decision.wake_s


def compared(policy, workload, many, **settings):
    """Views of a run, at most so many, each rebuilt from events alone; how many, and how many decisions changed it."""
    source = ByName(workload)
    run = Simulation(workload, make_policy(policy, source, settings), source)
    told, events, views, changes = {}, [], 0, 0
    while views < many and run.look() is not None:
        events += news(run, told)
        live = ByName(workload)
        record = ClusterRecord().take(in_order(events, run.now_s))
        made = make_policy(policy, live, settings)
        again = standing(record.active, record.gpus, run.now_s, POOLS, made, live, live.duration_s)
        decided, expected = again.policy.decide(again.look()), run.policy.decide(run.cluster)
        assert named(decided, again.jobs) == named(expected, run.jobs), (policy, run.now_s)
        run.carry_out(expected)
        # Who starts and ends between two looks was told of at its start.
        events += news(run, told)
        views, changes = views + 1, changes + bool(expected.change)
    return views, changes


@pytest.mark.parametrize(
    ("policy", "rules"),
    [
        *((policy, {}) for policy in ("fcfs", "ssf", "mmfs", "sia", "sia_risk", "sia_preempt")),
        ("sia", find_policy("sia").overtaking),  # as `jobcast advise` does by default
    ],
)
def test_decisions_of_a_rebuilt_view_are_the_simulators(policy, rules):
    views, changes = compared(policy, world(1, 200), 50, **rules)
    assert views == 50
    assert changes > 10


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "ssf", "mmfs", "sia"])
def test_ten_thousand_decisions_are_the_simulators(policy):
    assert sum(compared(policy, world(seed, 400), 500)[0] for seed in range(2, 7)) == 2_500


def submitted(name, pool, gpus, at_s=0.0):
    return Event(at_s, SUBMIT, name, at_s, {"pool": pool, "gpus": gpus})


def running(name, pool, gpus, **facts):
    """A job that runs from 0 s on."""
    return submitted(name, pool, gpus), Event(0.0, START, name, 0.0, facts)


def stood(events, now_s=100.0, believed_s=50.0):
    record = ClusterRecord().take(in_order(events, now_s))
    return standing(record.active, record.gpus, now_s, POOLS, make_policy("fcfs"), None, lambda job: believed_s)


def test_what_is_not_known_yet_has_not_happened():
    events = [submitted("a", "p", 2), Event(10.0, START, "a", 5.0), Event(101.0, END, "a", 90.0)]
    held = next(iter(stood(events).cluster.running.values()))
    assert (held.job.job_id, held.start_s) == ("a", 5.0)
    over = stood([*events, submitted("b", "p", 1)], 101.0)
    assert not over.cluster.running


def test_a_job_that_outlives_its_forecast_runs_on_for_a_moment():
    run = stood([*running("a", "p", 4), submitted("b", "p", 4, 50.0)])
    future = run.fork().run()
    assert [future.end_s(seq) for seq in (0, 1)] == [101.0, 151.0]
    assert run.now_s == 100.0


def test_spare_gpus_count_against_no_quota():
    run = stood(running("a", "p", 4, dedicated=False), 20.0)
    assert (run.cluster.pools["p"].allocated, run.cluster.pools["p"].dedicated) == (4.0, 0.0)


def test_a_quota_that_was_lowered_leaves_its_running_jobs():
    assert stood([*running("a", "p", 4), *running("b", "p", 4)]).cluster.pools["p"].dedicated == 8.0


def test_an_end_that_was_not_heard_leaves_nothing_idle_and_stops_nobody():
    """Six jobs of 4 GPUs where the pools have 16: each pool has what its own hold, and what comes free is handed on."""
    held = [event for name in "abcdef" for event in running(name, "p", 4)]
    run = stood([*held, submitted("g", "p", 4), submitted("h", "q", 1)])
    assert len(run.cluster.running) == 6
    assert run.cluster.free_gpus == 0.0
    run.run()
    assert {run.jobs[seq].job_id: run.end_s(seq) for seq in (6, 7)} == {"g": 151.0, "h": 151.0}


def test_a_pool_whose_gpus_are_lent_waits_until_they_are_its_own():
    """q's 6 GPUs and r's 8 are held by p's jobs on lease; what comes free is handed on though nobody of r has ended."""
    loans = [("a", "p", 4), ("b", "p", 2), ("c", "p", 4), ("d", "p", 4), ("e", "p", 4)]
    held = [event for one in loans for event in running(*one, dedicated=False)]
    run = stood([*held, submitted("f", "r", 8), submitted("g", "q", 6)])
    assert run.cluster.free_gpus == 0.0
    run.run()
    assert {run.jobs[seq].job_id: run.end_s(seq) for seq in (5, 6)} == {"f": 151.0, "g": 151.0}


@pytest.mark.parametrize("policy", ["fcfs", "ssf", "mmfs", "sia", "sia_risk", "easy"])
def test_whatever_is_held_a_run_goes_on(policy):
    """Loans, quotas that were lowered, ends unheard, nodes down: all that can start in what is up ends."""
    for seed in range(60):
        draw = np.random.default_rng(seed)
        events = [Event(0.0, GPUS, "", 0.0, {"gpus": int(draw.integers(0, 24))})] if draw.random() < 0.5 else []
        for row in range(draw.integers(1, 14)):
            pool = POOLS[draw.integers(len(POOLS))]
            name, gpus, at_s = f"{row:02}", int(draw.integers(1, pool.quota + 1)), float(draw.integers(50))
            events.append(submitted(name, pool.name, gpus, at_s))
            if draw.random() < 0.6:
                events.append(Event(at_s, START, name, at_s, {"dedicated": bool(draw.random() < 0.7)}))
        record = ClusterRecord().take(in_order(events, 100.0))

        def made(without=(), record=record):
            source = Conservative(Workload((), (), POOLS))
            rules = make_policy(policy, source), source, lambda job: 50.0, without
            return standing(record.active, record.gpus, 100.0, POOLS, *rules)

        run = made(too_wide(made(), record.active)).run()
        assert not run.cluster.active


def test_who_waits_in_a_pool_of_which_nothing_is_up_is_left_out():
    run = stood([Event(0.0, GPUS, "", 0.0, {"gpus": 0}), submitted("a", "p", 4)])
    assert run.look() is None


def test_what_a_slurm_holds_it_can_hold_whatever_is_up():
    """Three jobs of 4 GPUs where 5 are up: an owner took GPUs that were granted, or a node goes down."""
    held = [event for name in "abc" for event in running(name, "p", 4)]
    run = stood([Event(0.0, GPUS, "", 0.0, {"gpus": 5}), *held])
    assert len(run.cluster.running) == 3
    assert sum(pool.quota for pool in run.cluster.pools.values()) == 12


def test_who_was_stopped_on_its_lease_holds_nothing():
    granted = Event(1.0, CHANGE, "a", 1.0, {"granted": True})
    stopped = Event(2.0, CHANGE, "a", 2.0, {"held": True})
    assert stood([submitted("a", "p", 4), granted], 1.5).cluster.running
    assert not stood([submitted("a", "p", 4), granted, stopped]).cluster.running


def test_who_may_not_or_cannot_start_does_not_wait():
    held = Event(1.0, CHANGE, "b", 1.0, {"held": True})
    events = [submitted("a", "p", 5), submitted("b", "p", 1), held, submitted("c", "nobody", 1), submitted("d", "p", 1)]
    assert [job.job_id for job in stood(events).cluster.active.values()] == ["d"]
    freed = Event(2.0, CHANGE, "b", 2.0, {"held": False, "gpus": 2})
    assert [(job.job_id, job.gpus) for job in stood([*events, freed]).cluster.active.values()] == [("b", 2), ("d", 1)]


def test_a_requeued_job_waits_again():
    events = [submitted("a", "p", 4), Event(1.0, START, "a", 1.0), Event(9.0, REQUEUE, "a", 9.0)]
    run = stood(events)
    assert (list(run.cluster.running), len(run.cluster.active)) == ([], 1)
    assert stood([*events, Event(20.0, START, "a", 20.0)]).cluster.running[0].start_s == 20.0


def test_of_what_is_down_each_pool_lacks_its_share():
    events = [*running("a", "q", 6), Event(0.0, GPUS, "", 0.0, {"gpus": 9})]
    # 18 by quota, 9 there: halves, but for the job of 6 that runs.
    assert {name: pool.quota for name, pool in stood(events).cluster.pools.items()} == {"p": 2, "q": 6, "r": 4}
    # A job of no pool of ours holds GPUs, too.
    fewer = stood([*events, *running("s", "nobody", 9)]).cluster.pools
    assert {name: pool.quota for name, pool in fewer.items()} == {"q": 6}
