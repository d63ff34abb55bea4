"""What may be set of MLFS's workload, and what it assumes of its five algorithms."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from jobcast.traces.generators.settings import Setting, check_ranges, parse_settings, setting

FIRST_INSTANT = datetime(2024, 1, 1, tzinfo=UTC)
PAPER_JOBS = 620
"""Jobs at x = 1. MLFS, section 4.1."""
DIVISOR, GPUS = "divisor", "gpus"
PAPER, MIXED = "paper", "mixed"
DRAWN = -1
"""In place of a week: the seed draws it."""
Range = tuple[float, float]


class Algorithm(NamedTuple):
    """What a worker of a learning algorithm is like; ranges are uniform, one value a job.

    Attributes
    ----------
    batch_mb : training data an iteration
    split : whether each layer is split, so that its parts run side by side; else the model is cut one after another
    parallel : whether the model can be partitioned at all
    gpu, cpu, memory_gb, bandwidth_mb_s : demand of a worker: share of a GPU, cores, GB, MB/s
    model_mb : size of the whole model
    """

    batch_mb: float
    split: bool
    parallel: bool
    gpu: Range
    cpu: Range
    memory_gb: Range
    bandwidth_mb_s: Range
    model_mb: Range


ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        "alexnet": Algorithm(1.0, False, True, (0.3, 0.7), (2.0, 5.0), (6.0, 20.0), (80.0, 160.0), (220.0, 245.0)),
        "resnet": Algorithm(1.0, True, True, (0.5, 0.85), (2.0, 5.0), (6.0, 20.0), (60.0, 140.0), (45.0, 240.0)),
        "mlp": Algorithm(0.0015, False, True, (0.3, 0.6), (1.0, 3.0), (3.0, 10.0), (50.0, 120.0), (10.0, 100.0)),
        "lstm": Algorithm(0.0015, True, True, (0.3, 0.7), (1.0, 4.0), (4.0, 16.0), (60.0, 140.0), (50.0, 250.0)),
        "svm": Algorithm(0.0015, False, False, (0.2, 0.6), (1.0, 3.0), (3.0, 10.0), (40.0, 100.0), (1.0, 10.0)),
    }
)
"""Batches and how models are partitioned: MLFS, section 4.1. Shares of a GPU are ours, 0.5 in the mean, as Philly's
GPUs were 52 % busy (Jeon et al., USENIX ATC 2019). Cores, memory and bandwidth are ours, so that GPUs run out first on
servers of 4 GPUs, 32 cores, 244 GB and 1,250 MB/s. Models are 4 bytes a parameter: AlexNet 61 million, ResNet-18 to
-152 11 to 60 million; the others are ours."""
SERVER_CPU: Range = (2.0, 6.0)
SERVER_MEMORY_GB: Range = (4.0, 16.0)
SERVER_BANDWIDTH_MB_S: Range = (100.0, 300.0)
SERVER_COMPUTE: Range = (0.01, 0.05)
"""Of a parameter server, ours: cores, GB, MB/s, and its seconds an iteration as a share of the whole."""
VOLUME_MB: Range = (50.0, 100.0)
DATA_MB: Range = (100.0, 1000.0)
DEADLINE_H: Range = (0.5, 24.0)
DEADLINE_SLACK = 1.1
"""MLFS, section 4.1: MB on each edge, MB of training data, and deadlines at max(1.1 t_e, t_r)."""
URGENCIES = (1, 10)
"""Levels of urgency, equally likely; ours, the paper calls jobs above 8 urgent."""


@dataclass(frozen=True, slots=True)
class MlfsConfig:
    """Parameters of the workload. Number of jobs, widths and span are those of MLFS, section 4.1."""

    jobs: int = setting(PAPER_JOBS, "number of jobs: 155, 310, 620, 1240 and 1860 in the paper", 2, 1_000_000)
    arrivals: str = setting("", "a trace, whose jobs' arrivals and run times are used; default: a Poisson process")
    week: int = setting(DRAWN, "first week of that trace, from 0 at its first job; default: the seed draws it", DRAWN)
    weeks: int = setting(1, "weeks in which the jobs arrive", 1, 1000)
    gpus: int = setting(80, "GPUs of the cluster", 1, 100_000)
    load: float = setting(0.25, f"offered load of 80 GPUs by {PAPER_JOBS} jobs a week, in shares of GPUs", 0.001, 100)
    longest_h: float = setting(24.0, "no job runs longer where nothing holds it up; hours", 0.5, 10_000)
    shortest_min: float = setting(1.0, "no job runs shorter; minutes", 0.01, 1000)
    widths: tuple[int, ...] = setting((1, 2, 4, 8, 16, 32), "GPUs of a job, each equally likely", 1, 4096)
    partitions: str = setting(DIVISOR, f"of a model: a {DIVISOR} of its GPUs, at random, or as many as {GPUS}")
    most_partitions: int = setting(4096, "most partitions of a model; more GPUs hold replicas", 1, 4096)
    servers: float = setting(0.5, "share of jobs with a parameter server; the others reduce in a ring", 0, 1)
    communication: float = setting(0.5, "most that communications add to an iteration, if all tasks are apart", 0, 100)
    epochs: tuple[int, ...] = setting((20, 100), "fewest and most epochs of a job", 1, 100_000)
    options: str = setting(PAPER, f"what users ask for: {PAPER} (OptStop, may become target) or {MIXED}")
    error: float = setting(0.11, "mean relative error of estimated seconds an iteration", 0, 1)
    target: tuple[float, ...] = setting((0.85, 0.995), "required accuracy as a share of the final one", 0, 1)
    start: datetime = setting(FIRST_INSTANT, "instant at which the week begins, without a trace")  # noqa: RUF009

    def __post_init__(self) -> None:
        check_ranges(self)
        for name, known in (("partitions", (DIVISOR, GPUS)), ("options", (PAPER, MIXED))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be {' or '.join(known)}, got {getattr(self, name)}")
        for name in ("epochs", "target"):
            pair = getattr(self, name)
            if len(pair) != 2 or pair[0] > pair[1]:
                raise ValueError(f"{name} must be two ascending numbers, got {pair}")
        if self.shortest_min * 60 > self.longest_h * 3600:
            raise ValueError(f"shortest_min must not be longer than longest_h, got {self.shortest_min}")
        if not self.widths:
            raise ValueError("widths must name at least one number of GPUs")
        if self.communication == 0.0:
            raise ValueError("communication must be above 0")


def parse_mlfs(settings: Mapping[str, Setting]) -> MlfsConfig:
    """Read settings. Raises ConfigError."""
    return parse_settings(MlfsConfig, settings, "mlfs")
