"""How JobSize and CompletionTime are trained."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jobcast.models.completion.completion_time import CompletionTime
from jobcast.models.completion.job_size import JobSize
from jobcast.models.evaluation.sizes import LogErrors, log_figures, run_time_errors, size_errors
from jobcast.pipelines.lifecycle.recipes.common import Trained, TrainingData, TrainSettings
from jobcast.pipelines.report.console import Step
from jobcast.traces.table import Trace

Sized = JobSize | CompletionTime


def train_sizes(
    data: TrainingData, algorithm: str, settings: TrainSettings, progress: Step | None, kind: type[JobSize] = JobSize
) -> Trained:
    """JobSize."""
    return _trained(kind, size_errors, data, algorithm)


def train_completions(
    data: TrainingData,
    algorithm: str,
    settings: TrainSettings,
    progress: Step | None,
    kind: type[CompletionTime] = CompletionTime,
) -> Trained:
    """CompletionTime."""
    return _trained(kind, run_time_errors, data, algorithm)


def _trained(kind: type[Any], errors: Callable[[Any, Trace], LogErrors], data: TrainingData, algorithm: str) -> Trained:
    """A model, and what a twin that has not seen the end of the training time scores on the jobs of that."""
    model: Sized = kind().fit(data.trace, data.from_s, data.until_s)
    from_s, seen = data.validation_from_s, data.trace.as_of(data.until_s)
    later = over(seen.between(from_s, None))
    before = data.trace.between(data.from_s, from_s)
    validation = {}
    if len(later) and (before.known_s < from_s).sum() > 1:
        validation = dict(log_figures(errors(kind().fit(data.trace, data.from_s, from_s), later)))
    settings = model.settings_
    told = {"jobs": len(model.past_), "recency": settings.recency_, "recent_share": settings.recent_share_}
    return Trained(model, algorithm, validation, told)


def over(trace: Trace) -> Trace:
    """The jobs whose run times are known."""
    return replace(trace, jobs=trace.jobs.filter(trace.ended))
