"""SIA's replays: draws of workloads, who is compared, the predictors that they ask, and the figures that are kept."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any, ClassVar

import click
import numpy as np
import polars as pl

from jobcast.domain.errors import ConfigError
from jobcast.domain.hardware import pools_cluster
from jobcast.domain.jobs import Pool
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.simulation import Simulated, simulate, warmup_end
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.report.formatting import parse_time
from jobcast.simulator.metrics import after_warmup, against, figures
from jobcast.traces.generators import generate
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace
from papers import bench
from papers.bench import Outcome, Unit

SERVER_GPUS = 8
"""SIA, section 6.4."""
PHILLY_FILE = "philly/philly_jobs.csv"
TRAINED_FROM, TRAINED_UNTIL = "2017-10-02", "2017-11-06"
"""The predictors learn from these five weeks; all replays of Philly come after them."""
TWO_WEEKS = (TRAINED_UNTIL, "2017-11-20")
THREE_WEEKS = (TRAINED_UNTIL, "2017-11-27")
FEWEST_JOBS = 100
"""A pool with fewer jobs in the window is not drawn."""
LOADS = (0.6, 1.1)
"""SIA, section 6.1: a queue's average load is uniform in this range."""
WARMUP_DAYS = 2.0
NEARLY = 1e-9
"""1.1 x 10 GPUs are 11, and not a hair more."""
ACTUAL_LOAD = 0.8
"""Philly's pools have no sizes on record: sizes of this load stand for "actual load levels and pool sizes"."""


@dataclass(frozen=True, slots=True)
class Synthetic:
    """The bursts of appendices A.1 and C.

    Attributes
    ----------
    variant : of the generator
    grid_s : submissions and durations are rounded up to multiples of it; 0: left as they are
    days : length
    """

    variant: str = "base"
    grid_s: float = 0.0
    days: float = 3.0
    warmup_days: ClassVar[float] = 0.0

    @property
    def name(self) -> str:
        """The variant in words."""
        return self.variant.replace("_", " ")

    @property
    def drawn(self) -> dict[str, Any]:
        """Variant, grid and length."""
        return {"kind": "synthetic", "variant": self.variant, "grid_s": self.grid_s, "days": self.days}

    def scenario(self, seed: int, data: Path) -> RigidScenario:
        """A draw of the generator; `data` is not read."""
        trace, pools = generate("sia", seed, {"variant": self.variant, "days": self.days})
        trace = _on_grid(trace, self.grid_s) if self.grid_s else trace
        return rigid_jobs(cut_scenario(trace, pools_cluster(pools)))


@dataclass(frozen=True, slots=True)
class PoolDraw:
    """Random pools of Philly with random loads, section 6.1: two weeks, of which two days warm the cluster up.

    Attributes
    ----------
    queues : how many pools are drawn
    locality : whether jobs need servers of eight GPUs; jobs that fit no cell are left out then
    weeks : that are replayed, days from and until
    """

    queues: int = 4
    locality: bool = False
    weeks: tuple[str, str] = TWO_WEEKS
    warmup_days: ClassVar[float] = WARMUP_DAYS

    @property
    def name(self) -> str:
        """Number of queues."""
        return str(self.queues)

    @property
    def drawn(self) -> dict[str, Any]:
        """Number of queues, locality, and the weeks where they are others than the figures'."""
        others = {} if self.weeks == TWO_WEEKS else {"weeks": self.weeks}
        return {"kind": "pools", "queues": self.queues, "locality": self.locality, **others}

    def scenario(self, seed: int, data: Path) -> RigidScenario:
        """A draw: pools without replacement, a load for each, and quotas by those loads.

        Raises ConfigError where too few pools have enough jobs.
        """
        # By the number of queues too: what few and many queues draw shall have nothing in common.
        rng = np.random.default_rng([self.queues, seed])
        trace = _cell_wide(_philly(data)) if self.locality else _philly(data)
        from_s, until_s = map(parse_time, self.weeks)
        work = pool_work(trace, from_s, until_s)
        if len(work) < self.queues:
            raise ConfigError(
                f"{data / PHILLY_FILE}: {self.queues} pools are to be drawn, {len(work)} have at least {FEWEST_JOBS} "
                f"jobs from {self.weeks[0]} to {self.weeks[1]}; draw fewer"
            )
        # Sorted: what is drawn must not hang on the order of the trace.
        names = rng.choice(sorted(work), self.queues, replace=False)
        loads = rng.uniform(*LOADS, self.queues)
        pools = [work[name].pool(load) for name, load in zip(names.tolist(), loads.tolist(), strict=True)]
        if self.locality:
            pools = [replace(pool, quota=_whole_cells(pool.quota)) for pool in pools]
        cut = cut_scenario(trace, pools_cluster(pools), from_s=from_s, until_s=until_s)
        return rigid_jobs(cut, only_pools=True, local=self.locality)


