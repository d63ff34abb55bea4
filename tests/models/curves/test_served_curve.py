"""AccuracyCurve behind MLflow's generic interface."""

from math import inf, nan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.bad_answers import CURVES, BadAnswers, Reason
from jobcast.domain.errors import RegistryError
from jobcast.domain.tasks import ALL_ITERATIONS, OPT_STOP, TARGET_ONLY
from jobcast.models.curves.accuracy_curve import AccuracyCurve, ServedAccuracyCurve, guarded_accuracies
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.tasks.network import networks_of
from jobcast.traces.learning_curves import LearningCurve
from tests.schedulers.tasks.test_task_network import arrays
from tests.shared import refused
from tests.simulator.tasks.task_cases import TaskJob, cluster_of, replay_tasks, workload_of


@pytest.fixture(scope="module")
def model():
    epoch = np.arange(1, 21)
    curves = [
        LearningCurve(app, size, epoch, 0.8 - 0.5 * epoch ** -(0.5 + size / 100))
        for app in ("a", "b")
        for size in (16, 32)
    ]
    return AccuracyCurve().fit(curves)


@pytest.fixture(scope="module")
def form(model):
    return ServedAccuracyCurve(model)


def test_rows_are_answered_as_the_predictor_answers_curves(form, model):
    rows = [
        ("a", 16, "", "[0.3, 0.5, 0.6]", 20, "", 0.7),
        ("b", 32, "[1, 3, 4]", "[0.3, 0.5, 0.6]", 30, "[10]", np.nan),
        ("c", 8, "", "[0.9]", 10, "", 0.95),
    ]
    frame = pd.DataFrame(rows, columns=list(form.inputs), index=[7, 5, 6])
    answers = form.predict(frame)
    metric = np.array([0.3, 0.5, 0.6])
    curves = [
        LearningCurve("a", 16, np.array([1, 2, 3]), metric),
        LearningCurve("b", 32, np.array([1, 3, 4]), metric, (10,)),
        LearningCurve("c", 8, np.array([1]), np.array([0.9])),
    ]
    direct = model.forecast(curves, [20, 30, 10])
    assert list(answers.index) == [7, 5, 6]
    assert answers["final"].tolist() == pytest.approx(direct.final_mean.tolist())
    assert answers["high"].tolist() == pytest.approx(direct.final_high.tolist())
    assert answers["reach_probability"].tolist()[0] == pytest.approx(float(direct.reach_probability(0.7)[0]))
    assert answers["reach_probability"].tolist()[2] == pytest.approx(float(direct.reach_probability(0.95)[2]))
    assert np.isnan(answers.loc[5, ["reach_probability", "reach_epoch"]].astype(float)).all()
    assert form.predict(frame.iloc[:0]).shape == (0, 5)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("metric", "no list", "a row cannot be read"),
        ("metric", "[]", "metric must be a list of finite numbers"),
        ("metric", "[0.1, NaN]", "metric must be a list of finite numbers"),
        ("metric", '{"a": 1}', "a row cannot be read"),
        ("epoch", "[1, 1, 2, 3]", "epoch must ascend"),
        ("epoch", "[0, 1, 2, 3]", "epoch must ascend"),
        ("epoch", "[1]", "epoch must ascend"),
        ("epochs", 3, "epoch must ascend from 1 or later to at most epochs"),
        ("lr_milestones", "soon", "a row cannot be read"),
    ],
)
def test_a_row_that_cannot_be_answered_is_named(form, column, value, said):
    refused(RegistryError, said, form.predict, form.example().assign(**{column: value}))


ASKING = ("mlf_c", "mlfs", "mlf_rl")
"""Policies that look at final accuracies."""
GIVE_UP = (0.3, 1e-6)
"""A good answer that ends jobs: they will not get far."""


def raised(n):
    raise RuntimeError("no idea")


def rows(mean=0.5, spread=0.1):
    return lambda n: (np.full(n, mean), np.full(n, spread))


BAD = {
    "raises": (raised, Reason.RAISED),
    "none": (lambda n: None, Reason.WRONG_SHAPE),
    "text": (lambda n: (["good"] * n, ["bad"] * n), Reason.NO_NUMBER),
    "complex": (rows(0.5 + 1j), Reason.NO_NUMBER),
    "no values": (lambda n: ([None] * n, [None] * n), Reason.NO_NUMBER),
    "wrong shape": (lambda n: (np.full((n, 1), 0.5), np.full(n, 0.1)), Reason.WRONG_SHAPE),
    "one number": (lambda n: (0.5, 0.1), Reason.WRONG_SHAPE),
    "three columns": (lambda n: (np.full(n, 0.5),) * 3, Reason.WRONG_SHAPE),
    "empty": (lambda n: (np.empty(0), np.empty(0)), Reason.WRONG_SHAPE),
    "nan": (rows(nan), Reason.NOT_FINITE),
    "inf": (rows(inf), Reason.NOT_FINITE),
    "-inf": (rows(-inf), Reason.NOT_FINITE),
    "deviation nan": (rows(0.3, nan), Reason.NOT_FINITE),
    "negative": (rows(-0.1), Reason.OUT_OF_RANGE),
    "above 1": (rows(1.01), Reason.OUT_OF_RANGE),
    "1e300": (rows(1e300), Reason.OUT_OF_RANGE),
    "deviation below 0": (rows(0.3, -1e-6), Reason.NOT_MONOTONE),
    "deviation of 1e300": (rows(0.3, 1e300), Reason.OUT_OF_RANGE),
}
BY_ROW = [kind for kind, (_, why) in BAD.items() if why not in (Reason.RAISED, Reason.NO_NUMBER, Reason.WRONG_SHAPE)]

