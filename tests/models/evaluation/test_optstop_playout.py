"""OptStop played out on whole curves: it never sees a later epoch, and ends measured runs early at little loss."""

import numpy as np
import pytest

from jobcast.domain.optstop import OptStop, Standing, Stop, stall_epochs
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.curves.finished import prefix_directions
from jobcast.traces.learning_curves import LearningCurve, read_learning_curves

EPOCH = np.arange(1, 41)
RULE = OptStop()


def made_up(rate: float, top: float = 0.9, falls: bool = False) -> LearningCurve:
    metric = top - 0.5 * np.exp(-EPOCH / rate)
    return LearningCurve("made-up", 32, EPOCH, 1 - metric if falls else metric)


def best(table, direction):
    """(n,) best value of each row; NaN where it has none."""
    ways = np.where(np.isfinite(table), direction[:, None] * table, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(ways), direction * ways, np.nan)


def played(model: AccuracyCurve, curve: LearningCurve, target: float = np.nan, wants_best: bool = True):
    """The epoch that a run is stopped after, why, and by which share its best metric so far is worse than its last."""
    epochs, prefixes = int(curve.epoch[-1]), [curve.prefix(seen) for seen in range(1, len(curve.epoch))]
    forecast = model.forecast(prefixes, [epochs] * len(prefixes))
    metric = np.full(epochs, np.nan)
    metric[curve.epoch - 1] = curve.metric
    before = forecast.seen - stall_epochs(forecast.epochs, RULE.stall_share)
    so_far, past = (np.where(np.arange(epochs) < at[:, None], metric, np.nan) for at in (forecast.seen, before))
    ahead = (each[:, 0] for each in forecast.at(forecast.epochs[:, None]))
    way = forecast.direction
    standing = Standing(best(so_far, way), best(past, way), forecast.sure, *ahead, way)
    decided = RULE.decide(standing, target, wants_best)
    first = int(np.argmax(decided != Stop.GO_ON))
    reason = Stop(int(decided[first]))
    stopped_at = int(prefixes[first].epoch[-1]) if reason != Stop.GO_ON else epochs
    sign = float(prefix_directions(curve.metric[None])[0]) or 1.0
    kept = sign * np.max(sign * curve.metric[curve.epoch <= stopped_at])
    return stopped_at, reason, sign * (curve.metric[-1] - kept) / (abs(curve.metric[-1]) or 1.0)


@pytest.mark.parametrize("falls", [False, True])
def test_a_level_curve_is_stopped_and_loses_next_to_nothing(falls):
    stopped_at, reason, lost = played(AccuracyCurve.from_numbers(), made_up(2.0, 0.7, falls))
    assert reason == Stop.LEVEL
    assert stopped_at < 0.6 * 40
    assert 0 <= lost <= 0.01


def test_later_epochs_do_not_change_what_was_decided():
    model, curve = AccuracyCurve.from_numbers(), made_up(2.0, 0.7)
    stopped_at, *_ = played(model, curve)
    other = np.where(stopped_at < EPOCH, 0.99, curve.metric)
    again, _, lost = played(model, LearningCurve("made-up", 32, EPOCH, other))
    assert again == stopped_at
    assert lost > 0.2


def test_out_of_reach_is_given_up():
    stopped_at, reason, _ = played(AccuracyCurve.from_numbers(), made_up(2.0, 0.6), target=0.95, wants_best=False)
    assert reason == Stop.HOPELESS
    assert stopped_at > stall_epochs(40)


def test_measured_curves_end_early_at_little_loss(published):
    """By models that have seen the other applications alone; two epochs are too few to stop after one."""
    curves = read_learning_curves(published / "curves" / "training_curves.csv").curves
    saved, losses, ran = [], [], []
    for app in sorted({curve.app for curve in curves}):
        model = AccuracyCurve().fit([curve for curve in curves if curve.app != app])
        for curve in (one for one in curves if one.app == app):
            stopped_at, _, lost = played(model, curve)
            saved.append(1 - stopped_at / curve.epoch[-1])
            losses.append(lost)
            ran.append((stopped_at, int(curve.epoch[-1])))
            assert app != "bert" or saved[-1] == 0.0
    assert np.mean(saved) >= 0.3
    assert 1 - sum(at for at, _ in ran) / sum(epochs for _, epochs in ran) >= 0.3
    assert np.mean(losses) <= 0.005
