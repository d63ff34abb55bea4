"""AccuracyCurve behind MLflow's generic interface."""

import numpy as np
import pandas as pd
import pytest

from jobcast.domain.errors import RegistryError
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.curves.served import ServedAccuracyCurve
from jobcast.traces.learning_curves import LearningCurve


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
    with pytest.raises(RegistryError, match=said):
        form.predict(form.example().assign(**{column: value}))
