"""Runs that are on file as soon as they are done, so that a reproduction which was interrupted goes on."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from jobcast.pipelines.experiments.executors import results
from jobcast.pipelines.experiments.simulation import finite_or_none

NAN = float("nan")


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
            told = json.loads(line)
            figures = {name: NAN if value is None else value for name, value in told["figures"].items()}
            self.outcomes[told["key"]] = Outcome(figures, tuple(told["jct_s"]))

    def add(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome; the first one replaces the file by what counts of it."""
        self.outcomes[key] = outcome
        told = {"key": key, "figures": finite_or_none(dict(outcome.figures)), "jct_s": outcome.jct_s}
        lines = [json.dumps(told)] if self._begun else [*self._lines, json.dumps(told)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a" if self._begun else "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        self._begun = True

    def fill(self, names: Mapping[str, str], tasks: Iterable[Any], jobs: int) -> None:
        """Carry out joblib's delayed tasks, each of which returns (key, outcome); keep and tell each that is done.

        Parameters
        ----------
        names : of the runs by their keys
        tasks : one for each of them
        jobs : at a time
        """
        for count, (key, outcome) in enumerate(results(tasks, jobs=jobs, engine_name="local"), 1):
            self.add(key, outcome)
            click.echo(f"  {count}/{len(names)} {names[key]}", err=True)


def _whole_lines(path: Path) -> list[str]:
    """Lines that end; one that was cut by an interruption does not."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [line[:-1] for line in lines if line.endswith("\n")]
