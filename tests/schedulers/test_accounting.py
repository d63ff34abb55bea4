"""What accounts and users hold and have used, and the priorities that follow: by hand."""

from math import inf

import numpy as np
import pytest

from jobcast.domain.jobs import Job, Requirements
from jobcast.domain.policy import Grant, RunningJob, Service
from jobcast.domain.scheduling_rules import Account, Limits, PriorityWeights, Qos, SchedulingRules
from jobcast.schedulers.accounting import Accounting

WEIGHTS = PriorityWeights(age=1000.0, fairshare=500.0, job_size=100.0, qos=10.0, partition=8.0, max_age_s=1000.0)
RULES = SchedulingRules(
    WEIGHTS,
    {"lab": Account(shares=3.0), "guests": Account(shares=1.0)},
    {"high": Qos(50.0), "normal": Qos(10.0)},
    {"gpu": 4.0, "long": 1.0},
)


def job(seq, account="lab", user="u", gpus=1, qos="", partition="", submit_s=0.0):
    asked = Requirements(account=account, qos=qos, partition=partition)
    return Job(seq, str(seq), "p", submit_s, gpus, user=user, requirements=asked)


def test_a_priority_worked_out_by_hand():
    books, jobs = (
        Accounting(RULES, ranked=True),
        [job(0, qos="normal", partition="long", gpus=8), job(1, "guests", "v")],
    )
    own = np.array([books.own_points(one, 32.0) for one in jobs])
    # 100 * 8/32 + 10 * 10/50 + 8 * 1/4; 100 * 1/32.
    assert own.tolist() == [29.0, 3.125]
    whose = np.array([books.number(one) for one in jobs])
    # Nobody has used anything: both are level at the root, of one user each, and share rank 2 of 2. Aged 300 s of 1000.
    assert books.priorities(np.zeros(2), own, whose, 599.0).tolist() == [829.0, 803.0]


def test_of_several_partitions_the_one_of_the_largest_priority_counts():
    books = Accounting(RULES, ranked=True)
    # 100 * 1/32 for the size, and 8 * 4/4, 8 * 1/4 or nothing.
    points = [books.own_points(job(0, partition=text), 32.0) for text in ("long,gpu", "else, long", "else", "")]
    assert points == [11.125, 5.125, 3.125, 3.125]


def test_use_counts_at_the_next_point_of_the_grid():
    books, heavy, light = Accounting(RULES, ranked=True), job(0), job(1, "guests", "v")
    whose = np.array([books.number(one) for one in (heavy, light)])
    none = np.zeros(2)
    books.start(heavy, 10.0)
    assert books.priorities(none, none, whose, 299.0).tolist() == [500.0, 500.0]
    # The lab has used all: 3/4 over 1; the guests' level is infinite.
    assert books.priorities(np.full(2, 300.0), none, whose, 300.0).tolist() == [250.0, 500.0]


def test_use_that_halves_within_a_period_is_soon_nothing():
    # A start that lies 2000 half-lives after the last point of the grid: 2 ** 2000 is no number.
    weights = PriorityWeights(fairshare=500.0, half_life_s=0.1)
    books, heavy, light = Accounting(SchedulingRules(weights), ranked=True), job(0), job(1, "guests", "v")
    whose = np.array([books.number(one) for one in (heavy, light)])
    books.start(heavy, 200.0)
    assert books.priorities(np.zeros(2), np.zeros(2), whose, 250.0).tolist() == [500.0, 500.0]
    assert books.priorities(np.zeros(2), np.zeros(2), whose, 300.0).tolist() == [250.0, 500.0]


def test_an_instant_of_the_grid_is_it_also_where_it_was_added_up():
    books, heavy, light = Accounting(RULES, ranked=True), job(0), job(1, "guests", "v")
    whose = np.array([books.number(one) for one in (heavy, light)])
    books.start(heavy, 10.0)
    # As at 300 s: 290 s of use count, and 300 s of age. Sums of times near 1e6 s are off by so much.
    assert books.priorities(np.zeros(2), np.zeros(2), whose, 300.0 - 1e-10).tolist() == [550.0, 800.0]


def test_accounts_and_users_that_nobody_named_have_one_share():
    rules = SchedulingRules(WEIGHTS, {"guests": Account(users={"v": 1.0})})
    books, jobs = Accounting(rules, ranked=True), [job(0, "guests", "v"), job(1, "guests"), job(2, "else", gpus=2)]
    whose = np.array([books.number(one) for one in jobs])
    for one in jobs:
        books.start(one, 0.0)
    # Both accounts, and both users of the first, have used as much: all are level, and share the best rank.
    assert books.priorities(np.full(3, 300.0), np.zeros(3), whose, 300.0).tolist() == [500.0] * 3


