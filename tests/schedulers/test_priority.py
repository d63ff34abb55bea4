"""Multifactor priority: golden values by hand, and Fair Tree on Slurm's own page."""

from math import inf, log

import numpy as np
import pytest

from jobcast.schedulers.priority import (
    Association,
    age_factor,
    decayed_use,
    fair_tree,
    level_fair_share,
    points,
    relative,
    size_factor,
)


def user(account, name, shares, use):
    return Association((account, name), shares, use)


def account(name, shares, *children):
    return Association((name, ""), shares, sum(one.use for one in children), children)


def ranks(*children):
    """Users' ranks by name, the best one first: n for n users."""
    factors = fair_tree(account("", 1.0, *children))
    return {name: round(factor * len(factors)) for (_, name), factor in factors.items()}


def test_age_grows_to_the_oldest_that_counts():
    assert age_factor(np.array([0.0, 1800.0, 7200.0]), 3600.0).tolist() == [0.0, 0.5, 1.0]


def test_size_is_a_share_of_the_cluster_or_the_rest_of_it():
    assert (size_factor(16, 64), size_factor(16, 64, favor_small=True), size_factor(99, 64)) == (0.25, 0.75, 1.0)
    assert (size_factor(1, 1), size_factor(4, 0)) == (1.0, 0.0)


def test_qos_counts_against_the_largest():
    told = {"low": 0.0, "normal": 20.0, "high": 80.0}
    assert [relative(name, told) for name in ("low", "normal", "high", "other")] == [0.0, 0.25, 1.0, 0.0]
    assert relative("low", {"low": 0.0}) == 0.0
    assert relative("low", {"low": 0.5, "high": 1.0}) == 0.5


def test_use_halves_with_each_half_life():
    whole = decayed_use(4.0, 0.0, 10.0, 10.0, 100.0)
    assert decayed_use(4.0, 0.0, 10.0, 110.0, 100.0) == pytest.approx(whole / 2)
    assert decayed_use(4.0, 0.0, 10.0, 310.0, 100.0) == pytest.approx(whole / 8)
    assert decayed_use(4.0, 700.0, 710.0, 810.0, 100.0) == pytest.approx(whole / 2)
    # The integral of 2 ** (-t / 100) over the last 100 s is 100 / ln 2 * (1 - 1/2).
    assert decayed_use(1.0, 0.0, 100.0, 100.0, 100.0) == pytest.approx(50.0 / log(2.0))
    assert decayed_use(1.0, 0.0, 1e-3, 1e-3, 1e9) == pytest.approx(1e-3, rel=1e-3)
    assert decayed_use(3.0, 5.0, 15.0, 1e9, inf) == 30.0


def test_level_fair_share_is_shares_over_use():
    assert level_fair_share(1.0, 4.0, 50.0, 100.0) == 0.5
    assert level_fair_share(3.0, 4.0, 25.0, 100.0) == 3.0
    assert level_fair_share(1.0, 4.0, 0.5, 1.0) == 0.5
    assert (level_fair_share(1.0, 4.0, 0.0, 0.0), level_fair_share(0.0, 4.0, 5.0, 9.0)) == (inf, 0.0)


def test_all_of_an_account_in_credit_go_before_all_of_one_in_debt():
    # Fair Tree's purpose: the heavy user of the light account is before the light user of the heavy one.
    light = account("light", 1.0, user("light", "a", 1.0, 19.0), user("light", "b", 1.0, 1.0))
    heavy = account("heavy", 1.0, user("heavy", "c", 1.0, 79.0), user("heavy", "d", 1.0, 1.0))
    assert ranks(heavy, light) == {"b": 4, "a": 3, "d": 2, "c": 1}


def test_factors_are_those_of_sshare():
    # Raw usage and FairShare as `sshare -l` of Slurm 22.05.8 told them in the middle of a run.
    speech = account("speech", 1.0, user("speech", "backup", 1.0, 580.0), user("speech", "mail", 1.0, 726.0))
    names = {"games": 970.0, "news": 687.0, "root": 0.0}
    vision = account("vision", 1.0, *(user("vision", name, 1.0, use) for name, use in names.items()))
    factors = fair_tree(account("", 1.0, user("root", "root", 1.0, 0.0), speech, vision))
    assert {name: round(factor, 6) for name, factor in factors.items()} == {
        ("root", "root"): 1.0,
        ("speech", "backup"): 0.833333,
        ("speech", "mail"): 0.666667,
        ("vision", "root"): 0.5,
        ("vision", "news"): 0.333333,
        ("vision", "games"): 0.166667,
    }


def test_users_who_are_level_share_the_better_rank():
    users = [user("x", name, 1.0, use) for name, use in zip("abcd", (2.0, 1.0, 2.0, 5.0), strict=True)]
    assert ranks(account("x", 1.0, *users)) == {"b": 4, "a": 3, "c": 3, "d": 1}


def test_accounts_that_are_level_are_visited_as_one():
    one = account("one", 1.0, user("one", "a", 1.0, 9.0), user("one", "b", 1.0, 1.0))
    two = account("two", 1.0, user("two", "c", 1.0, 8.0), user("two", "d", 1.0, 2.0))
    # Levels in their own accounts: a .5/.9, b .5/.1, c .5/.8, d .5/.2.
    assert ranks(one, two) == {"b": 4, "d": 3, "c": 2, "a": 1}


def test_the_first_of_an_account_that_is_level_with_a_user_shares_the_users_rank():
    # S / U at the root: a 1/3 over 10/40, sub 1/3 over 10/40, last 1/3 over 20/40.
    sub = account("sub", 1.0, user("sub", "b", 1.0, 4.0), user("sub", "c", 1.0, 6.0))
    assert ranks(user("", "a", 1.0, 10.0), sub, user("", "last", 1.0, 20.0)) == {"a": 4, "b": 4, "c": 2, "last": 1}


def test_accounts_without_users_change_nothing_but_shares():
    empty = account("empty", 2.0)
    assert ranks(empty, account("x", 1.0, user("x", "a", 1.0, 3.0))) == {"a": 1}
    assert fair_tree(account("", 1.0)) == {}


def test_points_are_whole_and_noise_does_not_lower_them():
    assert points(np.array([999.9999999999, 1000.0, 1000.9])).tolist() == [1000.0, 1000.0, 1000.0]
