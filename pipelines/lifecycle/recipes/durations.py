"""How JobDuration, JobSize, CompletionTime and QueueWait are trained."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from jobcast.models.algorithms import PAPER
from jobcast.models.duration_booster import DurationSettings
from jobcast.models.duration_data import DurationData
from jobcast.models.duration_selection import select, tune_durations
from jobcast.models.evaluation import evaluate_durations
from jobcast.models.evaluation.queue_waits import fold_figures
from jobcast.models.evaluation.sizes import LogErrors, log_figures
from jobcast.models.job_duration import LEARNT, JobDuration
from jobcast.models.queue_wait import BOUND, QueueWait
from jobcast.pipelines.lifecycle.drift_verdict import ratio_of, settled
from jobcast.pipelines.lifecycle.forecast_rows import ALL_JOBS, Blocks, Sample, duration_rows, joined
from jobcast.pipelines.lifecycle.recipes.common import AUTO, Trained, TrainingData, TrainSettings, kept
from jobcast.pipelines.report.console import Step
from jobcast.traces.table import Trace

PAPER_RULE = "tag-pool-width"
"""Of the paper's own, where a scheduler is told the likeliest bin."""
Table = Sequence[Mapping[str, Any]]
Fit = Callable[[str, float], tuple[JobDuration, Table]]
"""A model of an algorithm, from what was known before an instant."""
PROMISED_PARTS = 3
"""Of the training time, as long as the one that a version is validated on, which say what may be expected of it."""


def train_durations(
    data: TrainingData,
    algorithm: str,
    settings: TrainSettings,
    progress: Step | None,
    kind: type[JobDuration] = JobDuration,
) -> Trained:
    """JobDuration. SIA, section 5.4.2."""
    asked = algorithm
    if asked == PAPER:
        # The likeliest bin is that of least cost where too short costs nothing more.
        algorithm, settings = PAPER_RULE, replace(settings, under_cost=0.0)
    # How late ends are told is a lesson, too: not from those that were told after the training.
    jobs = DurationData.of(data.trace.ends_known(data.until_s), settings.horizons_min, data.from_s)
    tuned, trials = None, list[dict[str, Any]]()
    if settings.tune and algorithm in (AUTO, *LEARNT) and (jobs.end_s < data.validation_from_s).any():
        # On what ended before the twin's validation, so that its figures are of jobs that nothing was chosen by.
        tuned, trials = tune_durations(jobs, data.validation_from_s, settings.tune, settings.seed)
    fit = partial(_fitted, kind, jobs, settings, tuned)
    validation = _validation(data, jobs, algorithm, fit)
    model, table = fit(algorithm, data.until_s)
    # The registry names what was asked for, not the rule that stands in for it.
    concrete = asked if asked == PAPER else model.algorithm
    return Trained(model, concrete, validation, _parameters(model), **kept(table, trials))


def _fitted(
    kind: type[JobDuration],
    jobs: DurationData,
    settings: TrainSettings,
    tuned: DurationSettings | None,
    algorithm: str,
    until_s: float,
) -> tuple[JobDuration, Table]:
    """A model, and the table that `auto` chose its algorithm by."""
    table: Table = []
    calibration = None
    # A twin chooses anew: the algorithm must not be chosen by what it is scored on.
    if algorithm == AUTO:
        selection = select(jobs, until_s, settings.seed, tuned)
        algorithm, calibration, table = selection.algorithm, selection.calibration, selection.table
    model = kind(settings.horizons_min, algorithm, settings.under_cost, settings=tuned, seed=settings.seed)
    return model.fit_data(jobs, until_s, calibration), table


