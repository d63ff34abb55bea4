"""Made-up training curves: some to choose a model by, others that are only reported.

Defaults were chosen by the first. The second are of other shapes, lengths and schedules, and were made up before any of
their figures was seen; these were in sight while choices were made, see docs/curves.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jobcast.traces.learning_curves import LearningCurve

RUNS = 8
Floats = NDArray[np.float64]
Runs = list[LearningCurve]
Cuts = tuple[tuple[int, float], ...]
IMAGENET: Cuts = ((30, 0.15), (60, 0.05), (80, 0.005))
"""Epochs after which ImageNet's learning rate is cut, and by how much the accuracy rises then."""
RESNET: Cuts = ((30, 0.13), (60, 0.06), (90, 0.01))
"""The same of a run of 100 epochs, as He et al. (CVPR 2016) train."""
HALF: Cuts = ((80, 0.10), (120, 0.015))
"""Cuts after a half and three quarters of 160 epochs, as on CIFAR."""


def stepped(rng: np.random.Generator, epochs: int, cuts: Cuts, start: float, top: float, tau: float, app: str) -> Runs:
    """An accuracy that levels off, then jumps after each cut, whose noise falls with the learning rate."""
    epoch, runs = np.arange(1, epochs + 1), []
    first, second = cuts[0][0], cuts[1][0]
    for run in range(RUNS):
        level, slow = top + 0.02 * rng.normal(), tau * (1 + 0.2 * rng.normal())
        metric = level - (level - start) * np.exp(-(((epoch - 1) / slow) ** 0.7))
        for cut, rise in cuts:
            after = rise * (1 + 0.1 * rng.normal()) * (1 - 0.2 * np.exp(-(epoch - cut - 1) / 2.0))
            metric = metric + np.where(epoch > cut, after, 0.0)
        noise = np.where(epoch <= first, 0.012, np.where(epoch <= second, 0.004, 0.0015)) * rng.normal(size=epochs)
        runs.append(LearningCurve(app, 2**run, epoch, metric + noise, tuple(cut for cut, _ in cuts)))
    return runs


def smooth(
    rng: np.random.Generator, epochs: int, noise: float, app: str, shape: Callable[[Floats, float], Floats]
) -> Runs:
    """`shape` of the epoch and of the run's own pace, which is 1 within a fifth; and noise."""
    epoch = np.arange(1, epochs + 1)
    return [
        LearningCurve(app, 2**run, epoch, shape(epoch / 1.0, 1 + 0.2 * rng.normal()) + noise * rng.normal(size=epochs))
        for run in range(RUNS)
    ]


def undeclared(runs: Runs) -> Runs:
    """The same without their schedules."""
    return [replace(run, lr_milestones=()) for run in runs]


def chosen_by(seed: int = 1) -> Mapping[str, Runs]:
    """What choices were made by."""
    rng = np.random.default_rng(seed)
    steps = stepped(rng, 90, IMAGENET, 0.15, 0.6, 5.0, "stepped")
    return {
        "steps 30/60/80 of 90, declared": steps,
        "the same, not declared": undeclared(steps),
        "exponential, rate 6": smooth(rng, 50, 0.008, "exponential", lambda t, s: -0.8 * np.expm1(-t * 0.12 / s)),
        "exponential, rate 3.6": smooth(rng, 50, 0.008, "exponential", lambda t, s: -0.8 * np.expm1(-t * 0.072 / s)),
        "loss 7 t^-.5 + 1": smooth(rng, 60, 0.01, "power law", lambda t, s: 7.0 * t**-0.5 + 1.0),
    }


def reported(seed: int = 2) -> Mapping[str, Runs]:
    """What nothing was chosen by."""
    rng = np.random.default_rng(seed)
    third = stepped(rng, 100, RESNET, 0.1, 0.56, 6.0, "resnet")
    half = stepped(rng, 160, HALF, 0.35, 0.82, 9.0, "half")
    return {
        "steps 30/60/90 of 100, declared": third,
        "the same, not declared ": undeclared(third),
        "steps 80/120 of 160, declared": half,
        "the same, not declared  ": undeclared(half),
        "detection, .02 to .55, 50": smooth(
            rng, 50, 0.006, "detection", lambda t, s: 0.02 + 0.65 * (1 - (1 + (t - 1) / (9 * s)) ** -1.0)
        ),
        "logistic, middle at .25 of 80": smooth(
            rng, 80, 0.006, "logistic", lambda t, s: 0.05 + 0.75 / (1 + np.exp(-(t / 80 / s - 0.25) * 14))
        ),
        "Hill, half at .15 of 100": smooth(
            rng, 100, 0.005, "hill", lambda t, s: 0.1 + 0.8 * t**1.2 / ((15 * s) ** 1.2 + t**1.2)
        ),
        "Weibull, rate 5, exponent .8, 80": smooth(
            rng, 80, 0.006, "weibull", lambda t, s: 0.2 - 0.6 * np.expm1(-((t / (16 * s)) ** 0.8))
        ),
        "loss 2.5 t^-.3 + .5, 40": smooth(rng, 40, 0.01, "loss", lambda t, s: 2.5 * t ** (-0.3 * s) + 0.5),
        "loss, exponential, rate 5, 30": smooth(rng, 30, 0.02, "loss", lambda t, s: 0.7 + 2 * np.exp(-t / (6 * s))),
    }
