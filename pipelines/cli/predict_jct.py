"""`jobcast predict jct`: when jobs start and end, in words, figures and plots, kept in the promise ledger."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

from jobcast import __version__
from jobcast.domain.clock import HOUR_S
from jobcast.domain.errors import ConfigError, OverlapError, TraceError
from jobcast.domain.pairs import settings_of
from jobcast.models.completion.intervals import IntervalTracker
from jobcast.models.job_duration import JobDuration
from jobcast.models.promise_ledger import END
from jobcast.models.promise_record import ALONE, Calibration, keep
from jobcast.models.registry.home import find_home
from jobcast.pipelines.cli.jct import files_read, place_of, refuse_of_elastic, source_of, spread_of
from jobcast.pipelines.cli.options import check_places, table_or_json, tell_notes, whole_numbers
from jobcast.pipelines.experiments.completion_by_copies import WHOLE, answer_by_copies
from jobcast.pipelines.experiments.elastic.completion_prediction import (
    DECLARED,
    FORECAST,
    NEW,
    QUANTILES,
    JobAnswers,
    Question,
    answer_jct,
    by_kind,
    tell,
)
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import CONSERVATIVE, ForecastSpec
from jobcast.pipelines.experiments.seen_data import seen_until
from jobcast.pipelines.experiments.sources import Ask, Registered, is_registered
from jobcast.pipelines.lifecycle.promises import calibrations, promises_of
from jobcast.pipelines.lifecycle.wait_forecasts import WaitForecasts, asked_waits
from jobcast.pipelines.report.completion import (
    Clock,
    Curve,
    calibrated_on,
    check_plot,
    queue_table,
    sentence,
    write_plot,
)
from jobcast.pipelines.report.console import Console, Step
from jobcast.pipelines.report.figure_lines import fidelity_line
from jobcast.pipelines.report.formatting import UNKNOWN, counted, iso, parse_time
from jobcast.pipelines.report.layout import aligned
from jobcast.pipelines.report.model_tables import of_version
from jobcast.schedulers.policies import ELASTIC, POOLS, PolicySpec
from jobcast.schedulers.registry import resolve_policy
from jobcast.traces.column_types import zone_named
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace

RECORDED = "recorded"
FUTURES = 200
UNTRAINED = (
    "no version of job-duration is registered: run times are drawn from jobs that ended, and no point is told "
    "(`jobcast train job-duration`, or name a source by --forecasts)"
)
MOST_INSTANTS = 200
"""Times that a job is asked about again, at most: one that is starved never finishes."""
Answering = Callable[[Question, Step | None], tuple[dict[str, Any], list[JobAnswers]]]
"""What the run went by, and the jobs that were asked about; tells its progress."""
Combining = Callable[[float, list[JobAnswers]], tuple[list[JobAnswers], WaitForecasts | None]]
"""Answers of futures at an instant with those of queue-wait, and the latter, None where there are none."""


def predict_jct(asked: Mapping[str, Any], learned: Registered | None, console: Console) -> None:
    """Answer what `jobcast predict jct` was asked, by a version of completion-time where there is one.

    Raises ConfigError and TraceError as `answer_jct` does, and for options that do not go together.
    """
    _check(asked)
    zone = None if asked["timezone"] is None else zone_named(asked["timezone"])
    trace, home = read_trace(asked["trace_path"]), find_home()
    question = _question(asked, trace)
    clock, sha256 = Clock(question.at_s, zone), trace.source.sha256
    rule = resolve_policy(asked["policy"], elastic=bool(trace.elastic.any()))[0]
    spec = _source(asked, rule, question)
    answering = _answering(asked, trace, rule, learned, spec)
    with console.progress(f"predict {question.job or 'all jobs'}") as step:
        described, found = answering(question, step)
        step(1, 1)
    of = alone = {"policy": rule.name, "version": _version(learned), "sizes": described["sizes"]}
    # Of several instants the same is said once.
    note = cache(console.note)

    def combine(at_s: float, futures: list[JobAnswers]) -> tuple[list[JobAnswers], WaitForecasts | None]:
        # Of a replay the trace's own queue, which queue-wait looks at, is another one.
        waits = asked_waits(trace, at_s, home, note, alone) if asked["begin"] == RECORDED else None
        return (futures if waits is None else [waits.beside(one, at_s) for one in futures]), waits

    futures = found
    found, waits = combine(question.at_s, futures)
    if waits is not None:
        of = alone | {"version": f"{alone['version']} + {waits.version}"}
        described["starts_from"] = waits.starts_from
    calibrated = calibrations(home, trace, question.at_s, console.note, **of)
    trackers = {} if learned is None else {END: learned.model.tracker()}
    trackers |= {kind: one.tracker() for kind, one in calibrated.items()}
    jobs = [_job(one, question, trackers, clock) for one in found]
    result = _result(jobs, question, clock, calibrated) | described | {"policy": rule.name}
    if learned is not None:
        result |= {**of_version(learned.version), "overlap": seen_until(learned.version, question.at_s, sha256)}
    if asked["every_h"]:
        later = [question.at_s + number * asked["every_h"] * HOUR_S for number in range(1, MOST_INSTANTS + 1)]
        # Of a recorded queue nobody knows what became of it since; a replay goes on by itself.
        told = [at_s for at_s in later if asked["begin"] != RECORDED or at_s <= trace.last_known_s]
        result["again"] = _again(answering, combine, question, told, trackers, clock)
        if len(told) < len(later) and not any("finished" in one for one in result["again"]):
            console.note(f"--every: stops at {iso(trace.last_known_s)}, the last that the trace tells of")
    if asked["plot"]:
        title = f"When will job {result['job_id']} start and end? {rule.name}, asked at {clock.dated(clock.at_s)}"
        write_plot(
            asked["plot"],
            title,
            _curves(jobs[0], found[0], question.at_s),
            clock,
            sentence(jobs[0], clock),
        )
        console.note(f"plot: {asked['plot']}")
    if not asked["no_ledger"]:
        how: dict[str, Any] = {"what_if": question.job == NEW, "at_s": question.at_s, "trace_sha256": sha256}
        made = [promises_of(job, one.answers, **how, **of) for job, one in zip(jobs, found, strict=True)]
        result["promises"] = keep(home, chain.from_iterable(made), console.note)
        if waits is not None:
            # Of either by itself, for the weights of answers to come.
            parts = [promises_of(_job(one, question, {}, clock), one.answers[:1], **how, **alone) for one in futures]
            apart = (
                replace(one, version=one.version + ALONE) for one in (*chain.from_iterable(parts), *waits.promises)
            )
            keep(home, apart, console.note)
    tell_notes(trace, console)
    if spec == CONSERVATIVE and asked["forecasts"] is None:
        console.note(UNTRAINED)
    if rule.kind == POOLS and asked["begin"] != RECORDED and (open_jobs := _still_open(trace, question.at_s)):
        console.note(f"{counted(open_jobs, 'job')} without an end by then: --begin recorded begins with them, too")
    if "fidelity" in result:
        console.note(f"fidelity by then: {fidelity_line(result['fidelity'])}")
    table_or_json(result, asked["json_to"], _in_words(result, jobs, clock), console)


def _still_open(trace: Trace, at_s: float) -> int:
    """Jobs that wait or run at an instant and never end in the trace; replays leave them out."""
    recorded = "start_time" in trace.jobs.columns
    return int((recorded & ~trace.ended & (trace.submit_s <= at_s) & (trace.gpus > 0)).sum())


def _version(learned: Registered | None) -> str:
    """The predictor as the ledger names it; what is learned on the spot hangs on jobcast's own version."""
    return f"jct {__version__}" if learned is None else f"{learned.version.name}:{learned.version.version}"


