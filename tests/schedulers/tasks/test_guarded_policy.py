"""A learned scheduler that cannot decide: the rule whose place it takes does, job by job."""

from math import inf, nan

import numpy as np
import pytest

from jobcast.domain.bad_answers import BadAnswers, Reason
from jobcast.domain.tasks import OPT_STOP, TARGET_ONLY
from jobcast.schedulers.policies import TASKS
from jobcast.schedulers.registry import find_policy, make_policy, names_of
from jobcast.schedulers.tasks.mlf_rl import DECISIONS, GuardedPolicy, MlfRl, fault_of
from jobcast.schedulers.tasks.network import networks_of
from tests.schedulers.tasks.test_task_network import arrays
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, replay_tasks, workload_of

HEADS = ("jobs.first", "jobs.last", "hosts.second", "hosts.first_bias")
BAD = {"nan": nan, "inf": inf, "-inf": -inf, "1e300": 1e300}


def workload():
    rows = [
        TaskJob(40.0 * number, iterations=300.0, workers=1 + number % 2, gpu=0.6, option=OPT_STOP, target=0.8,
                may_become=TARGET_ONLY, urgency=float(1 + number), deadline_s=600.0 + 50.0 * number)
        for number in range(6)
    ]  # fmt: skip
    return workload_of(rows, cluster_of(2, 1))


RULES = {name: find_policy(name).instead for name in names_of(TASKS) if find_policy(name).learned}


def forecast(jobs, seen, at, epochs):
    return np.full(len(jobs), 0.85), np.full(len(jobs), 0.05)


def log_of(policy):
    log = replay_tasks(workload(), policy, forecast, seed=2)
    columns = (log.start_s, log.end_s, log.columns["done"], log.columns["migrations"])
    return *(column.tolist() for column in columns), log.totals["decisions"]


def guarded(name, networks, told):
    return GuardedPolicy(make_policy(name, networks, {}), make_policy(RULES[name]), networks, told)


def spoilt(head, value):
    found = arrays(3)
    found[head].flat[1] = value
    return networks_of(found)


@pytest.fixture(scope="module")
def by_rule():
    return {name: log_of(make_policy(rule)) for name, rule in RULES.items()}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(("head", "kind"), zip(HEADS, BAD, strict=True))
def test_networks_that_score_no_numbers_decide_nothing(name, head, kind, by_rule):
    told = BadAnswers()
    found = log_of(guarded(name, spoilt(head, BAD[kind]), told))
    assert found == by_rule[name]
    figures = told.figures()[DECISIONS]
    assert figures["checked"] == figures["bad"] == found[-1]
    reason = Reason.OUT_OF_RANGE if kind == "1e300" else Reason.NOT_FINITE
    assert figures["reasons"] == {str(reason): found[-1]}
    assert f"weights of {head} are" in figures["first"]


@pytest.mark.parametrize("name", RULES)
def test_what_raises_decides_nothing(name, by_rule, monkeypatch):
    def fails(policy, view):
        raise ZeroDivisionError("no idea")

    monkeypatch.setattr(MlfRl, "place", fails)
    told = BadAnswers()
    found = log_of(guarded(name, networks_of(arrays(3)), told))
    assert found == by_rule[name]
    assert told.figures()[DECISIONS]["reasons"] == {"raised": found[-1]}
    assert told.figures()[DECISIONS]["first"] == "at 0 s: ZeroDivisionError: no idea"


@pytest.mark.parametrize("name", RULES)
def test_a_policy_that_fails_now_and_then_decides_the_rest(name, monkeypatch):
    decide, calls = MlfRl.place, []

    def sometimes(policy, view):
        calls.append(view.now_s)
        if len(calls) % 3 == 0:
            raise RuntimeError("tired")
        return decide(policy, view)

    monkeypatch.setattr(MlfRl, "place", sometimes)
    told = BadAnswers()
    *_, decisions = log_of(guarded(name, networks_of(arrays(3)), told))
    assert told.figures()[DECISIONS]["checked"] == decisions == len(calls)
    assert told.figures()[DECISIONS]["bad"] == decisions // 3


@pytest.mark.parametrize("name", RULES)
def test_a_sound_policy_is_left_alone(name):
    told, networks = BadAnswers(), networks_of(arrays(3))
    policy = guarded(name, networks, told)
    assert policy.name == name
    assert log_of(policy) == log_of(make_policy(name, networks, {}))
    assert told.figures() == {}


def test_weights_up_to_the_most_are_sound():
    assert fault_of(spoilt("hosts.last", 1e6)) is None
    assert fault_of(spoilt("hosts.last", -1_000_001.0))[0] is Reason.OUT_OF_RANGE
