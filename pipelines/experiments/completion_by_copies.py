"""`jobcast predict jct` and `evaluate jct` of all but elastic policies: whole jobs under quotas, rounds, tasks, nodes.

The point is what the run's source of forecasts makes of it; futures draw the run times of all active jobs from those of
jobs that ended before, or as a version of job-duration has it, and who arrives where such jobs can delay others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jobcast import __version__
from jobcast.domain.arrays import Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import FLAT_POOL
from jobcast.live.completion_forecasts import Completion, RunTimeDraws
from jobcast.models.completion.completion_time import CompletionTime, tracker_of
from jobcast.models.completion.intervals import LEAST_S, LEVELS, Interval, IntervalTracker, Position
from jobcast.pipelines.experiments.completion_meters import AtInstant, AtSubmission, QueueAtInstant, WidthAtInstant
from jobcast.pipelines.experiments.elastic.completion_prediction import (
    DECLARED,
    FORECAST,
    NEW,
    Answer,
    JobAnswers,
    Question,
    refuse_what_if,
)
from jobcast.pipelines.experiments.elastic.conformal_intervals import (
    ROUGH,
    WARMED,
    Forecast,
    figures_of,
    past_positions,
    track,
)
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.explain.what_if import Change, with_change
from jobcast.pipelines.experiments.forecast_specs import CONSERVATIVE, ORACLE, REGISTRY, ForecastSpec
from jobcast.pipelines.experiments.policy_runs import run
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.settings import settings_apart
from jobcast.pipelines.experiments.simulation import fidelity_told
from jobcast.pipelines.experiments.sources import Ask, earlier_jobs
from jobcast.pipelines.report.formatting import iso
from jobcast.schedulers.policies import POOLS, ROUNDS, PolicySpec
from jobcast.schedulers.registry import find_policy
from jobcast.simulator.log import RunLog
from jobcast.traces.facts import facts_beside
from jobcast.traces.speedups import read_speedups
from jobcast.traces.table import Trace

NEVER_S = 10 * 365 * 86400.0
"""Run time of a job whose end nobody may come to know."""
WHOLE = (POOLS, ROUNDS)
"""Kinds of policies whose jobs run their time; those of others declare their work in tables beside the trace."""


def answer_by_copies(
    experiment: Experiment,
    ask: Ask,
    question: Question,
    pool: str | None = None,
    learned: CompletionTime | None = None,
) -> tuple[dict[str, Any], list[JobAnswers]]:
    """Replay a trace up to an instant and forecast starts and completions of a job, or of all that wait or run.

    Gives what the run went by, and the answers. Raises ConfigError and TraceError for a job that is not there any more
    or not yet, or cannot be forecast.
    """
    rule, spec = find_policy(ask.policy), ask.spec
    _check(experiment, rule, question, pool)
    if question.job == NEW:
        _check_room(experiment, rule, question, pool)
    whole = rule.kind in WHOLE
    # What whole jobs declare is their true run time, as the oracle reads it.
    spec = ORACLE if question.sizes == DECLARED and whole and spec is None else spec
    result: dict[str, Any] = {"sizes": question.sizes if whole else DECLARED}

    def watched(trace: Trace, watch: AtInstant) -> None:
        # Submissions of the instant itself are known by then, later ones are not.
        asked = replace(experiment, trace=trace, until_s=float(np.nextafter(question.at_s, np.inf)))
        facts, decide = settings_apart(ask.settings, rule)
        asked = replace(asked, given=facts)
        if result["sizes"] == FORECAST:
            earlier = earlier_jobs(asked.scenario(rule.kind, rule.scope))
            watch.draws = RunTimeDraws(earlier, question.futures, question.seed, learned, _probable(spec))
        ran = run(asked, replace(ask, spec=spec, settings=decide, watching=(watch,)))
        result.update(forecasts=ran.forecasts, future=ran.future, **fidelity_told(ran.log, by_s=question.at_s))

    trace = experiment.trace
    if question.job is None:
        queue = QueueAtInstant(question.at_s, "", limit=question.limit)
        watched(trace, queue)
        found = [JobAnswers(stands, [_answer(stands, point, drawn)]) for stands, point, drawn in queue.found]
    elif question.job == NEW:
        found = [_new_job(trace, question, pool, watched)]
    else:
        found = [_own_and_other_widths(trace, question, question.job, rule, watched)]
    # The longest of bins is no point that anybody should go by.
    return result, [_without_points(one) for one in found] if spec == CONSERVATIVE else found


Watched = Callable[[Trace, AtInstant], None]
"""Replays a trace with a watcher."""


def _new_job(trace: Trace, question: Question, pool: str | None, watched: Watched) -> JobAnswers:
    answers, stands = [], dict[str, Any]()
    for gpus in _widths_of_new(trace, question):
        # Work is told as on one GPU; whole jobs hold all of theirs.
        work_s = np.nan if question.size_s is None else question.size_s / gpus
        watch = AtInstant(question.at_s, NEW, work_s=work_s)
        watched(with_new(trace, question.at_s, gpus, pool, work_s, question.time_limit_s), watch)
        stands, point, drawn = _found(watch)
        # A new job of unknown work has futures, drawn from others, but no point.
        result = Completion() if question.size_s is None else point
        answers.append(_answer(stands, result, drawn or [point]))
    return JobAnswers(stands, answers)


def _own_and_other_widths(
    trace: Trace, question: Question, job_id: str, rule: PolicySpec, watched: Watched
) -> JobAnswers:
    own = WidthAtInstant(question.at_s, job_id)
    watched(trace, own)
    stands, point, drawn = _found(own)
    answers, held = [_answer(stands, point, drawn)], stands["gpus"]
    for gpus in question.ask_gpus:
        if gpus == held:
            continue
        if stands["started"] is not None:
            raise ConfigError(
                f"--ask-gpus {gpus}: job {job_id} has run on its {held} GPUs already, which {rule.name} does not "
                "change; ask about one that waits"
            )
        changed, factor = at_width(trace, job_id, gpus, rule)
        other = WidthAtInstant(question.at_s, job_id, runs_s=own.runs_s, factor=factor)
        watched(changed, other)
        answers.append(_answer(*_found(other)))
    return JobAnswers(stands, answers)


def at_width(trace: Trace, job_id: str, gpus: int, rule: PolicySpec) -> tuple[Trace, float]:
    """The trace as if a whole job had asked for other GPUs, and its run time there over that on its own.

    How long it really took is not in that trace: it runs on for ever, unless somebody believes otherwise.

    Raises ConfigError where no table beside the trace declares how the job scales.
    """
    found = facts_beside(trace.source.path, ("speedups",))
    if not found:
        raise ConfigError(
            f"--ask-gpus {gpus}: how job {job_id} scales is not declared; enrich the trace (`jobcast trace enrich "
            "--facts speedups`), or ask about an elastic one"
        )
    row = trace.jobs.row(by_predicate=pl.col("job_id") == job_id, named=True)
    table = read_speedups(Path(found["speedups"]))
    curve = table.speedup[table.row_of(row["model"]), 0]
    own, other = (float(curve[min(width, len(curve) - 1)]) for width in (row["gpus"], gpus))
    changed = with_change(trace, job_id, Change("", gpus=gpus), rule)
    never = pl.when(pl.col("job_id") == job_id).then(NEVER_S).otherwise("duration").alias("duration")
    return replace(changed, jobs=changed.jobs.with_columns(never)), own / other


def _without_points(one: JobAnswers) -> JobAnswers:
    return replace(one, answers=[replace(answer, point_start_s=np.nan, point_s=np.nan) for answer in one.answers])


def _check_room(experiment: Experiment, rule: PolicySpec, question: Question, pool: str | None) -> None:
    """Refuse a new job that no pool would ever hold. Raises ConfigError for one of no pool, or wider than its own."""
    cluster, name = experiment.place(rule.kind), _pool_of_new(experiment.trace, pool)
    if cluster.flat:
        if (widest := max(_widths_of_new(experiment.trace, question))) > cluster.gpus:
            raise ConfigError(f"--ask-gpus {widest}: the cluster has {cluster.gpus} GPUs; ask for fewer")
        return
    quotas = {one.name: one.quota for one in cluster.quotas.at(question.at_s)}
    known = ", ".join(f"{one} ({quota} GPUs)" for one, quota in quotas.items())
    if name not in quotas:
        raise ConfigError(f"--job {NEW}: in which pool? add --pool NAME: {known}")
    widest = max(_widths_of_new(experiment.trace, question))
    if widest > quotas[name]:
        raise ConfigError(
            f"--ask-gpus {widest}: pool {name} has {quotas[name]} GPUs; ask for fewer, or name another pool: {known}"
        )


def _found(watch: AtInstant) -> tuple[dict[str, Any], Completion, list[Completion]]:
    if not watch.found:
        raise TraceError(f"job {watch.job_id}: no job is submitted by {iso(watch.at_s)}; ask later")
    return watch.found[0]


def _answer(stands: Mapping[str, Any], point: Completion, futures: Sequence[Completion]) -> Answer:
    """Without draws the point is the only future."""
    drawn = np.array([(one.start_s, one.end_s) for one in futures or [point]])
    return Answer(stands["gpus"], point.start_s, point.end_s, drawn[:, 0], drawn[:, 1])


def _probable(spec: ForecastSpec | None) -> bool:
    """Whether a registered version of job-duration is asked, which knows how likely run times are."""
    return spec is not None and spec.kind == REGISTRY.kind


def _check(experiment: Experiment, rule: PolicySpec, question: Question, pool: str | None) -> None:
    """Refuse what cannot be asked of a policy's jobs. Raises ConfigError and TraceError."""
    trace = experiment.trace
    if question.model:
        raise ConfigError(f"--model: goes with elastic policies, not with {rule.name}; leave it out")
    if question.job == NEW:
        if rule.kind not in WHOLE:
            raise ConfigError(
                f"--job {NEW}: under {rule.name} jobs declare their work in a table beside the trace; pass a job's id"
            )
        if question.size_s is None and (question.sizes == DECLARED or len(question.ask_gpus) > 1):
            raise ConfigError(f"--job {NEW}: its work is not known; add --size-s SECONDS")
        if pool is not None and pool not in trace.pools:
            raise ConfigError(f"--pool {pool}: no job of the trace is of it; known are {', '.join(trace.pools)}")
        return
    refuse_what_if(question, "--pool", pool)
    if question.job is None:
        return
    mine = np.flatnonzero(trace.jobs["job_id"].to_numpy() == question.job)
    if not len(mine):
        raise TraceError(f"{trace.source.path}: holds no job {question.job!r}; pass one of its job ids, or {NEW}")
    asked_s, end_s = question.at_s, trace.end_s[mine[0]]
    if trace.submit_s[mine[0]] > asked_s:
        raise TraceError(f"job {question.job}: is not submitted by {iso(asked_s)}; ask later")
    # In a replay it may end at another time than in the trace.
    if experiment.recorded and end_s <= asked_s:
        raise TraceError(f"job {question.job}: has finished at {iso(end_s)}, before {iso(asked_s)}; ask earlier")