def _result(
    jobs: list[dict[str, Any]], question: Question, clock: Clock, calibrated: Mapping[str, Calibration]
) -> dict[str, Any]:
    asked_about: Mapping[str, Any] = {"jobs": jobs} if question.job is None else jobs[0]
    rests_on = {kind: {"due": one.due, "kept": one.kept} for kind, one in calibrated.items()}
    return {**asked_about, "at": iso(question.at_s), "timezone": clock.name, "calibrated": rests_on}


def _check(asked: Mapping[str, Any]) -> None:
    """Raise ConfigError for options that lack, or do not go together."""
    if not asked["policy"]:
        raise ConfigError("predict jct: needs --policy NAME")
    if asked["from_s"] is not None and asked["begin"] == RECORDED:
        raise ConfigError("--begin recorded: the run begins at --at; leave --from out")
    if spread_of(asked["sizes"]):
        raise ConfigError(f"--sizes {asked['sizes']}: jobs declare what they declare; pass {FORECAST} or {DECLARED}")
    if asked["plot"]:
        check_plot(asked["plot"])
    for name, option in (("plot", "--plot"), ("every_h", "--every")):
        if asked[name] and asked["job"] is None:
            raise ConfigError(f"{option}: goes with one job; add --job ID, or --job {NEW}")
    if asked["job"] is not None and asked["limit"]:
        raise ConfigError("--limit: goes with all jobs; leave --job out")
    if asked["every_h"] and asked["job"] == NEW:
        raise ConfigError(f"--every: a job that is only asked about does not go on; pass the id of one, not {NEW}")
    check_places(asked["json_to"], files_read(asked), {"--plot": asked["plot"]})


