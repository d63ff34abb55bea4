"""What may be set of ANDREAS's workloads."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobcast.domain.errors import ConfigError, PoolsError
from jobcast.domain.gpu_types import GPU_TYPES, HOST_W, linear_power_w
from jobcast.domain.hardware import Cluster, NodeGroup
from jobcast.traces.cluster_file import read_cluster
from jobcast.traces.generators.settings import Setting, check_ranges, parse_settings, setting

FIRST_INSTANT = datetime(2024, 1, 1, tzinfo=UTC)
JOBS_A_NODE = 10
SCENARIOS: Mapping[int, Mapping[str, int]] = {1: {"v100": 2, "t4": 1}, 2: {"v100": 4, "t4": 2}}
"""GPUs of a node by scenario, and jobs a node: ANDREAS, section V.B."""


@dataclass(frozen=True, slots=True)
class AndreasConfig:
    """Parameters of the campaign. Nodes, jobs a node and scenarios are those of ANDREAS, section V.B."""

    nodes: int = setting(
        10, "nodes, the first half with V100, the others with T4 GPUs: 10 to 100 in the paper", 1, 100_000
    )
    jobs: int = setting(0, f"number of jobs; 0: {JOBS_A_NODE} a node", 0, 10_000_000)
    scenario: int = setting(1, "1: two V100 or one T4 a node; 2: four V100 or two T4", 1, 2)
    cluster: str = setting("", "a cluster file (YAML, or openb's list of nodes as CSV) instead of nodes and scenario")
    load: float = setting(0.9, "offered load: work of the jobs, each on one GPU, over what the cluster does", 0.01, 100)
    ratio: float = setting(4.0, "arrivals a second in a high stretch over those in a low one", 1, 1000)
    stretches: int = setting(6, "stretches of equal length, high and low by turns, high first", 1, 10_000)
    epochs: tuple[int, ...] = setting((20, 160), "fewest and most epochs of a job, uniform", 1, 100_000)
    due: tuple[float, ...] = setting((1.2, 3.0), "due dates, as multiples of the fastest run time, uniform", 1, 1000)
    weights: tuple[int, ...] = setting((1, 5), "least and greatest weight, uniform whole numbers, EUR an hour", 0, 1000)
    host_w: float = setting(HOST_W, "watts of a node with any GPU in use, beside its GPUs", 0, 100_000)
    start: datetime = setting(FIRST_INSTANT, "instant at which the first stretch begins")  # noqa: RUF009

    def __post_init__(self) -> None:
        check_ranges(self)
        for name in ("epochs", "due", "weights"):
            pair = getattr(self, name)
            if len(pair) != 2 or pair[0] > pair[1]:
                raise ValueError(f"{name} must be two ascending numbers, got {pair}")

    def gpu_nodes(self) -> Cluster:
        """The nodes. Raises ConfigError where `cluster` cannot be read."""
        if self.cluster:
            try:
                return read_cluster(Path(self.cluster))
            except PoolsError as error:
                raise ConfigError(f"andreas: cluster: {error}") from None
        fast = -(-self.nodes // 2)
        groups: list[NodeGroup] = []
        for gpu_type, first, count in (("v100", 0, fast), ("t4", fast, self.nodes - fast)):
            gpus = SCENARIOS[self.scenario][gpu_type]
            power_w = linear_power_w(gpus, self.host_w, GPU_TYPES[gpu_type].power_w)
            names = tuple(f"node-{first + at}" for at in range(1, count + 1))
            groups += [NodeGroup(gpu_type, gpus, power_w, names)] if count else []
        return Cluster(tuple(groups))


@dataclass(frozen=True, slots=True)
class ArmidaConfig:
    """Parameters of the validation. ANDREAS, section V.C and Table V."""

    host_w: float = setting(HOST_W, "watts of a node with any GPU in use, beside its GPUs", 0, 100_000)
    start: datetime = setting(FIRST_INSTANT, "instant at which the first job is submitted")  # noqa: RUF009

    def __post_init__(self) -> None:
        check_ranges(self)

    def gpu_nodes(self) -> Cluster:
        """armida-05, -06 and -07. ANDREAS, Table II."""
        held = (("armida-05", "v100", 1), ("armida-06", "v100", 2), ("armida-07", "t4", 1))
        return Cluster(
            tuple(
                NodeGroup(kind, gpus, linear_power_w(gpus, self.host_w, GPU_TYPES[kind].power_w), (name,))
                for name, kind, gpus in held
            )
        )


def parse_andreas(settings: Mapping[str, Setting]) -> AndreasConfig:
    """Read settings. Raises ConfigError."""
    return parse_settings(AndreasConfig, settings, "andreas")


def parse_armida(settings: Mapping[str, Setting]) -> ArmidaConfig:
    """Read settings. Raises ConfigError."""
    return parse_settings(ArmidaConfig, settings, "armida")
