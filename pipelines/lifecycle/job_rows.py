"""Forecasts of single jobs beside what became of them: batch sizes to come, training curves, epoch times, replays.

Tables without a calendar have a row a curve or application, one a day from 1970 on, so that drawing days draws those.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Bools, Floats
from jobcast.features.queue_state import LEAST_S
from jobcast.features.wait_rows import WaitRows
from jobcast.models import scores
from jobcast.models.completion.completion_time import CompletionTime
from jobcast.models.completion.job_size import JobSize
from jobcast.models.curves.accuracy_curve import AccuracyCurve
from jobcast.models.epoch_time.epoch_time import EpochTime
from jobcast.models.epoch_time.jobs import jobs_of
from jobcast.models.evaluation.curves import curve_errors, is_scored
from jobcast.models.evaluation.epoch_times import BASELINES, Scored, planned
from jobcast.models.evaluation.intervals import DayDraws
from jobcast.models.evaluation.regimes import crps, score_regimes
from jobcast.models.evaluation.sizes import LogErrors, LogForecasts, run_time_forecasts, size_forecasts
from jobcast.models.fitted_goodput import FittedGoodput, StepErrors
from jobcast.models.forecast_combination import pinball_losses
from jobcast.models.queue_wait import BOUND, MEDIAN, QueueWait
from jobcast.models.regimes import RegimePrior, Restatement
from jobcast.models.regimes.trajectories import progress_at, training_of
from jobcast.models.scores import Figure
from jobcast.pipelines.experiments.backtest import CellResult
from jobcast.pipelines.lifecycle.forecast_rows import ALL_JOBS, Blocks, Parts, Rows, Sample
from jobcast.pipelines.lifecycle.learning_curves import PREFIXES
from jobcast.pipelines.lifecycle.recipes.regimes import training_jobs
from jobcast.traces.goodput_tables import StepTable
from jobcast.traces.learning_curves import CurveTable, LearningCurve, curves_of_jobs
from jobcast.traces.profiles import ProfileTable, profile_table
from jobcast.traces.table import Trace

SEEN_PCT = (0, 20, 40, 60, 80)
"""Progress of a training job, % of its epochs, at which its batch sizes to come are forecast."""
DAY_S = 86400.0
T = TypeVar("T")
Calendar = tuple[Floats, Floats, NDArray[Any]]
"""(n,) times of forecasts, when their truth was known, and pools."""


@dataclass(frozen=True, slots=True, eq=False)
class ErrorRows(Rows):
    """Forecasts that are missed by some error, called `KIND` among the figures, and `RULE` by a rule without a model.

    Attributes
    ----------
    error, rule_error : by the version, and by the rule
    covered : whether the 90 % interval held the truth, or the share of them that did
    """

    KIND: ClassVar[str]
    RULE: ClassVar[str]
    error: Floats
    rule_error: Floats
    covered: Floats

    def figures(self) -> dict[str, Figure]:
        """Means over jobs; `skill`: the share by which the error is less than the rule's."""
        mine, rule = scores.mean(self.error), scores.mean(self.rule_error)
        return {
            "n": len(self),
            self.KIND: mine,
            self.RULE: rule,
            "skill": skill(mine, rule),
            "coverage_90": scores.mean(self.covered),
        }

    def parts(self) -> Parts:
        """The error, `skill` and `coverage_90`."""
        ones = np.ones(len(self))
        saved = self.rule_error - self.error, self.rule_error
        return {self.KIND: (self.error, ones), "skill": saved, "coverage_90": (self.covered, ones)}


@dataclass(frozen=True, slots=True, eq=False)
class RegimeRows(ErrorRows):
    """A job at a point of its progress; errors are scores of the time left (CRPS), as shares of the job's run time.

    The rule is Shockwave's restatement rule.

    Attributes
    ----------
    regime_error, time_error : see `models.evaluation.regimes`, %
    """

    KIND: ClassVar[str] = "crps"
    RULE: ClassVar[str] = "restatement_crps"
    MAIN: ClassVar[str] = KIND
    regime_error: Floats
    time_error: Floats

    def figures(self) -> dict[str, Figure]:
        """As `ErrorRows`, and the means of both errors."""
        means = {name: scores.mean(getattr(self, name)) for name in ("regime_error", "time_error")}
        return {**ErrorRows.figures(self), **means}

    def parts(self) -> Parts:
        """As `ErrorRows`, and `regime_error`."""
        return {**ErrorRows.parts(self), "regime_error": (self.regime_error, np.ones(len(self)))}