def _validation(data: TrainingData, jobs: DurationData, algorithm: str, fit: Fit) -> Mapping[str, Any]:
    """What a twin that has not seen the end of the training time scores there; {} where that holds no ended job."""
    from_s, until_s = data.validation_from_s, data.until_s
    # Jobs of pools that are not learnt do not count in its figures either.
    counts = data.trace.jobs["pool"].is_in(list(data.pools)).to_numpy() & (data.trace.submit_s >= from_s)
    if not (counts & (data.trace.known_s <= until_s)).any() or not (jobs.end_s < from_s).any():
        return {}
    known = data.twin
    twin = known if isinstance(known, JobDuration) else fit(algorithm, from_s)[0]
    figures = evaluate_durations(twin, data.trace, from_s, until_s, data.pools)
    return {**figures, "promise": _promise(data, jobs, twin, fit)}


def _promise(data: TrainingData, jobs: DurationData, twin: JobDuration, fit: Fit) -> Mapping[str, Any]:
    """What may be expected of the version, and how sure that is, by the last parts of the training time.

    Each part is forecast by a model that has not seen it: the few days of one leave more in doubt than the weeks that
    are held against them later. Figures of too few days are left out.
    """
    parts = list[Blocks]()
    length_s = data.until_s - data.validation_from_s
    for number in range(PROMISED_PARTS):
        begin_s, end_s = data.validation_from_s - number * length_s, data.until_s - number * length_s
        if begin_s <= data.from_s or not (jobs.end_s < begin_s).any():
            break
        # Of the algorithm that the twin has: it is not chosen anew.
        model = twin if number == 0 else fit(twin.algorithm, begin_s)[0]
        sample = Sample(trace=data.trace, from_s=begin_s, until_s=end_s, known_s=data.until_s, pools=data.pools)
        parts.append({name: settled(rows, data.until_s) for name, rows in duration_rows(model, sample).items()})
    if not parts:
        return {}
    rows = joined(parts)[ALL_JOBS]
    told = {name: ratio_of(rows.time_s, *rows.parts()[name], rows.owner) for name in ("accuracy", "log_loss")}
    return {name: asdict(ratio) for name, ratio in told.items() if ratio is not None}


def _parameters(model: JobDuration) -> dict[str, Any]:
    result = {"under_cost": model.under_cost, "prior_weight": model.prior_weight}
    if model.booster_ is not None:
        result |= {"trees": model.booster_.settings.trees, "leaves": model.booster_.settings.leaves}
        result |= {"learning_rate": model.booster_.settings.learning_rate}
    return result


def train_of_ended(
    data: TrainingData,
    algorithm: str,
    settings: TrainSettings,
    progress: Step | None,
    *,
    kind: type[Any],
    errors: Callable[[Any, Trace], LogErrors],
) -> Trained:
    """JobSize or CompletionTime, whose errors are of sizes or of run times; a twin is scored on the last part."""
    model = kind().fit(data.trace, data.from_s, data.until_s)
    # What ended after the training time is not known yet.
    from_s, seen = data.validation_from_s, data.trace.as_of(data.until_s)
    later = over(seen.between(from_s, None))
    before = data.trace.between(data.from_s, from_s)
    validation = {}
    # A distribution needs two jobs.
    if len(later) and (before.known_s < from_s).sum() > 1:
        validation = dict(log_figures(errors(kind().fit(data.trace, data.from_s, from_s), later)))
    found = model.settings_
    result = {"jobs": len(model.past_), "recency": found.recency_, "recent_share": found.recent_share_}
    return Trained(model, algorithm, validation, result)


def train_waits(
    data: TrainingData,
    algorithm: str,
    settings: TrainSettings,
    progress: Step | None,
    kind: type[QueueWait] = QueueWait,
) -> Trained:
    """QueueWait; its figures are of the last part of the training time, forecast from what was known before."""
    model = kind(seed=settings.seed).fit(data.trace, data.from_s, data.until_s)
    result = {
        "calibrated_rows": model.calibrated_rows_,
        "bound_moved_log10": float(model.shifts_[BOUND]),
        "by_drain": model.by_drain_,
    }
    validation = fold_figures(model.folds_, data.until_s, model.by_drain_)
    return Trained(model, algorithm, validation, {**asdict(model.settings), **result})


def over(trace: Trace) -> Trace:
    """The jobs whose run times are known."""
    return replace(trace, jobs=trace.jobs.filter(trace.ended))
