"""The families of learning curves as the paper has them, and curves of numbers."""

import numpy as np

from jobcast.traces.learning_curves import LearningCurve

FORMULAS = {
    "pow3": lambda lib, x, p: p[0] - lib.exp(p[1]) * x ** -lib.exp(p[2]),
    "pow4": lambda lib, x, p: p[0] - (lib.exp(p[1]) * x + lib.exp(p[2])) ** -lib.exp(p[3]),
    "loglog": lambda lib, x, p: lib.log(lib.exp(p[0]) * lib.log(x) + lib.exp(p[1])),
    "vapor": lambda lib, x, p: lib.exp(p[0] + p[1] / x + p[2] * lib.log(x)),
    "hill3": lambda lib, x, p: (
        lib.exp(p[0]) * x ** lib.exp(p[1]) / (lib.exp(p[2]) ** lib.exp(p[1]) + x ** lib.exp(p[1]))
    ),
    "mmf": lambda lib, x, p: p[0] - (p[0] - p[1]) / (1 + (lib.exp(p[2]) * x) ** lib.exp(p[3])),
    "exp4": lambda lib, x, p: p[0] - lib.exp(p[3] - lib.exp(p[1]) * x ** lib.exp(p[2])),
    "janoschek": lambda lib, x, p: p[0] - (p[0] - p[1]) * lib.exp(-lib.exp(p[2]) * x ** lib.exp(p[3])),
    "weibull": lambda lib, x, p: p[0] - (p[0] - p[1]) * lib.exp(-((lib.exp(p[2]) * x) ** lib.exp(p[3]))),
    "log_power": lambda lib, x, p: lib.exp(p[0]) / (1 + (x / lib.exp(p[1])) ** -lib.exp(p[2])),
    "ilog2": lambda lib, x, p: p[0] - lib.exp(p[1]) / lib.log(x + 1),
}
"""Domhan, Springenberg and Hutter (IJCAI 2015), table 1.

`lib` knows exp and log: NumPy, or PyMC for parameters that are drawn.
"""


def curve(app, batch_size, metric, milestones=()):
    """A curve whose epochs count from one."""
    metric = np.asarray(metric, float)
    return LearningCurve(app, batch_size, np.arange(1, metric.size + 1), metric, lr_milestones=milestones)
