"""`jobcast predict jct`: when will this job finish? A point, quantiles of futures, what other widths would change."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jobcast.domain.arrays import Floats
from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import Cluster
from jobcast.models.completion.completion_time import CompletionTime
from jobcast.models.completion.intervals import IntervalTracker, Position
from jobcast.models.completion.known_jobs import KnownJobs
from jobcast.models.forecast_combination import combined_quantiles
from jobcast.models.promise_ledger import END, START
from jobcast.pipelines.experiments.elastic.conformal_intervals import (
    NOBODY,
    Earlier,
    fit_sizes_at,
    knowledge,
    replayed_positions,
)
from jobcast.pipelines.experiments.elastic.jobs import (
    ElasticScene,
    check_width,
    elastic_jobs,
    model_rows,
    models_of,
    with_more,
)
from jobcast.pipelines.experiments.elastic.rollouts import NO_PAST, Forecasters, Past, play_starts_and_ends
from jobcast.pipelines.experiments.elastic.simulation import prepare
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.report.console import Step
from jobcast.pipelines.report.formatting import iso
from jobcast.schedulers.policies import ELASTIC, split_settings
from jobcast.schedulers.registry import find_of_kind
from jobcast.simulator.elastic.run import ElasticReplay, WorstCase
from jobcast.simulator.elastic.state import CLOCK, COUNT
from jobcast.traces.table import Trace

NEW = "new"
"""The job that is asked about but was never submitted."""
QUANTILES = {"p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
"""Ends of the 90 % and the 50 % interval, and the median."""
FORECAST, DECLARED, NOISY = "forecast", "declared", "noisy"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Attributes
    ----------
    at_s : the instant; nothing after it is read
    job : its id, or `NEW` for one that would be submitted at the instant; None for all that wait or run
    ask_gpus : most GPUs of the new job, one answer each; of a job of the trace others than its own, beside it
    size_s : declared work of the new job, seconds on one GPU; None where it is to be drawn like that of others
    model : of the new job
    time_limit_s : of the new job, of whole ones; None where it has none
    futures, seed : how many are drawn, from which seed
    sizes : `FORECAST` where sizes are drawn from jobs that ended, `DECLARED` where they are as declared
    by_s : instant whose chance to be kept is asked, seconds from the epoch
    limit : the first so many of all jobs, those that wait before those that run
    """

    at_s: float
    job: str | None = NEW
    ask_gpus: tuple[int, ...] = ()
    size_s: float | None = None
    model: str | None = None
    time_limit_s: float | None = None
    futures: int = 200
    seed: int = 0
    sizes: str = FORECAST
    by_s: float | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Of one job at one width.

    Attributes
    ----------
    gpus : the most that it can use
    point_start_s, point_s : first GPUs and completion with sizes as declared and nothing more arriving, seconds from
        the epoch; NaN without a size
    starts_s, ends_s : (futures,) of both as drawn, seconds from the epoch
    worst_case : the latest completion that can be promised, seconds from the epoch; None where nothing is promised
    """

    gpus: int
    point_start_s: float
    point_s: float
    starts_s: Floats
    ends_s: Floats
    worst_case: WorstCase | None = None

    def drawn_s(self, kind: str) -> Floats:
        """Of a start or an end."""
        return self.starts_s if kind == START else self.ends_s


@dataclass(frozen=True, slots=True, eq=False)
class JobAnswers:
    """Where a job stands, and an answer for each width that is asked about, its own first."""

    stands: Mapping[str, Any]
    answers: Sequence[Answer]


def answer_jct(
    trace: Trace,
    place: Cluster,
    policy: str,
    settings: Mapping[str, str],
    question: Question,
    from_s: float | None = None,
    learned: CompletionTime | None = None,
    progress: Step | None = None,
) -> list[JobAnswers]:
    """Replay a trace up to an instant and forecast starts and completions of a job, or of all that wait or run.

    Raises ConfigError and TraceError for a job that is not there any more or not yet, or cannot be forecast.
    """
    # The instant's own submissions count, nothing later does.
    until_s = np.nextafter(question.at_s, np.inf)
    facts = split_settings(find_of_kind(policy, ELASTIC), settings).files.given()
    scenario = elastic_jobs(cut_scenario(trace, place.shared, from_s=from_s, until_s=until_s), **facts)
    earlier = earlier_of(scenario, facts, None if learned is None else learned.past_)
    check_width(max(question.ask_gpus, default=0), place.gpus, "--ask-gpus")
    origin_s, count = scenario.workload.origin_s, len(scenario)
    at_s = question.at_s - origin_s

    def replayed(one: ElasticScene) -> ElasticReplay:
        run = prepare(one, policy, settings)
        # To the last submission, then on to the instant itself.
        run.submit(len(one.workload))
        run.advance(at_s)
        return run

    if question.job == NEW:
        asked = _widths(scenario, question)
        row = _model_row(scenario, question.model)
        runs = [(gpus, replayed(_with_new(scenario, question, at_s, gpus, row))) for gpus in asked]
        rows = [
            _answered(run, count, gpus, _known(run, earlier, question, learned), question, origin_s)
            for gpus, run in runs
        ]
        return [JobAnswers(_standing(runs[-1][1], scenario, count, question), rows)]
    refuse_what_if(question, "--model", question.model)
    run, found = replayed(scenario), []
    known = _known(run, earlier, question, learned)
    asked_about = _queue(run, question.limit) if question.job is None else [_find(scenario, trace, question)]
    for number, job in enumerate(asked_about):
        if progress is not None:
            progress(number, len(asked_about))
        stands, own = _standing(run, scenario, job, question), int(run.jobs.most[job])
        # Widths of its own and of others, the latter from the instant on.
        wide = [(own, run)] + [(gpus, _at_width(run, job, gpus)) for gpus in question.ask_gpus if gpus != own]
        rows = [_answered(one, job, gpus, known, question, origin_s) for gpus, one in wide]
        found.append(JobAnswers(stands, rows))
    return found


def _widths(scenario: ElasticScene, question: Question) -> tuple[int, ...]:
    if len(question.ask_gpus) > 1 and question.size_s is None:
        raise ConfigError("--ask-gpus: widths can be compared for one amount of work alone; add --size-s SECONDS")
    # A new job of unknown width is taken to be like the middle one.
    return question.ask_gpus or (int(np.median(scenario.workload.jobs.most)),)


def _queue(run: ElasticReplay, limit: int | None) -> list[int]:
    """Active jobs: those that never had GPUs first, each in order of submission."""
    active = run.state.active[: int(run.state.count[COUNT.active])]
    return sorted(active.tolist(), key=lambda job: not np.isnan(run.state.start_s[job]))[:limit]


def _answered(
    run: ElasticReplay, job: int, gpus: int, known: Forecasters, question: Question, origin_s: float
) -> Answer:
    result = question.job != NEW or question.size_s is not None
    drawn = play_starts_and_ends(
        run,
        job,
        known,
        futures=question.futures,
        seed=question.seed,
        declared=job if question.size_s is not None and question.sizes == FORECAST else None,
        agreeing=result,  # else the rule was shown a size that nobody declared
    )
    point = _point(run, job) if result else np.full(2, np.nan)
    # Without a size nothing can be promised.
    latest = run.worst_case(job) if result and run.policy.promises is not None else None
    worst = None if latest is None else latest._replace(end_s=latest.end_s + origin_s)
    (start_s, end_s), (starts_s, ends_s) = point + origin_s, (drawn + origin_s).T
    return Answer(gpus, start_s, end_s, starts_s, ends_s, worst)


def _at_width(run: ElasticReplay, job: int, gpus: int) -> ElasticReplay:
    """The run with a job that can use so many GPUs from its instant on; its size is drawn as before."""
    jobs, changed = run.jobs, copy(run)
    clock, most, stage_most, least = (
        one.copy() for one in (run.state.clock, run.state.most, jobs.stage_most, jobs.least)
    )
    # The rule is asked at once, as when a lease ends.
    clock[CLOCK.lease_at] = clock[CLOCK.now]
    most[job] = stage_most[jobs.stage_of[job] : jobs.stage_of[job + 1]] = gpus
    least[job] = min(least[job], gpus)
    # Beyond the table's end nothing is gained.
    pad = ((0, 0), (0, 0), (0, max(0, gpus + 1 - jobs.speedup.shape[2])))
    speedup = np.pad(jobs.speedup, pad, mode="edge")
    changed.jobs = jobs._replace(stage_most=stage_most, least=least, speedup=speedup)
    changed.state = run.state._replace(clock=clock, most=most)
    return changed


def tell(
    answer: Answer,
    question: Question,
    trackers: Mapping[str, IntervalTracker],
    waits: bool = True,
) -> dict[str, Any]:
    """One answer as figures: instants as ISO-8601, times from the question on in hours.

    Parameters
    ----------
    trackers : of `START` and `END`, whose intervals are told; the quantiles of the futures where there is none
    waits : whether the job never had GPUs, so that its start is told
    """
    ends_s, start = _quantiles_s(answer.ends_s, question.at_s, trackers.get(END)), dict[str, Any]()
    # At another width it may have started before.
    if waits and answer.starts_s.max() >= question.at_s:
        starts_s = _quantiles_s(answer.starts_s, question.at_s, trackers.get(START))
        # Reaches of starts and of ends are learnt apart, but nobody ends before it starts.
        ends_s = np.fmax(ends_s, starts_s)
        start = {START: _told(answer.point_start_s, starts_s, question.at_s)}
    figures: dict[str, Any] = {"gpus": answer.gpus, **_told(answer.point_s, ends_s, question.at_s), **start}
    if answer.worst_case is not None:
        figures["worst_case"] = told_worst(answer.worst_case, question.at_s)
    if question.by_s is not None:
        figures |= {"by": iso(question.by_s), "by_probability": float((answer.ends_s <= question.by_s).mean())}
    return figures


def told_worst(latest: WorstCase, at_s: float) -> dict[str, Any]:
    """The latest completion that is promised: when, and in how many hours; the reason where there is none."""
    if latest.reason:
        return {"end": None, "hours": None, "reason": latest.reason}
    return {"end": iso(latest.end_s), "hours": (latest.end_s - at_s) / HOUR_S}


def by_kind(figures: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Figures of the start, where it is still to come, and of the end that `tell` gave."""
    if START in figures:
        yield START, figures[START]
    yield END, figures