def _pool_of_new(trace: Trace, pool: str | None) -> str:
    """Where several pools leave it open a new job is of the pool that a flat cluster has."""
    return pool or (trace.pools[0] if len(trace.pools) == 1 else FLAT_POOL)


def _widths_of_new(trace: Trace, question: Question) -> tuple[int, ...]:
    return question.ask_gpus or (int(np.median(trace.gpus)),)


def with_new(
    trace: Trace, at_s: float, gpus: int, pool: str | None, run_s: float, limit_s: float | None = None
) -> Trace:
    """The trace with one job more; nobody reads its run time, which stands for one where none is declared."""
    row = {
        "job_id": NEW,
        "pool": _pool_of_new(trace, pool),
        "submit_time": round(at_s * 1e6),
        "gpus": gpus,
        "duration": float(np.nanmedian(trace.duration_s)) if np.isnan(run_s) else run_s,
    }
    schema = {name: trace.jobs.schema[name] for name in row}
    if limit_s is not None:
        row["time_limit_s"] = limit_s
        schema["time_limit_s"] = trace.jobs.schema.get("time_limit_s", pl.Float64())
    added = pl.DataFrame({name: [value] for name, value in row.items()}).cast(schema)  # type: ignore[arg-type]
    # Columns that the new job does not tell stay empty; ties keep their order.
    jobs = pl.concat([trace.jobs, added], how="diagonal").sort("submit_time", "job_id", maintain_order=True)
    return replace(trace, jobs=jobs)


