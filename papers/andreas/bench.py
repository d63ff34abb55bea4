"""Runs of all items, several at a time; each is on file as soon as it is done, and none is made twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from papers.andreas.units import Done, Row, Unit, run_unit
from papers.andreas.workloads import NODES, Workload
from papers.run_file import RunFile


@dataclass(frozen=True, slots=True)
class Bench:
    """Where items get their runs from.

    Attributes
    ----------
    data : folder of traces, of which only openb's nodes are read
    file : of outcomes
    seeds : how many draws
    nodes : N of Figures 2 and 3
    jobs : runs at a time
    """

    data: Path
    file: RunFile
    seeds: int = 10
    nodes: tuple[int, ...] = NODES
    jobs: int = 2

    def draws(self, most: int | None = None) -> tuple[int, ...]:
        """Seeds, no more than an item takes."""
        return tuple(range(self.seeds if most is None else min(self.seeds, most)))

    def run(self, workloads: Sequence[Workload], rows: Sequence[Row], seeds: Sequence[int]) -> list[Done]:
        """Each row on each draw of each workload, in this order; runs that are on file are not made again."""
        units = [Unit(one, seed, row) for one in workloads for row in rows for seed in seeds]
        missing = {unit.key: unit for unit in units if unit.key not in self.file.outcomes}
        if missing:
            from joblib import delayed

            names = {key: f"{unit.workload.name}, seed {unit.seed}, {unit.row.title}" for key, unit in missing.items()}
            tasks = (delayed(run_unit)(unit, self.data) for unit in missing.values())
            self.file.fill(names, tasks, min(self.jobs, len(missing)))
        return [self._done(unit) for unit in units]

    def _done(self, unit: Unit) -> Done:
        return Done(unit.workload.name, unit.row.title, unit.seed, self.file.outcomes[unit.key].figures)
