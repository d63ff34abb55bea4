"""How far forecasts of training curves are off: measured curves, made-up ones, and what choices of the model change.

    JOBCAST_DATA=... python benchmarks/bench_curve_errors.py [--choices]

Measured curves are forecast by models that learnt from the other applications; made-up ones by a model of all. With
--choices one constant after another is changed in a copy of the code, which is compiled anew for each: five minutes.

Of the made-up curves, defaults were chosen by the first. The second are of other shapes, lengths and schedules, and
were made up before any of their figures was seen; these were in sight while choices were made, see docs/curves.md.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.evaluation.curves import score_curves
from jobcast.pipelines.lifecycle.learning_curves import held_out
from jobcast.traces.learning_curves import LearningCurve, read_learning_curves

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


SEEN = (0.1, 0.2, 0.35, 0.5, 0.75)
FIGURES = ("mae", "mae_last_value", "best_family", "coverage_90", "width_90")
ROOMS = ("domain", "traces", "features", "models", "simulator", "schedulers", "live", "pipelines", "src")
CURVES = "models/curves"
CHOICES = (
    ("as it is", "", "", ""),
    ("usual rate 8", "finished", "USUAL_RATE = 9.5", "USUAL_RATE = 8.0"),
    ("usual rate 11", "finished", "USUAL_RATE = 9.5", "USUAL_RATE = 11.0"),
    ("its scale .15", "rates", "FREEDOM = 0.25", "FREEDOM = 0.15"),
    ("its scale .4", "rates", "FREEDOM = 0.25", "FREEDOM = 0.4"),
    ("its degrees of freedom 1", "rates", "0.25, 2.0", "0.25, 1.0"),
    ("its degrees of freedom 30", "rates", "0.25, 2.0", "0.25, 30.0"),
    ("slow prefixes count as others", "rates", "if 2 * likeliest < RATES - 1:", "if likeliest < 0:"),
    ("power of the evidence .1", "combination", "TEMPER = 0.3", "TEMPER = 0.1"),
    ("power of the evidence 1", "combination", "TEMPER = 0.3", "TEMPER = 1.0"),
    ("Laplace's variance times 3", "combination", "FAMILY_VARIANCE = 6.0", "FAMILY_VARIANCE = 3.0"),
    ("Laplace's variance times 12", "combination", "FAMILY_VARIANCE = 6.0", "FAMILY_VARIANCE = 12.0"),
    ("annealing 0", "numbers", "ANNEALING = 4.0", "ANNEALING = 0.0"),
    ("annealing 8", "numbers", "ANNEALING = 4.0", "ANNEALING = 8.0"),
    ("misfit .01", "scaling", "MISFIT, MISFIT_AGE = 0.02", "MISFIT, MISFIT_AGE = 0.01"),
    ("misfit .04", "scaling", "MISFIT, MISFIT_AGE = 0.02", "MISFIT, MISFIT_AGE = 0.04"),
    ("undeclared cuts 0", "forecast", "UNTOLD = 0.2", "UNTOLD = 0.0"),
    ("undeclared cuts .3", "forecast", "UNTOLD = 0.2", "UNTOLD = 0.3"),
    ("the first until .6 of a run", "forecast", "(0.3, 0.75)", "(0.3, 0.6)"),
    ("the first until .9 of a run", "forecast", "(0.3, 0.75)", "(0.3, 0.9)"),
    ("default deviations 1.2 as wide", "pooling", "usual = ndtri(", "usual = 1.2 * ndtri("),
    ("narrowest intervals .8 of computed", "pooling", "0.5, 4.0", "0.8, 4.0"),
    ("default prior as .5 applications", "pooling", "PRIOR_APPS = 2.0", "PRIOR_APPS = 0.5"),
    ("default prior as 8 applications", "pooling", "PRIOR_APPS = 2.0", "PRIOR_APPS = 8.0"),
)


def row(name: str, seen: float, figures: dict[str, Any]) -> str:
    """One line of a table."""
    result = figures | {"best_family": min(figures["families"].values())}
    return f"{name:<34} {seen:>5.0%} " + " ".join(f"{result[one]:>15.4f}" for one in FIGURES)


def choices(data: Path) -> None:
    """Print the errors of leave-one-application-out with one constant changed at a time."""
    top = Path(__file__).resolve().parents[1]
    for name, file, old, new in CHOICES:
        with tempfile.TemporaryDirectory(prefix="jobcast-choices-") as folder:
            for room in ROOMS:
                shutil.copytree(top / room, Path(folder, room), symlinks=True, ignore=shutil.ignore_patterns("__py*"))
            if file:
                path = Path(folder, CURVES, f"{file}.py")
                text = path.read_text()
                if old not in text:
                    raise SystemExit(f"{path.name}: does not say {old}; bring the list of choices up to date")
                path.write_text(text.replace(old, new))
            shutil.copy(__file__, folder)
            environment = os.environ | {"PYTHONPATH": str(Path(folder, "src")), "JOBCAST_DATA": str(data)}
            words = [sys.executable, Path(__file__).name, "--measured", name]
            subprocess.run(words, cwd=folder, env=environment, check=True)


def measured(name: str, data: Path, seen: tuple[float, ...]) -> None:
    """Print the errors on measured curves."""
    curves = read_learning_curves(data / "curves" / "training_curves.csv").curves
    twins = held_out(curves, lambda some, step: AccuracyCurve().fit(some), prefixes=seen)
    for share, figures in twins.figures.items():
        print(row(name, float(share), figures), flush=True)


def main() -> None:
    """Print the tables."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--choices", action="store_true")
    asked.add_argument("--measured", metavar="NAME", help=argparse.SUPPRESS)
    given = asked.parse_args()
    data = Path(os.environ["JOBCAST_DATA"])
    if given.measured:
        measured(given.measured, data, (0.2, 0.5))
        return
    print(f"{'curves':<34} {'seen':>5} " + " ".join(f"{one:>15}" for one in FIGURES))
    if given.choices:
        choices(data)
        return
    measured("measured, the others learnt from", data, SEEN)
    model = AccuracyCurve().fit(read_learning_curves(data / "curves" / "training_curves.csv").curves)
    for made_up in (chosen_by(), reported()):
        for share in (0.2, 0.5):
            for name, runs in made_up.items():
                print(row(name, share, score_curves(model, runs, share)), flush=True)


if __name__ == "__main__":
    main()
