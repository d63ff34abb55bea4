"""EASY and conservative backfilling: by hand, and against a reference that keeps nothing."""

from math import inf
from random import Random

import numpy as np
import pytest

from jobcast.domain.jobs import Job, Outcome, Pool, Requirements
from jobcast.domain.policy import Grant
from jobcast.domain.scheduling_rules import Account, Limits, PriorityWeights, Qos, SchedulingRules
from jobcast.schedulers.backfill import Conservative, Easy, EasyForecast, PoolJobs, Row
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.cluster import ClusterState
from jobcast.simulator.engine import Simulation, Stand, replay
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.workload import Workload
from tests.schedulers.backfill_reference import reference

BOTH = ("easy", "conservative_backfill")


def workload_of(rows, gpus=4, rules=None):
    """Rows of submission, GPUs, duration, and where it differs from it the limit."""
    jobs = [
        Job(0, f"{at:03}", "p", row[0], row[1], requirements=Requirements(time_limit_s=row[3] if row[3:] else row[2]))
        for at, row in enumerate(rows)
    ]
    outcomes = [Outcome(float(row[2])) for row in rows]
    return Workload(jobs, outcomes, [Pool("p", gpus)], **({} if rules is None else {"rules": rules}))


def starts(workload, name, **settings):
    return replay(workload, make_policy(name, None, settings)).start_s.tolist()


SHORT = [(0, 3, 100), (1, 4, 50), (2, 1, 98), (3, 1, 98), (4, 1, 60)]
"""One that runs, a wide head; one that ends just in time; one that would end a second late, one that fits later."""


@pytest.mark.parametrize("name", BOTH)
def test_who_ends_by_the_shadow_time_goes_before_the_head(name):
    assert starts(workload_of(SHORT), name) == [0, 100, 2, 150, 150]


def test_what_the_head_leaves_over_may_be_held_for_longer():
    rows = [(0, 3, 100), (1, 3, 50), (2, 1, 1000), (3, 1, 1000)]
    assert starts(workload_of(rows), "easy") == [0, 100, 2, 150]


def test_easy_may_delay_the_second_in_the_queue_and_conservative_may_not():
    # The head can start at 10 and leaves a GPU over then, which the last job may have for as long as it likes.
    rows = [(0, 2, 10), (0, 1, 20), (1, 2, 10), (2, 4, 10), (3, 1, 1000)]
    assert starts(workload_of(rows), "easy") == [0, 0, 10, 1003, 3]
    assert starts(workload_of(rows), "conservative_backfill") == [0, 0, 10, 20, 30]


def test_an_early_end_moves_reservations_to_earlier_in_order_and_kept_ones_to_no_later():
    # Ends at 5 instead of 100: the head takes the hole, then whoever fits.
    rows = [(0, 4, 5, 100), (1, 3, 10), (2, 2, 10), (3, 1, 10)]
    for settings in ({}, {"reservations": "renewed"}):
        assert starts(workload_of(rows), "conservative_backfill", **settings) == [0, 5, 15, 5]


def test_renewed_reservations_may_move_to_later_and_kept_ones_do_not():
    rows = [(0, 2, 100), (0, 2, 20, 50), (1, 3, 50), (2, 2, 40, 60), (3, 4, 10)]
    kept, renewed = (
        starts(workload_of(rows), "conservative_backfill", reservations=how) for how in ("kept", "renewed")
    )
    assert kept[:4] == renewed[:4] == [0, 0, 100, 20]
    assert kept[4] == renewed[4] == 150


@pytest.mark.parametrize("name", BOTH)
def test_a_job_that_outlives_its_limit_is_waited_for(name):
    rows = [(0, 4, 200, 100), (1, 4, 10), (150, 1, 5)]
    assert starts(workload_of(rows), name) == [0, 200, 210]


def test_no_limit_counts_as_a_year():
    rows = [(0, 3, 100, inf), (1, 4, 50), (2, 1, 10, 365 * 86400 - 1), (3, 1, 10, 365 * 86400 - 3)]
    assert starts(workload_of(rows), "easy")[2:] == [150, 3]  # a second too long to end by then, just in time


def test_only_so_many_are_looked_at():
    assert starts(workload_of(SHORT), "easy", bf_max_job_test=1) == [0, 100, 2, 150, 150]
    rows = [(0, 3, 100), (1, 4, 50), (2, 2, 98), (3, 1, 60)]
    assert starts(workload_of(rows), "easy", bf_max_job_test=1)[3] == 150
    assert starts(workload_of(rows), "easy", bf_max_job_test=2)[3] == 3
    assert starts(workload_of(rows), "conservative_backfill", bf_max_job_test=2)[3] == 150


