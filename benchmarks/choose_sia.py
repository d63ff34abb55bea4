"""How SIA's defaults for the registry were chosen on October 2017 of Philly: `UNDER_COST` and `LENDING_COVERAGE`.

Predictors learn from 2017-10-02 to 2017-10-15; SIA replays 2017-10-16 to 2017-11-05 with quotas of several loads, with
and without pool 11cb48. Of the pairs that slow under 0.4 % of the jobs at load 0.8 the one with the largest speedup is
taken; fuller pools tell what it would take to keep that limit there too.

Answers are computed once, in batches, on the 5-minute grid of the trace's own past, not of each simulation's: a replay
takes two seconds instead of twenty, and ranks alike. `exact durations` and `exact arrivals and loads` tell whose
errors slow jobs down.

    JOBCAST_DATA=traces python benchmarks/choose_sia.py
"""

import sys
from collections.abc import Collection, Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from jobcast.domain.errors import UserError
from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.hardware import pools_cluster
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Job
from jobcast.features.arrivals import arrival_features
from jobcast.models.duration_booster import cheapest_bin
from jobcast.models.forecasts import GRID_S
from jobcast.models.new_load import NewLoad
from jobcast.models.will_jobs_arrive import WillJobsArrive
from jobcast.pipelines.catalog import data_file
from jobcast.pipelines.recipes import TrainingData, TrainSettings, recipe_of
from jobcast.pipelines.scenes import cut_scene
from jobcast.pipelines.times import parse_time
from jobcast.pipelines.whole_jobs import WholeScene, whole_jobs
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecasts import Oracle, bin_durations_s
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import against
from jobcast.simulator.mixed import Mixed
from jobcast.traces.history import pool_histories
from jobcast.traces.pools import derive_pools, read_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.splits import MIN_TRAIN_JOBS
from jobcast.traces.table import Trace

TRAIN_FROM, BEGIN, END = (parse_time(day) for day in ("2017-10-02", "2017-10-16", "2017-11-06"))
ASKED_UNTIL = parse_time("2017-11-20")
"""Replays last longer than jobs arrive."""
LOADS = (0.8, 0.9, 0.95)
BOT = "11cb48"
"""Its jobs come like clockwork, and are easily forecast."""
UNDER_COSTS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
SHARED_COSTS = (3.0, 6.0)
"""The same for all widths; the others are of each GPU."""
COVERAGES = (0.6, 0.8)
MOST_SLOWED_PCT = 0.4
HORIZONS_S = 60.0 * np.array(DEFAULT_HORIZONS_MIN)
Table = NDArray[np.float64]


