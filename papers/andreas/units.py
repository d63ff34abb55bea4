"""One replay: a policy on a draw of a workload, and the figures that are kept of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jobcast.pipelines.experiments.energy.epoch_time_forecasts import noisy
from jobcast.pipelines.experiments.energy.simulation import simulate_energy
from jobcast.simulator.metrics import figures
from papers.andreas.workloads import Workload, read_workload
from papers.run_file import Outcome

ANDREAS = "andreas"
BASELINES = ("energy_fifo", "edf", "ps")
"""ANDREAS, section V.B."""


@dataclass(frozen=True, slots=True)
class Row:
    """Who is compared.

    Attributes
    ----------
    title : in tables
    policy, settings : as `simulate --policy` and `--set` take them, those of the mechanism too
    noise : standard deviation of the logarithm by which believed times of epochs are off
    """

    title: str
    policy: str = ANDREAS
    settings: tuple[tuple[str, str], ...] = ()
    noise: float = 0.0


ROWS = (Row("ANDREAS"), Row("FIFO", "energy_fifo"), Row("EDF", "edf"), Row("PS", "ps"))
OURS, *OTHERS = (row.title for row in ROWS)


@dataclass(frozen=True, slots=True)
class Unit:
    """What is run by itself."""

    workload: Workload
    seed: int
    row: Row

    @property
    def key(self) -> str:
        """Tells runs apart whose results may differ; titles do not count."""
        row = self.row
        run = {"seed": self.seed, "policy": row.policy, "set": dict(row.settings), "noise": row.noise}
        return json.dumps(self.workload.drawn | run, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run in a table: its workload, its policy, its draw."""

    case: str
    name: str
    seed: int
    figures: Mapping[str, float]


def run_unit(unit: Unit, data: Path) -> tuple[str, Outcome]:
    """Replay a unit; its key and what is kept of it: the figures of `simulate`, and seconds of CPU of the replay."""
    row, scenario = unit.row, read_workload(unit.workload, unit.seed, data)
    believed = noisy(scenario.facts.times.epoch_s, scenario.job_ids, row.noise, unit.seed) if row.noise else None
    made = simulate_energy(scenario, row.policy, dict(row.settings), believed, seed=unit.seed)
    return unit.key, Outcome({**figures(made.log), "cpu_s": made.cpu_s})
