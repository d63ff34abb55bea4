"""Runs that the figures of a paper share: several at a time, each on file as soon as it is done, none made twice."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Protocol

import click

from jobcast.pipelines.experiments.executors import results
from jobcast.pipelines.experiments.simulation import finite_or_none
from papers.results import Done

RUNS = ".runs.jsonl"
"""In the folder of all figures; it is not kept in version control."""


class Workload(Protocol):
    """Something to replay, drawn by a seed: its name in tables, and what tells it from others, in keys of runs."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def drawn(self) -> Mapping[str, Any]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Row:
    """Who is compared.

    Attributes
    ----------
    title : in tables
    policy, settings : as `simulate --policy` and `--set` take them
    """

    title: str
    policy: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What else tells it from others, in keys of runs: the fields that a paper adds."""
        return {one.name: getattr(self, one.name) for one in fields(self)[3:]}


def read_settings(text: str) -> dict[str, str]:
    """Settings of a row in a file.

    >>> read_settings("objective=equation_1;caps=true"), read_settings("")
    ({'objective': 'equation_1', 'caps': 'true'}, {})
    """
    return dict(one.split("=") for one in text.split(";") if one)


@dataclass(frozen=True, slots=True)
class Unit:
    """What is run by itself."""

    workload: Any
    seed: int
    row: Any

    @property
    def key(self) -> str:
        """Tells runs apart whose results may differ; titles do not count."""
        run = {"seed": self.seed, "policy": self.row.policy, "set": dict(self.row.settings), **self.row.facts}
        # Sorted: the order in which settings are written makes no other run.
        return json.dumps({**self.workload.drawn, **run}, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is kept of a run: its figures, and completion times (s) at some quantiles, where they are wanted."""

    figures: Mapping[str, float]
    jct_s: tuple[float, ...] = ()


class RunFile:
    """Outcomes by the keys of their units, in a file of JSON lines.

    Parameters
    ----------
    path : the file
    resume : whether what it holds counts; else it begins anew
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        self._lines = _whole_lines(path) if resume and path.is_file() else []
        self._begun = False
        for line in self._lines:
            saved = json.loads(line)
            figures = {name: float("nan") if value is None else value for name, value in saved["figures"].items()}
            self.outcomes[saved["key"]] = Outcome(figures, tuple(saved["jct_s"]))

    def add(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome; the first one replaces the file by what counts of it."""
        self.outcomes[key] = outcome
        result = {"key": key, "figures": finite_or_none(dict(outcome.figures)), "jct_s": outcome.jct_s}
        # Not before there is something new: a command that stops at once loses nothing.
        lines = [json.dumps(result)] if self._begun else [*self._lines, json.dumps(result)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a" if self._begun else "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        self._begun = True


def _whole_lines(path: Path) -> list[str]:
    """Lines that end; one that was cut by an interruption does not."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [line[:-1] for line in lines if line.endswith("\n")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where figures get their runs from; each paper says how one is made.

    Attributes
    ----------
    data : folder of traces
    file : of outcomes
    jobs : runs at a time
    by_draw : whether all policies on a draw are run together, since they share a baseline
    """

    data: Path
    file: RunFile
    jobs: int = 2
    by_draw: ClassVar[bool] = False

    def prepare(self, units: Sequence[Unit]) -> None:
        """Make what the runs of units need."""

    def task(self, units: Sequence[Unit]) -> Any:
        """Joblib's delayed task that runs units and returns their keys and outcomes."""
        raise NotImplementedError

    def run(self, workloads: Sequence[Workload], rows: Sequence[Row], seeds: Iterable[int]) -> list[Done]:
        """Each row on each draw of each workload; runs that are on file are not made again."""
        draws, known = list(seeds), self.file.outcomes
        # This order is that of the rows in a figure's table of runs.
        if self.by_draw:
            units = [Unit(one, seed, row) for one in workloads for seed in draws for row in rows]
        else:
            units = [Unit(one, seed, row) for one in workloads for row in rows for seed in draws]
        missing = list({unit.key: unit for unit in units if unit.key not in known}.values())
        if missing:
            self.prepare(missing)
            self._fill(self._grouped(missing))
        found = ((unit, known[unit.key]) for unit in units)
        return [Done(unit.workload.name, unit.row.title, one.figures, unit.seed, one.jct_s) for unit, one in found]

    def _grouped(self, units: Sequence[Unit]) -> list[list[Unit]]:
        """Those of a draw follow one another."""
        draw = (lambda one: (one.workload, one.seed)) if self.by_draw else (lambda one: one.key)
        return [list(group) for _, group in groupby(units, draw)]

    def _fill(self, groups: Sequence[Sequence[Unit]]) -> None:
        """Run groups of units; keep and tell each that is done."""
        names = {group[0].key: self._name(group) for group in groups}
        done = results(map(self.task, groups), jobs=min(self.jobs, len(groups)), engine_name="local")
        # They come in any order: each says by its key what it is of.
        for count, made in enumerate(done, 1):
            for key, outcome in made:
                self.file.add(key, outcome)
            click.echo(f"  {count}/{len(groups)} {names[made[0][0]]}", err=True)

    def _name(self, units: Sequence[Unit]) -> str:
        draw = f"{units[0].workload.name}, seed {units[0].seed}"
        return f"{draw}: {len(units)} runs" if self.by_draw else f"{draw}, {units[0].row.title}"