@dataclass(frozen=True, slots=True, eq=False)
class CurveRows(ErrorRows):
    """A curve of which a share of the epochs is seen; errors are of its last value, as shares of the curve's range.

    The rule takes the last value seen.

    Attributes
    ----------
    covered, later : how many of the epochs to come the 90 % interval held, and how many there are
    """

    KIND: ClassVar[str] = "mae"
    RULE: ClassVar[str] = "mae_last_value"
    MAIN: ClassVar[str] = KIND
    later: Floats

    def figures(self) -> dict[str, Figure]:
        """As `evaluate accuracy-curve` tells them."""
        # Of all epochs together: long curves count for more than short ones.
        later = float(self.later.sum())
        return {**ErrorRows.figures(self), "coverage_90": float(self.covered.sum()) / later if later else None}

    def parts(self) -> Parts:
        """As `ErrorRows`, but `coverage_90` of all epochs together."""
        return {**ErrorRows.parts(self), "coverage_90": (self.covered, self.later)}


class ShareRows(ErrorRows):
    """By its application's configurations; errors are mean absolute shares, the rule is the better of several."""

    KIND: ClassVar[str] = "mape"
    RULE: ClassVar[str] = "rule_mape"
    MAIN: ClassVar[str] = KIND


@dataclass(frozen=True, slots=True, eq=False)
class LogRows(ErrorRows):
    """Jobs by how long something of them lasts; errors are distances of logarithms to base 10.

    The rule is the median of all before. Where it lasts on, the truth is known infinitely late.

    Attributes
    ----------
    begun_s : from when on it lasts, infinite where it has not begun; seconds from the epoch
    told_s, rule_s, bound_s : the median and the rule's point, and the upper end of the 90 % interval, seconds
    """

    KIND: ClassVar[str] = "mae_log10"
    RULE: ClassVar[str] = "rule_mae_log10"
    MAIN: ClassVar[str] = KIND
    begun_s: Floats
    told_s: Floats
    rule_s: Floats
    bound_s: Floats

    def as_of(self, known_s: float) -> Self:
        """What lasts on beyond the upper end has broken it; all that lasts on is off by as much as it has at least.

        Without them a queue in which nothing starts any longer, or jobs that never end, would have no errors at all.
        """
        open_now, passed_s = self.known_s > known_s, self.begun_s + self.bound_s
        late = open_now & (passed_s < known_s)
        so_far_s = np.maximum(known_s - self.begun_s, LEAST_S)
        mine, rule = (np.maximum(np.log10(so_far_s / one), 0.0) for one in (self.told_s, self.rule_s))
        return replace(
            self,
            known_s=np.where(late, passed_s, self.known_s),
            error=np.where(open_now, mine, self.error),
            rule_error=np.where(open_now, rule, self.rule_error),
            covered=np.where(open_now, ~late, self.covered),
        )

    def decided(self, figure: str, known_s: float) -> Bools:
        """Whether an interval holds is decided once its upper end has passed, however long it lasts on after that."""
        passed = self.begun_s + self.bound_s <= known_s
        return passed if figure == "coverage_90" else np.zeros_like(passed)

    def decided_beside(self, other: Self, known_s: float) -> Bools:
        """Where one of two has been broken, the other holds so far: without that row the bolder one would be spared."""
        return (self.known_s <= known_s) | (other.known_s <= known_s)


