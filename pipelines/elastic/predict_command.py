"""`jobcast predict jct`: what was asked, answered, plotted and told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.clusters import cluster_of
from jobcast.pipelines.commands.jct_options import whole_numbers
from jobcast.pipelines.commands.options import check_places, settings_of, table_or_json, tell_notes
from jobcast.pipelines.console import Console
from jobcast.pipelines.elastic.jct_plot import check_plot, write_plot
from jobcast.pipelines.elastic.predicting import HOUR_S, NEW, Question, answer_jct, answers_table
from jobcast.pipelines.times import iso, parse_time
from jobcast.schedulers.policies import ELASTIC
from jobcast.schedulers.registry import find_of_kind, resolve_policy
from jobcast.traces.readers import read_trace

FUTURES = 200
MOST_INSTANTS = 200
"""Times that a job is asked about again, at most."""


def predict_jct(
    console: Console,
    trace_path: Path,
    at_s: float,
    from_s: float | None,
    pairs: tuple[str, ...],
    seed: int,
    json_to: str | None,
    *,
    policy: str | None,
    gpus: int | None,
    cluster_path: Path | None,
    futures: int | None,
    sizes: str | None,
    job: str | None,
    ask_gpus: str | None,
    size_s: float | None,
    model: str | None,
    by: str | None,
    every_h: float | None,
    plot: Path | None,
) -> None:
    """Answer. Raises ConfigError and TraceError as `answer_jct` does, and for options that do not go together."""
    if not policy or not job:
        lacking = "--policy NAME" if not policy else f"--job ID, or --job {NEW}"
        raise ConfigError(f"predict jct: needs {lacking}")
    if from_s is not None and from_s > at_s:
        raise ConfigError("--from must not lie after --at")
    if plot:
        check_plot(plot)
    check_places(json_to, (trace_path, cluster_path), {"--plot": plot})
    question = Question(
        at_s=at_s,
        job=job,
        ask_gpus=whole_numbers(ask_gpus, "--ask-gpus"),
        size_s=size_s,
        model=model,
        futures=futures or FUTURES,
        seed=seed,
        sizes=sizes or "forecast",
        by_s=parse_time(by, "--by") if by else None,
    )
    if every_h and job == NEW:
        raise ConfigError(f"--every: a job that is only asked about does not go on; pass the id of one, not {NEW}")
    trace, settings = read_trace(trace_path), settings_of(pairs)
    policy = find_of_kind(resolve_policy(policy, elastic=bool(trace.elastic.any()))[0].name, ELASTIC).name
    place = cluster_of(trace, gpus=gpus, cluster=cluster_path)
    with console.progress(f"predict {job}") as step:
        result, answers = answer_jct(trace, place, policy, settings, question, from_s)
        step(1, 1)
    tell_notes(trace, console)
    table = answers_table(result)
    if every_h:
        result["again"] = _again(trace, place, policy, settings, question, from_s, every_h)
        table += "\n\nasked again\n" + _again_table(result["again"])
    if plot:
        write_plot(plot, result, answers, question)
        console.note(f"plot: {plot}")
    table_or_json(result, json_to, table, console)


def _again(
    trace: Any, place: Any, policy: str, settings: Any, question: Question, from_s: float | None, every_h: float
) -> list[dict[str, Any]]:
    """The same question at later instants, until the job has finished."""
    from jobcast.domain.errors import TraceError

    told: list[dict[str, Any]] = []
    for number in range(1, MOST_INSTANTS + 1):
        later = replace(question, at_s=question.at_s + number * every_h * HOUR_S)
        try:
            result, _ = answer_jct(trace, place, policy, settings, later, from_s)
        except TraceError as error:
            told.append({"at": iso(later.at_s), "finished": str(error)})
            return told
        told.append({"at": iso(later.at_s), "state": result["state"], **result["answers"][0]})
    return told


def _again_table(told: list[dict[str, Any]]) -> str:
    rows = [{"at": "at", "p5": "p5", "p50": "median", "p95": "p95"}, *told]
    return "\n".join(
        one["finished"] if "finished" in one else " ".join(f"{one[key]:<26}" for key in ("at", "p5", "p50", "p95"))
        for one in rows
    )