def _quantiles_s(drawn_s: Floats, at_s: float, tracker: IntervalTracker | None) -> Floats:
    """`QUANTILES` of an event, seconds from the epoch, ascending; as the tracker has learnt where there is one."""
    if tracker is None:
        return np.asarray(np.quantile(drawn_s, list(QUANTILES.values())))
    # An interval needs a length.
    left_s = np.maximum(drawn_s - at_s, 1.0)
    half, most = tracker.intervals(left_s)
    return at_s + np.array((most.low_s, half.low_s, half.nearest_s(float(np.median(left_s))), half.high_s, most.high_s))


def _told(point_s: float, quantiles_s: Floats, at_s: float) -> dict[str, Any]:
    figures = dict[str, Any]()
    for name, instant_s in zip(("point", *QUANTILES), (point_s, *quantiles_s.tolist()), strict=True):
        if np.isfinite(instant_s):
            figures |= {name: iso(instant_s), f"{name}_h": (instant_s - at_s) / HOUR_S}
    return figures


def combined(answer: Answer, levels: Sequence[float], starts_s: Floats, weight: float, at_s: float) -> Answer:
    """An answer whose starts are pulled towards those that somebody else forecasts, quantile by quantile, in logs.

    Each future keeps its place among them and its run, so that ends move along.

    Parameters
    ----------
    levels, starts_s : (n,) shares of such jobs that have started by the second forecast's instants, seconds from the
        epoch, ascending; beyond the outermost it says nothing and these stand
    weight : of the second one, between 0 and 1
    at_s : the instant from which waits count
    """
    order = np.argsort(answer.starts_s, kind="stable")
    shares = (np.arange(len(order)) + 0.5) / len(order)
    waits = [np.maximum(one - at_s, 1.0) for one in (answer.starts_s[order], starts_s)]
    logs = [np.log(waits[0])[None], np.interp(shares, levels, np.log(waits[1]))[None]]
    moved_s = np.empty(len(order))
    moved_s[order] = at_s + np.exp(combined_quantiles(logs, np.array([1.0 - weight, weight]))[0])
    return replace(answer, starts_s=moved_s, ends_s=answer.ends_s + moved_s - answer.starts_s)


