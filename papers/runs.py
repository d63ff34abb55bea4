"""Policies on workloads, and the figures of each run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import click
import numpy as np

from jobcast.pipelines.experiments.forecast_specs import RESTATEMENT, ForecastSpec
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.simulation import simulate
from jobcast.simulator import metrics
from jobcast.simulator.log import RunLog

SHOCKWAVE = "shockwave"
BASELINES = ("ossp", "themis_filter", "gavel", "allox", "mst", "gandiva_fair")
"""Of section 8.2, without Pollux."""
FAIR = ("themis_filter", "gavel", "allox")
"""What sections 8.3 to 8.6 average over."""
SIMPLE = ("srpt", "las")
GREEDY = ForecastSpec("greedy")
WORKERS = 2
NO_HOME = Path("mlruns")
"""No run here asks the registry."""
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Task:
    """A policy on a workload.

    Attributes
    ----------
    case, label : what the run is called in tables: its workload and its policy; runs of one name are averaged
    """

    case: str
    scenario: RigidScenario
    policy: str
    spec: ForecastSpec = RESTATEMENT
    settings: Mapping[str, str] = field(default_factory=dict)
    label: str = ""

    @property
    def name(self) -> str:
        """Label, or the policy's name."""
        return self.label or self.policy


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run: its names, its figures, and what happened."""

    case: str
    name: str
    figures: Mapping[str, float]
    log: RunLog


def run(task: Task) -> Done:
    """Simulate one task."""
    settings = dict(task.settings)
    made = simulate(task.scenario, task.policy, task.spec, home=NO_HOME, settings=settings)
    figures = {**metrics.figures(made.log), **made.own}
    return Done(task.case, task.name, figures, made.log)


def run_all(tasks: Sequence[Task]) -> list[Done]:
    """Simulate tasks, two at a time, telling each that is done."""
    return list(in_parallel(run, tasks, lambda done: f"{done.case} {done.name}"))


def in_parallel(work: Callable[[A], B], items: Sequence[A], name: Callable[[B], str]) -> Iterable[B]:
    """Results in the order of the items, told as they come; a single item needs no second process."""
    from joblib import Parallel, delayed

    workers = min(WORKERS, len(items))
    parallel = Parallel(n_jobs=workers, return_as="generator", batch_size=1)
    for count, result in enumerate(parallel(delayed(work)(item) for item in items), 1):
        click.echo(f"  {count}/{len(items)} {name(result)}", err=True)
        yield result


class Named(Protocol):
    """A finished run that has a case, a name and figures."""

    @property
    def case(self) -> str:
        """What it was run on."""
        ...

    @property
    def name(self) -> str:
        """What was run."""
        ...

    @property
    def figures(self) -> Mapping[str, float]:
        """What came out."""
        ...


Means = dict[tuple[str, str], dict[str, float]]


def means(done: Iterable[Named]) -> Means:
    """Figures by case and name, averaged over runs of one name, in the order of their first run."""
    groups: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for one in done:
        groups.setdefault((one.case, one.name), []).append(one.figures)
    return {
        key: {name: float(np.mean([figures[name] for figures in group])) for name in group[0]}
        for key, group in groups.items()
    }


def ratio(found: Means, case: str, figure: str, names: Sequence[str], to: str = SHOCKWAVE) -> float:
    """Mean over policies of a figure relative to another policy's; NaN where that one's is 0."""
    base = found[case, to][figure]
    return float(np.mean([found[case, name][figure] for name in names])) / base if base else float("nan")
