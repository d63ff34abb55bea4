"""Usual progress: the share of a run's whole rise that is reached by a share of its epochs.

Runs are planned for their length: learning rates are annealed towards the declared last epoch, and people stop where
little is to come. So the share of the epochs tells more about what is left than their number does.
"""

import numpy as np

from jobcast.domain.arrays import Floats

KNOTS = 201
"""Of a progress, at equal shares of the epochs from 0 to 1."""
USUAL_RATE = 9.5
"""Rate of an exponential rise over a run: .85 of it are reached at a fifth of the run, .99 at half."""
LEVEL_SHARE = 0.05
"""Share of the epochs at the end whose mean is taken as where a run ended."""


def usual_progress(rate: float = USUAL_RATE) -> Floats:
    """(KNOTS,) share of the rise by shares of the epochs from 0 to 1: 0 at 0, 1 at 1.

    >>> np.round(usual_progress()[[0, 40, 100, 200]], 2).tolist()
    [0.0, 0.85, 0.99, 1.0]
    """
    risen: Floats = np.expm1(-rate * np.linspace(0.0, 1.0, KNOTS)) / np.expm1(-rate)
    return risen


def end_level(metric: Floats) -> float:
    """Mean of the last values of a whole curve."""
    return float(np.mean(metric[-max(1, round(LEVEL_SHARE * metric.size)) :]))
