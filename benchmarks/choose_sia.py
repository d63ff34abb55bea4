"""How SIA's defaults for the registry were chosen on October 2017 of Philly (`UNDER_COST` and `LENDING_COVERAGE`), and
what the bins that are served do on the draws of Figure 13.

Predictors learn from 2017-10-02 to 2017-10-22; SIA replays random draws of four pools, as Figure 13 draws them (other
seeds), on 2017-10-23 to 2017-11-05. Of the settings that slow fewer minutes than max-min fairness / 100 in the mean,
and in no draw more than it, the one with the largest median speedup is taken.

Answers are computed once, in batches, on the 5-minute grid of the trace's own past, not of each simulation's: a replay
takes two seconds instead of twenty, and ranks alike. With --exact arrivals and loads are exact, which spares their
training: what slows jobs down are durations. With --figure13 durations learn from 2017-10-02 to 2017-11-05, the draws
are the figure's own, the rest exact, and the default alone is measured, or what --costs names: nothing is to be chosen
there.

Rows are kept in --rows: what was stopped goes on where it was.

    JOBCAST_DATA=traces PYTHONPATH=. python benchmarks/choose_sia.py --draws 24
    JOBCAST_DATA=traces PYTHONPATH=. python benchmarks/choose_sia.py --draws 24 --exact
    JOBCAST_DATA=traces PYTHONPATH=. python benchmarks/choose_sia.py --draws 100 --figure13
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import UserError
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job
from jobcast.features.arrivals import arrival_features
from jobcast.models.care import Care
from jobcast.models.duration_booster import UNDER_COST
from jobcast.models.forecasts import GRID_S, lenders_gpus
from jobcast.models.job_duration import JobDuration
from jobcast.models.load_data import LENDING_COVERAGE
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.catalog import data_file
from jobcast.pipelines.recipes import TrainingData, TrainSettings, recipe_of
from jobcast.pipelines.times import parse_time
from jobcast.pipelines.whole_jobs import WholeScene
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecasts import Oracle, bin_durations_s
from jobcast.simulator.metrics import against
from jobcast.simulator.mixed import Mixed
from jobcast.traces.history import pool_histories
from jobcast.traces.readers import read_trace
from jobcast.traces.splits import MIN_TRAIN_JOBS
from jobcast.traces.table import Trace
from papers.sia.measures import times_less, times_text
from papers.sia.workloads import PHILLY_FILE, TRAINED_FROM, TWO_WEEKS, PoolDraw, pool_work

OCTOBER = ("2017-10-23", "2017-11-06")
REPLAY_S = 14 * 86400.0
"""Replays last longer than jobs arrive."""
FIRST_SEED = 1000
QUEUES, WARMUP_S = 4, 2 * 86400.0
UNDER_COSTS = (30.0, 100.0, 300.0)
COVERAGES = (LENDING_COVERAGE, 0.8)
LESS = 100.0
HORIZONS_S = 60.0 * np.array(DEFAULT_HORIZONS_MIN)
LONG_S = HORIZONS_S[-1]
Table = NDArray[np.float64]
Row = Mapping[str, Any]


class Told:
    """Answers that were computed before: by pool (ticks, horizons), by job id.

    Without `arrives` and `loads` it answers about durations alone.
    """

    horizons_min = DEFAULT_HORIZONS_MIN

    def __init__(
        self, begin_s: float, arrives: Mapping[str, Table], loads: Mapping[str, Table], bins: Mapping[str, int]
    ) -> None:
        self._begin_s, self._arrives, self._loads, self._bins = begin_s, arrives, loads, bins
        self._columns = {float(horizon): column for column, horizon in enumerate(HORIZONS_S)}
        self._durations_s = bin_durations_s()
        self._tick = 0

    def advance(self, now_s: float) -> None:
        last = min((len(one) - 1 for one in self._arrives.values()), default=0)
        self._tick = min(int((now_s - self._begin_s) // GRID_S), last)

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        return bool(self._arrives[pool][self._tick, self._columns[horizon_s]])

    def new_load(self, pool: str, horizon_s: float) -> float:
        return float(self._loads[pool][self._tick, self._columns[horizon_s]])

    def duration_bin(self, job: Job) -> int:
        return self._bins[job.job_id]

    def duration_s(self, job: Job) -> float:
        return self._durations_s[self.duration_bin(job)]


@dataclass
class Answers:
    """What the predictors say of two weeks, learnt before; of arrivals and loads where they are to be learnt."""

    trace: Trace
    weeks: tuple[str, str]
    exact: bool
    arrives: dict[str, Table] = field(default_factory=dict)
    loads: dict[float, dict[str, Table]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.begin_s, self.end_s = map(parse_time, self.weeks)
        self._data = TrainingData.of(self.trace, parse_time(TRAINED_FROM), self.begin_s, MIN_TRAIN_JOBS)
        self._durations: JobDuration = _trained("job-duration", self._data, None)
        wanted = (self.trace.submit_s >= self.begin_s) & (self.trace.submit_s < self.end_s)
        ids = [job.job_id for job in self.trace.between(self.begin_s, self.end_s).to_jobs()[0]]
        self._rows = dict(zip(ids, self._durations.rows(self.trace, wanted), strict=True))
        if not self.exact:
            self._learn_queues()

    def _learn_queues(self) -> None:
        histories, data = pool_histories(self.trace), self._data
        pools = list(pool_work(self.trace, self.begin_s, self.end_s))
        ticks_s = np.arange(self.begin_s, self.end_s + REPLAY_S, GRID_S)
        gate: WillJobsArrive = _trained("will-jobs-arrive", data, "lightgbm")
        self.arrives = {
            pool: gate.predict(arrival_features(histories[pool], ticks_s, HORIZONS_S), gate=True) for pool in pools
        }
        busy = {name: history for name, history in histories.items() if name in data.pools}
        begin_s = parse_time(TRAINED_FROM)
        for coverage in COVERAGES:
            loads = NewLoad(lending_coverage=coverage).fit(busy, begin_s, self.begin_s, DEFAULT_HORIZONS_MIN)
            self.loads[coverage] = {pool: loads.lend_rows(loads.rows(histories[pool], ticks_s)) for pool in pools}

    def bins(self, scene: WholeScene, under_cost: float) -> NDArray[np.int64]:
        """What jobs are told, (n_jobs,)."""
        jobs, lenders = scene.workload.jobs, lenders_gpus(scene.workload.pools)
        self._durations.take(Care(under_cost=under_cost))
        rows = np.stack([self._rows[job.job_id] for job in jobs])
        return self._durations.choose(rows, [lenders[job.pool] for job in jobs])

    def told(self, scene: WholeScene, bins: NDArray[np.int64], coverage: float) -> Told:
        ids = [job.job_id for job in scene.workload.jobs]
        named = dict(zip(ids, bins.tolist(), strict=True))
        return Told(self.begin_s, self.arrives, self.loads.get(coverage, {}), named)


def _trained(name: str, data: TrainingData, algorithm: str | None):
    chosen, recipe = recipe_of(name, algorithm)
    return recipe(data, chosen, TrainSettings(), None).predictor


def served_short(scene: WholeScene, bins: NDArray[np.int64]) -> dict[str, float]:
    """Jobs beyond the last horizon, those of them told shorter, and GPU-hours by pool: of these, and of all jobs."""
    jobs = scene.workload.jobs
    long = np.array([outcome.duration_s for outcome in scene.workload.outcomes])
    gpu_h = np.array([job.gpus for job in jobs]) * long / 3600.0
    long = long > LONG_S
    short = long & (bins < len(HORIZONS_S))
    pools = np.array([job.pool for job in jobs])
    found = {"long": int(long.sum()), "short": int(short.sum())}
    for pool in np.unique(pools).tolist():
        found |= {f"{what} {pool}": float(gpu_h[which & (pools == pool)].sum())
                  for what, which in (("short_gpu_h", short), ("gpu_h", np.ones(len(jobs), np.bool_)))}  # fmt: skip
    return found


def rows_of(seed: int, scene: WholeScene, answers: Answers, costs: Sequence[float]) -> Iterator[Row]:
    """Figures of a draw against fcfs: of max-min fairness, and of SIA by what it is told."""
    base = replay(scene.workload, make_policy("fcfs", None, {}))
    exact = Oracle(scene.workload)
    coverages = () if answers.exact else COVERAGES

    def row(name: str, policy: str, source: Any, **more: float) -> Row:
        figures = against(
            replay(scene.workload, make_policy(policy, source, {}), source), base, answers.begin_s + WARMUP_S
        )
        kept = {key: figures[key] for key in ("speedup_gmean", "slowdown_total_min", "slowdown_max_min")}
        return {"name": name, "seed": seed} | kept | more

    yield row("mmfs", "mmfs", None)
    if not answers.exact:
        yield row("exact", "sia", exact)
    for cost in costs:
        bins = answers.bins(scene, cost)
        short = served_short(scene, bins)
        alone = answers.told(scene, bins, LENDING_COVERAGE)
        yield row(f"cost {cost:g}, arrivals and loads exact", "sia", Mixed(exact, exact, alone), **short)
        for coverage in coverages:
            told = answers.told(scene, bins, coverage)
            yield row(f"cost {cost:g}, coverage {coverage:g}", "sia", told, **short)
            if cost == UNDER_COST:
                yield row(f"durations exact, coverage {coverage:g}", "sia", Mixed(told, told, exact))


def line(name: str, rows: Sequence[Row], theirs: Mapping[int, float]) -> str:
    """What is printed of a setting, over all draws."""
    total = np.array([row["slowdown_total_min"] for row in rows])
    limits = np.array([theirs[row["seed"]] for row in rows])
    kept = "  within the limits" if total.mean() <= limits.mean() / LESS and (total <= limits).all() else ""
    speedup = np.median([row["speedup_gmean"] for row in rows])
    less = times_text(times_less(total.mean(), limits.mean()))
    worse = int((total > limits).sum())
    told = (
        f"{name:<40} speedup {speedup:6.2f}  slowed {total.mean():,.0f} min, less than mmfs by {less}, nobody in "
        f"{np.mean(total == 0.0):.0%} of {len(rows)} draws, more than mmfs in {worse}{kept}"
    )
    if "long" not in rows[0]:
        return told
    jobs = sum(row["short"] for row in rows) / sum(row["long"] for row in rows)
    hours = {what: {pool: 0.0 for row in rows for pool in _pools(row)} for what in ("short_gpu_h", "gpu_h")}
    for row in rows:
        for what, by_pool in hours.items():
            for pool in _pools(row):
                by_pool[pool] += row[f"{what} {pool}"]
    shares = {pool: hours["short_gpu_h"][pool] / hours["gpu_h"][pool] for pool in hours["gpu_h"]}
    worst = max(shares, key=lambda pool: shares[pool])
    whole = sum(hours["short_gpu_h"].values()) / sum(hours["gpu_h"].values())
    return told + (
        f"\n{'':<40} of the jobs over 12 h {jobs:.1%} told short: {whole:.1%} of all GPU-hours, {shares[worst]:.1%} in "
        f"{worst}, the worst pool"
    )


def _pools(row: Row) -> list[str]:
    return [key.removeprefix("gpu_h ") for key in row if key.startswith("gpu_h ")]


def main() -> int:
    parser = argparse.ArgumentParser(description="choose what SIA is told of durations and loads on October")
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--exact", action="store_true", help="arrivals and loads are exact")
    parser.add_argument("--figure13", action="store_true", help="measure the default on the draws of Figure 13")
    parser.add_argument("--costs", type=float, nargs="+", help="of overstaying, in place of those of the window")
    parser.add_argument("--rows", type=Path, help="a row a replay, kept between calls")
    given = parser.parse_args()
    try:
        file = data_file(PHILLY_FILE)
        trace = read_trace(file, format="philly")
    except UserError as error:
        print(error)
        return 1
    weeks, first, costs = (TWO_WEEKS, 0, (UNDER_COST,)) if given.figure13 else (OCTOBER, FIRST_SEED, UNDER_COSTS)
    costs, seeds = given.costs or costs, range(first, first + given.draws)
    kept = given.rows.read_text().splitlines() if given.rows and given.rows.is_file() else []
    rows: list[Row] = [row for row in map(json.loads, kept) if row["seed"] in seeds]
    missing = [seed for seed in seeds if seed not in {row["seed"] for row in rows}]
    answers = Answers(trace, weeks, given.exact or given.figure13) if missing else None
    for seed in missing:
        scene = PoolDraw(QUEUES, weeks=weeks).scene(seed, file.parent.parent)
        found = list(rows_of(seed, scene, answers, costs))
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
