"""AccuracyCurve: a run's validation metric at future epochs from its first ones. Domhan et al., IJCAI 2015.

For schedulers too, whose forecasts are looked at before a policy is told them, and as MLflow serves it: one row a
running job.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jobcast.domain import tolerance
from jobcast.domain.answer_checks import failed, floats_of, shown
from jobcast.domain.arrays import Bools, Floats, Ints
from jobcast.domain.bad_answers import CURVES, BadAnswerError, BadAnswers, Reason
from jobcast.domain.errors import RegistryError, TraceError, TrainingError
from jobcast.domain.forecasts import Question
from jobcast.domain.tasks import AccuracyForecast
from jobcast.models.curves.finished import bounds, limits, prefix_directions
from jobcast.models.curves.fitting import fit_stretches
from jobcast.models.curves.forecast import CurveForecast, cuts_of, stretch_of
from jobcast.models.curves.numbers import CurveNumbers, KnownApps, known_apps
from jobcast.models.curves.points import Stretches
from jobcast.models.curves.prior import CurvePrior
from jobcast.models.metadata import JsonModel
from jobcast.models.predictor import Frame, ServedModel
from jobcast.traces.learning_curves import LearningCurve


class AccuracyCurve(JsonModel):
    """Weighted families of learning curves with priors learnt from whole curves.

    Parameters
    ----------
    prior : of the families' parameters, instead of the one learnt from curves; see `CurvePrior`

    Attributes
    ----------
    numbers_ : all that was learnt
    apps_ : applications that it has learnt from
    curves_ : how many curves these had
    trained_from_s_, trained_until_s_ : the window that it has seen, seconds from the epoch; curves have no times
    """

    name: ClassVar[str] = "accuracy-curve"
    answers: ClassVar[Question] = Question.ACCURACIES
    algorithm: ClassVar[str] = "families"
    algorithms: ClassVar[Sequence[str]] = ("combination", "bayes")

    def __init__(self, prior: CurvePrior | None = None) -> None:
        self.prior = prior

    def fit(self, curves: Sequence[LearningCurve], from_s: float = 0.0, until_s: float = 0.0) -> Self:
        """Learn from whole curves of one or more applications.

        Raises
        ------
        TrainingError
            There is no curve of two values that differ.
        TraceError
            A curve cannot be used.
        """
        from jobcast.models.curves.pooling import learn_numbers

        for curve in curves:
            require_curve(curve)
        # A curve that never moves has no scale.
        usable = [curve for curve in curves if len(curve.metric) > 1 and np.ptp(curve.metric) > 0]
        if not usable:
            raise TrainingError(f"{self.name}: no curve of two values that differ; train on longer curves")
        self.numbers_ = learn_numbers(usable, self.prior, forecast_by)
        self.apps_, self.curves_ = tuple(sorted({curve.app for curve in usable})), len(usable)
        self.trained_from_s_, self.trained_until_s_ = from_s, until_s
        return self

    @classmethod
    def from_numbers(cls, numbers: CurveNumbers | None = None) -> Self:
        """A model that was not fitted: of given numbers, or of what is assumed before any curve is seen."""
        model = cls()
        model.numbers_ = CurveNumbers.default() if numbers is None else numbers
        model.apps_, model.curves_ = tuple(sorted(model.numbers_.apps)), 0
        model.trained_from_s_ = model.trained_until_s_ = 0.0
        return model

    def forecast(self, prefixes: Sequence[LearningCurve], epochs: Sequence[int]) -> CurveForecast:
        """Where curves are going.

        Parameters
        ----------
        prefixes : what is seen of each run, at least one value
        epochs : how many epochs each whole run has, at least as many as are seen

        Raises
        ------
        TraceError
            A curve cannot be used: no values, one that is not finite, epochs that do not ascend from 1 or more.
        """
        for curve in prefixes:
            require_curve(curve)
        seen = np.array([int(curve.epoch[-1]) for curve in prefixes], np.int64)
        metric = np.full((len(prefixes), int(seen.max(initial=1))), np.nan)
        for row, curve in enumerate(prefixes):
            # Epochs that were not measured stay NaN.
            metric[row, curve.epoch - 1] = curve.metric
        apps = [curve.app for curve in prefixes]
        known = self.numbers_.apps
        direction = np.array([known[app].direction if app in known else 0.0 for app in apps])
        schedules = [curve.lr_milestones for curve in prefixes]
        return self.forecast_arrays(metric, seen, epochs, direction, schedules, apps)

    def forecast_arrays(
        self,
        metric: ArrayLike,
        seen: ArrayLike,
        epochs: ArrayLike,
        direction: ArrayLike | None = None,
        lr_milestones: Sequence[Sequence[int]] | None = None,
        apps: Sequence[str] = (),
    ) -> CurveForecast:
        """Where n curves are going, from arrays, for loops that ask for thousands at a time.

        Parameters
        ----------
        metric : (n, L) metric of epoch column + 1, NaN where it was not measured; what is past `seen` is not read
        seen : (n,) the last epoch that is seen
        epochs : (n,) epochs of each whole run
        direction : (n,) 1 where the metric rises, -1 where it falls, 0 where what is seen shall tell; None is 0
        lr_milestones : n schedules, the epochs after which the learning rate is cut; empty where none is declared
        apps : (n,) names of applications, so that what was learnt of one helps its other runs

        Raises
        ------
        TraceError
            A curve has no value, one that is infinite, or is longer than its run.
        """
        table, now, whole = _checked(metric, seen, epochs)
        n = len(now)
        schedules: Sequence[Sequence[int]] = lr_milestones if lr_milestones is not None else ((),) * n
        result = np.zeros(n) if direction is None else np.sign(np.asarray(direction, np.float64))
        # Where nobody says, what is seen tells; one value tells nothing and both ways stay open.
        result = np.where(result == 0, prefix_directions(table), result)
        sure = result != 0
        # Where unknown it is computed as rising and mirrored later, see `CurveForecast._either_way`.
        ways = np.where(sure, result, 1.0)
        bound = bounds(table, ways)
        begin, until = _stretches(table, now, whole, schedules)
        stretches = Stretches(table, begin, now, until, ways, bound)
        return self._combined(stretches, whole, sure, schedules, apps)

    def _combined(
        self,
        stretches: Stretches,
        epochs: NDArray[np.int64],
        sure: NDArray[np.bool_],
        schedules: Sequence[Sequence[int]],
        apps: Sequence[str],
    ) -> CurveForecast:
        from jobcast.models.curves.combination import family_weights
        from jobcast.models.curves.scaling import BASE, LEVEL, PER_V

        numbers = self.numbers_
        fits = fit_stretches(stretches, numbers.prior, numbers.rate)
        weights = family_weights(fits.evidence, numbers.prior.arrays()[2])
        low, high = limits(stretches.metric)
        level = fits.scale[:, BASE] + fits.scale[:, PER_V] * fits.scale[:, LEVEL]
        known: KnownApps = known_apps(apps, level, numbers.apps)
        cuts = cuts_of(
            stretches.seen.tolist(), epochs.tolist(), schedules, stretches.bound, numbers.cut_sizes, numbers.cut_sds
        )
        return CurveForecast(
            numbers, fits, weights, stretches.seen, epochs, stretches.direction, sure, low, high, cuts, known
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """See `JsonModel`."""
        return {
            "prior": None if self.prior is None else self.prior.as_dict(),
            "numbers": self.numbers_.as_dict(),
            "apps": list(self.apps_),
            "curves": self.curves_,
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Self:
        """See `JsonModel`."""
        model = cls(None if saved["prior"] is None else CurvePrior.read(saved["prior"]))
        model.numbers_ = CurveNumbers.read(saved["numbers"])
        model.apps_, model.curves_ = tuple(saved["apps"]), saved["curves"]
        return model


def require_curve(curve: LearningCurve) -> None:
    """TraceError where a curve cannot be used; names application, batch size and epoch."""
    where = f"curve of {curve.app} at batch size {curve.batch_size}"
    if len(curve.metric) == 0 or len(curve.metric) != len(curve.epoch):
        raise TraceError(f"{where}: {len(curve.metric)} values at {len(curve.epoch)} epochs; give one value an epoch")
    bad = ~np.isfinite(curve.metric)
    if bad.any():
        row = int(bad.argmax())
        raise TraceError(
            f"{where}, epoch {curve.epoch[row]}: metric {curve.metric[row]} is not a finite number; leave the epoch out"
        )
    if curve.epoch[0] < 1 or (np.diff(curve.epoch) <= 0).any():
        raise TraceError(f"{where}: epochs must ascend from 1; sort the rows and drop repeated ones")


def _checked(
    metric: ArrayLike, seen: ArrayLike, epochs: ArrayLike
) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """The arrays, what is past `seen` blanked; see `AccuracyCurve.forecast_arrays`."""
    table = np.array(metric, np.float64, ndmin=2)
    now, whole = np.asarray(seen, np.int64).ravel(), np.asarray(epochs, np.int64).ravel()
    if not len(table) == len(now) == len(whole):
        raise TraceError(f"curves: {len(table)} rows, {len(now)} seen, {len(whole)} epochs; give one of each a curve")
    # Blanked here, so that no code below can look ahead.
    table[np.arange(table.shape[1]) >= now[:, None]] = np.nan
    for wrong, what in (
        (np.isnan(table).all(axis=1), "no value up to the epoch seen; give at least one"),
        (np.isinf(table).any(axis=1), "an infinite metric; leave the epoch out"),
        (now > whole, "more epochs seen than the run has; give the length of the whole run"),
    ):
        if wrong.any():
            raise TraceError(f"curve {int(wrong.argmax())}: {what}")
    return table, now, whole


def _stretches(
    table: Floats, seen: NDArray[np.int64], epochs: NDArray[np.int64], schedules: Sequence[Sequence[int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n,) first and last of each curve's stretch; the whole run where nothing was measured in it yet."""
    begin, until = np.zeros(len(seen), np.int64), epochs.copy()
    for row, cuts in enumerate(schedules):
        if len(cuts):
            begin[row], until[row] = stretch_of(int(seen[row]), int(epochs[row]), cuts)
            # Just after a cut nothing is known of the new stretch yet.
            if np.isnan(table[row, begin[row] : seen[row]]).all():
                begin[row] = 0
    return begin, until


