"""The stages of the main job, in order: `jobcast run` executes this list; dvc.yaml tells what each reads and makes.

The main job: every stage in order, then what came out of it.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.config import LEARNED, SCHEDULERS, Params
from jobcast.pipelines.console import Console
from jobcast.pipelines.engines import meanwhile
from jobcast.pipelines.files import read_json
from jobcast.pipelines.forecast_specs import PREDICTORS
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
    report,
    schedule,
    train,
)
from jobcast.pipelines.stages.context import RECEIPTS, Context


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the main job; one that runs once an item (dvc.yaml's foreach) has several."""

    name: str
    work: Callable[[Context, str], None]
    items: Sequence[str] = ("",)
    lacks: Callable[[Params, str], str] = lambda params, item: ""
    """Why it cannot run here for an item, empty where it can; the main job goes on without it."""


STAGES: tuple[Stage, ...] = (
    Stage("code", code.work),
    Stage("prepare", prepare.work),
    Stage("featurize", featurize.work),
    Stage("care", care.work),
    Stage("train", train.work, PREDICTORS),
    Stage("evaluate", evaluate.work),
    Stage("backtest", backtest.work),
    Stage("promote", promote.work),
    Stage("report", report.work),
    Stage("enrich", enrich.work),
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
    todo = list(steps())
    first = [step for step in todo if step[0].name in SHARED]
    trio = [step for step in todo if step[0].name not in (*SHARED, *BESIDE)]
    _work(context, first, 0, len(first) + len(trio))
    learning = partial(_learn, context)
    much = any(context.params.learned(name).algorithms for name in (*LEARNED, *SCHEDULERS))
    if much:
        context.console.note(f"beside, in a process of its own: {', '.join(BESIDE)}")
    with meanwhile(learning) if much else nullcontext(learning()):
        _work(context, trio, len(first), len(first) + len(trio))
    for why in dict.fromkeys(stage.lacks(context.params, item) for stage, item in todo):
        if why:
            context.console.note(f"left out: {why}")
    context.console.note(f"done in {time.perf_counter() - began:.0f} s")
    report.report_folder(context.root)  # with versions and times, which the stage leaves out
    _show_results(context)


SHARED = ("code", "prepare")
"""Stages that all others need."""
BESIDE = ("enrich", "learn", "judge", "schedule")
"""Stages that need only those: the main job runs them in a process of their own, beside the rest."""


def _work(context: Context, todo: Sequence[tuple[Stage, str]], done: int, of: int) -> None:
    for number, (stage, item) in enumerate(todo, done + 1):
        context.console.note(f"[{number}/{of}] {stage.name} {item}".rstrip())
        stage.work(context, item)


def _learn(context: Context) -> None:
    """The stages of `BESIDE` that can run here; their progress would mingle with that of the others."""
    quiet = replace(context, console=Console(quiet=True))
    for stage, item in steps():
        if stage.name in BESIDE and not stage.lacks(context.params, item):
            stage.work(quiet, item)


def _show_results(context: Context) -> None:
    from jobcast.pipelines.lifecycle.gate import outcome
    from jobcast.pipelines.report import summary_table

    told = read_json(context.root / "processed/backtest/results.json")
    promotion = read_json(context.root / "processed/receipts/promote.json")
    lines = [summary_table(told), "", "registered model versions"]
    lines += [_version_line(model) for model in promotion["models"]]
    for name in (*LEARNED, *SCHEDULERS):
        receipt = context.root / RECEIPTS / f"judge-{name}.json"
        lines += [_version_line(model) for model in (read_json(receipt)["models"] if receipt.is_file() else ())]
    lines += ["", *outcome(promotion).lines, "", f"report: {context.root / 'processed/report.html'}"]
    context.console.result("\n".join(lines))


def _version_line(model: Mapping[str, Any]) -> str:
    aliases = ", ".join(model["aliases"]) or "no alias"
    return f"  {model['name']} {model['version']}: {model['algorithm']} ({aliases})"