@dataclass(frozen=True, slots=True)
class WholePhilly:
    """All pools of Philly with at least `FEWEST_JOBS` jobs in three weeks: what stands in for Helios, section 6.5.

    Attributes
    ----------
    scale : factor of all quotas
    without_donors : how many of the pools with most idle GPUs share nothing, and so are left out
    """

    scale: float = 1.0
    without_donors: int = 0
    warmup_days: ClassVar[float] = 0.0

    @property
    def name(self) -> str:
        """Scale, and who is left out."""
        left_out = f", without {self.without_donors} donors" if self.without_donors else ""
        return f"{self.scale:g}{left_out}"

    @property
    def drawn(self) -> dict[str, Any]:
        """Scale and number of donors left out."""
        return {"kind": "whole", "scale": self.scale, "without_donors": self.without_donors}

    def scenario(self, seed: int, data: Path) -> RigidScenario:
        """The three weeks; the seed draws nothing."""
        from_s, until_s = map(parse_time, THREE_WEEKS)
        work = pool_work(_philly(data), from_s, until_s)
        donors = sorted(work, key=lambda name: -work[name].idle_gpus)[: self.without_donors]
        pools = [one.pool(ACTUAL_LOAD, self.scale) for name, one in work.items() if name not in donors]
        cut = cut_scenario(_philly(data), pools_cluster(pools), from_s=from_s, until_s=until_s)
        return rigid_jobs(cut, only_pools=True)


@dataclass(frozen=True, slots=True)
class PoolWork:
    """What a pool is asked for in a window: GPUs in the mean, and by its widest job."""

    name: str
    mean_gpus: float
    widest: int

    def pool(self, load: float, scale: float = 1.0) -> Pool:
        """The pool at a load, scaled; never narrower than its widest job."""
        return Pool(self.name, max(self.widest, ceil(scale * ceil(self.mean_gpus / load) - NEARLY)))

    @property
    def idle_gpus(self) -> float:
        """GPUs of the pool that nobody of it uses in the mean."""
        return self.pool(ACTUAL_LOAD).quota - self.mean_gpus


def pool_work(trace: Trace, from_s: float, until_s: float) -> dict[str, PoolWork]:
    """Work by pool submitted in [from_s, until_s), of pools with at least `FEWEST_JOBS` jobs there; names ascending."""
    by_pool = (
        trace.between(from_s, until_s)
        .jobs.group_by("pool")
        .agg(jobs=pl.len(), work=(pl.col("gpus") * pl.col("duration")).sum(), widest=pl.col("gpus").max())
        .filter(pl.col("jobs") >= FEWEST_JOBS)
        .sort("pool")
    )
    rows = by_pool.select("pool", "work", "widest").iter_rows()
    return {name: PoolWork(name, work / (until_s - from_s), int(widest)) for name, work, widest in rows}


@lru_cache(maxsize=1)
def _philly(data: Path) -> Trace:
    return read_trace(data / PHILLY_FILE, format="philly")


def _cell_wide(trace: Trace) -> Trace:
    """Jobs of 1, 2, 4 GPUs or of whole servers; SIA, section 6.4."""
    gpus = pl.col("gpus")
    return replace(trace, jobs=trace.jobs.filter(gpus.is_in([1, 2, 4]) | (gpus % SERVER_GPUS == 0)))


def _whole_cells(quota: int) -> int:
    """Whole servers for a pool that is wider than one, else the next cell: quotas that any of its jobs fits.

    >>> [_whole_cells(quota) for quota in (1, 3, 8, 17)]
    [1, 4, 8, 24]
    """
    if quota > SERVER_GPUS:
        return SERVER_GPUS * ceil(quota / SERVER_GPUS)
    return int(1 << (quota - 1).bit_length())