def refuse_what_if(question: Question, option: str, given: str | None) -> None:
    """Refuse to ask about jobs of the trace as if they had asked for something else. Raises ConfigError."""
    whose = "every job" if question.job is None else f"job {question.job}"
    for name, value in (("--size-s", question.size_s), ("--time-limit-s", question.time_limit_s), (option, given)):
        if value:
            raise ConfigError(f"{name}: {whose} is in the trace with what it asked for; pass --job {NEW}")
    if question.job is None and question.ask_gpus:
        raise ConfigError(f"--ask-gpus: goes with one job; add --job ID, or --job {NEW}")


def _find(scenario: ElasticScene, trace: Trace, question: Question) -> int:
    if question.job is not None and question.job in scenario.job_ids:
        return scenario.job_ids.index(question.job)
    if question.job in set(trace.jobs["job_id"].to_list()):
        raise TraceError(f"job {question.job}: is not submitted by {iso(question.at_s)}; ask later")
    raise TraceError(f"{trace.source.path}: holds no job {question.job!r}; pass one of its job ids, or {NEW}")


def _model_row(scenario: ElasticScene, model: str | None) -> int:
    rows = model_rows(scenario)
    if model is None:
        names = list(models_of(scenario.trace))
        # Sorted first: of models equally frequent the same one is taken each time.
        return int(rows[max(sorted(set(names)), key=names.count)])
    if model not in rows:
        raise ConfigError(
            f"--model {model}: no job of the trace up to then is of it; known are {', '.join(sorted(rows))}"
        )
    return int(rows[model])