def test_all_are_looked_at_where_nobody_says_how_many():
    # The last job fits beside the first until 100, as the one before it does not.
    made = workload_of([(0, 3, 100), (1, 4, 50), (2, 2, 98), (3, 1, 60)])
    for policy in (Easy(), EasyForecast(Oracle(made)), Conservative()):
        assert replay(made, policy).start_s[3] == 3.0


def test_forecasts_stand_in_for_limits():
    workload = workload_of([(0, 3, 10, 100), (1, 4, 50), (2, 1, 5, 300)])
    source = Oracle(workload)
    forecast = replay(workload, make_policy("easy_forecast", source), source).start_s.tolist()
    assert (starts(workload, "easy"), forecast) == ([0, 10, 60], [0, 10, 2])


@pytest.mark.parametrize(
    # At 3 nobody has a reservation but the last job, which keeps it; easy promises nothing.
    ("name", "expected"),
    [("easy", [0, 102, 2, 202]), ("conservative_backfill", [0, 200, 2, 100])],
)
def test_who_is_held_by_a_limit_does_not_block(name, expected):
    rules = SchedulingRules(accounts={"p": Account(limits=Limits(user_jobs=1))})
    jobs = [
        Job(0, str(at), "p", float(at), gpus, user=user, requirements=Requirements(time_limit_s=100.0))
        for at, (user, gpus) in enumerate([("a", 1), ("a", 4), ("b", 3), ("c", 1)])
    ]
    workload = Workload(jobs, [Outcome(100.0)] * 4, [Pool("p", 4)], rules=rules)
    assert starts(workload, name) == expected


@pytest.mark.parametrize("name", BOTH)
def test_a_run_that_begins_amid_things_sees_who_runs(name):
    # Whoever knew nothing of the first job's end would start the third, which is too long to go before the second.
    run = Simulation(workload_of([(0, 3, 100), (1, 4, 50), (2, 1, 98)]), make_policy(name))
    run.begin(50.0, {0: Stand(50.0, Grant(3), 0.0)}).run()
    assert run.log().start_s.tolist()[1:] == [100.0, 150.0]


def test_who_reads_running_jobs_anew_takes_it_that_one_has_ended():
    # The second job is started by somebody else: what has ended meanwhile is not known.
    state, (first, second) = ClusterState([Pool("p", 4)]), (Job(seq, f"{seq}", "p", 0.0, 3) for seq in range(2))
    jobs, told = PoolJobs(), []
    for job in (first, second):
        state.submit(job, lane=0, key=0.0)
        jobs.arrived.append(job)
    for started in (None, second, None):
        if started is not None:
            state.advance(10.0)
            state.start(started, Grant(3))
        jobs.catch_up(state, state.pools["p"], lambda job: Row(job.gpus, job.submit_s, 60.0, 0.0, 0, np.nan))
        told.append((jobs.ended, [job.seq for job in jobs.jobs]))
    assert told == [(False, [0, 1]), (True, [0]), (False, [0])]
    assert jobs._running == {1: (3, 70.0)}  # its GPUs, and when its limit is over


@pytest.mark.parametrize("name", BOTH)
def test_what_somebody_holds_beyond_its_quota_is_not_given_twice(name):
    """Of four GPUs one is free until 100, which both pools may take at 60."""
    jobs = [Job(0, "a", "p", 0.0, 3), *(Job(0, pool, pool, 60.0, 1) for pool in "pq"), Job(0, "z", "q", 200.0, 1)]
    run = Simulation(Workload(jobs, [Outcome(100.0)] * 4, [Pool("p", 3), Pool("q", 1)]), make_policy(name))
    run.begin(50.0, {0: Stand(50.0, Grant(3, (), False), 0.0)}).run()
    start_s = run.log().start_s.tolist()
    assert start_s[1] == 60.0
    assert start_s[2] >= 100.0


ACCOUNTS = {"p": Account(limits=Limits(grp_jobs=1))}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (SchedulingRules(), (True, False)),
        (SchedulingRules(accounts=ACCOUNTS), (False, False)),
        (SchedulingRules(weights=PriorityWeights(age=1.0)), (False, True)),
    ],
)
def test_pools_touch_where_limits_or_shares_do_and_later_jobs_go_first_by_priority_alone(rules, expected):
    policy = make_policy("easy", None, {})
    assert (policy.apart, policy.overtakes) == (False, True)  # nothing is known before the first decision
    run = Simulation(workload_of(SHORT, rules=rules), policy).run()
    assert (policy.apart, policy.overtakes) == expected
    assert len(run.policy._books._held) == (0 if policy.apart else 1)  # the last job that has not been caught up with