@dataclass(frozen=True, slots=True, eq=False)
class IntervalRows(LogRows):
    """The same by intervals: versions are compared by the mean pinball loss of their ends, of natural logarithms.

    Attributes
    ----------
    pinball : loss by what came
    ends_s, shares : (n_rows, k) see `models.evaluation.sizes.LogForecasts`
    """

    MAIN: ClassVar[str] = "pinball"
    pinball: Floats
    ends_s: Floats
    shares: Floats

    def as_of(self, known_s: float) -> Self:
        """As `LogRows`; the loss of what lasts on is the least that it may come to, which that of the median is."""
        least_s = np.maximum(known_s - self.begun_s, self.told_s)
        losses = pinball_losses(np.log(least_s), np.log(self.ends_s), self.shares)
        return replace(LogRows.as_of(self, known_s), pinball=np.where(self.known_s > known_s, losses, self.pinball))

    def figures(self) -> dict[str, Figure]:
        """As `LogRows`, and `pinball`."""
        return {**LogRows.figures(self), "pinball": scores.mean(self.pinball)}

    def parts(self) -> Parts:
        """As `LogRows`, and `pinball`."""
        return {**LogRows.parts(self), "pinball": (self.pinball, np.ones(len(self)))}


@dataclass(frozen=True, slots=True, eq=False)
class GainRows(Rows):
    """A job replayed under a learned policy and under the one whose place that takes; completion times, seconds."""

    MAIN: ClassVar[str] = "speedup"
    MAIN_IS_LOSS: ClassVar[bool] = False
    jct_s: Floats
    baseline_jct_s: Floats

    def figures(self) -> dict[str, Figure]:
        """`speedup`: geometric mean; `slowed`: share of the jobs that end later."""
        gained = scores.mean(np.log(self.baseline_jct_s / self.jct_s))
        return {
            "n": len(self),
            "speedup": None if gained is None else float(np.exp(gained)),
            # A second of tolerance, for rounding of times is no slowing.
            "slowed": scores.mean(self.jct_s > self.baseline_jct_s + 1.0),
            "mean_jct_s": scores.mean(self.jct_s),
            "baseline_jct_s": scores.mean(self.baseline_jct_s),
        }

    def parts(self) -> Parts:
        """`speedup`, whose logarithm is a mean over jobs, linearised where that lies."""
        gained = np.log(self.baseline_jct_s / self.jct_s)
        middle = gained.mean() if len(self) else 0.0
        return {"speedup": (np.exp(middle) * (1.0 + gained - middle), np.ones(len(self)))}

    def main_draws(self, days: DayDraws) -> Floats:
        """Speedup."""
        drawn: Floats = np.exp(days.ratio(np.log(self.baseline_jct_s / self.jct_s), np.ones(len(self))))
        return drawn


def skill(mine: Figure, rule: Figure) -> Figure:
    """The share of a rule's error that a version saves; below 0 the rule is better, None where that errs nowhere.

    >>> skill(0.3, 0.4), skill(0.1, 0.0)
    (0.25, None)
    """
    # Rounded: equal errors must give exactly 0.
    return None if mine is None or not rule else round(1.0 - mine / rule, 12)


def regime_rows(model: RegimePrior, sample: Sample) -> Blocks:
    """Jobs whose batch size may change, each at `SEEN_PCT` of its epochs; none where no such job was over."""
    trace, done = sample.trace, sample.done
    # All jobs are drawn, then those that were over are kept: the jitter of a job must not hang on the week.
    known = zip(*training_jobs(trace, sample.given, model.seed, needed=False), strict=True)
    jobs_truth = [(job, regimes) for job, regimes in known if done[job.seq]]
    if not jobs_truth:
        nothing = np.empty(0)
        return {ALL_JOBS: RegimeRows(nothing, nothing, np.empty(0, "U1"), *(nothing for _ in range(5)))}
    jobs, truth = zip(*jobs_truth, strict=True)
    mine = score_regimes(model, jobs, truth, SEEN_PCT)
    # The version's score and that of the rule, whose distribution is a point: its CRPS is the distance.
    result = np.empty((2, len(jobs), len(SEEN_PCT)))
    for row, (job, regimes) in enumerate(zip(jobs, truth, strict=True)):
        training = training_of(job)
        total_s = training.run_time_s(tuple(regimes))
        for column, seen in enumerate(SEEN_PCT):
            progress = progress_at(regimes, training.epochs * seen / 100)
            left_s = total_s - training.run_time_s(progress.regimes)
            rule_s = training.run_time_s(Restatement().left(training, progress))
            result[:, row, column] = (
                crps(*model.nodes(training, progress), left_s) / total_s,
                abs(rule_s - left_s) / total_s,
            )
    # A row a job and point of progress, as the ravelled arrays below have them.
    at = np.repeat([job.seq for job in jobs], len(SEEN_PCT))
    return {
        ALL_JOBS: RegimeRows(
            *_when(trace, at),
            *(one.ravel() for one in (*result, mine.covered, mine.regime_error, 100 - mine.total)),
        )
    }


