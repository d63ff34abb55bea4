"""The checks of policies: all of ours pass, and what cheats, wavers or meddles does not."""

import random

import pytest

from jobcast import testing
from jobcast.domain import law as laws
from jobcast.domain.errors import DecisionError
from jobcast.domain.policy import Decision, Grant
from jobcast.schedulers.fcfs import Fcfs
from jobcast.schedulers.policies import ELASTIC, ENERGY, FUTURE, GOODPUT, POOLS, ROUNDS
from jobcast.schedulers.registry import find_policy, make_policy, names_of
from jobcast.testing import check_policy

LAWS = {POOLS: laws.RUNTIME, ROUNDS: laws.RUNTIME, GOODPUT: laws.GOODPUT, ELASTIC: laws.SPEEDUP, ENERGY: laws.EPOCHS}
OURS = [(name, law) for kind, law in LAWS.items() for name in names_of(kind) if FUTURE not in find_policy(name).asks]
SETTINGS = {"andreas": {"max_iterations": "5"}, "shockwave": {"window": "4"}, "exact": {"time_limit_s": "5"}}


@pytest.mark.parametrize(("name", "law"), OURS)
def test_every_policy_of_ours_keeps_to_the_rules(name, law):
    if name == "exact":
        pytest.skip("exact answers within minutes for a few jobs alone")
    settings = SETTINGS.get(name, {})
    check_policy(
        lambda source: make_policy(name, None if law == laws.SPEEDUP else source, settings), law, seeds=range(1)
    )


class Drawing(Fcfs):
    """Draws whether it decides."""

    def decide(self, view):
        return super().decide(view) if random.random() < 0.7 else Decision(wake_s=view.now_s + 7.0)


class Greedy:
    """Gives everybody all GPUs."""

    def decide(self, view):
        return Decision({seq: Grant(99) for seq in view.active if seq not in view.running})


class Meddling(Fcfs):
    """Takes jobs out of the queue by itself."""

    def decide(self, view):
        decision = super().decide(view)
        for pool in view.pools.values():
            if (job := pool.pending.head()) is not None and job.seq not in decision.change:
                pool.pending._gpus += 1
        return decision


def test_a_policy_that_draws_is_told_apart():
    with pytest.raises(AssertionError, match="asked twice, it decides"):
        check_policy(lambda source: Drawing())


def test_what_cannot_be_is_refused_as_ever():
    with pytest.raises(DecisionError, match="it is given 99"):
        check_policy(lambda source: Greedy())


def test_a_policy_that_changes_the_view_is_told():
    with pytest.raises(AssertionError, match="it changed what it was shown"):
        check_policy(lambda source: Meddling())


def test_a_policy_that_sees_the_future_is_told(monkeypatch):
    worlds, made = [], testing.world

    class Knowing(Fcfs):
        """Who comes last goes first, where all jobs of the run ask for an odd number of GPUs together."""

        def key(self, job):
            return float(-job.seq if sum(each.gpus for each in worlds[-1].workload.jobs) % 2 else job.seq)

    def world(*asked, **how):
        worlds.append(made(*asked, **how))
        return worlds[-1]

    monkeypatch.setattr(testing, "world", world)
    with pytest.raises(AssertionError, match="it decides by jobs to come, which nobody can know yet"):
        check_policy(lambda source: Knowing(), seeds=range(9))
