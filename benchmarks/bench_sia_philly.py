"""What the registry's forecasts are worth to SIA on Philly, which predictor's errors cost what, and the bars set to it.

Trained on 2017-10-02 to 2017-11-05, replayed on 2017-11-06 to 2017-11-26 with the quotas of
`philly/pools_nov06_nov26.csv` (load 0.8 on that window), with and without pool 11cb48, whose jobs come like clockwork;
`--window october`, on which defaults were chosen: trained until 2017-10-15, replayed until 2017-11-05, quotas of load
0.8. Beside it the bar of exact forecasts on 2017-10-02 to 2017-11-12. Writes `docs/sia/philly/ablation.md` (Figure 15a
of SIA is in it); exits with 1 when a bar is missed.

    JOBCAST_DATA=traces python benchmarks/bench_sia_philly.py
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np

from jobcast.domain.errors import RegistryError, UserError
from jobcast.domain.hardware import Cluster, PoolsTable
from jobcast.domain.jobs import Pool
from jobcast.models.registry import open_registry
from jobcast.pipelines.experiments.backtest import CellResult, matrix, run_matrix
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import PARTS, PREDICTORS, parse_forecasts
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.lifecycle.training import train_and_register
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.formatting import parse_time
from jobcast.pipelines.stages.prepared_traces import data_file
from jobcast.traces.pools import derive_pools, read_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace

WINDOWS = {
    "november": ("2017-10-02", "2017-11-06", "2017-11-27"),
    "october": ("2017-10-02", "2017-10-16", "2017-11-06"),
}
"""Training from; window from, until."""
EXACT_WINDOW = ("2017-10-02", "2017-11-13")
BOT = "11cb48"
LOAD = 0.8
SEEDS = 8
MOST_SLOWED_PCT = 0.5
MOST_OF_MMFS = 1 / 50
LEAST_OF_ORACLE, STRETCH = 0.45, 2 / 3
LEAST_EXACT = 13.0
TABLE = Path(__file__).resolve().parent.parent / "docs" / "sia" / "philly" / "ablation.md"
FIGURES = ("speedup_gmean", "slowed_pct", "slowdown_total_min", "slowdown_max_min", "mean_jct_s")
ALL, BY_CHANCE = "sia, all registry", "sia, all random"


def mixed(base: str, other: str, *parts: str) -> str:
    """A source that asks `other` about some parts and `base` about the rest."""
    return "mixed:" + ",".join(f"{part}={other if part in parts else base}" for part in PARTS)


ROWS = {
    "fcfs": ("fcfs", "oracle"),
    "mmfs": ("mmfs", "oracle"),
    "sia, all oracle": ("sia", "oracle"),
    **{f"sia, {part} registry, rest oracle": ("sia", mixed("oracle", "registry", part)) for part in PARTS},
    ALL: ("sia", "registry"),
    **{f"sia, {part} random, rest registry": ("sia", mixed("registry", "random", part)) for part in PARTS},
    "sia, arrivals and durations random, loads registry": ("sia", mixed("registry", "random", "arrivals", "durations")),
    BY_CHANCE: ("sia", "random"),
    "sia, all conservative": ("sia", "conservative"),
}
"""Policy and forecasts by row. Figure 15a: (a) replaces arrivals, (b) arrivals and durations by chance."""


@dataclass(frozen=True, slots=True)
class Row:
    """Means over seeds, speedups geometrically; figures in the order of `FIGURES`."""

    speedup: float
    slowed_pct: float
    total_min: float
    worst_min: float
    jct_s: float

    @classmethod
    def of(cls, results: Sequence[CellResult]) -> "Row":
        values = np.array([[one.figures[figure] for figure in FIGURES] for one in results])
        return cls(float(np.exp(np.log(values[:, 0]).mean())), *map(float, values[:, 1:].mean(axis=0)))

    def cells(self) -> str:
        return (
            f"{self.speedup:.2f} | {self.slowed_pct:.3f} | {self.total_min:,.0f} | {self.worst_min:,.0f}"
            f" | {self.jct_s / 60:,.0f}"
        )


Rows = dict[str, Row]


def replayed(trace: Trace, pools: Sequence[Pool], from_s: float, until_s: float) -> Experiment:
    """A window on quotas; jobs of other pools are left out."""
    place = Cluster(quotas=PoolsTable.of(pools))
    return Experiment(trace=trace, cluster=place, from_s=from_s, until_s=until_s, only_pools=True)


def experiments_of(trace: Trace, window: str) -> dict[str, Experiment]:
    """The window with all nine pools, and without the bot's; the quotas of the others stay."""
    begin, end = map(parse_time, WINDOWS[window][1:])
    pools: list[Pool] = list(read_pools(data_file("philly/pools_nov06_nov26.csv")).at(begin))
    if window == "october":
        names = {pool.name for pool in pools}
        pools = [pool for pool in derive_pools(trace.between(begin, end), LOAD, end - begin) if pool.name in names]
    others = [pool for pool in pools if pool.name != BOT]
    return {
        name: replayed(trace, chosen, begin, end)
        for name, chosen in (("all nine pools", pools), (f"without pool {BOT}", others))
    }