def curve_rows(model: AccuracyCurve, sample: Sample) -> Blocks:
    """Curves of the jobs that were over, of each application and batch size."""
    over = sample.over
    table = curves_of_jobs(over, sample.facts)
    at = np.array(table.of_jobs, dtype=np.int64)
    return _curve_blocks(model, table.curves, _when(over, at))


def curve_table_rows(model: AccuracyCurve, table: CurveTable) -> Blocks:
    """Curves of a file, in its order."""
    return _curve_blocks(model, table.curves, calendar([curve.app for curve in table.curves]))


def _curve_blocks(model: AccuracyCurve, curves: Sequence[LearningCurve], when: Calendar) -> Blocks:
    return {f"{prefix:.0%} seen": _curve_rows(model, curves, when, prefix) for prefix in PREFIXES}


def _curve_rows(model: AccuracyCurve, curves: Sequence[LearningCurve], when: Calendar, prefix: float) -> CurveRows:
    kept = np.array([is_scored(curve, prefix) for curve in curves], dtype=bool)
    times_s, known_s, apps = when
    when = times_s[kept], known_s[kept], apps[kept]
    if not kept.any():
        return CurveRows(*when, *(np.empty(0) for _ in range(4)))
    result = curve_errors(model, [curve for curve, one in zip(curves, kept, strict=True) if one], prefix)
    # Curves differ in length: counts of epochs, not shares.
    later = np.array([len(covered) for covered in result["covered"]], dtype=np.float64)
    covered = np.array([covered.sum() for covered in result["covered"]])
    return CurveRows(*when, result["mae"], result["mae_last_value"], covered, later)


def epoch_rows(model: EpochTime, sample: Sample) -> Blocks:
    """Jobs that were over, of applications of which more is profiled than the few points that are known."""
    over = sample.over
    profiles: ProfileTable = sample.facts
    mine = profile_table(profiles.of_jobs(over.values("model"), over.values("batch_size")), profiles.path)
    result = {one.model: one for one in planned(jobs_of(mine), dict.fromkeys(mine.models, model))}
    return {ALL_JOBS: _epoch_rows(*_by_job(over, result))}


def epoch_table_rows(model: EpochTime, table: ProfileTable) -> Blocks:
    """Applications of a table; one that the version has learnt from is forecast by a twin that has not."""
    result = planned(jobs_of(table), {name: model.twin_without(name) for name in table.models})
    return {ALL_JOBS: _epoch_rows(result, calendar([one.model for one in result]))}


def _epoch_rows(scored: Sequence[Scored], when: Calendar) -> ShareRows:
    errors: Mapping[str, list[float]] = {
        name: [float(np.abs(one.baselines[name]).mean()) for one in scored] for name in BASELINES
    }
    # The better rule over all jobs, not job by job, which no rule could know beforehand.
    best = min(errors.values(), key=sum)
    return ShareRows(
        *when,
        np.array([float(np.abs(one.error).mean()) for one in scored]),
        np.array(best),
        np.array([float(one.inside.mean()) for one in scored]),
    )


def step_rows(model: FittedGoodput, sample: Sample) -> Blocks:
    """Jobs that were over, of applications that the version has learnt, by the steps that were measured of these."""
    return {ALL_JOBS: _step_rows(*_by_job(sample.over, _step_errors(model, sample.facts)))}


def step_table_rows(model: FittedGoodput, table: StepTable) -> Blocks:
    """Applications of a table; configurations that the version has learnt are forecast by a twin without them."""
    result = _step_errors(model, table)
    return {ALL_JOBS: _step_rows(list(result.values()), calendar(list(result)))}


def _step_errors(model: FittedGoodput, table: StepTable) -> dict[str, StepErrors]:
    return {app: model.errors(app, times) for app, times in table.times.items() if app in model.throughputs_}


def _step_rows(errors: Sequence[StepErrors], when: Calendar) -> ShareRows:
    columns = ("error", "rule_error", "covered")
    return ShareRows(*when, *(np.array([float(getattr(one, name).mean()) for one in errors]) for name in columns))


