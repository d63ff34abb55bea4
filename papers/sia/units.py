"""One replay: a policy with its forecasts on a draw of a workload, and the figures that are kept of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.simulation import Simulated, simulate, warmup_end
from jobcast.simulator.metrics import after_warmup, against, figures
from papers.run_file import Outcome
from papers.sia.workloads import Workload

QUANTILES = (50.0, 75.0, 90.0, 99.0)
"""Percentiles of speedups that are kept, beside the metrics' own."""


@dataclass(frozen=True, slots=True)
class Row:
    """Who is compared.

    Attributes
    ----------
    title : in tables
    policy, forecasts, settings : as `simulate --policy`, `--forecasts` and `--set` take them
    """

    title: str
    policy: str
    forecasts: str = "oracle"
    settings: tuple[tuple[str, str], ...] = ()


FCFS, SSF, SJF = Row("fcfs", "fcfs"), Row("ssf", "ssf"), Row("sjf", "sjf")
GSSF, MMFS = Row("gssf", "gssf"), Row("mmfs", "mmfs")
SIA_VC, HIVED, THEMIS = Row("sia_vc", "sia_vc"), Row("hived", "hived"), Row("themis_np", "themis_np")
SIA = Row("sia", "sia", "registry")
SIA_PAPER = Row("sia, the paper's own", "sia", "registry:challenger")
"""What was trained last: the paper's algorithms, after ours."""
SIA_EXACT = Row("sia, exact forecasts", "sia")
SIA_RANDOM_ARRIVALS = Row("sia, random arrivals", "sia", "mixed:arrivals=random,loads=registry,durations=registry")
SIA_RANDOM = Row("sia, random arrivals and durations", "sia", "mixed:arrivals=random,loads=registry,durations=random")


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
        run = {"seed": self.seed, "policy": row.policy, "forecasts": row.forecasts, "set": dict(row.settings)}
        return json.dumps(dict(self.workload.drawn) | run, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run in a table: its workload, its policy, its draw."""

    case: str
    name: str
    seed: int
    figures: Mapping[str, float]


def run_draw(units: Sequence[Unit], data: Path, home: Path) -> list[tuple[str, Outcome]]:
    """Replay units of one workload and seed; their keys, and figures with those against FCFS on the same draw."""
    workload, seed = units[0].workload, units[0].seed
    scenario = workload.scenario(seed, data)
    base = _replay(scenario, FCFS, seed, home)
    until_s = warmup_end(scenario, workload.warmup_days)
    runs = (base if unit.row == FCFS else _replay(scenario, unit.row, seed, home) for unit in units)
    return [(unit.key, Outcome(figures_of(made, base, until_s))) for unit, made in zip(units, runs, strict=True)]


def _replay(scenario: RigidScenario, row: Row, seed: int, home: Path) -> Simulated:
    spec = parse_forecasts(row.forecasts)
    return simulate(scenario, row.policy, spec, home=home, seed=seed, settings=dict(row.settings))


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
    told = {"jct_ratio": ratio, "preemptions": stops, "cpu_s": made.cpu_s, **tails, **made.own}
    return {**own, **against(made.log, base.log, warmup_until_s), **told}
