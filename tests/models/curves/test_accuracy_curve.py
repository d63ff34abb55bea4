from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import RegistryError, TraceError, TrainingError
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.curves.numbers import CurveNumbers
from jobcast.models.curves.prior import FAMILIES, CurvePrior
from jobcast.pipelines.lifecycle.learning_curves import held_out
from jobcast.traces.learning_curves import LearningCurve, read_learning_curves
from tests.models.curves.formulas import curve as curve_of
from tests.shared import kept, refused

MODEL = AccuracyCurve.from_numbers()
SHAPES = {
    "exponential": lambda p: -np.expm1(-6 * p),
    "power": lambda p: 1 - (1 + 100 * p) ** -0.6,
    "sigmoid": lambda p: 1 / (1 + np.exp(-(p - 0.3) * 15)),
    "logarithm": lambda p: np.log1p(99 * p) / np.log(100),
    "flat": lambda p: 0 * p + 0.5,
    "line": lambda p: p,
    "step": lambda p: 0.4 * (p > 0.05) + 0.3 * (p > 0.5),
}


def curve(values, app="new", batch_size=32, milestones=()):
    return curve_of(app, batch_size, values, milestones)


def rising(epochs=60, rate=8.0, start=0.2, end=0.8, noise=0.0, seed=0):
    p = np.linspace(0, 1, epochs)
    risen = start + (end - start) * np.expm1(-rate * p) / np.expm1(-rate)
    return risen + noise * np.random.default_rng(seed).normal(size=epochs)


def three_apps():
    runs = []
    for app, epochs, rate in (("a", 60, 8.0), ("b", 40, 11.0), ("c", 80, 6.0)):
        for size in (32, 64, 128):
            values = rising(epochs, rate, noise=0.004, seed=size + epochs)
            runs.append(curve(1 - values if app == "b" else values, app, size))
    return runs


@given(
    shape=st.sampled_from(sorted(SHAPES)),
    epochs=st.integers(2, 150),
    share=st.floats(0.01, 1.0),
    noise=st.sampled_from([0.0, 0.005, 0.05]),
    falls=st.booleans(),
    seed=st.integers(0, 99),
)
def test_forecasts_are_finite_and_within_bounds(shape, epochs, share, noise, falls, seed):
    values = 0.1 + 0.8 * SHAPES[shape](np.linspace(0, 1, epochs))
    values = values + noise * np.random.default_rng(seed).normal(size=epochs)
    metric = np.clip(1 - values if falls else values, 0, 1)
    seen = max(1, int(share * epochs))
    forecast = MODEL.forecast([curve(metric[:seen])], [epochs])
    found = (forecast.final_mean, forecast.final_low, forecast.final_high, forecast.reach_probability(0.5))
    assert np.isfinite(found).all()
    assert 0 <= forecast.final_low[0] <= forecast.final_mean[0] <= forecast.final_high[0] <= 1


@pytest.mark.parametrize("scale", [3.0, 1e-3, 1e4])
def test_a_shift_and_a_scale_of_an_unbounded_metric_shift_and_scale_the_forecast(scale):
    seen = -rising(60, noise=0.01)[:15] - 1
    plain, moved = MODEL.forecast([curve(seen)], [60]), MODEL.forecast([curve(scale * seen)], [60])
    assert moved.final_mean == pytest.approx(scale * plain.final_mean, rel=1e-9)
    assert moved.final_high - moved.final_low == pytest.approx(scale * (plain.final_high - plain.final_low), rel=1e-9)


def test_an_error_is_forecast_as_the_accuracy_turned_round():
    values = rising(60, noise=0.01)[:20]
    up, down = MODEL.forecast([curve(values)], [60]), MODEL.forecast([curve(1 - values)], [60])
    assert down.final_mean == pytest.approx(1 - up.final_mean)
    assert down.final_low == pytest.approx(1 - up.final_high)


@pytest.mark.parametrize("rate", [3.0, 4.0, 8.0, 12.0])
def test_half_of_an_exponential_run_tells_its_end(rate):
    values = rising(100, rate, noise=0.002)
    forecast = MODEL.forecast([curve(values[:50])], [100])
    assert forecast.final_mean[0] == pytest.approx(values[-1], abs=0.04)
    assert forecast.final_low[0] < values[-1] < forecast.final_high[0]


def test_more_seen_makes_intervals_narrower():
    values = rising(100, noise=0.004)
    width = []
    for seen in (1, 5, 20, 50, 90):
        forecast = MODEL.forecast([curve(values[:seen])], [100])
        width.append(forecast.final_high[0] - forecast.final_low[0])
    assert width == sorted(width, reverse=True)


