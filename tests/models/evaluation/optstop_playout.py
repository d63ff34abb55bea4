"""OptStop played out on whole curves: epochs saved, metric lost. The rule never sees a later epoch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain.errors import TrainingError
from jobcast.domain.optstop import OptStop, Standing, Stop, stall_epochs
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.curves.finished import prefix_directions
from jobcast.models.curves.forecast import CurveForecast
from jobcast.traces.learning_curves import LearningCurve

Floats = NDArray[np.float64]
ALL = "all"
DEFAULT = OptStop()
Fit = Callable[[Sequence[LearningCurve]], AccuracyCurve]


@dataclass(frozen=True, slots=True)
class StoppedRun:
    """One run under the rule.

    Attributes
    ----------
    app, batch_size : of the run
    epochs : that it has when left to itself
    stopped_at : epochs that it ran
    reason : why it ended; GO_ON where it ran to its end
    lost_final, lost_best : by how much the best metric so far is worse than the last one of the whole run, and than the
        best one of it, as shares of those; negative where it is better
    """

    app: str
    batch_size: int
    epochs: int
    stopped_at: int
    reason: Stop
    lost_final: float
    lost_best: float

    @property
    def saved(self) -> float:
        """Share of the epochs that were not run."""
        return 1 - self.stopped_at / self.epochs


def stopping_epochs(
    model: AccuracyCurve,
    curves: Sequence[LearningCurve],
    rule: OptStop = DEFAULT,
    targets: Sequence[float] | None = None,
    wants_best: bool = True,
) -> tuple[StoppedRun, ...]:
    """Play the rule out on each curve.

    Parameters
    ----------
    model : trained on other curves
    curves : whole runs
    rule : that ends them
    targets : required metric of each; None where none is required
    wants_best : whether runs go for the best metric, or for the target alone
    """
    wanted = [np.nan] * len(curves) if targets is None else list(targets)
    return tuple(_stopped(model, curve, rule, target, wants_best) for curve, target in zip(curves, wanted, strict=True))


def stopping_epochs_by_app(
    curves: Sequence[LearningCurve],
    rule: OptStop = DEFAULT,
    targets: Sequence[float] | None = None,
    wants_best: bool = True,
    fit: Fit = lambda others: AccuracyCurve().fit(others),
) -> tuple[StoppedRun, ...]:
    """Play the rule out with models that have seen the other applications alone, by application.

    Raises
    ------
    TrainingError
        There are fewer than two applications.
    """
    apps = sorted({curve.app for curve in curves})
    if len(apps) < 2:
        raise TrainingError(f"OptStop: {len(apps)} application; leaving one out needs two at least, add curves")
    wanted = [np.nan] * len(curves) if targets is None else list(targets)
    runs: list[StoppedRun] = []
    for app in apps:
        model = fit([curve for curve in curves if curve.app != app])
        own = [row for row, curve in enumerate(curves) if curve.app == app]
        asked, goals = [curves[row] for row in own], [wanted[row] for row in own]
        runs.extend(stopping_epochs(model, asked, rule, goals, wants_best))
    return tuple(runs)


def stopping_figures(runs: Sequence[StoppedRun]) -> Mapping[str, Mapping[str, float]]:
    """By application and over all ("all"): means over curves, and the share of all epochs.

    Returns
    -------
    group -> runs, saved (mean share of epochs), saved_epochs (share of the group's epochs), lost_final, lost_best
    """
    groups = {app: [run for run in runs if run.app == app] for app in sorted({run.app for run in runs})}
    return {group: _figures(members) for group, members in {**groups, ALL: list(runs)}.items()}


def _figures(runs: Sequence[StoppedRun]) -> Mapping[str, float]:
    epochs = sum(run.epochs for run in runs)
    return {
        "runs": float(len(runs)),
        "saved": float(np.mean([run.saved for run in runs])),
        "saved_epochs": 1 - sum(run.stopped_at for run in runs) / epochs,
        "lost_final": float(np.mean([run.lost_final for run in runs])),
        "lost_best": float(np.mean([run.lost_best for run in runs])),
    }


def _stopped(model: AccuracyCurve, curve: LearningCurve, rule: OptStop, target: float, wants_best: bool) -> StoppedRun:
    """All prefixes are forecast in one call, each from itself alone."""
    epochs = int(curve.epoch[-1])
    prefixes = [curve.prefix(seen) for seen in range(1, len(curve.epoch))]
    stopped_at, reason = epochs, Stop.GO_ON
    if prefixes:
        forecast = model.forecast(prefixes, [epochs] * len(prefixes))
        metric = np.full((len(prefixes), epochs), np.nan)
        metric[:, curve.epoch - 1] = curve.metric
        decided = rule.decide(standing_of(metric, forecast, rule), target, wants_best)
        if decided.any():
            first = int(np.argmax(decided != Stop.GO_ON))
            stopped_at, reason = int(prefixes[first].epoch[-1]), Stop(int(decided[first]))
    return StoppedRun(curve.app, curve.batch_size, epochs, stopped_at, reason, *_lost(curve, stopped_at))


def _lost(curve: LearningCurve, stopped_at: int) -> tuple[float, float]:
    """Against the last and against the best metric; a metric of 0 counts as the difference itself."""
    way = float(prefix_directions(curve.metric[None])[0]) or 1.0
    kept, best = way * np.max(way * curve.metric[curve.epoch <= stopped_at]), way * np.max(way * curve.metric)
    lost = [float(way * (truth - kept) / (abs(truth) or 1.0)) for truth in (curve.metric[-1], best)]
    return lost[0], lost[1]


def standing_of(metric: ArrayLike, forecast: CurveForecast, rule: OptStop) -> Standing:
    """Standing of n runs from what was measured and the forecast of it.

    Parameters
    ----------
    metric : (n, L) of epoch column + 1, NaN where it was not measured; what is past `forecast.seen` is not read
    forecast : of the same n runs
    rule : tells over how many epochs runs must stall
    """
    table = np.array(metric, np.float64, ndmin=2)
    table[np.arange(table.shape[1]) >= forecast.seen[:, None]] = np.nan
    before = forecast.seen - stall_epochs(forecast.epochs, rule.stall_share)
    past = np.where(np.arange(table.shape[1]) < before[:, None], table, np.nan)
    mean, below, above = (each[:, 0] for each in forecast.at(forecast.epochs[:, None]))
    way = forecast.direction
    return Standing(_best(table, way), _best(past, way), forecast.sure, mean, below, above, way)


def _best(table: Floats, direction: Floats) -> Floats:
    """(n,) best value of each row; NaN where it has none."""
    ways = np.where(np.isfinite(table), direction[:, None] * table, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(ways), direction * ways, np.nan)