def _on_grid(trace: Trace, grid_s: float) -> Trace:
    """Submissions and durations rounded up to multiples of the grid, counted from the epoch."""
    grid_us = round(grid_s * 1e6)
    instants = pl.col("submit_time").dt.timestamp("us")
    up = ((instants + grid_us - 1) // grid_us * grid_us).cast(pl.Datetime("us", "UTC"))
    longer = (pl.col("duration") / grid_s).ceil() * grid_s
    return replace(trace, jobs=trace.jobs.with_columns(submit_time=up, duration=longer))


QUANTILES = (50.0, 75.0, 90.0, 99.0)
"""Percentiles of speedups that are kept, beside the metrics' own."""
SHARE_OF_DRAWS = 0.3
"""Of Figure 13's draws, for each case of the other figures: the paper does not say how many there are."""
NO_HOME = Path("mlruns")
"""No run asks a registry there."""
ALGORITHMS = (None, "paper")
"""Of the versions of each predictor, in the order in which they are trained."""


@dataclass(frozen=True, slots=True)
class Row(bench.Row):
    """Who is compared, and what it is told.

    Attributes
    ----------
    forecasts : as `simulate --forecasts` takes them
    """

    forecasts: str = "oracle"


FCFS, SSF, SJF = Row("fcfs", "fcfs"), Row("ssf", "ssf"), Row("sjf", "sjf")
GSSF, MMFS = Row("gssf", "gssf"), Row("mmfs", "mmfs")
SIA_VC, HIVED, THEMIS = Row("sia_vc", "sia_vc"), Row("hived", "hived"), Row("themis_np", "themis_np")
SIA = Row("sia", "sia", forecasts="registry")
# What was trained last: the paper's algorithms, after ours.
SIA_PAPER = Row("sia, the paper's own", "sia", forecasts="registry:challenger")
SIA_EXACT = Row("sia, exact forecasts", "sia")
SIA_RISK, SIA_PLAN = (Row(name, name, forecasts="registry") for name in ("sia_risk", "sia_plan"))
_RANDOM = "mixed:arrivals=random,loads=registry,durations="
SIA_RANDOM_ARRIVALS = Row("sia, random arrivals", "sia", forecasts=f"{_RANDOM}registry")
SIA_RANDOM = Row("sia, random arrivals and durations", "sia", forecasts=f"{_RANDOM}random")


def milp(grid_s: float, limit_s: int) -> Row:
    """The oracle MILP whose starts lie on a grid."""
    return Row("milp", "milp", {"grid_s": f"{grid_s:g}", "exact": "true", "time_limit_s": f"{limit_s}"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench(bench.Bench):
    """Where figures get their runs from.

    Attributes
    ----------
    home : of the registry that the predictors are trained into
    seeds, draws : of synthetic workloads, and of random pools
    """

    home: Path
    seeds: int = 10
    draws: int = 100
    by_draw: ClassVar[bool] = True

    @property
    def fewer(self) -> int:
        """How many draws of random pools a case takes in all figures but the thirteenth."""
        return max(1, round(SHARE_OF_DRAWS * self.draws))

    def prepare(self, units: Sequence[Unit]) -> None:
        """Train the predictors where any unit asks for them."""
        if any("registry" in unit.row.forecasts for unit in units):
            train_predictors(self.data, self.home)

    def task(self, units: Sequence[Unit]) -> Any:
        """See `run_draw`."""
        from joblib import delayed

        return delayed(run_draw)(units, self.data, self.home)


def train_predictors(data: Path, home: Path) -> None:
    """Train what SIA asks for on the weeks before all replays of Philly, unless it lies in the registry already.

    Ours first, which become champions, then the paper's own, which remain challengers.
    """
    from jobcast.models.registry import open_registry
    from jobcast.pipelines.experiments.forecast_specs import PREDICTORS
    from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
    from jobcast.pipelines.lifecycle.training import train_and_register

    home.mkdir(parents=True, exist_ok=True)
    # As many versions as were registered are done: an interrupted training goes on with the next one.
    known = Counter(version.name for version in open_registry(home).list())
    missing = [(name, how) for name in PREDICTORS for how in ALGORITHMS[known[name] :]]
    if not missing:
        return
    trace = read_trace(data / PHILLY_FILE, format="philly")
    begin, end = parse_time(TRAINED_FROM), parse_time(TRAINED_UNTIL)
    for name, algorithm in missing:
        click.echo(f"  training {name}{f', {algorithm}' if algorithm else ''}", err=True)
        train_and_register(name, algorithm, trace, begin, end, TrainSettings(), home=home)


def run_draw(units: Sequence[Unit], data: Path, home: Path) -> list[tuple[str, Outcome]]:
    """Replay units of one workload and seed; their keys, and figures with those against FCFS on the same draw."""
    workload, seed = units[0].workload, units[0].seed
    scenario = workload.scenario(seed, data)
    # Also where FCFS is not asked for: all speedups are against it on the same draw.
    base = _replay(scenario, FCFS, seed, home)
    until_s = warmup_end(scenario, workload.warmup_days)
    runs = (base if unit.row == FCFS else _replay(scenario, unit.row, seed, home) for unit in units)
    return [(unit.key, Outcome(figures_of(made, base, until_s))) for unit, made in zip(units, runs, strict=True)]


def _replay(scenario: RigidScenario, row: Row, seed: int, home: Path) -> Simulated:
    spec = parse_forecasts(row.forecasts)
    return simulate(scenario, Ask(policy=row.policy, spec=spec, home=home, seed=seed, settings=row.settings))


def figures_of(made: Simulated, base: Simulated, warmup_until_s: float | None) -> dict[str, Any]:
    """Figures of a run, and against its baseline.

    `jct_ratio` is the mean JCT of the baseline over that of the run; `speedup_pNN` are percentiles over jobs.
    """
    counted = after_warmup(made.log, warmup_until_s)
    speedups = base.log.jct_s[counted] / made.log.jct_s[counted]
    own = figures(made.log, warmup_until_s)
    ratio = figures(base.log, warmup_until_s)["mean_jct_s"] / own["mean_jct_s"]
    tails = {f"speedup_p{at:g}": float(np.percentile(speedups, at)) for at in QUANTILES}
    stops = float(made.log.preemptions[counted].sum())
    result = {"jct_ratio": ratio, "preemptions": stops, "cpu_s": made.cpu_s, **tails, **made.own}
    return {**own, **against(made.log, base.log, warmup_until_s), **result}