def _question(asked: Mapping[str, Any], trace: Trace) -> Question:
    # Who asks beside a cluster means now, and its export ends about now.
    at_s = trace.last_known_s if asked["at_s"] is None else asked["at_s"]
    if asked["from_s"] is not None and asked["from_s"] > at_s:
        raise ConfigError("--from must not lie after --at")
    if at_s < trace.submit_s[0]:
        raise ConfigError(f"{trace.source.path}: no job was submitted by {iso(at_s)}; choose a later --at")
    by_s = parse_time(asked["by"], "--by") if asked["by"] else None
    if by_s is not None and by_s < at_s:
        raise ConfigError(f"--by {asked['by']}: is over by {iso(at_s)}, the instant that is asked at; name a later one")
    return Question(
        at_s=at_s,
        job=asked["job"],
        ask_gpus=whole_numbers(asked["ask_gpus"], "--ask-gpus"),
        size_s=asked["size_s"],
        model=asked["model"],
        time_limit_s=asked["time_limit_s"],
        futures=asked["futures"] or FUTURES,
        seed=asked["seed"],
        sizes=asked["sizes"] or FORECAST,
        by_s=by_s,
        limit=asked["limit"],
    )


def _source(asked: Mapping[str, Any], rule: PolicySpec, question: Question) -> ForecastSpec | None:
    """What was named, else the conservative source where nobody has trained one that tells run times yet.

    Futures need none; None leaves the default of the policy, and elastic ones ask nobody.
    """
    if asked["forecasts"] is not None and rule.kind != ELASTIC:
        return source_of(asked)
    trained = rule.kind not in WHOLE or question.sizes == DECLARED or is_registered(JobDuration.name, find_home())
    return None if trained else CONSERVATIVE


def _answering(
    asked: Mapping[str, Any],
    trace: Trace,
    rule: PolicySpec,
    learned: Registered | None,
    spec: ForecastSpec | None,
) -> Answering:
    from_s, settings = asked["from_s"], settings_of(asked["pairs"])
    model, place = None if learned is None else learned.model, place_of(trace, asked, from_s)

    def answer(question: Question, progress: Step | None) -> tuple[dict[str, Any], list[JobAnswers]]:
        if rule.kind == ELASTIC:
            refuse_of_elastic(rule.name, asked, "pools", "forecasts", "pool", "begin", "time_limit_s")
            found = answer_jct(trace, place, rule.name, settings, question, from_s, model, progress)
            return {"sizes": question.sizes}, found
        now = asked["begin"] == RECORDED
        window: dict[str, Any] = {"from_s": question.at_s if now else from_s, "recorded": now}
        experiment = Experiment(trace=trace, cluster=place, drop_wide=True, only_pools=True, **window)
        ask = Ask(policy=rule.name, home=find_home(), spec=spec, settings=settings, seed=question.seed)
        try:
            # Futures of all jobs are simulated in one go: there is nothing to count.
            result, found = answer_by_copies(experiment, ask, question, asked["pool"], model)
        # Its remedies are of replays of windows.
        except OverlapError as error:
            seen = str(error).partition(";")[0]
            # A later instant does not move the beginning of a replay.
            later = "ask later by --at" if now else "begin after that by --from"
            raise OverlapError(f"{seen}; {later}, or pass --forecasts {CONSERVATIVE.label}") from error
        return {**result, **({"begin": RECORDED} if now else {})}, found

    return answer