def test_room_is_what_the_tightest_limit_leaves():
    rules = SchedulingRules(
        accounts={"top": Account(limits=Limits(grp_gpus=10.0)), "low": Account("top", limits=Limits(user_gpus=4.0))},
        qos={"one": Qos(limits=Limits(user_jobs=1.0))},
    )
    books = Accounting(rules, ranked=False)

    def room(one):
        return books.rooms(np.array([books.number(one)])).tolist()[0]

    mine, yours, above = job(0, "low", "a", 3), job(1, "low", "b", 1), job(2, "top", "a", 6)
    assert (room(mine), room(yours), room(above), room(job(3, "else"))) == (4.0, 4.0, 10.0, inf)
    books.start(mine, 0.0)
    assert (room(mine), room(yours), room(above)) == (1.0, 4.0, 7.0)
    books.start(above, 0.0)
    assert (room(mine), room(yours), room(above)) == (1.0, 1.0, 1.0)
    books.start(job(4, "else", "a", qos="one"), 0.0)
    assert (room(job(5, "else", "a", qos="one")), room(job(6, "else", "b", qos="one"))) == (-1.0, inf)


def test_a_part_of_a_job_is_none():
    books = Accounting(SchedulingRules(accounts={"lab": Account(limits=Limits(user_jobs=0.5))}), ranked=False)
    assert books.rooms(np.array([books.number(job(0))])).tolist() == [-1.0]
    books = Accounting(SchedulingRules(accounts={"lab": Account(limits=Limits(grp_jobs=1.5))}), ranked=False)
    whose = np.array([books.number(job(1))])
    assert books.rooms(whose).tolist() == [inf]
    books.start(job(0), 0.0)
    assert books.rooms(whose).tolist() == [-1.0]


class Seen:
    """What runs, rows of a job and its start, and the time for which any other job held its GPUs."""

    def __init__(self, *runs, held_s=0.0):
        self.running = {job.seq: RunningJob(job, start_s, Grant(job.gpus)) for job, start_s in runs}
        self._held_s = held_s

    def service(self, job):
        return Service(self._held_s, 0.0)


def two_accounts(half_life_s):
    """Books where only use counts, two points for who is first, and a job of two GPUs and one of one to compare."""
    weights = PriorityWeights(fairshare=2.0, half_life_s=half_life_s)
    books = Accounting(SchedulingRules(weights, {"lab": Account(), "guests": Account()}), ranked=True)
    mine, yours = job(0, gpus=2), job(1, "guests", "v")
    whose = np.array([books.number(one) for one in (mine, yours)])
    return books, mine, yours, lambda at_s: books.priorities(np.zeros(2), np.zeros(2), whose, at_s).tolist()


@pytest.mark.parametrize(("guests_s", "expected"), [(30.0, [1.0, 2.0]), (70.0, [1.0, 2.0]), (120.0, [2.0, 1.0])])
def test_who_ended_has_used_its_gpus_until_then(guests_s, expected):
    # 2 GPUs of the lab from 100 to 150, and one of the guests, which runs still at 300.
    books, mine, yours, priorities = two_accounts(inf)
    books.catch_up(Seen((mine, 100.0)))
    books.catch_up(Seen((yours, 300.0 - guests_s), held_s=50.0))
    assert priorities(300.0) == expected


@pytest.mark.parametrize(("guests_s", "expected"), [(30.0, [1.0, 2.0]), (80.0, [2.0, 1.0])])
def test_use_that_was_added_up_halves_on(guests_s, expected):
    # At 300 the lab has used 600 / ln 2 * (2^-(190 / 300) - 2^-(290 / 300)) = 115, at 600 half of it, 57.6; the guests,
    # who run until 580, about .8 of their time by then.
    books, mine, yours, priorities = two_accounts(300.0)
    books.catch_up(Seen((mine, 10.0)))
    books.catch_up(Seen(held_s=100.0))
    assert priorities(300.0) == [1.0, 2.0]
    books.catch_up(Seen((yours, 580.0 - guests_s)))
    books.catch_up(Seen(held_s=guests_s))
    assert priorities(600.0) == expected


@pytest.mark.parametrize("ranked", [False, True])
def test_who_has_ended_holds_nothing_against_the_limits(ranked):
    limits = Limits(grp_gpus=8.0, grp_jobs=2.0)
    books = Accounting(SchedulingRules(accounts={"lab": Account(limits=limits)}), ranked)
    first, second = job(0, gpus=3), job(1, gpus=2)
    whose = np.array([books.number(first)])
    for runs, room in (((first,), 5.0), ((first, second), -1.0), ((second,), 6.0), ((), 8.0)):
        books.catch_up(Seen(*((one, 0.0) for one in runs)))
        assert books.rooms(whose).tolist() == [room]


def test_nothing_is_kept_where_nobody_asks():
    limited = SchedulingRules(accounts={"lab": Account(limits=Limits(grp_jobs=1.0))})
    needed = [Accounting(rules, ranked).needed for rules in (SchedulingRules(), limited) for ranked in (False, True)]
    assert needed == [False, True, True, True]
