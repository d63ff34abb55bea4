"""Seconds an epoch that cannot be: none of them reaches a policy, which believes the slowest profile instead."""

from math import inf, isfinite, nan

import numpy as np
import pytest

from jobcast.domain.bad_answers import EPOCHS, BadAnswers, Reason
from jobcast.models.epoch_time.epoch_time import MOST_FASTER, MOST_SLOWER, guarded_epoch_s, slowest_s
from jobcast.schedulers.policies import ENERGY
from jobcast.schedulers.registry import make_policy, names_of
from tests.simulator.energy.energy_cases import EnergyJob, cluster_of, jobs_of, replayed, workload_of

CLUSTER = cluster_of((1, (0.0, 420.0, 670.0)), (1, (0.0, 240.0)))
JOBS = jobs_of(
    EnergyJob(due_s=400.0, epoch_s=((10.0, 6.0), (25.0,))),
    EnergyJob(submit_s=5.0, due_s=300.0, weight=4.0, epoch_s=((20.0, 11.0), (45.0,))),
    EnergyJob(submit_s=60.0, due_s=900.0, epoch_s=((30.0,), ())),
    EnergyJob(submit_s=70.0, weight=2.0, epochs=4.0, epoch_s=((8.0, 5.0), (15.0,))),
    cluster=CLUSTER,
)
TRUE_S = JOBS.epoch_s
RUNS = np.isfinite(TRUE_S)
NAMES = [f"j{number}" for number in range(len(TRUE_S))]
SETTINGS = {"andreas": {"max_iterations": "30", "seed": "1"}}


def raised():
    raise RuntimeError("no idea")


def times(value):
    return lambda: np.full(TRUE_S.shape, value)


BAD = {
    "raises": (raised, Reason.RAISED),
    "none": (lambda: None, Reason.NO_NUMBER),
    "text": (times("10 s"), Reason.NO_NUMBER),
    "complex": (times(10.0 + 1j), Reason.NO_NUMBER),
    "yes and no": (times(True), Reason.NO_NUMBER),
    "wrong shape": (lambda: np.full(TRUE_S.shape[:2], 10.0), Reason.WRONG_SHAPE),
    "one number": (lambda: 10.0, Reason.WRONG_SHAPE),
    "empty": (lambda: np.empty((0, 2, 2)), Reason.WRONG_SHAPE),
    "nan": (times(nan), Reason.NOT_FINITE),
    "inf": (times(inf), Reason.NOT_FINITE),
    "-inf": (times(-inf), Reason.NOT_FINITE),
    "negative": (times(-10.0), Reason.OUT_OF_RANGE),
    "zero": (times(0.0), Reason.OUT_OF_RANGE),
    "1e300": (times(1e300), Reason.OUT_OF_RANGE),
    "1e-300": (times(1e-300), Reason.OUT_OF_RANGE),
}
BY_PLACE = [kind for kind, (_, why) in BAD.items() if why in (Reason.NOT_FINITE, Reason.OUT_OF_RANGE)]

CASES = [*(("edf", kind) for kind in BAD), *((policy, "nan") for policy in names_of(ENERGY) if policy != "edf")]
"""Every bad answer to one policy, and one of them to every policy: how it is judged does not depend on who asks."""


def run(policy, believed_s):
    """What becomes of the jobs where a policy goes by some times."""
    jobs = JOBS._replace(epoch_s=believed_s)
    made = make_policy(policy, None, SETTINGS.get(policy, {}))
    log = replayed(workload_of(jobs, CLUSTER, TRUE_S), made)
    columns = (log.start_s, log.end_s, log.columns["energy_eur"], log.columns["migrations"])
    return tuple(column.tolist() for column in columns)


@pytest.fixture(scope="module")
def cautious():
    """Each policy where every configuration takes as long as the job's slowest."""
    return {policy: run(policy, slowest_s(TRUE_S)) for policy in names_of(ENERGY)}


def test_the_slowest_by_hand(cautious):
    assert slowest_s(TRUE_S)[:, 0, 0].tolist() == [25.0, 45.0, 30.0, 15.0]
    assert slowest_s(TRUE_S)[2].tolist() == [[30.0, inf], [inf, inf]]
    assert cautious["edf"] != run("edf", TRUE_S)


@pytest.mark.parametrize(("policy", "kind"), CASES)
def test_where_all_answers_are_bad_a_run_is_the_cautious_one(policy, kind, cautious):
    answer, reason = BAD[kind]
    told = BadAnswers()
    assert run(policy, guarded_epoch_s(answer, TRUE_S, told, NAMES)) == cautious[policy]
    count = int(RUNS.sum())
    assert told.figures()[EPOCHS] | {"first": ""} == {
        "checked": count,
        "bad": count,
        "reasons": {str(reason): count},
        "first": "",
    }


@pytest.mark.parametrize(("policy", "kind"), [case for case in CASES if case[1] in BY_PLACE])
def test_where_some_are_bad_none_of_these_reaches_a_policy(policy, kind):
    told, answer = BadAnswers(), TRUE_S * 1.5
    answer[::2, 0] = BAD[kind][0]()[::2, 0]
    believed_s = guarded_epoch_s(lambda: answer, TRUE_S, told, NAMES)
    replaced = RUNS.copy()
    replaced[1::2], replaced[:, 1] = False, False
    np.testing.assert_array_equal(believed_s[replaced], slowest_s(TRUE_S)[replaced])
    np.testing.assert_array_equal(believed_s[~replaced], (TRUE_S * 1.5)[~replaced])
    assert told.figures()[EPOCHS]["bad"] == replaced.sum()
    assert all(isfinite(end_s) for end_s in run(policy, believed_s)[1])


def test_what_is_told_of_the_first():
    told, answer = BadAnswers(), TRUE_S.copy()
    answer[1, 0, 1] = -3.0
    guarded_epoch_s(lambda: answer, TRUE_S, told, NAMES)
    assert told.lines() == [
        "epochs: 1 of 10 answers were bad and took the conservative value "
        "(out of range 1; first: job j1 on 2 GPUs of kind 0: -3 s)"
    ]


def test_good_answers_stay_as_they_are_and_jobs_cannot_run_where_they_cannot():
    told = BadAnswers()
    answer = np.where(RUNS, TRUE_S * 0.7, 99.0)  # a model does not know where jobs cannot run
    np.testing.assert_array_equal(
        guarded_epoch_s(lambda: answer, TRUE_S, told, NAMES), np.where(RUNS, TRUE_S * 0.7, inf)
    )
    assert told.figures() == {}


@pytest.mark.parametrize(("factor", "bad"), [(2 / MOST_FASTER, 0), (0.5 / MOST_FASTER, 1), (MOST_SLOWER, 0), (2e3, 1)])
def test_what_is_absurd_goes_by_the_slowest_profile(factor, bad):
    told, answer = BadAnswers(), TRUE_S.copy()
    answer[0, 0, 0] = 25.0 * factor
    assert guarded_epoch_s(lambda: answer, TRUE_S, told, NAMES)[0, 0, 0] == (25.0 if bad else 25.0 * factor)
    assert len(told.figures()) == bad
