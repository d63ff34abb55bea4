"""The stages of the main job, in order: `jobcast run` checks and executes this list; dvc.yaml tells what each reads."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import pools_cluster
from jobcast.pipelines.experiments.backtest import windows_of
from jobcast.pipelines.experiments.executors import meanwhile
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS, parse_forecasts
from jobcast.pipelines.experiments.simulation import warmup_end
from jobcast.pipelines.lifecycle.gate import outcome
from jobcast.pipelines.lifecycle.predictors import find_predictor
from jobcast.pipelines.lifecycle.recipes import recipe_of
from jobcast.pipelines.report.backtest_page import summary_table
from jobcast.pipelines.report.console import Console, Kept
from jobcast.pipelines.report.files import check_outputs, read_json
from jobcast.pipelines.stages import (
    backtest,
    care,
    code,
    enrich,
    evaluate,
    featurize,
    judge,
    learn,
    prepare,
    promote,
    queue,
    report,
    schedule,
    train,
)
from jobcast.pipelines.stages.config import LEARNED, SCHEDULERS, Params
from jobcast.pipelines.stages.context import RECEIPTS, Context
from jobcast.pipelines.stages.prepared_traces import Prepared, prepare_trace
from jobcast.schedulers.policies import POOLS, WHOLE_JOBS
from jobcast.schedulers.registry import find_of_kind
from jobcast.traces.enrich.columns import parse_enrich
from jobcast.traces.generators import GENERATORS
from jobcast.traces.splits import pools_to_learn_from


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the main job; one that runs once an item (dvc.yaml's foreach) has several."""

    name: str
    work: Callable[[Context, str], None]
    items: Sequence[str] = ("",)
    lacks: Callable[[Params, str], str] = lambda params, item: ""
    """Why it cannot run here for an item, empty where it can; the main job goes on without it."""


def _code(context: Context, item: str) -> None:
    code.work(context, [(stage.name, item) for stage, item in steps() if stage.name != "code"])


STAGES: tuple[Stage, ...] = (
    Stage("code", _code),
    Stage("prepare", prepare.work),
    Stage("featurize", featurize.work),
    Stage("care", care.work),
    Stage("train", train.work, PREDICTORS),
    Stage("evaluate", evaluate.work),
    Stage("backtest", backtest.work),
    Stage("promote", promote.work),
    Stage("report", report.work),
    Stage("enrich", enrich.work),
    Stage("queue", queue.work),
    Stage("learn", learn.work, LEARNED, learn.lacks),
    Stage("judge", judge.work, LEARNED, learn.lacks),
    Stage("schedule", schedule.work, SCHEDULERS, learn.lacks),
)


def find_stage(name: str, item: str) -> Stage:
    """The stage of a name; ConfigError lists the stages or its items."""
    for stage in STAGES:
        if stage.name == name:
            if item in stage.items:
                return stage
            wanted = " or ".join(stage.items) or "no item"
            raise ConfigError(f"stage {name}: takes {wanted}, got {item or 'none'}")
    raise ConfigError(f"stage {name}: unknown; choose from {', '.join(stage.name for stage in STAGES)}")


def steps() -> Iterator[tuple[Stage, str]]:
    """Every (stage, item) in the order in which they run."""
    for stage in STAGES:
        for item in stage.items:
            yield stage, item


def run(context: Context) -> None:
    """Run all stages into `context.root`; print the table of gains, the registered versions, where the report lies."""
    context.console.note(f"results: {context.root}")
    began = time.perf_counter()
    todo = {name: [step for step in steps() if step[0].name in names] for name, names in PARTS.items()}
    # The report is one more step; what runs beside is not counted.
    count = len(todo["shared"] + todo["trained"] + todo["replayed"]) + 1
    heads = (f"[{number}/{count}]" for number in range(1, count + 1))
    _work(context, todo["shared"], heads)
    able = [(stage, item) for stage, item in todo["learned"] if not stage.lacks(context.params, item)]
    much = any(context.params.learned(name).algorithms for name in (*LEARNED, *SCHEDULERS))
    # Where nothing is to be learnt a process of its own costs more than the empty stages.
    with _beside(context, able) if much else nullcontext(_noted(context, able)):
        _work(context, todo["trained"], heads)
    with _beside(context, todo["scored"]):
        _work(context, todo["replayed"], heads)
    # Stages learn and judge lack the same: told once.
    for why in dict.fromkeys(stage.lacks(context.params, item) for stage, item in todo["learned"]):
        if why:
            context.console.note(f"left out: {why}")
    context.console.note(f"{next(heads)} report")
    report.work(context, receipts=report.receipts_of(context.root))  # versions and times, which the stage leaves out
    context.console.note(f"done in {time.perf_counter() - began:.0f} s")
    _show_results(context)


