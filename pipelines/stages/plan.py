"""The stages of the main job, in order: `jobcast run` executes this list; dvc.yaml tells what each reads and makes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jobcast.domain.errors import ConfigError
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