def train_missing(trace: Trace, window: str, home: Path, console: Console) -> None:
    """Train the predictors that a registry does not hold."""
    begin, until = map(parse_time, WINDOWS[window][:2])
    for name in PREDICTORS:
        try:
            open_registry(home).resolve(name)
        except RegistryError:
            train_and_register(name, None, trace, begin, until, TrainSettings(), home=home)
            console.note(f"trained {name}")


def measure(experiments: Sequence[Experiment], home: Path, seeds: int, jobs: int, console: Console) -> list[Rows]:
    """Rows of each experiment."""
    pairs = [(policy, parse_forecasts(kind), label) for label, (policy, kind) in ROWS.items()]
    with console.progress("replay") as step:
        results = run_matrix(experiments, matrix(pairs, len(experiments), seeds), home=home, jobs=jobs, progress=step)
    return [
        {
            label: Row.of([one for one in results if one.cell.label == label and one.cell.window == number])
            for label in ROWS
        }
        for number in range(len(experiments))
    ]


def exact(trace: Trace, home: Path) -> Row:
    """SIA with exact forecasts on the six weeks."""
    begin, end = map(parse_time, EXACT_WINDOW)
    pools = read_pools(data_file("philly/pools_oct02_nov12.csv")).at(begin)
    six_weeks = replayed(trace, pools, begin, end)
    return Row.of(run_matrix([six_weeks], matrix([("sia", parse_forecasts("oracle"), "sia oracle")], 1, 1), home=home))


def bars_of(rows: Rows) -> dict[str, bool]:
    """Each bar with the figure that decides it, and whether it is met."""
    ours, chance, oracle, mmfs = rows[ALL], rows[BY_CHANCE], rows["sia, all oracle"], rows["mmfs"]
    of_mmfs, of_oracle = ours.total_min / mmfs.total_min, ours.speedup / oracle.speedup
    return {
        f"slowed under {MOST_SLOWED_PCT} %: {ours.slowed_pct:.3f} %": ours.slowed_pct < MOST_SLOWED_PCT,
        f"total slowdown at most a fiftieth of mmfs': {of_mmfs:.4f}": of_mmfs <= MOST_OF_MMFS,
        f"speedup at least 45 % of the oracle's: {of_oracle:.1%}": of_oracle >= LEAST_OF_ORACLE,
        f"better than random in speedup: {ours.speedup:.2f}, {chance.speedup:.2f}": ours.speedup > chance.speedup,
        f"slows fewer than random: {ours.slowed_pct:.3f} %, {chance.slowed_pct:.3f} %": ours.slowed_pct
        < chance.slowed_pct,
        f"slows by less than random: {ours.total_min:,.0f}, {chance.total_min:,.0f} min": ours.total_min
        < chance.total_min,
        "exact forecasts slow nobody": oracle.slowed_pct == 0.0,
        "conservative forecasts equal fcfs": rows["sia, all conservative"].speedup == 1.0,
    }


def table(rows: Rows) -> str:
    """Markdown."""
    head = "| policy, forecasts | speedup (gmean) | slowed (%) | total slowdown (min) | worst (min) | mean JCT (min) |"
    lines = [f"| {label} | {row.cells()} |" for label, row in rows.items()]
    return "\n".join([head, "| --- " * 6 + "|", *lines])


def page(window: str, found: dict[str, Rows], seeds: int) -> str:
    """The tables of a window, with what they are of."""
    trained_from, begin, end = WINDOWS[window]
    text = (
        f"Philly, {begin} until {end}, models trained from {trained_from} until {begin}; what draws is the mean of"
        f" {seeds} seeds. Baseline: fcfs."
    )
    return "\n\n".join([text, *(f"{name}:\n\n{table(rows)}" for name, rows in found.items())]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--window", choices=WINDOWS, default="november")
    parser.add_argument("--home", type=Path, help="a registry to keep; models that it lacks are trained")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=joblib.cpu_count())
    parser.add_argument("--table", type=Path, default=TABLE)
    asked = parser.parse_args()
    console = Console()
    try:
        trace = read_trace(data_file("philly/philly_jobs.csv"), format="philly")
        experiments = experiments_of(trace, asked.window)
    except UserError as error:
        print(error)
        return 1
    with tempfile.TemporaryDirectory(prefix="jobcast-bench-") as room:
        home = asked.home or Path(room)
        train_missing(trace, asked.window, home, console)
        measured = measure(list(experiments.values()), home, asked.seeds, asked.jobs, console)
        six_weeks = exact(trace, home)
    found = dict(zip(experiments, measured, strict=True))
    result = page(asked.window, found, asked.seeds)
    asked.table.parent.mkdir(parents=True, exist_ok=True)
    asked.table.write_text(result, encoding="utf-8")
    print(result)
    bars = {f"{name}: {bar}": met for name, rows in found.items() for bar, met in bars_of(rows).items()}
    bars[f"six weeks, exact forecasts slow nobody: {six_weeks.slowed_pct:.3f} %"] = six_weeks.slowed_pct == 0.0
    bars[f"six weeks, exact forecasts speed up by more than 13: {six_weeks.speedup:.2f}"] = (
        six_weeks.speedup > LEAST_EXACT
    )
    for bar, met in bars.items():
        print(f"{'met   ' if met else 'MISSED'}  {bar}")
    for name, rows in found.items():
        stretch = rows[ALL].speedup / rows["sia, all oracle"].speedup >= STRETCH
        print(f"stretch, two thirds of the oracle's speedup, {name}: {'met' if stretch else 'missed'}")
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
