"""ANDREAS's replays: draws of workloads, who is compared, and the figures that are kept of each run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobcast.pipelines.experiments.energy.jobs import EnergyScene, energy_jobs
from jobcast.pipelines.experiments.energy.simulation import noisy, simulate_energy
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.sources import Ask
from jobcast.simulator.metrics import figures
from jobcast.traces.cluster_file import read_cluster, write_cluster
from jobcast.traces.generators import generate, generate_nodes, generate_profiles
from jobcast.traces.generators.settings import Setting
from jobcast.traces.owners import scratch_room
from jobcast.traces.profiles import write_profiles
from papers import bench
from papers.bench import Outcome, Unit

Settings = tuple[tuple[str, Setting], ...]
OPENB = Path("openb", "openb_node_list_gpu_node.csv")
"""In the folder of traces."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is drawn.

    Attributes
    ----------
    name : in tables
    settings : of the generator
    kind : of the generator
    openb : whether nodes are openb's
    least : nodes of openb's are left out where fewer than so many are alike
    """

    name: str
    settings: Settings = ()
    kind: str = "andreas"
    openb: bool = False
    least: int = 1

    @property
    def drawn(self) -> dict[str, object]:
        """All that draws depend on but the seed."""
        where = {"openb": self.least} if self.openb else {}
        return {"kind": self.kind, "settings": dict(self.settings), **where}


ARMIDA = Workload("armida", kind="armida")
"""The eight jobs of Table V on three nodes."""


def scenario(number: int, nodes: int, *settings: tuple[str, Setting]) -> Workload:
    """A scenario of section V.B by GPUs a node: 1 has two V100 or one T4, 2 has four V100 or two T4."""
    return Workload(f"{nodes}", (("scenario", number), ("nodes", nodes), *settings))


def read_workload(workload: Workload, seed: int, data: Path) -> EnergyScene:
    """Draw one. Raises PoolsError where openb's list of nodes cannot be read from the folder of traces."""
    settings = dict(workload.settings)
    with scratch_room("andreas") as folder:
        if workload.openb:
            settings["cluster"] = str(_openb(workload, data, folder / "nodes.yaml"))
        # Through a file, as a user's profiles come: what is replayed was read back.
        profiles = folder / "profiles.csv"
        write_profiles(generate_profiles(workload.kind, settings), profiles)
        trace = generate(workload.kind, seed, settings)[0]
        return energy_jobs(cut_scenario(trace, generate_nodes(workload.kind, settings)), profiles=profiles)


def _openb(workload: Workload, data: Path, out: Path) -> Path:
    """Write openb's nodes as a cluster file, without those that are rare."""
    nodes = read_cluster(data / OPENB)
    kept = tuple(group for group in nodes.groups if group.count >= workload.least)
    write_cluster(replace(nodes, groups=kept), out)
    return out


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
    asked = Ask(policy=row.policy, home=Path(), settings=dict(row.settings), seed=unit.seed)
    made = simulate_energy(scenario, asked, believed)
    return [(unit.key, Outcome({**figures(made.log), "cpu_s": made.cpu_s}))]
