"""How long a step takes: gradients, synchronisation, and how far they overlap. Pollux (OSDI 2021), section 3.2.

With b the samples a GPU takes, g the GPUs, and b_0 a batch size in the middle of those that are known:

    gradients(b, g)     = s (a + (1 - a) b / b_0) g^c
    synchronisation(g)  = s r (g / 2)^q             from 2 GPUs on
    step(b, g)          = (gradients^gamma + synchronisation^gamma)^(1 / gamma)

Beside Pollux's model c is new: GPUs of one node share its memory and its processors. Parameters are on scales on which
a normal distribution is a fair prior.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PARAMETERS = ("log_scale", "logit_fixed", "log_sync", "sync_growth", "contention", "log_gamma_less_1")
"""log s, logit a, log r, q, c, log(gamma - 1)."""
COUNT = len(PARAMETERS)
SCALE = 0
"""Position of log s."""
MOST_LOG_LESS = 5.0
"""Beyond it the longer of the two hides the other, whatever gamma is."""


def log_step_s(parameters: Floats, log_size: Floats, gpus: Floats) -> tuple[Floats, Floats]:
    """Log of seconds a step, and its derivatives.

    Parameters
    ----------
    parameters : (n, COUNT) on the scales of `PARAMETERS`
    log_size : (n,) log of b / b_0
    gpus : (n,) of one node, from 1 on

    Returns
    -------
    value : (n,)
    slope : (n, COUNT) by parameter

    >>> at = np.array([[0.0, 0.0, -1.0, 0.5, 0.0, 0.0]])
    >>> log_step_s(at, np.zeros(1), np.ones(1))[0].tolist()
    [0.0]
    """
    scale, logit, log_sync, growth, contention, log_less = np.moveaxis(parameters, -1, 0)
    fixed, size = 0.5 + 0.5 * np.tanh(0.5 * logit), np.exp(log_size)
    mixed = fixed + (1.0 - fixed) * size
    several = gpus > 1
    log_gpus, log_half = np.log(gpus), np.log(gpus / 2.0)
    gradients = scale + np.log(mixed) + contention * log_gpus
    sync = np.where(several, scale + log_sync + growth * log_half, -np.inf)
    less = np.exp(np.minimum(log_less, MOST_LOG_LESS))
    value = np.logaddexp((1.0 + less) * gradients, (1.0 + less) * sync) / (1.0 + less)
    of_gradients = np.exp((1.0 + less) * (gradients - value))
    of_sync = np.where(several, np.exp((1.0 + less) * (np.where(several, sync, 0.0) - value)), 0.0)
    shares = np.stack([of_gradients, of_sync])
    entropy = -(shares * np.log(np.maximum(shares, np.finfo(float).tiny))).sum(axis=0)
    slope = np.stack(
        [
            np.ones_like(value),
            of_gradients * fixed * (1.0 - fixed) * (1.0 - size) / mixed,
            of_sync,
            of_sync * log_half,
            of_gradients * log_gpus,
            -entropy * less / (1.0 + less) ** 2,
        ],
        axis=-1,
    )
    return value, slope