def _with_new(scenario: ElasticScene, question: Question, at_s: float, gpus: int, model: int) -> ElasticScene:
    """The scenario with one job more, behind all others. Its size matters only where it is declared."""
    workload, jobs = scenario.workload, scenario.workload.jobs
    size_s = question.size_s if question.size_s is not None else float(np.median(workload.size_s))
    # The table must reach the new job's width; beyond its end nothing is gained.
    pad = ((0, 0), (0, 0), (0, max(0, gpus + 1 - jobs.speedup.shape[2])))
    row = ([at_s], [size_s], [0.0], [float(gpus)], [model])
    added = with_more(jobs._replace(speedup=np.pad(jobs.speedup, pad, mode="edge")), *row)
    return replace(scenario, workload=replace(workload, jobs=added, size_s=np.append(workload.size_s, size_s)))


def _standing(run: ElasticReplay, scenario: ElasticScene, job: int, question: Question) -> dict[str, Any]:
    """Where the job stands at the instant. Raises TraceError when it has finished."""
    state, origin_s = run.state, scenario.workload.origin_s
    if np.isfinite(state.end_s[job]):
        raise TraceError(
            f"job {question.job}: has finished at {iso(float(state.end_s[job]) + origin_s)} under "
            f"{run.policy.name}, before {iso(question.at_s)}; ask earlier"
        )
    held, start_s = float(state.gpus[job].sum()), float(state.start_s[job])
    # One that was never submitted has no row.
    row = scenario.listed.row(job, named=True) if job < len(scenario) else {"job_id": NEW, "pool": ""}
    return {
        "job_id": row["job_id"],
        "at": iso(question.at_s),
        "submitted": iso(float(run.jobs.submit_s[job]) + origin_s),
        "state": "running" if held > 0 else "queued",
        "started": iso(start_s + origin_s) if np.isfinite(start_s) else None,
        "held_gpus": held,
        "done_s": float(state.done_s[job]),
        "active_jobs": int(state.count[COUNT.active]),
        "user": row.get("user") or "",
        "pool": row["pool"],
        "gpus": int(run.jobs.most[job]),
    }


