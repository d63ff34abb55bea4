"""Standings read from curves and forecasts."""

import numpy as np

from jobcast.domain.optstop import OptStop
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.curves.optstop import standing_of
from jobcast.traces.learning_curves import LearningCurve

RULE = OptStop(stall_share=0.1)


def test_standing_reads_nothing_past_what_is_seen():
    epoch = np.arange(1, 21)
    curve = LearningCurve("made-up", 32, epoch, 0.9 - 0.5 * np.exp(-epoch / 4.0))
    forecast = AccuracyCurve.from_numbers().forecast([curve.prefix(5), curve.prefix(12)], [20, 20])
    whole = np.tile(curve.metric, (2, 1))
    blanked = np.where(np.arange(20) < np.array([[5], [12]]), whole, np.nan)
    told, known = standing_of(whole, forecast, RULE), standing_of(blanked, forecast, RULE)
    assert told.achieved.tolist() == known.achieved.tolist() == [curve.metric[4], curve.metric[11]]
    # a tenth of 20 epochs before
    assert told.earlier.tolist() == known.earlier.tolist() == [curve.metric[2], curve.metric[9]]
    assert told.sure.tolist() == [True, True]