def forecast_by(numbers: CurveNumbers, curves: Sequence[LearningCurve], ends: Sequence[int]) -> CurveForecast:
    """Forecasts of curves so far up to their last epochs, by numbers; see `AccuracyCurve.forecast`."""
    return AccuracyCurve.from_numbers(numbers).forecast(curves, ends)


def guarded_accuracies(forecast: AccuracyForecast, tally: BadAnswers, job_ids: Sequence[str] = ()) -> AccuracyForecast:
    """The same forecasts, but none (not a number, so that the job does not stop) where they cannot be.

    Means and standard deviations must be finite, no deviation below 0; a metric of which all seen values lie in 0 to 1,
    0 to 100 or above 0 stays there, and deviates by no more than that. An answer that cannot be read forecasts nothing
    of any job asked about, no more than one that raises.

    Parameters
    ----------
    forecast : asked
    tally : where bad answers are counted, one a job and question
    job_ids : names of jobs, where they are known
    """

    def answers(jobs: Ints, seen: Floats, at: Ints, epochs: Ints) -> tuple[Floats, Floats]:
        count = len(jobs)
        tally.checked(CURVES, count)
        try:
            # Copies: a model could write into what it is shown.
            mean, spread = _columns(forecast(jobs.copy(), seen.copy(), at.copy(), epochs.copy()), count)
        except Exception as error:  # whatever a model does wrong, the run goes on without it
            failed(tally, CURVES, error, answers=count)
            return np.full(count, np.nan), np.full(count, np.nan)
        bad = np.zeros(count, dtype=np.bool_)
        for reason, rows in _faults(mean, spread, seen):
            new = np.flatnonzero(rows & ~bad)
            if len(new):
                row = int(new[0])
                name = job_ids[jobs[row]] if len(job_ids) else f"number {jobs[row]}"
                what = f"job {name} after {at[row]} epochs: {mean[row]:g}, deviating by {spread[row]:g}"
                tally.bad(CURVES, reason, what, len(new))
            # An answer counts once, for the first reason that holds.
            bad |= rows
        return np.where(bad, np.nan, mean), np.where(bad, np.nan, spread)

    return answers