CASES = [*((ASKING[0], kind) for kind in BAD), *((policy, "nan") for policy in ASKING[1:])]
"""Every bad answer to one policy, and one of them to every policy: how it is judged does not depend on who asks."""


class Model:
    """Answers badly about jobs of odd numbers (`some`) or all, about the others that they will not get far."""

    def __init__(self, answer, some=False):
        self.answer, self.some, self.asked, self.bad = answer, some, 0, 0

    def __call__(self, jobs, seen, at, epochs):
        n = len(jobs)
        self.asked += n
        if not self.some:
            self.bad += n
            return self.answer(n)
        odd = jobs % 2 == 1
        self.bad += int(odd.sum())
        good = np.full((2, n), np.array(GIVE_UP)[:, None])
        return tuple(np.where(odd, bad, fine) for bad, fine in zip(self.answer(n), good, strict=True))


def workload():
    """Six jobs for two GPUs that want all iterations, the best, or a target, which all of them reach in the end."""
    options = (OPT_STOP, OPT_STOP, TARGET_ONLY, TARGET_ONLY, ALL_ITERATIONS, ALL_ITERATIONS)
    jobs = [
        TaskJob(30.0 * number, iterations=600.0, target=0.8, option=option, may_become=max(option, OPT_STOP))
        for number, option in enumerate(options)
    ]
    return workload_of(jobs, cluster_of(2, 1))


def run(policy, forecast):
    learned = networks_of(arrays(3)) if policy == "mlf_rl" else None
    log = replay_tasks(workload(), make_policy(policy, learned, {}), forecast, seed=1)
    return log.start_s.tolist(), log.end_s.tolist(), log.columns["done"].tolist(), log.preemptions.tolist()


@pytest.fixture(scope="module")
def without():
    """What becomes of the jobs under each policy where nothing is forecast."""
    return {policy: run(policy, None) for policy in ASKING}


def test_a_good_answer_ends_jobs_early(without):
    told = BadAnswers()
    for policy in ("mlf_c", "mlfs"):
        assert run(policy, guarded_accuracies(Model(rows(*GIVE_UP)), told)) != without[policy]
    assert told.figures() == {}


@pytest.mark.parametrize(("policy", "kind"), CASES)
def test_where_all_answers_are_bad_a_run_is_the_one_without_forecasts(policy, kind, without):
    answer, reason = BAD[kind]
    told, model = BadAnswers(), Model(answer)
    assert run(policy, guarded_accuracies(model, told)) == without[policy]
    figures = told.figures()[CURVES]
    assert figures["checked"] == figures["bad"] == model.asked > 0
    assert figures["reasons"] == {str(reason): model.asked}


@pytest.mark.parametrize(("policy", "kind"), [case for case in CASES if case[1] in BY_ROW])
def test_where_some_are_bad_none_of_these_reaches_a_policy(policy, kind):
    told, model, seen = BadAnswers(), Model(BAD[kind][0], some=True), []
    guarded = guarded_accuracies(model, told)

    def kept(jobs, *others):
        mean, spread = guarded(jobs, *others)
        seen.extend(zip(jobs.tolist(), mean.tolist(), spread.tolist(), strict=True))
        return mean, spread

    run(policy, kept)
    assert told.figures()[CURVES]["bad"] == model.bad > 0
    for job, mean, spread in seen:
        np.testing.assert_equal((mean, spread), (nan, nan) if job % 2 else GIVE_UP)


def ask(mean, spread, seen):
    told = BadAnswers()
    model = guarded_accuracies(lambda *asked: (np.array([mean]), np.array([spread])), told, ("j0",))
    return *model(np.array([0]), np.array([seen]), np.array([len(seen)]), np.array([20])), told


@pytest.mark.parametrize(
    ("seen", "good", "bad"),
    [
        ([0.1, 0.5], (1.0, 0.2, 0.0), (1.001, -0.001)),
        ([0.1, 30.0], (100.0, 1.5, 0.0), (100.1, -0.1)),
        ([0.1, 300.0], (1e6, 0.0), (-0.1,)),
        ([-4.0, -2.0], (-50.0, 3.0), ()),
    ],
)
def test_a_metric_stays_within_what_was_seen_of_it(seen, good, bad):
    for mean in good:
        assert ask(mean, 0.01, seen)[0].tolist() == [mean]
    for mean in bad:
        found, _, told = ask(mean, 0.01, seen)
        assert np.isnan(found).all()
        assert told.figures()[CURVES]["first"] == f"job j0 after 2 epochs: {mean:g}, deviating by 0.01"


def test_a_model_cannot_change_what_it_is_shown():
    def spoil(jobs, seen, at, epochs):
        for column in (jobs, seen, at, epochs):
            column[:] = -1
        return np.array([0.5]), np.array([0.1])

    asked = np.array([0]), np.array([[0.1, 0.2]]), np.array([2]), np.array([20])
    before = [column.copy() for column in asked]
    guarded_accuracies(spoil, BadAnswers())(*asked)
    for column, was in zip(asked, before, strict=True):
        np.testing.assert_array_equal(column, was)


@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=5))
def test_what_comes_through_is_within_its_limits_or_nothing(answers):
    n, told = len(answers), BadAnswers()
    model = guarded_accuracies(lambda *asked: tuple(np.array(answers).T.copy()), told)
    mean, spread = model(np.arange(n), np.full((n, 3), 0.4), np.full(n, 3), np.full(n, 20))
    known = ~np.isnan(mean)
    np.testing.assert_array_equal(known, ~np.isnan(spread))
    assert ((mean[known] >= -1e-6) & (mean[known] <= 1 + 1e-6) & (spread[known] >= 0) & (spread[known] <= 1)).all()
    assert told.figures().get(CURVES, {"bad": 0})["bad"] == n - known.sum()
