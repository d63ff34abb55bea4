"""What switches of sharing are worth to SIA on Philly: sia with the registry's forecasts, without and with them.

Trained on 2017-10-02 to 2017-11-05, replayed on 2017-11-06 to 2017-11-26. The switches come from the drift report of
will-jobs-arrive on the same weeks: what holds in a week follows from what had been observed until its beginning. Limits
were chosen on October: `--october` trains on two weeks from 2017-10-02 and replays the three after them. A gate that is
allowed to miss half of all windows with arrivals (`--miss-share 0.5`) shows what switches do where forecasts are bad.

    JOBCAST_DATA=traces python benchmarks/bench_switches.py [--october] [--most-missed 0.2,0.5] [--miss-share 0.5]
"""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import joblib

from jobcast.domain.errors import UserError
from jobcast.domain.hardware import Cluster, PoolsTable
from jobcast.pipelines.experiments.backtest import Cell, run_matrix
from jobcast.pipelines.experiments.experiment import Experiment
from jobcast.pipelines.experiments.forecast_specs import PREDICTORS, parse_forecasts
from jobcast.pipelines.experiments.settings import write_switches
from jobcast.pipelines.lifecycle.drift import drift
from jobcast.pipelines.lifecycle.drift_rules import SwitchRule
from jobcast.pipelines.lifecycle.recipes.common import TrainSettings
from jobcast.pipelines.lifecycle.replay_judges import Window
from jobcast.pipelines.lifecycle.training import train_and_register
from jobcast.pipelines.report.console import Console
from jobcast.pipelines.report.formatting import parse_time
from jobcast.pipelines.stages.prepared_traces import data_file
from jobcast.schedulers.policies import POOLS
from jobcast.traces.pools import derive_pools, read_pools
from jobcast.traces.readers import read_trace

TRAIN_FROM = "2017-10-02"
NOVEMBER = ("2017-11-06", "2017-11-27")
OCTOBER = ("2017-10-16", "2017-11-06")
MIN_POOL_JOBS = 100
SHOWN = ("speedup_gmean", "slowed_pct", "slowdown_total_min", "slowdown_max_min", "mean_jct_s")


def main() -> int:
    options = _options()
    console = Console()
    begin, end = map(parse_time, OCTOBER if options.october else NOVEMBER)
    rules = {f"off above {most:g}": SwitchRule(most_missed=most) for most in options.most_missed}
    try:
        trace = read_trace(data_file("philly/philly_jobs.csv"), format="philly")
        pools = _quotas(trace, begin, end, options.october)
    except UserError as error:
        print(error)
        return 1
    with tempfile.TemporaryDirectory(prefix="jobcast-bench-") as room:
        home = options.home or Path(room)
        for name in PREDICTORS if not (home / "mlruns").exists() else ():
            settings = TrainSettings(miss_share=options.miss_share)
            algorithm = options.arrivals if name == "will-jobs-arrive" else None
            train_and_register(name, algorithm, trace, parse_time(TRAIN_FROM), begin, settings, home=home)
            console.note(f"trained {name}")
        cells = [Cell("sia", parse_forecasts(kind), kind) for kind in ("oracle", "registry", "conservative")]
        counts = {}
        for label, rule in rules.items():
            found = drift(("will-jobs-arrive", None), Window(trace, begin, end), home=home, rule=rule)
            file = Path(room) / f"{label}.csv"
            write_switches(found.switches, file)
            counts[label] = sum(not one.sharing for one in found.switches)
            cells.append(replace(cells[1], label=f"registry, {label}", settings=(("switches", str(file)),)))
        place = Cluster(quotas=PoolsTable.of(pools))
        replayed = Experiment(trace=trace, cluster=place, from_s=begin, until_s=end, only_pools=True, drop_wide=True)
        with console.progress("replay") as step:
            results = run_matrix([replayed], cells, home=home, jobs=joblib.cpu_count(), progress=step)
    print(f"{len(replayed.scenario(POOLS).workload.jobs):,} jobs, {len(pools)} pools; switched off, times: {counts}")
    print(f"{'sia with':<28}" + "".join(f"{name:>20}" for name in SHOWN))
    for one in results:
        print(f"{one.cell.label:<28}" + "".join(f"{one.figures[name]:>20,.3f}" for name in SHOWN))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--october", action="store_true", help="choose limits: two weeks of training, three after them")
    parser.add_argument("--most-missed", default="0.2,0.5", type=lambda text: [float(word) for word in text.split(",")])
    parser.add_argument("--miss-share", type=float, default=0.05, help="of the gate that is trained")
    parser.add_argument("--arrivals", metavar="ALGORITHM", help="of will-jobs-arrive; default: the recipe's")
    parser.add_argument("--home", type=Path, help="keep the trained models there, and take them from there")
    return parser.parse_args()


def _quotas(trace, begin, end, october):
    if not october:
        return read_pools(data_file("philly/pools_nov06_nov26.csv")).at(begin)
    busy = trace.between(parse_time(TRAIN_FROM), begin).jobs["pool"].value_counts()
    names = set(busy.filter(busy["count"] >= MIN_POOL_JOBS)["pool"])
    return [pool for pool in derive_pools(trace.between(begin, end), span_s=end - begin) if pool.name in names]


if __name__ == "__main__":
    sys.exit(main())
