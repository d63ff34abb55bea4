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
from pathlib import Path
from typing import Any

import made_up_curves

from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.evaluation.curves import score_curves
from jobcast.pipelines.lifecycle.learning_curves import held_out
from jobcast.traces.learning_curves import read_learning_curves

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
            for script in (Path(__file__), Path(made_up_curves.__file__)):
                shutil.copy(script, folder)
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
    for made_up in (made_up_curves.chosen_by(), made_up_curves.reported()):
        for share in (0.2, 0.5):
            for name, runs in made_up.items():
                print(row(name, share, score_curves(model, runs, share)), flush=True)


if __name__ == "__main__":
    main()
