"""How well Optimus' models foresee the final metric of a run, and step times of configurations not measured."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from jobcast.models.curves.convergence import fit_convergence
from jobcast.models.curves.optimus import as_loss
from jobcast.models.curves.speed import fit_synchronous
from jobcast.models.goodput import fit_throughput
from jobcast.traces.goodput_tables import StepTimes
from jobcast.traces.learning_curves import LearningCurve

Floats = NDArray[np.float64]
FOLDS = 5
LEAST_SEEN = 2  # epochs that a direction can be told from
TREND_SHARE = 0.25  # of the seen epochs, the last, that a straight line goes through


def final_errors(curves: Sequence[LearningCurve], prefix: float) -> dict[str, dict[str, float]]:
    """Mean |final - predicted final| / (range of the whole curve) by rule, by application and over all ("all").

    Rules: `optimus` (fitted convergence), `last` (the last value), `line` (a straight line through the last quarter of
    what was seen). A curve is seen up to epoch max(1, round(prefix x epochs)); left out where that is one epoch.
    """
    errors: dict[str, dict[str, list[float]]] = {}
    for curve in curves:
        seen = max(1, round(prefix * len(curve.epoch)))
        if seen < LEAST_SEEN:
            continue
        known, final = curve.prefix(seen), float(curve.metric[-1])
        for name, rule in FINAL_RULES.items():
            error = abs(final - rule(known, int(curve.epoch[-1]))) / float(np.ptp(curve.metric))
            for group in (curve.app, "all"):
                errors.setdefault(group, {}).setdefault(name, []).append(error)
    return {group: {name: float(np.mean(each)) for name, each in rules.items()} for group, rules in errors.items()}


def _fitted_final(known: LearningCurve, epochs: int) -> float:
    best, rises = (1.0 if known.metric.max() <= 1 else 100.0), bool(known.metric[-1] >= known.metric[0])
    fitted = fit_convergence(known.epoch, as_loss(known.metric, best, rises))
    return float(as_loss(fitted.loss(epochs)[0], best, rises))


def _line_final(known: LearningCurve, epochs: int) -> float:
    last = max(LEAST_SEEN, round(TREND_SHARE * len(known.epoch)))
    slope, start = np.polyfit(known.epoch[-last:].astype(np.float64), known.metric[-last:], 1)
    return float(start + slope * epochs)


FINAL_RULES: Mapping[str, Callable[[LearningCurve, int], float]] = {
    "optimus": _fitted_final,
    "last": lambda known, epochs: float(known.metric[-1]),
    "line": _line_final,
}


def speed_errors(times: StepTimes, seed: int = 0, folds: int = FOLDS) -> dict[str, float]:
    """Mean |predicted - measured| / measured step time of configurations (nodes, GPUs) left out, by model.

    Models: `optimus` with every worker a server too, as all-reduce shares parameters out; `optimus_nodes` with a server
    a node; `pollux`, which knows nodes, GPUs and overlap; `mean`, the mean step time of the local
    batch size, in between by a straight line.
    """
    fold = _folds(times, seed, folds)
    predicted = {name: np.empty(len(fold)) for name in SPEED_MODELS}
    for held in range(folds):
        known, asked = _rows(times, fold != held), _rows(times, fold == held)
        for name, model in SPEED_MODELS.items():
            predicted[name][fold == held] = model(known, asked)
    return {name: float(np.mean(np.abs(step_s / times.step_s - 1))) for name, step_s in predicted.items()}


def few_shot_errors(times: StepTimes, runs: int, seed: int = 0) -> dict[str, float]:
    """As `speed_errors`, fitted on `runs` configurations drawn at random and asked about all the others."""
    configurations, which = _configurations(times)
    chosen = np.random.default_rng(seed).choice(len(configurations), runs, replace=False)
    held = ~np.isin(which, chosen)
    known, asked = _rows(times, ~held), _rows(times, held)
    return {
        name: float(np.mean(np.abs(model(known, asked) / asked.step_s - 1))) for name, model in SPEED_MODELS.items()
    }


def _optimus(known: StepTimes, asked: StepTimes, servers: str) -> Floats:
    fitted = fit_synchronous(known.gpus, getattr(known, servers), known.local_batch_size * known.gpus, 1 / known.step_s)
    told: Floats = 1 / fitted.speed(asked.gpus, getattr(asked, servers), asked.local_batch_size * asked.gpus)
    return told


def _mean(known: StepTimes, asked: StepTimes) -> Floats:
    sizes, which = np.unique(known.local_batch_size, return_inverse=True)
    means = np.bincount(which, weights=known.step_s) / np.bincount(which)
    return np.interp(asked.local_batch_size, sizes, means)


def _pollux(known: StepTimes, asked: StepTimes) -> Floats:
    return fit_throughput(known).step_s(asked.nodes, asked.gpus, asked.local_batch_size)


SPEED_MODELS: Mapping[str, Callable[[StepTimes, StepTimes], Floats]] = {
    "optimus": lambda known, asked: _optimus(known, asked, "gpus"),
    "optimus_nodes": lambda known, asked: _optimus(known, asked, "nodes"),
    "pollux": _pollux,
    "mean": _mean,
}


def _folds(times: StepTimes, seed: int, folds: int) -> NDArray[np.intp]:
    configurations, which = _configurations(times)
    order = np.random.default_rng(seed).permutation(len(configurations)) % folds
    chosen: NDArray[np.intp] = order[which]
    return chosen


def _configurations(times: StepTimes) -> tuple[Floats, NDArray[np.intp]]:
    configurations, which = np.unique(np.stack([times.nodes, times.gpus], axis=1), axis=0, return_inverse=True)
    return configurations, which.ravel()


def _rows(times: StepTimes, chosen: NDArray[np.bool_]) -> StepTimes:
    return StepTimes(*(getattr(times, name)[chosen] for name in StepTimes.__slots__))
