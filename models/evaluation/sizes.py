"""How good forecasts of sizes and run times are: errors of logarithms, beside the median of all jobs before."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.arrays import Floats
from jobcast.models.completion.completion_time import CompletionTime
from jobcast.models.completion.intervals import Interval, pinball, quantiles
from jobcast.models.completion.job_size import JobSize
from jobcast.models.completion.known_jobs import keys_of
from jobcast.models.scores import Figure, mean, skill
from jobcast.traces.table import Trace

DOUBLE = float(np.log10(2.0))
LEVEL = 0.9


class LogErrors(NamedTuple):
    """Of jobs, (n,) each: distance of log10 from the truth, that of the median of all, whether 90 % intervals held.

    `pinball`: mean loss of the ends of intervals, of natural logarithms, where it is told.
    """

    error: Floats
    rule_error: Floats
    covered: NDArray[np.bool_]
    pinball: Floats | None = None


def size_errors(model: JobSize, jobs: Trace) -> LogErrors:
    """Of the work of jobs that were over, forecast at their submissions."""
    past, true_s = model.past_, np.maximum(jobs.gpu_time_s, 1.0)
    low_s, median_s, high_s = model.forecast(keys_of(jobs)).T
    return _errors(true_s, median_s, float(np.median(past.work_s[past.ended])), (low_s <= true_s) & (true_s <= high_s))


def run_time_errors(model: CompletionTime, jobs: Trace) -> LogErrors:
    """Of the run times of jobs that were over, forecast at their submissions."""
    past, true_s = model.past_, np.maximum(jobs.duration_s, 1.0)
    result = model.running(model.sample(), jobs.gpus, np.zeros(len(jobs)))
    median_s = np.array([median for median, _ in result])
    held = [_of_level(ends).holds(one) for (_, ends), one in zip(result, true_s.tolist(), strict=True)]
    losses = [
        np.mean([pinball(np.log([one]), np.log([end_s]), share) for end_s, share in quantiles(ends)])
        for (_, ends), one in zip(result, true_s.tolist(), strict=True)
    ]
    errors = _errors(true_s, median_s, float(np.median(past.run_s[past.ended])), np.array(held, dtype=bool))
    return errors._replace(pinball=np.array(losses))


def _of_level(intervals: tuple[Interval, ...]) -> Interval:
    return next(one for one in intervals if one.level == LEVEL)


def _errors(true_s: Floats, told_s: Floats, rule_s: float, covered: NDArray[np.bool_]) -> LogErrors:
    logs = np.log10(true_s)
    return LogErrors(np.abs(np.log10(told_s) - logs), np.abs(np.log10(max(rule_s, 1.0)) - logs), covered)


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