def test_one_outlier_changes_little():
    values = rising(100, noise=0.003)[:40]
    hit = values.copy()
    hit[20] = 0.05
    plain, spoilt = MODEL.forecast([curve(values)], [100]), MODEL.forecast([curve(hit)], [100])
    assert spoilt.final_mean[0] == pytest.approx(plain.final_mean[0], abs=0.02)


def test_constants_stay_and_may_still_rise():
    forecast = MODEL.forecast([curve(np.full(20, 0.3))], [100])
    assert forecast.final_mean[0] == pytest.approx(0.3, abs=0.05)
    assert forecast.final_high[0] > 0.32


def test_noise_around_a_level_is_not_taken_for_a_rise():
    values = 0.3 + 0.01 * np.random.default_rng(3).normal(size=50)
    forecast = MODEL.forecast([curve(values)], [100])
    assert forecast.final_mean[0] == pytest.approx(0.3, abs=0.03)


def test_with_one_value_of_an_unknown_application_both_ways_are_open():
    forecast = MODEL.forecast([curve([0.5])], [30])
    assert forecast.final_low[0] < 0.4
    assert forecast.final_high[0] > 0.6


def test_an_application_that_was_trained_before_tells_direction_and_end():
    model = AccuracyCurve().fit(three_apps())
    values = 1 - rising(40, 11.0, noise=0.004, seed=5)
    forecast = model.forecast([curve(values[:1], "b", 256)], [40])
    assert forecast.final_mean[0] == pytest.approx(values[-1], abs=0.05)
    assert forecast.final_low[0] < values[-1] < forecast.final_high[0]
    unknown = model.forecast([curve(values[:1], "z", 256)], [40])
    assert unknown.final_high[0] - unknown.final_low[0] > 2 * (forecast.final_high[0] - forecast.final_low[0])


def imagenet_like(milestones):
    """Top-1 of 90 epochs that is level at .6 by epoch 30, then rises by .15, .05 and .005 (as ResNet-50's does)."""
    epoch = np.arange(1, 91)
    values = 0.6 - 0.45 * np.exp(-(epoch - 1) / 5.0)
    for cut, jump in ((30, 0.15), (60, 0.05), (80, 0.005)):
        values = values + jump * (epoch > cut)
    return curve(values + 0.004 * np.random.default_rng(0).normal(size=90), milestones=milestones)


def test_a_declared_schedule_moves_the_forecast_by_its_jumps():
    whole = imagenet_like((30, 60, 80))
    told = MODEL.forecast([whole.prefix(20)], [90])
    untold = MODEL.forecast([replace(whole, lr_milestones=()).prefix(20)], [90])
    assert abs(told.final_mean[0] - whole.metric[-1]) < 0.05
    assert told.final_low[0] < whole.metric[-1] < told.final_high[0]
    assert untold.final_mean[0] < told.final_mean[0]
    mean, _, _ = told.at(np.array([[30, 31]]))
    assert mean[0, 1] - mean[0, 0] > 0.08


def test_without_a_schedule_the_interval_is_wider_above():
    untold = MODEL.forecast([imagenet_like(()).prefix(20)], [90])
    _, below, above = untold.at(np.array([[90]]))
    assert above[0, 0] > 1.3 * below[0, 0]


def test_jumps_that_nobody_declared_are_held_by_the_interval():
    whole = imagenet_like(())
    forecast = MODEL.forecast([whole.prefix(18)], [90])
    low, high = forecast.interval(0.9, whole.epoch[None, 18:])
    held = (low[0] <= whole.metric[18:]) & (whole.metric[18:] <= high[0])
    assert held[:12].mean() > 0.9  # before the first
    assert held[30:].all()  # later than a half of the run
    assert forecast.final_mean[0] < whole.metric[-1] - 0.1


def test_a_finished_run_repeats_its_last_value():
    values = rising(30, noise=0.02)
    runs = [curve(values), curve(values[:1], "z"), curve(values[:20])]
    forecast = MODEL.forecast(runs, [30, 1, 30])
    for row in (0, 1):
        last = runs[row].metric[-1]
        assert forecast.final_low[row] == forecast.final_mean[row] == forecast.final_high[row] == last
        assert forecast.reach_probability(last)[row] == 1
        assert forecast.reach_probability(last + 1e-9)[row] == 0
    assert forecast.final_low[2] < forecast.final_mean[2] < forecast.final_high[2]


def test_a_run_of_a_known_application_that_has_finished_repeats_its_last_value():
    model, values = AccuracyCurve().fit(three_apps()), 1 - rising(40, 11.0, noise=0.004, seed=5)
    forecast = model.forecast([curve(values, "b", 256)], [40])
    assert forecast.final_low[0] == forecast.final_high[0] == values[-1]
    assert forecast.reach_probability(values[-1]).tolist() == [1]
    assert forecast.reach_epoch(values[-1], 0.9).tolist() == [40]


