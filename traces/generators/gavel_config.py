"""Parameters of Gavel's workload as Shockwave uses it, sections 8.1, 8.4 and 8.5."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobcast.domain.errors import ConfigError
from jobcast.traces.generators.gavel_courses import MODES
from jobcast.traces.generators.settings import Setting, check_ranges, parse_settings, setting
from jobcast.traces.throughputs import REFERENCE_GPU

FIRST_INSTANT = datetime(2024, 1, 1, tzinfo=UTC)
SHARES_TOLERANCE = 1e-9
POISSON, BATCH = "poisson", "batch"
RULE = "rule"
SIZES = 4
"""Small, medium, large, extra large."""
DATA_VARIABLE = "JOBCAST_DATA"
THROUGHPUTS_FILE = Path("shockwave", "throughputs_tacc.csv")
DOUBLINGS_FILE = Path("shockwave", "regimes.csv")


@dataclass(frozen=True, slots=True)
class GavelConfig:
    """Parameters of the workload; the defaults are those of Shockwave, section 8.1, with 32 GPUs."""

    jobs: int = setting(120, "number of jobs", 1, 1_000_000)
    gpus: int = setting(32, "GPUs of the cluster", 1, 100_000)
    start: datetime = setting(FIRST_INSTANT, "instant at which the first job arrives")  # noqa: RUF009
    arrivals: str = setting(POISSON, f"{POISSON}, or {BATCH}: all at the start")
    contention: float = setting(3.0, "GPUs that jobs would hold at once if nobody waited / GPUs", 0.01, 1000)
    interarrival_s: float = setting(0.0, "mean gap between arrivals, seconds; 0: as contention has it", 0, 1e7)
    shortest_h: float = setting(0.2, "shortest run time, hours", 0.001, 1e5)
    longest_h: float = setting(5.0, "longest run time, hours", 0.001, 1e5)
    size_edges_gpu_h: tuple[float, ...] = setting(
        (0.2, 8.0, 16.0, 72.0), "where small, medium, large, extra large begin, GPU-hours", 0.0001, 1e7
    )
    size_shares: tuple[float, ...] = setting((0.72, 0.2, 0.05, 0.03), "share of each size; adds up to 1", 0, 1)
    widths: tuple[int, ...] = setting((1, 2, 4, 8), "gang widths, GPUs", 1, 100_000)
    width_shares: tuple[float, ...] = setting((0.6, 0.3, 0.09, 0.01), "share of each width; adds up to 1", 0, 1)
    mode_shares: tuple[float, ...] = setting((1 / 3, 1 / 3, 1 / 3), f"share of {', '.join(MODES)}; adds up to 1", 0, 1)
    jitter: float = setting(0.0, "sigma of the lognormal factors on all regimes of a course but its last", 0, 3)
    throughputs: str = setting("", f"CSV of steps per second; default: {THROUGHPUTS_FILE} under {DATA_VARIABLE}")
    gpu_type: str = setting(REFERENCE_GPU, "type of GPU in it")
    datasets: str = setting("", "CSV of samples by model, where they are not Gavel's")
    gns: str = setting("", f"CSV of doubling epochs, or {RULE}; default: {DOUBLINGS_FILE} under {DATA_VARIABLE}")

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.arrivals not in (POISSON, BATCH):
            raise ValueError(f"arrivals must be {POISSON} or {BATCH}, got {self.arrivals}")
        if self.shortest_h > self.longest_h:
            raise ValueError(f"shortest_h must not exceed longest_h, got {self.shortest_h:g} > {self.longest_h:g}")
        if list(self.size_edges_gpu_h) != sorted(set(self.size_edges_gpu_h)):
            raise ValueError("size_edges_gpu_h must ascend")
        for name, count in (
            ("size_edges_gpu_h", SIZES),
            ("size_shares", SIZES),
            ("width_shares", len(self.widths)),
            ("mode_shares", len(MODES)),
        ):
            if len(getattr(self, name)) != count:
                raise ValueError(f"{name} must hold {count} numbers, got {len(getattr(self, name))}")
            if name.endswith("_shares") and abs(sum(getattr(self, name)) - 1) > SHARES_TOLERANCE:
                raise ValueError(f"{name} must add up to 1, got {sum(getattr(self, name)):g}")
        if max(self.widths) > self.gpus:
            raise ValueError(f"widths must fit gpus, got {max(self.widths)} > {self.gpus}; set both")
        for width, share in zip(self.widths, self.width_shares, strict=True):
            if share and not sum(self.reachable_shares(width)):
                raise ValueError(f"no size can be reached by a job of {width} GPUs; change size_shares or longest_h")

    def size_bounds_gpu_h(self, width: int) -> list[tuple[float, float]]:
        """From and until how many GPU-hours a job of a width has each size, (SIZES,); from >= until: it never has."""
        low, high = width * self.shortest_h, width * self.longest_h
        ends = (*self.size_edges_gpu_h[1:], float("inf"))
        return [(max(begin, low), min(end, high)) for begin, end in zip(self.size_edges_gpu_h, ends, strict=True)]

    def reachable_shares(self, width: int) -> list[float]:
        """Share of each size, (SIZES,), 0 for those out of a width's reach; not normalised."""
        bounds = self.size_bounds_gpu_h(width)
        return [share if begin < end else 0.0 for share, (begin, end) in zip(self.size_shares, bounds, strict=True)]


def parse_gavel(settings: Mapping[str, Setting]) -> GavelConfig:
    """Read settings; files that are not named are looked for under the folder that JOBCAST_DATA names.

    Raises ConfigError, also where no throughputs are found.
    """
    chosen = dict(settings)
    if not str(chosen.get("throughputs", "")):
        found = _data_file(THROUGHPUTS_FILE)
        if found is None:
            raise ConfigError(
                "gavel: throughputs are needed to tell steps by run times; give --set throughputs=FILE, or point "
                f"{DATA_VARIABLE} at a folder that holds {THROUGHPUTS_FILE}"
            )
        chosen["throughputs"] = found
    if not str(chosen.get("gns", "")):
        chosen["gns"] = _data_file(DOUBLINGS_FILE) or RULE
    return parse_settings(GavelConfig, chosen, "gavel")


def _data_file(relative: Path) -> str | None:
    folder = os.environ.get(DATA_VARIABLE)
    path = Path(folder, relative) if folder else None
    return str(path) if path is not None and path.is_file() else None
