"""One replay: a policy on a draw of a workload, and the figures that are kept of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jobcast.domain.tasks import AccuracyForecast
from jobcast.pipelines.experiments.forecast_specs import ForecastSpec
from jobcast.pipelines.experiments.tasks.accuracy_forecasts import accuracy_forecast, by_model
from jobcast.pipelines.experiments.tasks.jobs import TaskScene
from jobcast.pipelines.experiments.tasks.learned_policies import learned_policy
from jobcast.pipelines.experiments.tasks.simulation import simulate_tasks
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import figures
from papers.mlfs.rows import BY_MODEL, EXACT, Row
from papers.mlfs.workloads import Workload, read_workload
from papers.run_file import Outcome

QUANTILES = np.linspace(0.0, 1.0, 101)
DIGITS = 6
SHORT_S = 6000.0
"""100 minutes, for which section 4.2.1 tells shares of jobs."""
UNDER = "under_100_min"


@dataclass(frozen=True, slots=True)
class Unit:
    """What is run by itself."""

    workload: Workload
    seed: int
    row: Row

    @property
    def key(self) -> str:
        """Tells runs apart whose results may differ; titles do not count."""
        one, row = self.workload, self.row
        settings, versions = dict(row.settings), dict(row.versions)
        drawn = {"jobs": one.jobs, "servers": one.servers, "settings": dict(one.settings), "seed": self.seed}
        run = {"policy": row.policy, "forecasts": row.forecasts, "set": settings, "versions": versions}
        return json.dumps(drawn | run, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run in a table: its workload, its policy, its draw."""

    case: str
    name: str
    seed: int
    figures: Mapping[str, float]
    jct_s: tuple[float, ...]


def run_unit(unit: Unit, files: Path, models: Path, home: Path) -> tuple[str, Outcome]:
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
    made = simulate_tasks(
        scenario,
        row.policy,
        dict(row.settings),
        _forecast(row, scenario, models, home),
        seed=unit.seed,
        learned=learned,
    )
    return unit.key, outcome(made.log, made.cpu_s)


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