def test_jumps_are_learnt_from_other_jobs():
    steep = replace(imagenet_like((30,)), app="steep")
    sizes = AccuracyCurve().fit([steep, *three_apps()]).numbers_.cut_sizes
    default = CurveNumbers.default().cut_sizes
    assert sizes[0] > default[0]
    assert sizes[1:] == default[1:]


def test_reach_grows_with_time_and_falls_with_the_target():
    forecast = MODEL.forecast([curve(rising(100, noise=0.002)[:20])], [100])
    likely = [forecast.reach_probability(target)[0] for target in (0.6, 0.78, 0.95)]
    assert likely[0] > likely[1] > likely[2]
    first, later = forecast.reach_epoch(0.7, 0.3)[0], forecast.reach_epoch(0.76, 0.3)[0]
    assert 20 < first <= later
    assert forecast.reach_epoch(0.999, 0.9)[0] == np.inf


def test_rows_do_not_depend_on_their_neighbours():
    prefixes = [curve(rising(60, rate, noise=0.01, seed=int(rate))[:seen]) for rate, seen in ((4, 1), (8, 12), (6, 50))]
    together = MODEL.forecast(prefixes, [60, 70, 80]).final_mean
    pairs = zip(prefixes, (60, 70, 80), strict=True)
    alone = [MODEL.forecast([prefix], [epochs]).final_mean[0] for prefix, epochs in pairs]
    assert together.tolist() == alone


def test_arrays_give_what_curves_give_and_do_not_look_ahead():
    values = rising(60, noise=0.01)
    by_curve = MODEL.forecast([curve(values[:12])], [60])
    by_array = MODEL.forecast_arrays(values[None], [12], [60], [1.0])
    assert by_array.final_mean.tolist() == by_curve.final_mean.tolist()


def test_epochs_without_a_value_are_left_out():
    values, kept = rising(60), np.arange(1, 31, 3)
    sparse = LearningCurve("new", 1, kept, values[kept - 1])
    assert MODEL.forecast([sparse], [60]).final_mean[0] == pytest.approx(values[-1], abs=0.05)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (curve([0.1, np.nan]), "epoch 2: metric nan"),
        (curve([]), "0 values"),
        (LearningCurve("new", 1, np.array([2, 1]), np.array([0.1, 0.2])), "ascend"),
    ],
)
def test_curves_that_cannot_be_used_are_refused(wrong, told):
    refused(TraceError, told, MODEL.forecast, [wrong], [10])


def test_a_run_shorter_than_what_is_seen_is_refused():
    refused(TraceError, "more epochs seen", MODEL.forecast, [curve([0.1, 0.2, 0.3])], [2])


def test_nothing_to_learn_from_is_refused():
    refused(TrainingError, "differ", lambda: AccuracyCurve().fit([curve([0.5, 0.5])]))


def test_a_prior_that_misses_a_number_is_refused():
    prior = CurvePrior.default()
    refused(RegistryError, "prior of pow3", replace, prior, mean={**prior.mean, "pow3": (1.0,)})


def test_a_given_prior_is_kept_and_used():
    prior = CurvePrior.default()
    weight = {name: float(name == "pow3") for name in FAMILIES}
    model = AccuracyCurve(prior=replace(prior, weight=weight)).fit(three_apps())
    forecast = model.forecast([curve(rising()[:20], "z")], [60])
    assert forecast.weights[0].tolist() == [1.0] + [0.0] * 10


def test_the_order_of_the_curves_changes_no_bit(tmp_path):
    one, two = (AccuracyCurve().fit(curves) for curves in (three_apps(), three_apps()[::-1]))
    assert kept(one, tmp_path / "one") == kept(two, tmp_path / "two")


@pytest.fixture(scope="module")
def real(published):
    return read_learning_curves(published / "curves" / "training_curves.csv").curves


@pytest.mark.parametrize(("prefix", "most", "share"), [(0.2, 0.091, 0.55), (0.5, 0.0211, 0.6)])
def test_applications_left_out_are_forecast(real, prefix, most, share):
    """Figures of docs/curves.md, with little to spare at half of the run."""
    found = held_out(real, lambda some, step: AccuracyCurve().fit(some)).figures[f"{prefix:g}"]
    assert found["curves"] == 20
    assert found["mae"] < most
    assert found["mae"] < share * found["mae_last_value"]
    assert found["mae"] < min(found["families"].values())
    assert 0.85 < found["coverage_90"] < 0.95


def test_one_of_two_epochs_is_enough(real):
    bert = [run for run in real if run.app == "bert"]
    model = AccuracyCurve().fit([run for run in real if run.app != "bert"])
    forecast = model.forecast([run.prefix(1) for run in bert], [2] * len(bert))
    final = np.array([run.metric[-1] for run in bert])
    assert ((forecast.final_low < final) & (final < forecast.final_high)).all()
