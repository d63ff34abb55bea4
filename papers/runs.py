"""Finished runs of policies on workloads: made two at a time, averaged, looked up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import click
import numpy as np

from jobcast.simulator.log import Floats, RunLog

WORKERS = 2
A = TypeVar("A")
B = TypeVar("B")
By = Mapping[str, Mapping[str, float]]
"""Policy -> its figures."""
Means = dict[tuple[str, str], dict[str, float]]
"""(case, policy) -> its figures."""


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """A finished run: its names, its figures, and what happened."""

    case: str
    name: str
    figures: Mapping[str, float]
    log: RunLog


class Named(Protocol):
    """A finished run: what it was run on, what was run, what came out."""

    @property
    def case(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def figures(self) -> Mapping[str, float]: ...  # noqa: D102


def run_all(run: Callable[[A], Done], tasks: Sequence[A]) -> list[Done]:
    """Simulate tasks, two at a time, telling each that is done."""
    return list(in_parallel(run, tasks, lambda done: f"{done.case} {done.name}"))


def in_parallel(work: Callable[[A], B], items: Sequence[A], name: Callable[[B], str]) -> Iterable[B]:
    """Results in the order of the items, told as they come; a single item needs no second process."""
    from joblib import Parallel, delayed

    workers = min(WORKERS, len(items))
    # One at a time: runs differ in length by orders of magnitude, a batch of long ones would keep a worker to itself.
    parallel = Parallel(n_jobs=workers, return_as="generator", batch_size=1)
    for count, result in enumerate(parallel(delayed(work)(item) for item in items), 1):
        click.echo(f"  {count}/{len(items)} {name(result)}", err=True)
        yield result


def means(done: Iterable[Named], of: Callable[[list[float]], Any] = np.mean) -> Means:
    """Figures by case and name, their mean (or what `of` says) over runs of one name, in the order of their first."""
    groups: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for one in done:
        groups.setdefault((one.case, one.name), []).append(one.figures)
    return {
        key: {name: float(of([figures[name] for figures in group])) for name in group[0]}
        for key, group in groups.items()
    }


def of_case(found: Means, case: str) -> dict[str, dict[str, float]]:
    """Figures by policy."""
    return {name: figures for (of, name), figures in found.items() if of == case}


def names_of(done: Iterable[Named]) -> tuple[list[str], list[str]]:
    """Cases and names, in the order of their first run."""
    pairs = [(one.case, one.name) for one in done]
    return list(dict.fromkeys(case for case, _ in pairs)), list(dict.fromkeys(name for _, name in pairs))


def pooled(done: Sequence[Done], by_job: Callable[[RunLog], Floats]) -> dict[str, list[float]]:
    """Values by job of all runs of a name put together, by name in the order of their first run."""
    return {
        name: np.concatenate([by_job(one.log) for one in done if one.name == name]).tolist()
        for name in names_of(done)[1]
    }