def random_workload(rng, jobs, *, limited=False, ranked=False):
    """Jobs of up to three pools in bursts, whole seconds; limits that are exact, loose, too short, or none."""
    quotas = [rng.choice((1, 4, 7, 16)) for _ in range(rng.choice((1, 1, 2, 3)))]
    accounts, users = ("", "a", "b", "c", "d"), ("", "u", "v", "w")
    made, outcomes, at = [], [], rng.choice((0, 1_700_000_000))
    load = rng.choice((5, 30, 200))
    for number in range(jobs):
        at += rng.choice((0, 0, 1, rng.randint(0, load), rng.randint(0, 4 * load)))
        pool = rng.randrange(len(quotas))
        gpus = rng.choice((1, 1, rng.randint(1, quotas[pool]), quotas[pool]))
        run = rng.choice((1, 60, rng.randint(1, 60), rng.randint(1, 400)))
        limit = rng.choice((run, run, 60 * -(-run // 60), 3 * run, 400, inf, max(1, run - rng.randint(1, 90))))
        asked = Requirements(
            account=rng.choice(accounts),
            qos=rng.choice(("", "low", "high")),
            partition=rng.choice("xyz"),
            time_limit_s=limit,
        )
        made.append(Job(0, f"{number:05}", "pqr"[pool], float(at), gpus, user=rng.choice(users), requirements=asked))
        outcomes.append(Outcome(float(run)))
    rules = SchedulingRules(
        random_weights(rng) if ranked else PriorityWeights(),
        random_accounts(rng, max(quotas), limited) if limited or ranked else {},
        {
            "low": Qos(rng.choice((0, 1.0)), random_limits(rng, max(quotas), limited)),
            "high": Qos(rng.choice((1.0, 10.0)), random_limits(rng, max(quotas), limited)),
        },
        {"x": 1.0, "y": rng.choice((0.0, 3.0))},
    )
    return Workload(made, outcomes, [Pool("pqr"[at], quota) for at, quota in enumerate(quotas)], rules=rules)


def random_weights(rng):
    names = ("age", "fairshare", "job_size", "qos", "partition")
    return PriorityWeights(
        **{name: rng.choice((0.0, 10.0, 1000.0)) for name in names},
        max_age_s=rng.choice((100.0, 3600.0)),
        half_life_s=rng.choice((50.0, 1000.0, inf)),
        period_s=rng.choice((1.0, 30.0, 300.0)),
        favor_small=rng.random() < 0.5,
    )


def random_limits(rng, widest, limited):
    """No narrower than the widest job, which else would never run."""
    if not limited:
        return Limits()
    gpus = (inf, inf, float(widest), float(widest + rng.randint(0, 8)))
    return Limits(*(rng.choice(each) for each in (gpus, (inf, inf, 1, 3), gpus, (inf, 1, 2))))


def random_accounts(rng, widest, limited):
    shares = (0.0, 1.0, 1.0, 2.0, 5.0)
    return {
        "a": Account("", rng.choice(shares), {"u": rng.choice(shares)}, random_limits(rng, widest, limited)),
        "b": Account(rng.choice(("", "a")), rng.choice(shares), {}, random_limits(rng, widest, limited)),
        "c": Account("b", rng.choice(shares), {"idle": 1.0}, random_limits(rng, widest, limited)),
        "empty": Account("a", rng.choice(shares)),
    }


def check(name, seed, jobs=40):
    rng = Random(f"{name} {seed}")
    limited, ranked = rng.random() < 0.5, rng.random() < 0.5
    workload = random_workload(rng, jobs, limited=limited, ranked=ranked)
    depth, renewed = rng.choice((0, 0, 1, 3, 10)), rng.random() < 0.3
    settings = {"priority": "multifactor" if ranked else "fifo", "bf_max_job_test": depth}
    if name == "conservative_backfill":
        settings["reservations"] = "renewed" if renewed else "kept"
    else:
        renewed = False
    expected = reference(workload, name, multifactor=ranked, depth=depth, renewed=renewed)
    found = starts(workload, name, **settings)
    wrong = np.flatnonzero(np.array(found) != np.array(expected)).tolist()
    assert not wrong, f"{name}, seed {seed}, {settings}: jobs {wrong[:5]} start at {[found[at] for at in wrong[:5]]}"


@pytest.mark.parametrize("name", BOTH)
def test_no_start_differs_from_the_references(name):
    for seed in range(12):
        check(name, seed)


@pytest.mark.parametrize("seed", [115, 128, 717, 1143])
def test_reservations_move_to_earlier_only_once_somebody_has_ended(seed):
    """Draws where they would also move as others come: one that moved has left a hole for one before it."""
    check("conservative_backfill", seed, 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_no_start_of_twenty_thousand_jobs_differs_from_the_references(name):
    for seed in range(1000, 1500):
        check(name, seed)
