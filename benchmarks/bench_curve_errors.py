"""How far forecasts of training curves are off: measured curves, made-up ones, and what choices of the model change.

    JOBCAST_DATA=... python benchmarks/bench_curve_errors.py [--choices]

Measured curves are forecast by models that learnt from the other applications; made-up ones by a model of all. With
--choices one constant after another is changed in a copy of the code, which is compiled anew for each: five minutes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.evaluation.curves import leave_one_app_out, score_curves
from jobcast.traces.learning_curves import LearningCurve, read_learning_curves

SEEN = (0.1, 0.2, 0.35, 0.5, 0.75)
RUNS = 8
SCHEDULE = ((30, 0.15), (60, 0.05), (80, 0.005))
"""Epochs at which ImageNet's learning rate is cut, and by how much the accuracy rises then."""
FIGURES = ("mae", "mae_last_value", "coverage_90", "width_90")
ROOMS = ("domain", "traces", "features", "models", "src")
CURVES = "models/curves"
CHOICES = (
    ("as it is", "", "", ""),
    ("usual rate 8", "shape", "USUAL_RATE = 9.5", "USUAL_RATE = 8.0"),
    ("usual rate 11", "shape", "USUAL_RATE = 9.5", "USUAL_RATE = 11.0"),
    ("its deviation .3", "rates", "RATE_SD = 0.4", "RATE_SD = 0.3"),
    ("its deviation .6", "rates", "RATE_SD = 0.4", "RATE_SD = 0.6"),
    ("power of the evidence .1", "combination", "TEMPER = 0.3", "TEMPER = 0.1"),
    ("power of the evidence 1", "combination", "TEMPER = 0.3", "TEMPER = 1.0"),
    ("Laplace's variance times 3", "combination", "FAMILY_VARIANCE = 6.0", "FAMILY_VARIANCE = 3.0"),
    ("Laplace's variance times 12", "combination", "FAMILY_VARIANCE = 6.0", "FAMILY_VARIANCE = 12.0"),
    ("annealing 0", "numbers", "ANNEALING = 4.0", "ANNEALING = 0.0"),
    ("annealing 8", "numbers", "ANNEALING = 4.0", "ANNEALING = 8.0"),
    ("misfit .01", "scaling", "MISFIT, MISFIT_AGE = 0.02", "MISFIT, MISFIT_AGE = 0.01"),
    ("misfit .04", "scaling", "MISFIT, MISFIT_AGE = 0.02", "MISFIT, MISFIT_AGE = 0.04"),
    ("undeclared cuts .2", "combination", "CUT_SD = 0.32", "CUT_SD = 0.2"),
    ("undeclared cuts .5", "combination", "CUT_SD = 0.32", "CUT_SD = 0.5"),
    ("default prior as .5 applications", "pooling", "PRIOR_APPS = 2.0", "PRIOR_APPS = 0.5"),
    ("default prior as 8 applications", "pooling", "PRIOR_APPS = 2.0", "PRIOR_APPS = 8.0"),
)


def stepped(rng: np.random.Generator) -> list[LearningCurve]:
    """ImageNet's top-1 accuracy under a schedule of three cuts."""
    epoch, runs = np.arange(1, 91), []
    for run in range(RUNS):
        top, tau = 0.6 + 0.02 * rng.normal(), 5.0 * (1 + 0.2 * rng.normal())
        metric = top - (top - 0.15) * np.exp(-(((epoch - 1) / tau) ** 0.7))
        for cut, rise in SCHEDULE:
            after = rise * (1 + 0.1 * rng.normal()) * (1 - 0.2 * np.exp(-(epoch - cut - 1) / 2.0))
            metric = metric + np.where(epoch > cut, after, 0.0)
        noise = np.where(epoch <= 30, 0.012, np.where(epoch <= 60, 0.004, 0.0015)) * rng.normal(size=len(epoch))
        runs.append(LearningCurve("stepped", 2**run, epoch, metric + noise, tuple(cut for cut, _ in SCHEDULE)))
    return runs


def exponential(rng: np.random.Generator, rate: float) -> list[LearningCurve]:
    """Detection accuracy that levels off: 50 epochs, `rate` over the run."""
    epoch = np.arange(1, 51)
    return [
        LearningCurve(
            "exponential",
            2**run,
            epoch,
            0.8 * (1 - np.exp(-epoch * rate / 50 / (1 + 0.2 * rng.normal()))) + 0.008 * rng.normal(size=50),
        )
        for run in range(RUNS)
    ]


def power_law(rng: np.random.Generator) -> list[LearningCurve]:
    """A loss that falls as t^-.5: 60 epochs."""
    epoch = np.arange(1, 61)
    return [
        LearningCurve("power law", 2**run, epoch, 7.0 * epoch**-0.5 + 1.0 + 0.01 * rng.normal(size=60))
        for run in range(RUNS)
    ]


def row(name: str, seen: float, figures: dict[str, object]) -> str:
    """One line of a table."""
    return f"{name:<34} {seen:>5.0%} " + " ".join(f"{figures[one]:>15.4f}" for one in FIGURES)


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
            shutil.copy(__file__, Path(folder, "bench.py"))
            environment = os.environ | {"PYTHONPATH": str(Path(folder, "src")), "JOBCAST_DATA": str(data)}
            words = [sys.executable, "bench.py", "--measured", name]
            subprocess.run(words, cwd=folder, env=environment, check=True)


def measured(name: str, data: Path, seen: tuple[float, ...]) -> None:
    """Print the errors on measured curves."""
    curves = read_learning_curves(data / "curves" / "training_curves.csv").curves
    for share in seen:
        print(row(name, share, leave_one_app_out(curves, share, AccuracyCurve)), flush=True)


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
    rng = np.random.default_rng(1)
    steps = stepped(rng)
    made_up = {
        "steps, declared": steps,
        "steps, not declared": [replace(one, lr_milestones=()) for one in steps],
        "exponential, rate 6": exponential(rng, 6.0),
        "exponential, rate 3.6": exponential(rng, 3.6),
        "power law": power_law(rng),
    }
    for name, runs in made_up.items():
        for share in (0.2, 0.5):
            print(row(name, share, score_curves(model, runs, share)), flush=True)


if __name__ == "__main__":
    main()
