"""ANDREAS's replays: who is compared, and the figures that are kept of each run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobcast.pipelines.experiments.energy.epoch_time_forecasts import noisy
from jobcast.pipelines.experiments.energy.simulation import simulate_energy
from jobcast.simulator.metrics import figures
from papers import bench
from papers.andreas.workloads import read_workload
from papers.bench import Outcome, Unit

ANDREAS = "andreas"


@dataclass(frozen=True, slots=True)
class Row(bench.Row):
    """Who is compared; settings are those of the mechanism too.

    Attributes
    ----------
    noise : standard deviation of the logarithm by which believed times of epochs are off
    """

    policy: str = ANDREAS
    noise: float = 0.0


BASELINES = (Row("FIFO", "energy_fifo"), Row("EDF", "edf"), Row("PS", "ps"))
"""ANDREAS, section V.B."""
EQUATION_1 = Row("ANDREAS, equation 1", settings={"objective": "equation_1"})
ROWS = (Row("ANDREAS"), EQUATION_1, *BASELINES)
OURS, OTHERS = ROWS[0].title, tuple(row.title for row in BASELINES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench(bench.Bench):
    """Where items get their runs from.

    Attributes
    ----------
    seeds : how many draws
    nodes : N of Figures 2 and 3
    """

    seeds: int = 10
    nodes: tuple[int, ...] = ()

    def draws(self, most: int | None = None) -> range:
        """Seeds, no more than an item takes."""
        return range(self.seeds if most is None else min(self.seeds, most))

    def task(self, units: Sequence[Unit]) -> Any:
        """See `run_unit`."""
        from joblib import delayed

        [unit] = units
        return delayed(run_unit)(unit, self.data)


def run_unit(unit: Unit, data: Path) -> list[tuple[str, Outcome]]:
    """Replay a unit; its key and what is kept of it: the figures of `simulate`, and seconds of CPU of the replay."""
    row, scenario = unit.row, read_workload(unit.workload, unit.seed, data)
    believed = noisy(scenario.facts.times.epoch_s, scenario.job_ids, row.noise, unit.seed) if row.noise else None
    made = simulate_energy(scenario, row.policy, dict(row.settings), believed, seed=unit.seed)
    return [(unit.key, Outcome({**figures(made.log), "cpu_s": made.cpu_s}))]
