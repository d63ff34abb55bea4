"""Runs of all figures, several at a time; each is on file as soon as it is done, and none is made twice."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobcast.pipelines.experiments.executors import results
from papers.mlfs.forecasts import fit_model
from papers.mlfs.rows import BY_MODEL, Row
from papers.mlfs.units import Done, Unit, run_unit
from papers.mlfs.workloads import Workload, write_arrivals, write_workload
from papers.run_file import RunFile


@dataclass(frozen=True, slots=True)
class Bench:
    """Where figures get their runs from.

    Attributes
    ----------
    data, home, folder : of traces, of the registry, and for files that are not kept
    file : of outcomes
    rows, notes : who is compared, and what a reader should know of it
    seeds : of draws
    jobs : runs at a time
    """

    data: Path
    home: Path
    folder: Path
    file: RunFile
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = tuple(range(10))
    jobs: int = 2
    made: dict[tuple[Workload, int], Path] = field(default_factory=dict)

    @property
    def arrivals(self) -> Path:
        """Philly, read."""
        return self.folder / "arrivals.parquet"

    def run(self, workloads: Sequence[Workload], rows: Sequence[Row], seeds: Sequence[int] = ()) -> list[Done]:
        """Each row on each draw of each workload, in this order; runs that are on file are not made again."""
        units = [Unit(one, seed, row) for one in workloads for row in rows for seed in seeds or self.seeds]
        missing = list({unit.key: unit for unit in units if unit.key not in self.file.outcomes}.values())
        if missing:
            self._make(missing)
        return [self._done(unit) for unit in units]

    def _done(self, unit: Unit) -> Done:
        known = self.file.outcomes[unit.key]
        return Done(unit.workload.name, unit.row.title, unit.seed, known.figures, known.jct_s)

    def _make(self, units: Sequence[Unit]) -> None:
        from joblib import delayed

        self._draw(units)
        for kind in dict.fromkeys(unit.row.forecasts for unit in units):
            if kind in BY_MODEL and not (self.folder / kind).exists():
                fit_model(kind, self.data, self.arrivals).save(self.folder / kind)
        names = {unit.key: f"{unit.workload.name}, seed {unit.seed}, {unit.row.title}" for unit in units}
        tasks = (delayed(run_unit)(unit, self.made[unit.workload, unit.seed], self.folder, self.home) for unit in units)
        self.file.fill(names, tasks, self.jobs)

    def _draw(self, units: Sequence[Unit]) -> None:
        """Files of the workloads that have none yet."""
        from joblib import delayed

        if not self.arrivals.exists():
            write_arrivals(self.data, self.arrivals)
        wanted = [key for key in dict.fromkeys((unit.workload, unit.seed) for unit in units) if key not in self.made]
        for count, key in enumerate(wanted, len(self.made)):
            self.made[key] = self.folder / f"workload-{count}"
        tasks = (delayed(write_workload)(*key, self.arrivals, self.made[key]) for key in wanted)
        for _ in results(tasks, jobs=min(self.jobs, len(wanted)) or 1, engine_name="local"):
            pass
