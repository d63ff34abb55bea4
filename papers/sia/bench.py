"""SIA's replays: who is compared, the predictors that they ask, and the figures that are kept of each run."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import click
import numpy as np

from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.simulation import Simulated, simulate, warmup_end
from jobcast.simulator.metrics import after_warmup, against, figures
from papers import bench
from papers.bench import Outcome, Unit
from papers.sia.workloads import PHILLY_FILE, TRAINED_FROM, TRAINED_UNTIL

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
    from jobcast.pipelines.lifecycle.recipes import TrainSettings
    from jobcast.pipelines.lifecycle.training import train_and_register
    from jobcast.pipelines.report.formatting import parse_time
    from jobcast.traces.readers import read_trace

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
    return simulate(scenario, row.policy, parse_forecasts(row.forecasts), home=home, seed=seed, settings=row.settings)


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
