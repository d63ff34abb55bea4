"""How SIA's price of overstaying was chosen on October 2017 of Philly (`UNDER_COST`), and what the bins that are served
do on the draws of Figure 13.

Predictors learn from 2017-10-02 to 2017-10-22; SIA replays random draws of four pools, as Figure 13 draws them (other
seeds), on 2017-10-23 to 2017-11-05. Of the prices that slow fewer minutes than max-min fairness / 100 in the mean, and
in no draw more than it, the one with the largest median speedup is taken. Durations are asked in the replay itself: in
a queue that is longer than the trace's own, less is known of a job when it is submitted, and jobs look longer.

Arrivals and loads are exact, which spares their training: what slows jobs down are durations. With --figure13 durations
learn from 2017-10-02 to 2017-11-05, the draws are the figure's own, and the default alone is measured, or what --costs
names: nothing is to be chosen there.

Rows are kept in --rows: what was stopped goes on where it was.

    JOBCAST_DATA=traces PYTHONPATH=. python benchmarks/choose_sia.py --draws 20
    JOBCAST_DATA=traces PYTHONPATH=. python benchmarks/choose_sia.py --draws 100 --figure13
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from jobcast.domain.errors import UserError
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job
from jobcast.models.duration_booster import UNDER_COST
from jobcast.models.registry import open_registry
from jobcast.pipelines.experiments.forecast_specs import parse_forecasts
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario
from jobcast.pipelines.experiments.simulation import simulate
from jobcast.pipelines.experiments.sources import Ask
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.lifecycle.training import train_and_register
from jobcast.pipelines.report.formatting import parse_time
from jobcast.pipelines.stages.prepared_traces import data_file
from jobcast.simulator.metrics import against
from jobcast.traces.readers import read_trace
from papers.sia.bench import PHILLY_FILE, TRAINED_FROM, TWO_WEEKS, PoolDraw
from papers.sia.measures import times_less, times_text

OCTOBER = ("2017-10-23", "2017-11-06")
FIRST_SEED = 1000
QUEUES, WARMUP_S = 4, 2 * 86400.0
UNDER_COSTS = (30.0, 50.0, 70.0, 100.0)
LESS = 100.0
LONG_S = 60.0 * DEFAULT_HORIZONS_MIN[-1]
KEPT = ("speedup_gmean", "slowdown_total_min", "slowdown_max_min")
Row = Mapping[str, Any]


class Heard:
    """A source of forecasts, and the bins that it told, by job id."""

    def __init__(self, source: Any) -> None:
        self.source, self.bins = source, dict[str, int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def duration_bin(self, job: Job) -> int:
        """See `domain.forecasts.Forecasts`."""
        self.bins[job.job_id] = result = self.source.duration_bin(job)
        return int(result)


def train(home: Path, file: Path, until: str, costs: Sequence[float]) -> dict[float, int]:
    """Versions of job-duration by their price."""
    trace, span = read_trace(file, format="philly"), (parse_time(TRAINED_FROM), parse_time(until))
    for cost in costs:
        train_and_register("job-duration", None, trace, *span, replace(TrainSettings(), under_cost=cost), home=home)
    return dict(zip(costs, sorted(one.version for one in open_registry(home).list()), strict=True))


def served_short(scenario: RigidScenario, figures: Mapping[str, int]) -> dict[str, float]:
    """Jobs beyond the last horizon, those of them told shorter, and GPU-hours by pool: of these, and of all jobs."""
    jobs = scenario.workload.jobs
    long = np.array([outcome.duration_s for outcome in scenario.workload.outcomes])
    gpu_h = np.array([job.gpus for job in jobs]) * long / 3600.0
    long = long > LONG_S
    short = long & (np.array([figures.get(job.job_id, 0) for job in jobs]) < len(DEFAULT_HORIZONS_MIN))
    pools = np.array([job.pool for job in jobs])
    found = {"long": int(long.sum()), "short": int(short.sum())}
    for pool in np.unique(pools).tolist():
        found |= {f"{what} {pool}": float(gpu_h[which & (pools == pool)].sum())
                  for what, which in (("short_gpu_h", short), ("gpu_h", np.ones(len(jobs), np.bool_)))}  # fmt: skip
    return found


def rows_of(seed: int, weeks: tuple[str, str], data: Path, home: Path, versions: Mapping[float, int]) -> list[Row]:
    """Figures of a draw against fcfs: of max-min fairness, and of SIA by its price."""
    scenario, begin_s = PoolDraw(QUEUES, weeks=weeks).scenario(seed, data), parse_time(weeks[0])

    def replayed(policy: str, forecasts: str, wrap: Any = None) -> Any:
        ask = Ask(policy=policy, spec=parse_forecasts(forecasts), home=home, seed=seed)
        return simulate(scenario, ask, wrap=wrap).log

    base = replayed("fcfs", "oracle")

    def row(name: str, log: Any, **more: float) -> Row:
        figures = against(log, base, begin_s + WARMUP_S)
        return {"name": name, "seed": seed} | {key: figures[key] for key in KEPT} | more

    def priced() -> Iterator[Row]:
        for cost, version in versions.items():
            heard: list[Heard] = []
            spec = f"mixed:arrivals=oracle,loads=oracle,durations=registry:job-duration={version}"
            log = replayed("sia", spec, lambda source, heard=heard: heard.append(Heard(source)) or heard[-1])
            yield row(f"cost {cost:g}", log, **served_short(scenario, heard[-1].bins))

    return [row("mmfs", replayed("mmfs", "oracle")), row("exact", replayed("sia", "oracle")), *priced()]


def line(name: str, rows: Sequence[Row], theirs: Mapping[int, float]) -> str:
    """What is printed of a setting, over all draws."""
    total = np.array([row["slowdown_total_min"] for row in rows])
    limits = np.array([theirs[row["seed"]] for row in rows])
    kept = "  within the limits" if total.mean() <= limits.mean() / LESS and (total <= limits).all() else ""
    speedup = np.median([row["speedup_gmean"] for row in rows])
    less = times_text(times_less(total.mean(), limits.mean()))
    worse = int((total > limits).sum())
    text = (
        f"{name:<10} speedup {speedup:6.2f}  slowed {total.mean():,.0f} min, less than mmfs by {less}, nobody in "
        f"{np.mean(total == 0.0):.0%} of {len(rows)} draws, more than mmfs in {worse}{kept}"
    )
    if "long" not in rows[0]:
        return text
    jobs = sum(row["short"] for row in rows) / sum(row["long"] for row in rows)
    hours = {what: {pool: 0.0 for row in rows for pool in _pools(row)} for what in ("short_gpu_h", "gpu_h")}
    for row in rows:
        for what, by_pool in hours.items():
            for pool in _pools(row):
                by_pool[pool] += row[f"{what} {pool}"]
    shares = {pool: hours["short_gpu_h"][pool] / hours["gpu_h"][pool] for pool in hours["gpu_h"]}
    worst = max(shares, key=lambda pool: shares[pool])
    whole = sum(hours["short_gpu_h"].values()) / sum(hours["gpu_h"].values())
    return text + (
        f"\n{'':<10} of the jobs over 12 h {jobs:.1%} told short: {whole:.1%} of all GPU-hours, {shares[worst]:.1%} in "
        f"{worst}, the worst pool"
    )


def _pools(row: Row) -> list[str]:
    return [key.removeprefix("gpu_h ") for key in row if key.startswith("gpu_h ")]


def main() -> int:
    parser = argparse.ArgumentParser(description="choose SIA's price of overstaying on October")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--figure13", action="store_true", help="measure the default on the draws of Figure 13")
    parser.add_argument("--costs", type=float, nargs="+", help="of overstaying, in place of those of the window")
    parser.add_argument("--rows", type=Path, help="a row a replay, kept between calls")
    parser.add_argument("--jobs", type=int, default=2, help="replays at once")
    given = parser.parse_args()
    try:
        file = data_file(PHILLY_FILE)
    except UserError as error:
        print(error)
        return 1
    weeks, first, costs = (TWO_WEEKS, 0, (UNDER_COST,)) if given.figure13 else (OCTOBER, FIRST_SEED, UNDER_COSTS)
    costs, seeds = given.costs or costs, range(first, first + given.draws)
    kept = given.rows.read_text().splitlines() if given.rows and given.rows.is_file() else []
    rows: list[Row] = [row for row in map(json.loads, kept) if row["seed"] in seeds]
    missing = [seed for seed in seeds if seed not in {row["seed"] for row in rows}]
    with TemporaryDirectory() as home:
        versions = train(Path(home), file, weeks[0], costs) if missing else {}
        tasks = (delayed(rows_of)(seed, weeks, file.parent.parent, Path(home), versions) for seed in missing)
        for found in Parallel(given.jobs, return_as="generator", batch_size=1)(tasks):
            rows += found
            if given.rows:
                with given.rows.open("a", encoding="utf-8") as out:
                    out.writelines(f"{json.dumps(row)}\n" for row in found)
    theirs = {row["seed"]: row["slowdown_total_min"] for row in rows if row["name"] == "mmfs"}
    for name in dict.fromkeys(row["name"] for row in rows):
        print(line(name, [row for row in rows if row["name"] == name], theirs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