def _columns(answer: object, count: int) -> tuple[Floats, Floats]:
    """Means and standard deviations, (count,) each. Raises BadAnswerError."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise BadAnswerError(Reason.WRONG_SHAPE, f"{shown(answer)} in place of means and deviations")
    return floats_of(answer[0], (count,)), floats_of(answer[1], (count,))


def _faults(mean: Floats, spread: Floats, seen: Floats) -> tuple[tuple[Reason, Bools], ...]:
    """Reasons and the rows, (n,), that they hold for; a row may have several."""
    least, most = limits(seen)
    return (
        (Reason.NOT_FINITE, ~(np.isfinite(mean) & np.isfinite(spread))),
        (Reason.NOT_MONOTONE, spread < 0.0),  # an interval whose ends are not on both sides of its mean
        (
            Reason.OUT_OF_RANGE,
            (mean < least - tolerance.METRICS) | (mean > most + tolerance.METRICS) | (spread > most - least),
        ),
    )


MEDIAN = 0.5


class ServedAccuracyCurve(ServedModel):
    """Columns: `app`, `batch_size`; `metric`, JSON, validation metric of the epochs seen so far; `epoch`, JSON, their
    numbers (empty: 1, 2, ...); `epochs` of the whole run; `lr_milestones`, JSON, epochs after which the learning rate
    is cut (empty: none); `target`, a metric to reach (not a number: none).

    Answers the final metric, an interval that holds it with 90 %, the probability that the target is reached by the
    end, and the median of the epoch when (not a number: never, or no target).
    """

    inputs: Mapping[str, str] = {
        "app": "string",
        "batch_size": "long",
        "epoch": "string",
        "metric": "string",
        "epochs": "long",
        "lr_milestones": "string",
        "target": "double",
    }
    outputs: Mapping[str, str] = dict.fromkeys(("final", "low", "high", "reach_probability", "reach_epoch"), "double")

    # A run of 100 epochs that has seen four.
    shown: Mapping[str, Sequence[Any]] = {
        "app": ["cifar10"],
        "batch_size": [128],
        "epoch": ["[1, 2, 3, 4]"],
        "metric": ["[0.45, 0.6, 0.66, 0.75]"],
        "epochs": [100],
        "lr_milestones": ["[]"],
        "target": [0.9],
    }
    predictor: AccuracyCurve

    def answer(self, frame: Frame, params: Mapping[str, Any]) -> Iterable[Any]:
        """Answers, one row for each job asked, in that order."""
        if not len(frame):
            return np.empty((len(self.outputs), 0))
        rows: list[Any] = list(frame[list(self.inputs)].itertuples(index=False))
        curves, epochs = [_curve(row) for row in rows], [int(row.epochs) for row in rows]
        forecast = self.predictor.forecast(curves, epochs)
        chance, when = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        targets = frame["target"].to_numpy(np.float64)
        for target in np.unique(targets[np.isfinite(targets)]):
            asked = targets == target
            chance[asked] = np.asarray(forecast.reach_probability(float(target)))[asked]
            when[asked] = np.asarray(forecast.reach_epoch(float(target), MEDIAN))[asked]
        when[~np.isfinite(when)] = np.nan
        return forecast.final_mean, forecast.final_low, forecast.final_high, chance, when


def _curve(row: Any) -> LearningCurve:
    """What a row tells of a job. Raises RegistryError where that cannot be read."""
    try:
        metric = np.array(json.loads(row.metric), dtype=np.float64)
        # No numbers: 1, 2, ...
        epoch = np.array(json.loads(row.epoch or "[]") or range(1, metric.size + 1), dtype=np.int64)
        milestones = tuple(sorted({int(one) for one in json.loads(row.lr_milestones or "[]")}))
    except (ValueError, TypeError) as error:
        raise RegistryError(f"accuracy-curve: a row cannot be read ({error}); see the example") from error
    steps = np.diff(epoch, prepend=0)
    # json reads NaN and nested lists without complaint.
    if metric.ndim != 1 or not metric.size or not np.isfinite(metric).all():
        raise RegistryError("accuracy-curve: metric must be a list of finite numbers, one at least")
    if epoch.shape != metric.shape or (steps < 1).any() or int(row.epochs) < epoch[-1]:
        raise RegistryError("accuracy-curve: epoch must ascend from 1 or later to at most epochs, one for each metric")
    return LearningCurve(str(row.app), int(row.batch_size), epoch, metric, milestones)
