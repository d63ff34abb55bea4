"""Intervals by drawing days, the plain way: every draw's rows are written out, and figures are made of them."""

import numpy as np

from jobcast.models.evaluation.intervals import day_weights, interval


def drawn_intervals(day, draws, seed, figures):
    """Interval of each of the figures that rows have, by name."""
    days, place = np.unique(day, return_inverse=True)
    rows = [np.repeat(np.arange(len(day)), one[place].astype(int)) for one in day_weights(len(days), draws, seed)]
    told = [figures(some) for some in rows]
    found = {name: interval([one[name] for one in told], len(days)) for name in told[0]}
    return {name: [*map(float, ends)] if ends else None for name, ends in found.items()}


def near(told, expected):
    """Whether intervals are the same but for rounding."""
    assert told.keys() == expected.keys()
    for name, ends in expected.items():
        assert (told[name] is None) == (ends is None), name
        assert ends is None or np.allclose(told[name], ends, rtol=1e-9), (name, told[name], ends)
    return True
