"""PCS's workload 3: Gavel's continuous-multiple with elastic jobs (PCS, section 5.1 and Table 1).

Gavel draws run times of 10^x minutes, x uniform in [1.5, 3] for four jobs in five and in [3, 4] for the others, and
widths of 1, 2, 4 and 8 GPUs. PCS tells 1 to 8 GPUs a job and 4 jobs an hour, and that its workloads draw service and
GPUs each from a distribution of its own (appendix A). So the run time drawn is here the service, seconds on one GPU:
4 jobs an hour then offer 64 GPUs a load of 1.05. With `at_width=true` it is the run time at the job's width, as Gavel
means it, and the load 1.99 for linear speedups: a queue that never ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import polars as pl

from jobcast.domain.arrays import Floats
from jobcast.domain.jobs import Pool
from jobcast.traces.generators.elastic import HOUR_S, elastic_frame, instants_at_load_s, instants_s
from jobcast.traces.generators.settings import Setting, check_ranges, parse_settings, setting
from jobcast.traces.generators.works import speedup_table, widths_speedups
from jobcast.traces.speedups import LINEAR

FIRST_INSTANT = datetime(2024, 1, 1, tzinfo=UTC)
POOL = "gavel"
MINUTE_S = 60.0
SHARES_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class GavelElasticConfig:
    """Parameters of the workload; the defaults are Gavel's (Narayanan et al., OSDI 2020) and PCS's, section 5.1."""

    jobs: int = setting(1000, "number of jobs", 1, 1_000_000)
    gpus: int = setting(64, "GPUs of the cluster", 1, 100_000)
    jobs_per_h: float = setting(4.0, "mean arrivals an hour", 1e-6, 1e6)
    load: float = setting(0.0, "offered load: sum of services / (span x GPUs); 0: as jobs_per_h has it", 0, 100)
    start: datetime = setting(FIRST_INSTANT, "instant at which the first job arrives")  # noqa: RUF009
    short_share: float = setting(0.8, "share of jobs of the short mode", 0, 1)
    short_low: float = setting(1.5, "short mode from 10^this minutes", -3, 6)
    short_high: float = setting(3.0, "short mode until 10^this minutes", -3, 6)
    long_low: float = setting(3.0, "long mode from 10^this minutes", -3, 6)
    long_high: float = setting(4.0, "long mode until 10^this minutes", -3, 6)
    widths: tuple[int, ...] = setting((1, 2, 4, 8), "most GPUs of a job", 1, 100_000)
    width_shares: tuple[float, ...] = setting((0.7, 0.1, 0.15, 0.05), "share of each width; adds up to 1", 0, 1)
    at_width: bool = setting(False, "run times drawn are those at a job's width, not on one GPU")
    models: str = setting(LINEAR, "models, between commas, drawn evenly")
    speedups: str = setting("", "CSV of model, gpus, speedup, for at_width; default: linear")

    def __post_init__(self) -> None:
        check_ranges(self)
        for low, high in (("short_low", "short_high"), ("long_low", "long_high")):
            if getattr(self, low) > getattr(self, high):
                raise ValueError(f"{low} must not exceed {high}, got {getattr(self, low):g} > {getattr(self, high):g}")
        if len(self.widths) != len(self.width_shares):
            raise ValueError(f"{len(self.widths)} widths need as many width_shares, got {len(self.width_shares)}")
        if abs(sum(self.width_shares) - 1) > SHARES_TOLERANCE:
            raise ValueError(f"width_shares must add up to 1, got {sum(self.width_shares):g}")
        if max(self.widths) > self.gpus:
            raise ValueError(f"widths must fit gpus, got {max(self.widths)} > {self.gpus}; set both")


def parse_gavel_elastic(settings: Mapping[str, Setting]) -> GavelElasticConfig:
    """Read settings. Raises ConfigError."""
    return parse_settings(GavelElasticConfig, settings, "gavel-elastic")


def generate_gavel_elastic(config: GavelElasticConfig, rng: np.random.Generator) -> tuple[pl.DataFrame, list[Pool]]:
    """Canonical table of one draw, and its one pool. Raises ConfigError and TraceError of the table of speedups.

    Run times, widths, models and arrivals are drawn from streams of their own.
    """
    of_time, of_width, of_model, of_arrival = rng.spawn(4)
    most = of_width.choice(np.asarray(config.widths, dtype=np.int64), config.jobs, p=config.width_shares)
    names = np.array([name.strip() for name in config.models.split(",")])
    models = names[of_model.integers(0, len(names), config.jobs)].tolist()
    service_s = _run_times_s(config, of_time)
    if config.at_width:
        service_s = service_s * widths_speedups(models, most, speedup_table(config.speedups, names.tolist(), most))
    service_s, gaps = np.round(service_s, 3), of_arrival.exponential(size=config.jobs - 1)
    if config.load:
        submit_s = instants_at_load_s(gaps, service_s, config.gpus, config.load)
    else:
        submit_s = instants_s(gaps, HOUR_S / config.jobs_per_h)
    return elastic_frame(POOL, config.start, submit_s, service_s, most, {"model": models}), [Pool(POOL, config.gpus)]


def _run_times_s(config: GavelElasticConfig, rng: np.random.Generator) -> Floats:
    short = rng.random(config.jobs) < config.short_share
    low = np.where(short, config.short_low, config.long_low)
    high = np.where(short, config.short_high, config.long_high)
    times: Floats = 10.0 ** rng.uniform(low, high) * MINUTE_S
    return times
