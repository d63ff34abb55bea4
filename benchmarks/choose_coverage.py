"""What NewLoad's algorithm and lending coverage are worth to SIA: two windows of October 2017 of the Philly trace.

Predictors are trained on what comes before each window; quotas are derived at load 0.8 on it.

    JOBCAST_DATA=traces python benchmarks/choose_coverage.py
"""

import sys
from itertools import product

from jobcast.domain.errors import UserError
from jobcast.domain.hardware import pools_cluster
from jobcast.domain.horizons import DEFAULT_HORIZONS_MIN
from jobcast.domain.jobs import Pool
from jobcast.models.forecasts import RegistryForecasts
from jobcast.models.new_load import NewLoad
from jobcast.pipelines.experiments.rigid_jobs import RigidScenario, rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.experiments.sources import earlier_jobs
from jobcast.pipelines.lifecycle.recipes.arrivals import train_arrivals
from jobcast.pipelines.lifecycle.recipes.common import TrainingData, TrainSettings
from jobcast.pipelines.lifecycle.recipes.durations import train_durations
from jobcast.pipelines.report.formatting import iso, parse_time
from jobcast.pipelines.stages.prepared_traces import data_file
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.history import RunHistory
from jobcast.simulator.metrics import against, figures
from jobcast.traces.history import pool_histories
from jobcast.traces.pools import derive_pools
from jobcast.traces.readers import read_trace
from jobcast.traces.splits import MIN_TRAIN_JOBS, pools_to_learn_from
from jobcast.traces.table import Trace

TRAIN_FROM = parse_time("2017-10-02")
WINDOWS = (("2017-10-16", "2017-10-30"), ("2017-10-23", "2017-11-06"))
COVERAGES = (0.95, 0.9, 0.8, 0.7)
ALGORITHMS = ("quantile", "sliding-max")
LOAD = 0.8


def quotas(trace: Trace, begin: float, end: float) -> list[Pool]:
    """Quotas at a load of 0.8 on the window, of pools with enough jobs before it."""
    busy = pools_to_learn_from(trace.between(TRAIN_FROM, begin), MIN_TRAIN_JOBS)
    return [pool for pool in derive_pools(trace.between(begin, end), LOAD, end - begin) if pool.name in busy]


def compare(scenario: RigidScenario, data: TrainingData) -> None:
    base = replay(scenario.workload, make_policy("fcfs", None, {}))
    arrivals = train_arrivals(data, "average", TrainSettings(), None).predictor
    durations = train_durations(data, "blended", TrainSettings(), None).predictor
    histories = {name: h for name, h in pool_histories(data.trace).items() if name in data.pools}
    for algorithm, coverage in product(ALGORITHMS, COVERAGES):
        loads = NewLoad(algorithm, lending_coverage=coverage).fit(
            histories, data.from_s, data.until_s, DEFAULT_HORIZONS_MIN
        )
        history = RunHistory([pool.name for pool in scenario.workload.pools], earlier_jobs(scenario))
        source = RegistryForecasts(history, arrivals, loads, durations)
        log = replay(scenario.workload, make_policy("sia", source, {}), source, history)
        result = figures(log) | against(log, base)
        print(
            f"{iso(scenario.from_s)} to {iso(scenario.until_s)}  {algorithm:<12} coverage {coverage:<5}"
            f" speedup {result['speedup_gmean']:.3f}  slowed {result['slowed_pct']:.3f} %"
            f"  mean JCT {result['mean_jct_s']:,.0f} s",
            flush=True,
        )


def main() -> int:
    try:
        trace = read_trace(data_file("philly/philly_jobs.csv"), format="philly")
    except UserError as error:
        print(error)
        return 1
    for begin, end in ((parse_time(begin), parse_time(end)) for begin, end in WINDOWS):
        place = pools_cluster(quotas(trace, begin, end))
        scenario = rigid_jobs(cut_scenario(trace, place, from_s=begin, until_s=end), only_pools=True)
        compare(scenario, TrainingData.of(trace, TRAIN_FROM, begin, MIN_TRAIN_JOBS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
