"""How the default budget and relief of `sia_risk` were chosen: October 2017 of the Philly trace, at three loads.

Predictors are trained on 2017-10-02 to 2017-10-15; 2017-10-16 to 2017-11-05 is replayed with quotas derived at each
load on that window. SIA by hard classes stands beside, for several costs of overstaying.

    JOBCAST_DATA=traces python benchmarks/choose_sia_risk.py --home models-october
"""

import argparse
import sys
from pathlib import Path

from bench_sia_risk import Run, figures_of

from jobcast.domain.errors import UserError
from jobcast.domain.hardware import pools_cluster
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS
from jobcast.pipelines.experiments.rigid_jobs import rigid_jobs
from jobcast.pipelines.experiments.scenarios import cut_scenario
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.lifecycle.training import train_and_register
from jobcast.pipelines.report.formatting import parse_time
from jobcast.pipelines.stages.prepared_traces import data_file
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.simulator.engine import replay
from jobcast.traces.pools import derive_pools, read_pools
from jobcast.traces.readers import read_trace

TRAIN_FROM, BEGIN, END = (parse_time(day) for day in ("2017-10-02", "2017-10-16", "2017-11-06"))
LOADS = (0.8, 0.9, 1.0)
UNDER_COSTS = (10.0, 30.0, 50.0, 100.0, 300.0)
PAIRS = (
    *((10.0, budget_min) for budget_min in (1.0, 1.5, 2.0)),
    *((30.0, budget_min) for budget_min in (3.0, 4.0)),
    *((60.0, budget_min) for budget_min in (4.0, 6.0, 8.0, 12.0)),
    (240.0, 16.0),
)
"""(relief, budget) in minutes."""


def main() -> int:
    parser = argparse.ArgumentParser(description="choose the budget and relief of sia_risk on October")
    parser.add_argument("--home", type=Path, required=True, help="registry of the predictors; trained where missing")
    given = parser.parse_args()
    try:
        trace = read_trace(data_file("philly/philly_jobs.csv"), format="philly")
        names = {pool.name for pool in read_pools(data_file("philly/pools_nov06_nov26.csv")).at(END)}
    except UserError as error:
        print(error)
        return 1
    if not given.home.exists():
        for name in PREDICTORS:
            train_and_register(name, None, trace, TRAIN_FROM, BEGIN, TrainSettings(), home=given.home)
    for load in LOADS:
        derived = derive_pools(trace.between(BEGIN, END), load, END - BEGIN)
        pools = [pool for pool in derived if pool.name in names]
        scenario = rigid_jobs(cut_scenario(trace, pools_cluster(pools), from_s=BEGIN, until_s=END), only_pools=True)
        base = replay(scenario.workload, Fcfs())
        rows = [Run("october", "registry", "sia", under_cost) for under_cost in UNDER_COSTS]
        rows += [Run("october", "registry", "sia_risk", budget_min, relief_min) for relief_min, budget_min in PAIRS]
        for run in rows:
            found = figures_of(run, scenario, base, given.home)
            print(
                f"load {load:g}  {run.policy} {run.setting:g}  relief {run.relief_min:g}"
                f"  speedup {found['speedup_gmean']:.3f}  slowed {found['slowed_pct']:.3f} %"
                f", {found['slowdown_total_min']:,.0f} min  mean JCT {found['mean_jct_s']:,.0f} s",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
