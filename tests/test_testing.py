"""The checks of policies: all of ours pass, and what cheats, wavers or meddles does not."""

import random

import pytest

from jobcast import testing
from jobcast.domain.errors import DecisionError
from jobcast.domain.law import EPOCHS, RUNTIME, TASKS
from jobcast.domain.policy import Decision, Grant
from jobcast.pipelines.experiments.worlds import LIVING
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.schedulers.registry import BUILT_IN, make_policy
from jobcast.schedulers.tasks.network import networks_of
from jobcast.testing import check_policy, registered
from tests.schedulers.tasks.test_task_network import arrays
from tests.shared import refused

EXEMPT = ("sia_vc", "milp", "as_recorded")
"""Policies that plan by every job's future, which the oracle tells them."""
OFF_GRID = {("milp", EPOCHS), ("milp", TASKS)}
"""Plans on a grid on which run times must lie; those of epochs and tasks do not."""
OURS = [
    (name, law)
    for law, kinds in LIVING.items()
    for name, spec in BUILT_IN.items()
    if spec.kind in kinds and (name, law) not in OFF_GRID
]
LEARNED = ("mlf_rl", "device_rl")
SETTINGS = {
    "andreas": {"max_iterations": "5"},
    "shockwave": {"window": "4"},
    "exact": {"time_limit_s": "600"},
    "milp": {"grid_s": "0.5", "time_limit_s": "600", "search_tries": "200"},
}
JOBS = {"exact": 5, "milp": 3, "shockwave": 12, "ossp": 12, "andreas": 12, "pcs": 12, "afs": 12}
"""Fewer for those that solve programmes or search."""


@pytest.mark.parametrize(("name", "law"), OURS)
def test_every_policy_of_ours_keeps_to_the_rules(name, law):
    make = registered(name, law, **SETTINGS.get(name, {}))
    if name in LEARNED:
        networks = networks_of(arrays())
        make = lambda source: make_policy(name, networks)  # noqa: E731
    check_policy(make, law, range(1), jobs=JOBS.get(name, testing.JOBS), oracle=name in EXEMPT)


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
    refused(AssertionError, "asked twice, it decides", check_policy, lambda source: Drawing(), RUNTIME)


def test_what_cannot_be_is_refused_as_ever():
    refused(DecisionError, "it is given 99", check_policy, lambda source: Greedy())


def test_a_policy_that_changes_the_view_is_told():
    refused(AssertionError, "it changed what it was shown", check_policy, lambda source: Meddling())


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