class Told:
    """Answers that were computed before: by pool (ticks, horizons), by job id."""

    horizons_min = DEFAULT_HORIZONS_MIN

    def __init__(self, arrives: Mapping[str, Table], loads: Mapping[str, Table], bins: Mapping[str, int]) -> None:
        self._arrives, self._loads, self._bins = arrives, loads, bins
        self._columns = {float(horizon): column for column, horizon in enumerate(HORIZONS_S)}
        self._durations_s = bin_durations_s()
        self._tick = 0

    def advance(self, now_s: float) -> None:
        self._tick = int((min(now_s, ASKED_UNTIL - GRID_S) - BEGIN) // GRID_S)

    def will_jobs_arrive(self, pool: str, horizon_s: float) -> bool:
        return bool(self._arrives[pool][self._tick, self._columns[horizon_s]])

    def new_load(self, pool: str, horizon_s: float) -> float:
        return float(self._loads[pool][self._tick, self._columns[horizon_s]])

    def duration_bin(self, job: Job) -> int:
        return self._bins[job.job_id]

    def duration_s(self, job: Job) -> float:
        return self._durations_s[self.duration_bin(job)]


class Answers:
    """What the predictors say of October, for every cost and coverage."""

    def __init__(self, trace: Trace, pools: list[str]) -> None:
        data = TrainingData.of(trace, TRAIN_FROM, BEGIN, MIN_TRAIN_JOBS)
        histories = pool_histories(trace)
        ticks_s = np.arange(BEGIN, ASKED_UNTIL, GRID_S)
        gate: WillJobsArrive = _trained("will-jobs-arrive", data)
        self.arrives = {
            pool: gate.predict(arrival_features(histories[pool], ticks_s, HORIZONS_S), gate=True) for pool in pools
        }
        busy = {name: history for name, history in histories.items() if name in data.pools}
        self.loads = {coverage: {} for coverage in COVERAGES}
        for coverage, told in self.loads.items():
            loads = NewLoad(lending_coverage=coverage).fit(busy, TRAIN_FROM, BEGIN, DEFAULT_HORIZONS_MIN)
            told |= {pool: loads.lend_rows(loads.rows(histories[pool], ticks_s)) for pool in pools}
        durations = _trained("job-duration", data)
        wanted = (trace.submit_s >= BEGIN) & (trace.submit_s < END)
        jobs = trace.between(BEGIN, END).to_jobs()[0]
        self._ids = [job.job_id for job in jobs]
        self._gpus = np.array([job.gpus for job in jobs], dtype=np.float64)
        self._proba = durations.predict_proba(durations.rows(trace, wanted))

    def told(self, under_cost: float, coverage: float, by_width: bool = True) -> Told:
        costs = under_cost * (self._gpus if by_width else np.ones_like(self._gpus))
        bins = dict(zip(self._ids, cheapest_bin(self._proba, costs).tolist(), strict=True))
        return Told(self.arrives, self.loads[coverage], bins)


def _trained(name: str, data: TrainingData):
    chosen, recipe = recipe_of(name, None)
    return recipe(data, chosen, TrainSettings(), None).predictor


def scene_of(trace: Trace, names: Collection[str], load: float) -> WholeScene:
    """Pools with quotas of a load."""
    pools = [pool for pool in derive_pools(trace.between(BEGIN, END), load, END - BEGIN) if pool.name in names]
    return whole_jobs(cut_scene(trace, pools_cluster(pools), from_s=BEGIN, until_s=END), only_pools=True)


def compare(scene: WholeScene, answers: Answers, case: str) -> dict[tuple[float, float], tuple[float, bool]]:
    """Speedup of each (cost, coverage), and whether it keeps the limits."""
    base = replay(scene.workload, make_policy("fcfs", None, {}))

    def told(name: str, log: RunLog) -> dict[str, float]:
        figures = against(log, base)
        print(
            f"{case:<22} {name:<32} speedup {figures['speedup_gmean']:6.2f}  slowed {figures['slowed_pct']:.3f} %,"
            f" {figures['slowdown_total_min']:,.0f} min",
            flush=True,
        )
        return figures

    def sia(name: str, source: ForecastSource) -> dict[str, float]:
        return told(name, replay(scene.workload, make_policy("sia", source, {}), source))

    told("mmfs", replay(scene.workload, make_policy("mmfs", None, {})))
    exact, learnt = Oracle(scene.workload), answers.told(1.0, 0.8)
    sia("exact", exact)
    sia("exact durations, coverage 0.8", Mixed(learnt, learnt, exact))
    sia("exact arrivals and loads, cost 1", Mixed(exact, exact, learnt))
    found = {}
    for cost, coverage in product(UNDER_COSTS, COVERAGES):
        figures = sia(f"cost {cost:g}, coverage {coverage:g}", answers.told(cost, coverage))
        found[cost, coverage] = (figures["speedup_gmean"], figures["slowed_pct"] < MOST_SLOWED_PCT)
    for cost in SHARED_COSTS:
        sia(f"cost {cost:g} for all widths, coverage 0.6", answers.told(cost, 0.6, by_width=False))
    return found


def main() -> int:
    try:
        trace = read_trace(data_file("philly/philly_jobs.csv"), format="philly")
        names = [pool.name for pool in read_pools(data_file("philly/pools_nov06_nov26.csv")).at(BEGIN)]
    except UserError as error:
        print(error)
        return 1
    answers = Answers(trace, names)
    cases = {
        f"load {load:g}{told}": scene_of(trace, chosen, load)
        for load in LOADS
        for told, chosen in (("", names), (f" without {BOT}", [name for name in names if name != BOT]))
    }
    found = [compare(scene, answers, case) for case, scene in cases.items()]
    for told, among in ((f"at load {LOADS[0]:g}", found[:2]), ("at all loads", found)):
        for cost, coverage in sorted(pair for pair in found[0] if all(one[pair][1] for one in among)):
            speedup = float(np.exp(np.mean([np.log(one[cost, coverage][0]) for one in among])))
            print(f"within the limit {told}: cost {cost:g}, coverage {coverage:g}: speedup {speedup:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