def _job(
    answered: JobAnswers, question: Question, trackers: Mapping[str, IntervalTracker], clock: Clock
) -> dict[str, Any]:
    waits = answered.stands["started"] is None
    rows = [tell(one, question, trackers, waits) for one in answered.answers]
    job = {**answered.stands, "answers": rows}
    return job | {"text": sentence(job, clock)}


def _curves(job: Mapping[str, Any], answered: JobAnswers, at_s: float) -> list[Curve]:
    """Of each width the end, and before it the start where it is still to come."""
    curves = []
    for figures, answer in zip(job["answers"], answered.answers, strict=True):
        for kind, described in by_kind(figures):
            low_s, high_s = (at_s + described[f"{name}_h"] * HOUR_S for name in ("p5", "p95"))
            curves.append(Curve(counted(answer.gpus, "GPU"), kind, answer.drawn_s(kind), low_s, high_s))
    return curves


def _in_words(result: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]], clock: Clock) -> str:
    """A line a job; of one job its figures below."""
    asides = [f"times in {clock.name}", f"under {result['policy']}", calibrated_on(result["calibrated"])]
    head = f"as of {clock.dated(clock.at_s)}, " + "; ".join(filter(None, asides))
    if "jobs" in result:
        table = queue_table(jobs, clock) if jobs else "no job waits or runs"
        return f"{head}; intervals and ends with 90 %\n{table}"
    lines = [result["text"], head, "", _figures(result)]
    if result.get("overlap"):
        lines.append("note: the version was trained on what comes after this instant")
    if "again" in result:
        lines += ["", *(one.get("finished") or f"at {one['at']}: {one['text']}" for one in result["again"])]
    return "\n".join(lines)


def _figures(result: Mapping[str, Any]) -> str:
    """A line for each width, hours from the instant."""
    rows: list[tuple[str, ...]] = [("GPUs", "hours to its", "point", "p5", "p25", "median", "p75", "p95", "")]
    for one in result["answers"]:
        for kind, described in by_kind(one):
            cells = (
                f"{described[f'{name}_h']:,.2f}" if name in described else UNKNOWN for name in ("point", *QUANTILES)
            )
            late = f"by {described['by']}: {described['by_probability']:.0%}" if "by" in described else ""
            late += _latest(one) if kind == END else ""
            rows.append((str(one["gpus"]), kind, *cells, late))
    return aligned(rows)


def _latest(one: Mapping[str, Any]) -> str:
    if "worst_case" not in one:
        return ""
    worst = one["worst_case"]
    return f" no worst case: {worst['reason']}" if "reason" in worst else f" at worst {worst['hours']:,.2f}"


def _again(
    answer: Answering,
    combine: Combining,
    question: Question,
    later_s: Sequence[float],
    trackers: Mapping[str, IntervalTracker],
    clock: Clock,
) -> list[dict[str, Any]]:
    """The same question at later instants, until the job has finished."""
    rows: list[dict[str, Any]] = []
    for at_s in later_s:
        later = replace(question, at_s=at_s)
        try:
            _, futures = answer(later, None)
        # The job has ended by then, which the error says.
        except TraceError as error:
            rows.append({"at": iso(later.at_s), "finished": str(error)})
            return rows
        (answered,), waits = combine(later.at_s, futures)
        job = _job(answered, later, trackers, replace(clock, at_s=later.at_s))
        told = {"at": iso(later.at_s), "state": job["state"], "text": job["text"], **job["answers"][0]}
        rows.append(told if waits is None else told | {"starts_from": waits.starts_from})
    return rows
