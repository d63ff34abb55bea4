"""`jobcast predict jct`: when will this job finish? A point, quantiles of futures, what other widths would change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jobcast.domain.elastic import ElasticJobs, Floats
from jobcast.domain.errors import ConfigError, TraceError
from jobcast.domain.hardware import Cluster
from jobcast.models.completion.completion_time import CompletionTime
from jobcast.pipelines.experiments.elastic.conformal_intervals import Earlier, fit_sizes_at, knowledge
from jobcast.pipelines.experiments.elastic.earlier_jobs import earlier_of
from jobcast.pipelines.experiments.elastic.jobs import ElasticScene, elastic_jobs, model_rows, models_of
from jobcast.pipelines.experiments.elastic.rollouts import NO_PAST, Forecasters, play_futures
from jobcast.pipelines.experiments.elastic.simulation import prepare
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.report.formatting import iso
from jobcast.schedulers.policies import ELASTIC, split_settings
from jobcast.schedulers.registry import find_of_kind
from jobcast.simulator.elastic.run import ElasticReplay
from jobcast.simulator.elastic.state import COUNT
from jobcast.traces.table import Trace

NEW = "new"
"""The job that is asked about but was never submitted."""
HOUR_S = 3600.0
QUANTILES = {"p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
"""Ends of the 90 % and the 50 % interval, and the median."""
FORECAST, DECLARED, NOISY = "forecast", "declared", "noisy"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Attributes
    ----------
    at_s : the instant; nothing after it is read
    job : its id, or `NEW` for one that would be submitted at the instant
    ask_gpus : most GPUs of the new job, one answer each; of a job of the trace its own
    size_s : declared work of the new job, seconds on one GPU; None where it is to be drawn like that of others
    model : of the new job
    futures, seed : how many are drawn, from which seed
    sizes : `FORECAST` where sizes are drawn from jobs that ended, `DECLARED` where they are as declared
    by_s : instant whose chance to be kept is asked, seconds from the epoch
    """

    at_s: float
    job: str = NEW
    ask_gpus: tuple[int, ...] = ()
    size_s: float | None = None
    model: str | None = None
    futures: int = 200
    seed: int = 0
    sizes: str = FORECAST
    by_s: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Of one job at one width.

    Attributes
    ----------
    gpus : the most that it can use
    point_s : completion with sizes as declared and nothing more arriving, seconds from the epoch; NaN without a size
    ends_s : (futures,) completions drawn, seconds from the epoch
    """

    gpus: int
    point_s: float
    ends_s: Floats


def answer_jct(
    trace: Trace,
    place: Cluster,
    policy: str,
    settings: Mapping[str, str],
    question: Question,
    from_s: float | None = None,
    learned: CompletionTime | None = None,
) -> tuple[dict[str, Any], list[Answer]]:
    """Replay a trace up to an instant and forecast a job's completion; figures, and the draws behind them.

    Raises ConfigError and TraceError for a job that is not there any more or not yet, or cannot be forecast.
    """
    # The instant's own submissions count, nothing later does.
    until_s = np.nextafter(question.at_s, np.inf)
    facts = split_settings(find_of_kind(policy, ELASTIC), settings).files.given()
    scenario = elastic_jobs(cut_scenario(trace, place.shared, from_s=from_s, until_s=until_s), **facts)
    earlier, workload = earlier_of(scenario, facts, None if learned is None else learned.past_), scenario.workload
    origin_s = workload.origin_s
    at_s = question.at_s - origin_s
    if question.job == NEW:
        row = _model_row(scenario, question.model)
        if len(question.ask_gpus) > 1 and question.size_s is None:
            raise ConfigError("--ask-gpus: widths can be compared for one amount of work alone; add --size-s SECONDS")
        # A new job of unknown width is taken to be like the middle one.
        asked = question.ask_gpus or (int(np.median(workload.jobs.most)),)
        runs = [(gpus, _with_new(scenario, question, at_s, gpus, row)) for gpus in asked]
        job = len(scenario)
    else:
        refuse_what_if(question, "--model", question.model)
        job = _find(scenario, trace, question)
        runs = [(int(workload.jobs.most[job]), scenario)]
    answers, told = [], {}
    for gpus, one in runs:
        run = prepare(one, policy, settings)
        # To the last submission, then on to the instant itself.
        run.submit(len(one.workload))
        run.advance(at_s)
        told = _standing(run, origin_s, job, question)
        ends = _ends(run, job, earlier, question, learned)
        known = question.job != NEW or question.size_s is not None
        point = _point(run, job) if known else np.nan
        answers.append(Answer(gpus, point + origin_s, ends + origin_s))
    return told | {
        "policy": policy,
        "sizes": question.sizes,
        "answers": [tell(one, question, learned) for one in answers],
    }, answers


def tell(answer: Answer, question: Question, learned: CompletionTime | None = None) -> dict[str, Any]:
    """One answer as figures: instants as ISO-8601, times from the question on in hours.

    `learned`: whose intervals are told; None: the quantiles of the futures.
    """
    quantiles = np.quantile(answer.ends_s, list(QUANTILES.values()))
    if learned is not None:
        # An interval needs a length.
        left_s = np.maximum(answer.ends_s - question.at_s, 1.0)
        half, most = learned.tracker().intervals(left_s)
        told_s = (most.low_s, half.low_s, float(np.median(left_s)), half.high_s, most.high_s)
        quantiles = question.at_s + np.array(told_s)
    figures: dict[str, Any] = {"gpus": answer.gpus}
    if np.isfinite(answer.point_s):
        figures |= {"point": iso(answer.point_s), "point_h": (answer.point_s - question.at_s) / HOUR_S}
    for name, end_s in zip(QUANTILES, quantiles, strict=True):
        figures |= {name: iso(float(end_s)), f"{name}_h": float(end_s - question.at_s) / HOUR_S}
    if question.by_s is not None:
        figures |= {"by": iso(question.by_s), "by_probability": float((answer.ends_s <= question.by_s).mean())}
    return figures


def refuse_what_if(question: Question, option: str, given: str | None) -> None:
    """Refuse to ask about a job of the trace as if it had asked for something else. Raises ConfigError."""
    for name, value in (("--ask-gpus", question.ask_gpus), ("--size-s", question.size_s), (option, given)):
        if value:
            raise ConfigError(f"{name}: job {question.job} is in the trace with what it asked for; pass --job {NEW}")


def _find(scenario: ElasticScene, trace: Trace, question: Question) -> int:
    if question.job in scenario.job_ids:
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
    longer = max(gpus + 1, jobs.speedup.shape[2])
    pad = ((0, 0), (0, 0), (0, longer - jobs.speedup.shape[2]))
    added = ElasticJobs(
        submit_s=np.append(jobs.submit_s, at_s),
        size_s=np.append(jobs.size_s, size_s),
        least=np.append(jobs.least, 0.0),
        most=np.append(jobs.most, float(gpus)),
        model=np.append(jobs.model, model),
        stage_of=np.append(jobs.stage_of, jobs.stage_of[-1] + 1),
        stage_end=np.append(jobs.stage_end, 1.0),
        stage_most=np.append(jobs.stage_most, float(gpus)),
        speedup=np.pad(jobs.speedup, pad, mode="edge"),
        speed=jobs.speed,
    )
    return replace(scenario, workload=replace(workload, jobs=added, size_s=np.append(workload.size_s, size_s)))


def _standing(run: ElasticReplay, origin_s: float, job: int, question: Question) -> dict[str, Any]:
    """Where the job stands at the instant. Raises TraceError when it has finished."""
    state = run.state
    if np.isfinite(state.end_s[job]):
        raise TraceError(
            f"job {question.job}: has finished at {iso(float(state.end_s[job]) + origin_s)} under "
            f"{run.policy.name}, before {iso(question.at_s)}; ask earlier"
        )
    held = float(state.gpus[job].sum())
    return {
        "job_id": question.job,
        "at": iso(question.at_s),
        "submitted": iso(float(run.jobs.submit_s[job]) + origin_s),
        "state": "running" if held > 0 else "queued",
        "held_gpus": held,
        "done_s": float(state.done_s[job]),
        "active_jobs": int(state.count[COUNT.active]),
    }


def _ends(run: ElasticReplay, job: int, earlier: Earlier, question: Question, learned: CompletionTime | None) -> Floats:
    sizes = None
    if question.sizes == FORECAST:
        try:
            sizes = fit_sizes_at(run, earlier) if learned is None else learned.settings_
        except ValueError as error:
            raise TraceError(
                f"--sizes forecast at {iso(question.at_s)}: {error}; ask later, or pass --sizes declared"
            ) from error
    try:
        known = knowledge(run, earlier, sizes)
    except ValueError:
        # Too few jobs for a model of arrivals: nobody else comes.
        known = Forecasters(None, None, earlier.past)
    declared = job if question.size_s is not None and question.sizes == FORECAST else None
    agreeing = question.job != NEW or question.size_s is not None  # else the rule was shown a size that nobody declared
    return play_futures(
        run, job, known, futures=question.futures, seed=question.seed, declared=declared, agreeing=agreeing
    )


def _point(run: ElasticReplay, job: int) -> float:
    """With sizes as declared, nothing more arriving."""
    nobody = Forecasters(None, None, NO_PAST)
    return float(play_futures(run, job, nobody, futures=1, seed=0)[0])


def answers_table(result: Mapping[str, Any]) -> str:
    """For a person: where the job stands, then a line for each width."""
    lines = [
        f"job {result['job_id']}, {result['state']} at {result['at']} under {result['policy']}, "
        f"{result['active_jobs']} active jobs",
        f"{'GPUs':>5} {'point':>10} {'p5':>10} {'p25':>10} {'median':>10} {'p75':>10} {'p95':>10}   hours from then",
    ]
    for one in result["answers"]:
        cells: Sequence[str] = [_hours(one.get("point_h"))] + [_hours(one[f"{name}_h"]) for name in QUANTILES]
        late = f"   by {one['by']}: {one['by_probability']:.0%}" if "by" in one else ""
        lines.append(f"{one['gpus']:>5} " + " ".join(f"{cell:>10}" for cell in cells) + late)
    return "\n".join(lines)


def _hours(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
