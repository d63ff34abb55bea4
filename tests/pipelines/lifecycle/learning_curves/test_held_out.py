"""Curves: which ones a version has seen, and twins that did not see what they are scored on."""

import json
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from jobcast.domain.errors import RegistryError, TrainingError
from jobcast.pipelines.lifecycle.comparison import compare_rows
from jobcast.pipelines.lifecycle.job_rows import curve_table_rows
from jobcast.pipelines.lifecycle.learning_curves import FILE, fingerprint, held_out, read_trained, write_trained
from jobcast.traces.learning_curves import CurveTable, LearningCurve
from tests.shared import refused


@dataclass
class Forecast:
    """The same value for every run, give or take one."""

    final_mean: np.ndarray
    family_finals: dict = field(default_factory=dict)

    def interval(self, level, epoch):
        middle = np.broadcast_to(self.final_mean[:, None], epoch.shape)
        return middle - 1.0, middle + 1.0


@dataclass
class Constant:
    """Forecasts the mean of the last values that it learnt from, or what it is told to."""

    value: float | None = None
    learnt: list = field(default_factory=list)

    def fit(self, curves):
        self.learnt = list(curves)
        self.value = float(np.mean([curve.metric[-1] for curve in curves]))
        return self

    def forecast(self, prefixes, epochs):
        return Forecast(np.full(len(prefixes), self.value))


def straight(app, size, last, epochs=10):
    """From 0 to `last` in equal steps."""
    return LearningCurve(app, size, np.arange(1, epochs + 1), np.linspace(0.0, last, epochs))


def test_each_application_is_scored_by_a_twin_of_the_others():
    """Twins say 3 for a and 1.5 for b, of which a run ends at 1, one at 2, and b at 3: errors 2, 1/2 and 1/2."""
    curves = [straight("a", 1, 1.0), straight("b", 1, 3.0), straight("a", 2, 2.0)]
    made = []

    def fit(some, step):
        made.append({curve.app for curve in some})
        return Constant().fit(some)

    twins = held_out(curves, fit)
    assert made == [{"b"}, {"a"}]
    assert (twins.left_out, twins.notes) == ("app", ())
    assert set(twins.figures) == {"0.2", "0.5"}
    for figures in twins.figures.values():
        assert figures["curves"] == 3
        assert figures["mae"] == pytest.approx((2 + 0.5 + 0.5) / 3)
    assert twins.figures["0.2"]["mae_last_value"] == pytest.approx(8 / 9)
    assert twins.figures["0.5"]["mae_last_value"] == pytest.approx(5 / 9)


def test_parts_of_a_single_application_are_left_out():
    curves = [straight("a", size, 1.0) for size in range(1, 13)]
    learnt = []

    def fit(some, step):
        learnt.append({curve.batch_size for curve in some})
        return Constant().fit(some)

    twins = held_out(curves, fit)
    assert twins.left_out == "curve"
    assert twins.notes == ("one application: twins left out parts of its curves",)
    assert [sorted(set(range(1, 13)) - one) for one in learnt] == [[1, 6, 11], [2, 7, 12], [3, 8], [4, 9], [5, 10]]
    assert twins.figures["0.5"]["curves"] == 12


def test_short_runs_are_learnt_from_and_not_scored():
    curves = [straight("a", 1, 1.0), straight("b", 1, 3.0, epochs=2)]
    seen = []
    twins = held_out(curves, lambda some, step: seen.append(some[0].app) or Constant().fit(some))
    assert seen == ["b"]
    assert twins.figures["0.2"]["curves"] == 1


def test_nothing_to_leave_out():
    twins = held_out([straight("a", 1, 1.0)], lambda some, step: Constant().fit(some))
    assert (twins.left_out, dict(twins.figures)) == ("nothing", {})
    assert "no twin could be scored" in twins.notes[-1]


def test_a_twin_that_cannot_be_trained_is_told_and_the_others_count():
    def fit(some, step):
        if {curve.app for curve in some} == {"b"}:
            raise TrainingError("too little")
        return Constant().fit(some)

    twins = held_out([straight("a", 1, 1.0), straight("b", 1, 3.0)], fit)
    assert twins.notes == ("no twin without a: too little",)
    assert twins.figures["0.2"]["curves"] == 1


def test_versions_are_compared_curve_by_curve():
    """The candidate is off by 0.5 on every curve, the other by 0.1: so is every mean of curves drawn anew."""

    def compared(candidate, champion, curves):
        table = CurveTable("curves.csv", "0" * 64, 50, curves, (None,) * 5)
        return compare_rows(*(curve_table_rows(one, table) for one in (candidate, champion)), ("candidate", "champion"))

    told = compared(Constant(1.5), Constant(1.1), tuple(straight("a", size, 1.0) for size in range(1, 6)))
    for both in told["blocks"].values():
        assert both["candidate"]["mae"] == pytest.approx(0.5)
        assert both["champion"]["mae"] == pytest.approx(0.1)
        assert both["interval"] == pytest.approx([0.4, 0.4])
    assert told["interval"] == pytest.approx([0.4, 0.4])
    mixed = compared(Constant(3.0), Constant(3.1), tuple(straight("a", size, 1.0 + size) for size in range(5)))
    assert mixed["blocks"]["20% seen"]["interval"][0] < 0 < mixed["blocks"]["20% seen"]["interval"][1]


CURVE = LearningCurve("lm", 32, np.array([1, 2, 4]), np.array([0.1, 0.4, 0.5]))


def test_what_makes_another_curve():
    others = [
        replace(CURVE, app="ml"),
        replace(CURVE, batch_size=64),
        replace(CURVE, epoch=np.array([1, 2, 3])),
        replace(CURVE, metric=np.array([0.1, 0.4, np.nextafter(0.5, 1)])),
        CURVE.prefix(2),
        replace(CURVE, app="lm\0", batch_size=2),
    ]
    found = {fingerprint(one) for one in (CURVE, *others)}
    assert len(found) == 1 + len(others)


def test_what_does_not():
    same = replace(CURVE, lr_milestones=(3,), progress=CURVE.metric, metric=CURVE.metric.copy())
    assert fingerprint(same) == fingerprint(CURVE)


def test_they_are_kept_in_an_order_of_their_own(tmp_path):
    curves = [CURVE, replace(CURVE, app="a"), replace(CURVE, app="b")]
    write_trained(tmp_path, curves)
    first = (tmp_path / FILE).read_bytes()
    write_trained(tmp_path, curves[::-1])
    assert (tmp_path / FILE).read_bytes() == first
    assert json.loads(first)["curves"] == sorted(map(fingerprint, curves))
    assert read_trained(tmp_path) == set(map(fingerprint, curves))


@pytest.mark.parametrize("text", [None, "no JSON", "[]", "{}"])
def test_a_damaged_file_is_named(tmp_path, text):
    if text is not None:
        (tmp_path / FILE).write_text(text)
    refused(RegistryError, f"{FILE}: cannot be read .* train the predictor again", read_trained, tmp_path)