def _known(run: ElasticReplay, earlier: Earlier, question: Question, learned: CompletionTime | None) -> Forecasters:
    """What futures are drawn from. Raises TraceError where no size is known yet."""
    sizes = None
    if question.sizes == FORECAST:
        try:
            sizes = fit_sizes_at(run, earlier) if learned is None else learned.settings_
        except ValueError as error:
            raise TraceError(
                f"--sizes forecast at {iso(question.at_s)}: {error}; ask later, or pass --sizes declared"
            ) from error
    try:
        return knowledge(run, earlier, sizes)
    except ValueError:
        # Too few jobs for a model of arrivals: nobody else comes.
        return Forecasters(None, None, earlier.past)


def _point(run: ElasticReplay, job: int) -> Floats:
    """Start and end with sizes as declared, nothing more arriving; (2,)."""
    nobody = Forecasters(None, None, NO_PAST)
    return play_starts_and_ends(run, job, nobody, futures=1, seed=0).ravel()


def earlier_of(scenario: ElasticScene, facts: Mapping[str, Any], learned: KnownJobs | None = None) -> Earlier:
    """Jobs submitted before a window; each ended when its trace says, else as if it ran alone from the first.

    Models that the window does not know count as the window's first: their widths and sizes are what is learnt.

    `learned`: jobs in their place, where the trace holds none before the window.
    """
    of_earlier = history_of(scenario, facts)
    if of_earlier is None:
        return NOBODY if learned is None else _as_earlier(learned, scenario)
    earlier, before = of_earlier.trace, of_earlier.workload
    origin_s, jobs = scenario.workload.origin_s, before.jobs
    rows = model_rows(scenario)
    model = np.array([rows.get(name, 0) for name in models_of(earlier)], dtype=np.int64)
    submit_s = jobs.submit_s + (before.origin_s - origin_s)
    # The table may end before a job's width.
    most = np.minimum(jobs.most, jobs.speedup.shape[2] - 1).astype(np.int64)
    end_s = submit_s + before.size_s / jobs.speedup[jobs.model, 0, most]
    if "end_time" in earlier.jobs.columns:
        result = earlier.end_s - origin_s
        # Jobs that ran on have no end yet: they are taken to run alone.
        end_s = np.where(np.isfinite(result), result, end_s)
    past = Past(submit_s, before.size_s, jobs.least, jobs.most, model, jobs.size_s)
    return Earlier(past, end_s)


def history_of(scenario: ElasticScene, facts: Mapping[str, Any]) -> ElasticScene | None:
    """Jobs submitted before a window, on the same cluster and tables: widths and sizes must be comparable."""
    try:
        return elastic_jobs(cut_scenario(scenario.earlier, scenario.place), **facts)
    except TraceError:
        return None


def warmed(
    scenario: ElasticScene, policy: str, settings: Mapping[str, str], facts: Mapping[str, Any], **how: Any
) -> list[Position]:
    """What a tracker of a policy begins with: a replay of the jobs before a window; `how`: see `replayed_positions`."""
    past = history_of(scenario, facts)
    if past is None:
        return []
    until_s = scenario.workload.origin_s - past.workload.origin_s
    return replayed_positions(prepare(past, policy, settings), until_s, **how)


def _as_earlier(learned: KnownJobs, scenario: ElasticScene) -> Earlier:
    """The ended jobs of another trace, as if it had stopped when the scenario's window begins."""
    ended, widest = learned.ended, scenario.workload.jobs.speedup.shape[2] - 1
    least, most = (np.minimum(one[ended], widest).astype(np.float64) for one in (learned.least, learned.most))
    past = Past(learned.submit_s[ended], learned.work_s[ended], least, most, np.zeros(int(ended.sum()), dtype=np.int64))
    return Earlier(past, learned.known_s[ended])