def size_rows(model: JobSize, sample: Sample) -> Blocks:
    """Jobs by their work; until a job is over, by what it has done at least."""
    jobs = sample.jobs
    forecast = size_forecasts(model, jobs)
    errors = forecast.errors(jobs.gpu_time_s)
    # Work comes as fast as a job is wide.
    return {ALL_JOBS: LogRows(*_lasting(sample, jobs, forecast, errors, jobs.duration_gpus))}


def run_time_rows(model: CompletionTime, sample: Sample) -> Blocks:
    """Jobs by their run times: what completions are made of, whatever the policy."""
    jobs = sample.jobs
    forecast = run_time_forecasts(model, jobs)
    errors = forecast.errors(jobs.duration_s)
    result: dict[str, Any] = {"pinball": errors.pinball, "ends_s": forecast.ends_s, "shares": forecast.shares}
    return {ALL_JOBS: IntervalRows(*_lasting(sample, jobs, forecast, errors, 1), **result)}


def _lasting(sample: Sample, jobs: Trace, forecast: LogForecasts, errors: LogErrors, width: Any) -> tuple[Any, ...]:
    """Columns of `LogRows` of jobs whose forecasts come true `width` times as fast as they run."""
    # One of which nothing is heard may have ended as long ago as ends take to be told.
    begun_s = jobs.start_s + sample.trace.ends_known(sample.known_s).lag_s
    points_s = (forecast.told_s / width, np.full(len(jobs), forecast.rule_s) / width, forecast.high_s / width)
    covered = errors.covered.astype(np.float64)
    return (*_when(jobs, slice(None)), errors.error, errors.rule_error, covered, begun_s, *points_s)


def wait_rows(model: QueueWait, sample: Sample) -> Blocks:
    """Pending jobs, beside the median of their pool, by how long they wait on; starts of after truth ends are open."""
    trace = sample.trace
    rows = WaitRows.of(trace, sample.from_s, sample.until_s)
    told_s, pools = model.forecast(rows.X), trace.jobs["pool"].to_numpy().astype(str)[rows.job]
    median_s, bound_s, rule_s = told_s[:, MEDIAN], told_s[:, BOUND], model.pool_medians(pools)
    known_s, logs = np.where(rows.started(sample.known_s), rows.start_s, np.inf), rows.log_wait()
    off, rule_off = (np.abs(np.log10(one) - logs) for one in (median_s, rule_s))
    covered = (logs <= np.log10(bound_s)).astype(np.float64)
    points_s = median_s, rule_s, bound_s
    return {ALL_JOBS: LogRows(rows.at_s, known_s, pools, off, rule_off, covered, rows.at_s, *points_s)}


def gain_rows(result: CellResult) -> Blocks:
    """Jobs of a replay beside its baseline; those that never ran under one of the two are left out."""
    log, base_s = result.log, result.base_jct_s
    # A job that never ran has no completion time to compare.
    ran = np.isfinite(log.jct_s) & np.isfinite(base_s) & result.counted
    assert result.run.jobs is not None, "runs of a matrix list their jobs"
    pools = result.run.jobs["pool"].to_numpy().astype(str)
    submit_s = log.told_submit_s[ran]
    # Gains are known when the replay is: submission stands for both times.
    return {ALL_JOBS: GainRows(submit_s, submit_s, pools[ran], log.jct_s[ran], base_s[ran])}


def _by_job(over: Trace, figures: Mapping[str, T]) -> tuple[list[T], Calendar]:
    """What is told of each job's application, of jobs whose application is told of, and when these were."""
    models = over.values("model")
    at = np.array([row for row, name in enumerate(models) if name in figures], dtype=np.int64)
    return [figures[models[row]] for row in at.tolist()], _when(over, at)


def calendar(names: Sequence[str]) -> Calendar:
    """A day for each row of a table without a calendar; its pool is its application."""
    days = DAY_S * np.arange(len(names), dtype=np.float64)
    return days, days, np.array(names, dtype=str)


def _when(trace: Trace, at: Any) -> Calendar:
    """Of some jobs of a trace, by their rows."""
    return trace.submit_s[at], trace.known_s[at], np.asarray(trace.jobs["pool"].to_numpy().astype(str))[at]
