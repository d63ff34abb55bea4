"""Runs of all figures, several at a time; each is on file as soon as it is done, and none is made twice."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from jobcast.pipelines.experiments.executors import results
from papers.run_file import RunFile
from papers.sia.units import Done, Row, Unit, run_draw
from papers.sia.workloads import PHILLY_FILE, TRAINED_FROM, TRAINED_UNTIL, Workload

ALGORITHMS = (None, "paper")
"""Of the versions of each predictor, in the order in which they are trained."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where figures get their runs from.

    Attributes
    ----------
    data : folder of traces
    home : of the registry that the predictors are trained into
    file : of outcomes
    seeds, draws : of synthetic workloads, and of random pools
    jobs : runs at a time
    """

    data: Path
    home: Path
    file: RunFile
    seeds: int = 10
    draws: int = 100
    jobs: int = 2

    def run(self, workloads: Sequence[Workload], rows: Sequence[Row], seeds: int) -> list[Done]:
        """Each row on each draw of each workload, in this order; runs that are on file are not made again."""
        units = [Unit(one, seed, row) for one in workloads for seed in range(seeds) for row in rows]
        missing = {unit.key: unit for unit in units if unit.key not in self.file.outcomes}
        if missing:
            self._make(missing)
        return [self._done(unit) for unit in units]

    def _make(self, missing: Mapping[str, Unit]) -> None:
        from joblib import delayed

        if any("registry" in unit.row.forecasts for unit in missing.values()):
            train_predictors(self.data, self.home)
        draws: dict[tuple[Workload, int], list[Unit]] = {}
        for unit in missing.values():
            draws.setdefault((unit.workload, unit.seed), []).append(unit)
        tasks = (delayed(run_draw)(units, self.data, self.home) for units in draws.values())
        done = results(tasks, jobs=min(self.jobs, len(draws)), engine_name="local")
        for count, made in enumerate(done, 1):
            for key, outcome in made:
                self.file.add(key, outcome)
            first = missing[made[0][0]]
            click.echo(f"  {count}/{len(draws)} {first.workload.name}, seed {first.seed}: {len(made)} runs", err=True)

    def _done(self, unit: Unit) -> Done:
        return Done(unit.workload.name, unit.row.title, unit.seed, self.file.outcomes[unit.key].figures)


def train_predictors(data: Path, home: Path) -> None:
    """Train what SIA asks for on the weeks before all replays of Philly, unless it lies in the registry already.

    Ours first, which become champions, then the paper's own, which remain challengers.
    """
    from jobcast.models.registry import open_registry
    from jobcast.pipelines.experiments.forecast_specs import PREDICTORS
    from jobcast.pipelines.lifecycle.recipes import TrainSettings
    from jobcast.pipelines.lifecycle.training import train_and_register
    from jobcast.pipelines.report.formatting import parse_time
    from jobcast.traces.readers import read_trace

    home.mkdir(parents=True, exist_ok=True)
    known = Counter(version.name for version in open_registry(home).list())
    missing = [(name, how) for name in PREDICTORS for how in ALGORITHMS[known[name] :]]
    if not missing:
        return
    trace = read_trace(data / PHILLY_FILE, format="philly")
    begin, end = parse_time(TRAINED_FROM), parse_time(TRAINED_UNTIL)
    for name, algorithm in missing:
        click.echo(f"  training {name}{f', {algorithm}' if algorithm else ''}", err=True)
        train_and_register(name, algorithm, trace, begin, end, TrainSettings(), home=home)
