"""How good forecasts of sizes and run times are: errors of logarithms, beside the median of all jobs before."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.models.completion.completion_time import CompletionTime
from jobcast.models.completion.intervals import LEVELS, Interval, quantiles, slack_s
from jobcast.models.completion.job_size import JobSize
from jobcast.models.completion.known_jobs import keys_of
from jobcast.models.forecast_combination import pinball_losses
from jobcast.models.scores import Figure, mean, skill
from jobcast.traces.table import Trace

DOUBLE = float(np.log10(2.0))
LEVEL = 0.9
LEAST_S = 1.0
"""Times below it count as it: logarithms of nothing tell nothing."""


class LogErrors(NamedTuple):
    """Of jobs, (n,) each: distance of log10 from the truth, that of the median of all, whether 90 % intervals held.

    `pinball`: mean loss of the ends of intervals, of natural logarithms, where it is told.
    """

    error: Floats
    rule_error: Floats
    covered: NDArray[np.bool_]
    pinball: Floats | None = None


class LogForecasts(NamedTuple):
    """Of jobs at their submissions, (n,) seconds each.

    Attributes
    ----------
    told_s, low_s, high_s : the median and the ends of the 90 % interval
    rule_s : the median of all jobs before
    ends_s, shares : (n, k) ends of all intervals, and shares of jobs that are to lie below each; None: no loss is told
    """

    told_s: Floats
    low_s: Floats
    high_s: Floats
    rule_s: float
    ends_s: Floats | None = None
    shares: Floats | None = None

    def errors(self, true_s: Floats) -> LogErrors:
        """Beside what came, at least `LEAST_S`; NaN of jobs of which that is not known."""
        true_s = np.maximum(true_s, LEAST_S)
        logs, slack = np.log10(true_s), slack_s(true_s)
        covered = (self.low_s - slack <= true_s) & (true_s <= self.high_s + slack)
        errors = LogErrors(np.abs(np.log10(self.told_s) - logs), np.abs(np.log10(self.rule_s) - logs), covered)
        if self.ends_s is None or self.shares is None:
            return errors
        return errors._replace(pinball=pinball_losses(np.log(true_s), np.log(self.ends_s), self.shares))


def size_forecasts(model: JobSize, jobs: Trace) -> LogForecasts:
    """The work of jobs."""
    past = model.past_
    low_s, median_s, high_s = model.forecast(keys_of(jobs)).T
    return LogForecasts(median_s, low_s, high_s, max(float(np.median(past.work_s[past.ended])), LEAST_S))


def run_time_forecasts(model: CompletionTime, jobs: Trace) -> LogForecasts:
    """The run times of jobs."""
    past = model.past_
    result = model.submitted(jobs.gpus, jobs.submit_s)
    ends = [_of_level(intervals) for _, intervals in result]
    told = np.array([quantiles(intervals) for _, intervals in result]).reshape(len(result), 2 * len(LEVELS), 2)
    return LogForecasts(
        np.array([median for median, _ in result]),
        np.array([one.low_s for one in ends]),
        np.array([one.high_s for one in ends]),
        max(float(np.median(past.run_s[past.ended])), LEAST_S),
        told[:, :, 0],
        told[:, :, 1],
    )


def size_errors(model: JobSize, jobs: Trace) -> LogErrors:
    """Of the work of jobs that were over."""
    return size_forecasts(model, jobs).errors(jobs.gpu_time_s)


def run_time_errors(model: CompletionTime, jobs: Trace) -> LogErrors:
    """Of the run times of jobs that were over."""
    return run_time_forecasts(model, jobs).errors(jobs.duration_s)


def _of_level(intervals: tuple[Interval, ...]) -> Interval:
    return next(one for one in intervals if one.level == LEVEL)


def log_figures(errors: LogErrors) -> Mapping[str, Any]:
    """`mae_log10`, the rule's, `skill` (the share of that which is saved), `within_2x`, `coverage_90`; None of none.

    Of intervals `pinball`, too.
    """
    mine, rule = mean(errors.error), mean(errors.rule_error)
    figures: dict[str, Figure] = {
        "n": len(errors.error),
        "mae_log10": mine,
        "rule_mae_log10": rule,
        "skill": skill(mine, rule),
        "within_2x": mean(errors.error <= DOUBLE),
        "coverage_90": mean(errors.covered),
    }
    return figures if errors.pinball is None else {**figures, "pinball": mean(errors.pinball)}