def score_by_copies(
    experiment: Experiment,
    ask: Ask,
    futures: int,
    every: int | None,
    scored: int,
    learned: CompletionTime | None = None,
    progress: Any = None,
) -> dict[str, Any]:
    """Figures of intervals that are made at submissions, as tracked, and of the bare futures beside them.

    Raises ConfigError for a policy whose jobs declare their work, TraceError where no job has ended before the first.
    """
    rule = find_policy(ask.policy)
    if rule.kind not in WHOLE:
        raise ConfigError(
            f"evaluate jct: under {rule.name} jobs declare their work; simulate --predict tells the errors"
        )
    facts, decide = settings_apart(ask.settings, rule)
    asked = replace(experiment, given=facts)
    scenario = asked.scenario(rule.kind, rule.scope)
    every = every or max(1, len(scenario) // scored)

    def forecast(experiment: Experiment, every: int, futures: int, progress: Any = None) -> tuple[Forecast, Any]:
        """Of every so manieth job of a window, and the run."""
        scenario = experiment.scenario(rule.kind, rule.scope)
        # Evenly along the run, from the middle of the first stretch on.
        chosen = frozenset(range(every // 2, len(scenario), every)) or frozenset({0})
        draws = RunTimeDraws(earlier_jobs(scenario), futures, ask.seed, learned, _probable(ask.spec))
        watch = AtSubmission(chosen, draws)
        ran = run(experiment, replace(ask, settings=decide, watching=(watch,)), progress)
        return _forecast(watch, ran.log), ran

    found, ran = forecast(asked, every, futures, progress)
    submit_s = ran.log.submit_s[found.job]
    known = _warmed(asked, len(scenario), forecast)
    rules = {name: figures_of(found, made) for name, made in _rules(found, scenario, ran.log).items()}
    return {
        "predictor": "jct",
        "policy": rule.name,
        "sizes": FORECAST,
        "forecasts": ran.forecasts,
        "future": ran.future,
        "warmed": len(known),
        **figures_of(found, track(found, submit_s, tracker_of(learned, known))),
        # A tracker that trusts nothing but them leaves the futures as drawn.
        "bare": figures_of(found, track(found, submit_s, IntervalTracker(trust=np.inf))),
        "rules": {name: {key: figures[key] for key in OF_RULES} for name, figures in rules.items()},
        "futures": futures,
        "seed": ask.seed,
        "inputs": scenario.provenance(),
        "configuration": {"settings": dict(ask.settings)},
        "simulated": True,
        "jobcast": __version__,
    }


def _rules(found: Forecast, scenario: RigidScenario, log: RunLog) -> dict[str, list[tuple[Interval, ...]]]:
    """Intervals that need no model: within the time limit, where all have one, and as the pool's jobs took by then.

    Where fewer than `KNOWN` jobs of the pool have ended in the run, run times of earlier ones stand in.
    """
    jobs, earlier, made = scenario.workload.jobs, earlier_jobs(scenario), dict[str, list[tuple[Interval, ...]]]()
    limits_s = [inf if (asked := jobs[job].requirements) is None else asked.time_limit_s for job in found.job.tolist()]
    if all(isfinite(limit_s) for limit_s in limits_s):
        made["time_limit"] = [tuple(Interval(level, LEAST_S, limit_s) for level in LEVELS) for limit_s in limits_s]
    took_s, before = log.end_s - log.submit_s, np.array([job.pool for job in earlier.jobs], dtype=object)
    made["pool_median"] = []
    for job in found.job.tolist():
        at_s, pool = log.submit_s[job], log.pools[log.pool[job]].name
        known_s = took_s[(log.pool == log.pool[job]) & (log.end_s <= at_s)]
        if len(known_s) < KNOWN:
            gone = earlier.known_s <= at_s
            mine = gone & (before == pool)
            known_s = np.append(known_s, earlier.duration_s[mine if mine.any() else gone])
        made["pool_median"].append(_quantiles_of(known_s))
    return made


def _quantiles_of(seconds: Floats) -> tuple[Interval, ...]:
    """Where the middle of some times lies; a moment where there are none."""
    tails = [(1.0 - level) / 2.0 for level in LEVELS]
    known = np.maximum(seconds, LEAST_S) if len(seconds) else np.array([LEAST_S])
    return tuple(
        Interval(level, *np.quantile(known, [tail, 1.0 - tail]).tolist())
        for level, tail in zip(LEVELS, tails, strict=True)
    )


OF_RULES = ("coverage_90", "width_90_p50", "width_90_s_p50", "pinball")
"""Figures of rules."""
KNOWN = 10
"""Jobs of a pool that have ended from which on earlier ones are not looked at."""


def _forecast(watch: AtSubmission, log: RunLog) -> Forecast:
    """What was forecast at submissions, from instants to completion times: intervals are of these."""
    jobs = np.array(sorted(watch.futures_s), dtype=np.int64)
    submit_s = log.submit_s[jobs]
    futures_s = np.array([watch.futures_s[job] for job in jobs.tolist()]) - submit_s[:, None]
    predicted_s = np.array([watch.end_s[job] for job in jobs.tolist()]) - submit_s
    return Forecast(jobs, predicted_s, futures_s, log.end_s[jobs] - submit_s)


def _warmed(experiment: Experiment, count: int, forecast: Callable[..., tuple[Forecast, Any]]) -> list[Position]:
    """What a tracker of a policy begins with: as it is, had the last jobs before the window been asked about.

    `count`: jobs of the window; half as many are replayed, where the trace holds them.
    """
    before = np.flatnonzero(experiment.trace.submit_s < (experiment.from_s or -np.inf))[-count // 2 :]
    if len(before) < WARMED:
        return []
    begin_s = float(experiment.trace.submit_s[before[0]])
    try:
        past = replace(experiment, from_s=begin_s, until_s=experiment.from_s)
        found, ran = forecast(past, max(1, len(before) // WARMED), ROUGH)
    except TraceError:
        # No job of these had ended before, or none of them meets the cluster.
        return []
    return past_positions(found, ran.log.submit_s[found.job], float(experiment.from_s or np.inf))
