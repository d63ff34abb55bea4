"""The stages of the main job, in order: `jobcast run` executes this list; dvc.yaml tells what each reads and makes.

The main job: every stage in order, then what came out of it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jobcast.domain.errors import ConfigError
from jobcast.pipelines.files import read_json
from jobcast.pipelines.forecast_specs import PREDICTORS
from jobcast.pipelines.stages import backtest, care, evaluate, featurize, prepare, promote, report, train
from jobcast.pipelines.stages.context import Context


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the main job; one that runs once an item (dvc.yaml's foreach) has several."""

    name: str
    work: Callable[[Context, str], None]
    items: Sequence[str] = ("",)


STAGES: tuple[Stage, ...] = (
    Stage("prepare", prepare.work),
    Stage("featurize", featurize.work),
    Stage("care", care.work),
    Stage("train", train.work, PREDICTORS),
    Stage("evaluate", evaluate.work),
    Stage("backtest", backtest.work),
    Stage("promote", promote.work),
    Stage("report", report.work),
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
    for number, (stage, item) in enumerate(todo, 1):
        context.console.note(f"[{number}/{len(todo)}] {stage.name} {item}".rstrip())
        stage.work(context, item)
    context.console.note(f"done in {time.perf_counter() - began:.0f} s")
    _show_results(context)


def _show_results(context: Context) -> None:
    from jobcast.pipelines.lifecycle.gate import outcome
    from jobcast.pipelines.report import summary_table

    told = read_json(context.root / "processed/backtest/results.json")
    promotion = read_json(context.root / "processed/receipts/promote.json")
    lines = [summary_table(told), "", "registered model versions"]
    for model in promotion["models"]:
        aliases = ", ".join(model["aliases"]) or "no alias"
        lines.append(f"  {model['name']} {model['version']}: {model['algorithm']} ({aliases})")
    lines += ["", *outcome(promotion).lines, "", f"report: {context.root / 'processed/report.html'}"]
    context.console.result("\n".join(lines))
