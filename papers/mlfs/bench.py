"""MLFS's replays: workloads and models of curves in files that are made once, and what is kept of each run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.domain.tasks import AccuracyForecast
from jobcast.pipelines.experiments.executors import results
from jobcast.pipelines.experiments.forecast_specs import ForecastSpec
from jobcast.pipelines.experiments.tasks.accuracy_forecasts import accuracy_forecast, by_model
from jobcast.pipelines.experiments.tasks.jobs import TaskScene
from jobcast.pipelines.experiments.tasks.learned_policies import learned_policy
from jobcast.pipelines.experiments.tasks.simulation import simulate_tasks
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import figures
from papers import bench
from papers.bench import Outcome, Unit
from papers.mlfs.forecasts import fit_model
from papers.mlfs.rows import BY_MODEL, EXACT, Row
from papers.mlfs.workloads import Workload, read_workload, write_arrivals, write_workload
from papers.results import draws_text

QUANTILES = np.linspace(0.0, 1.0, 101)
DIGITS = 6
SHORT_S = 6000.0
"""100 minutes, for which section 4.2.1 tells shares of jobs."""
UNDER = "under_100_min"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench(bench.Bench):
    """Where figures get their runs from.

    Attributes
    ----------
    home, folder : of the registry, and for files that are not kept
    rows, notes : who is compared, and what a reader should know of it
    seeds : of draws
    made : folders of the workloads that are drawn
    """

    home: Path
    folder: Path
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = tuple(range(10))
    made: dict[tuple[Workload, int], Path] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, str]:
        """How many draws there are and who is left out, for a page."""
        return {"draws": draws_text(len(self.seeds)), "notes": "\n".join(f"- {note}" for note in self.notes)}

    @property
    def arrivals(self) -> Path:
        """Philly, read."""
        return self.folder / "arrivals.parquet"

    def prepare(self, units: Sequence[Unit]) -> None:
        """Write the files of the workloads and models that have none yet."""
        self._draw(units)
        for kind in dict.fromkeys(unit.row.forecasts for unit in units):
            if kind in BY_MODEL and not (self.folder / kind).exists():
                fit_model(kind, self.data, self.arrivals).save(self.folder / kind)

    def task(self, units: Sequence[Unit]) -> Any:
        """See `run_unit`."""
        from joblib import delayed

        [unit] = units
        return delayed(run_unit)(unit, self.made[unit.workload, unit.seed], self.folder, self.home)

    def _draw(self, units: Sequence[Unit]) -> None:
        from joblib import delayed

        if not self.arrivals.exists():
            write_arrivals(self.data, self.arrivals)
        wanted = [key for key in dict.fromkeys((unit.workload, unit.seed) for unit in units) if key not in self.made]
        for count, key in enumerate(wanted, len(self.made)):
            self.made[key] = self.folder / f"workload-{count}"
        tasks = (delayed(write_workload)(*key, self.arrivals, self.made[key]) for key in wanted)
        list(results(tasks, jobs=min(self.jobs, len(wanted)) or 1, engine_name="local"))


def run_unit(unit: Unit, files: Path, models: Path, home: Path) -> list[tuple[str, Outcome]]:
    """Replay a unit; its key and what is kept.

    Parameters
    ----------
    files : folder of the workload
    models : folder of models of training curves, which are read only where the policy goes by one
    home : of the registry, which is asked only where the policy has learned something

    Raises OverlapError where it has learned from this draw.
    """
    scenario, row = read_workload(unit.workload, files), unit.row
    spec = ForecastSpec("registry", versions=row.versions)
    learned = learned_policy(row.policy, spec, scenario.trace, home=home, allow_overlap=False) if row.versions else None
    result = _forecast(row, scenario, models, home)
    made = simulate_tasks(scenario, row.policy, dict(row.settings), result, seed=unit.seed, learned=learned)
    return [(unit.key, outcome(made.log, made.cpu_s))]


def outcome(log: RunLog, cpu_s: float) -> Outcome:
    """Figures of `simulate`, the share of jobs done within 100 minutes, and seconds of CPU of the whole replay."""
    kept = {**figures(log), UNDER: float((log.jct_s < SHORT_S).mean()), "cpu_s": cpu_s}
    quantiles = np.quantile(log.jct_s, QUANTILES).tolist()
    return Outcome(kept, tuple(float(f"{value:.{DIGITS}g}") for value in quantiles))


def _forecast(row: Row, scenario: TaskScene, models: Path, home: Path) -> AccuracyForecast | None:
    if row.forecasts in BY_MODEL:
        from jobcast.models.curves.accuracy_curve import AccuracyCurve

        return by_model(AccuracyCurve.load(models / row.forecasts))
    if row.forecasts == EXACT:
        return accuracy_forecast(ForecastSpec("oracle"), scenario.workload.truth.metric, home=home, seed=0).forecast
    return None