PARTS: Mapping[str, tuple[str, ...]] = {
    "shared": ("code", "prepare"),
    "trained": ("featurize", "care", "train"),
    "learned": ("enrich", "queue", "learn", "judge", "schedule"),
    "replayed": ("backtest", "promote"),
    "scored": ("evaluate",),
}
"""Stages of the main job but the last one. What is learned needs only what all share, and is learned in a process of
its own while the trio is trained; what was trained is scored in one while it is replayed."""


def _work(context: Context, todo: Sequence[tuple[Stage, str]], heads: Iterator[str]) -> None:
    for stage, item in todo:
        context.console.note(f"{next(heads)} {stage.name} {item}".rstrip())
        stage.work(context, item)


@contextmanager
def _beside(context: Context, todo: Sequence[tuple[Stage, str]]) -> Iterator[None]:
    """Work on stages in a process of its own while the block runs; what they have to say comes after it."""
    names = ", ".join(dict.fromkeys(stage.name for stage, _ in todo))
    context.console.note(f"beside, in a process of its own: {names}")
    with meanwhile(partial(_noted, context, todo)) as notes:
        yield
    context.console.note(*notes())


def _noted(context: Context, todo: Sequence[tuple[Stage, str]]) -> list[str]:
    """Notes of stages that were worked on."""
    # Another process must not write between the lines of this one.
    console = Kept()
    for stage, item in todo:
        stage.work(replace(context, console=console), item)
    return console.lines


def _show_results(context: Context) -> None:
    result = read_json(context.root / "processed/backtest/results.json")
    promotion = read_json(context.root / "processed/receipts/promote.json")
    lines = [summary_table(result), "", "registered model versions"]
    lines += [_version_line(model) for model in promotion["models"]]
    for name in (*LEARNED, *SCHEDULERS):
        # A predictor that was left out has no receipt.
        receipt = context.root / RECEIPTS / f"judge-{name}.json"
        lines += [_version_line(model) for model in (read_json(receipt)["models"] if receipt.is_file() else ())]
    lines += ["", *outcome(promotion).lines, "", f"report: {context.root / 'processed/report.html'}"]
    context.console.result("\n".join(lines))


def _version_line(model: Mapping[str, Any]) -> str:
    aliases = ", ".join(model["aliases"]) or "no alias"
    return f"  {model['name']} {model['version']}: {model['algorithm']} ({aliases})"


def check_run(params: Params, root: Path, home: Path, console: Console) -> None:
    """Check parameters, places and the trace of a run; what the trace's reader decided is said.

    Raises
    ------
    ConfigError
        A policy, source of forecasts, algorithm or setting is not known, or a place cannot be written to.
    TraceError, PoolsError, TrainingError
        The trace cannot be read, replayed on its quotas, or learnt from.
    """
    _check_names(params)
    check_outputs({}, {"--out": root, "the store": home / "mlruns"})
    # Generating takes seconds, and would be done twice.
    generator = GENERATORS.get(params.prepare.trace)
    if generator is not None and params.prepare.pools is None:
        generator.parse(params.prepare.settings)  # its trace fits its own quotas
        return
    prepared = prepare_trace(params.prepare)
    _check_fit(params, prepared)
    console.note(*(f"{prepared.trace.source.path}: {note}" for note in prepared.trace.notes))


def _check_names(params: Params) -> None:
    find_of_kind(params.backtest.baseline, *WHOLE_JOBS)
    for cells in params.backtest.cells:
        find_of_kind(cells.policy, *WHOLE_JOBS)
        for text in cells.forecasts:
            parse_forecasts(text)
    # Found here in place of an empty report at the end.
    if not any(cells.forecasts for cells in params.backtest.cells):
        raise ConfigError("backtest.cells: nothing to replay; name a policy and its forecasts")
    for predictor in PREDICTORS:
        algorithms = params.train.algorithms(predictor)
        if not algorithms:
            raise ConfigError(f"train.{predictor.replace('-', '_')}: names no algorithm; leave it out for the default")
        for algorithm in algorithms:
            recipe_of(predictor, algorithm)
    parse_enrich(params.enrich.settings)
    for predictor in (*LEARNED, *SCHEDULERS):
        for algorithm in params.learned(predictor).algorithms:
            find_predictor(predictor, algorithm)


def _check_fit(params: Params, prepared: Prepared) -> None:
    """Whether there is enough to learn from, and each window of the backtest can be replayed."""
    trace, split = prepared.trace, prepared.split
    pools_to_learn_from(trace.between(split.train_from_s, split.train_until_s), params.featurize.min_train_jobs)
    for begin, end in windows_of(split.train_until_s, split.test_until_s, params.backtest.windows):
        # Building each window finds jobs that fit nowhere, and a warm-up that leaves none.
        place = pools_cluster(prepared.pools)
        one = Experiment(trace=trace, cluster=place, from_s=begin, until_s=end, only_pools=True)
        warmup_end(one.scenario(POOLS), params.backtest.warmup_days)
