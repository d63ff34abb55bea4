"""What the registry's forecasts are worth to SIA on Philly, against the bars that the project set itself.

Trained on 2017-10-02 to 2017-11-05, replayed on 2017-11-06 to 2017-11-26 with the quotas of
`philly/pools_nov06_nov26.csv` (load 0.8 on that window). Exits with 1 when a bar is missed.

    JOBCAST_DATA=traces python benchmarks/bench_sia_philly.py
"""

import sys
import tempfile
from pathlib import Path

import joblib
import numpy as np

from jobcast.domain.errors import UserError
from jobcast.pipelines.backtest import CellResult, label_of, matrix, run_matrix
from jobcast.pipelines.catalog import data_file
from jobcast.pipelines.console import Console
from jobcast.pipelines.forecast_specs import PREDICTORS, parse_forecasts
from jobcast.pipelines.recipes import TrainSettings
from jobcast.pipelines.report import summary_table
from jobcast.pipelines.scenes import build_scene
from jobcast.pipelines.times import parse_time
from jobcast.pipelines.training import train_and_register
from jobcast.traces.pools import read_pools
from jobcast.traces.readers import read_trace

TRAIN_FROM, TEST_FROM, TEST_UNTIL = "2017-10-02", "2017-11-06", "2017-11-27"
SEEDS = 8
MOST_SLOWED_PCT = 1.0
CELLS = (
    ("fcfs", "oracle"),
    ("mmfs", "oracle"),
    *(("sia", kind) for kind in ("oracle", "registry", "random", "conservative")),
)


def mean_of(results: list[CellResult], label: str, figure: str) -> float:
    """Mean over seeds; speedups geometrically."""
    values = np.array([one.figures[figure] for one in results if one.cell.label == label])
    return float(np.exp(np.log(values).mean()) if figure.startswith("speedup") else values.mean())


def main() -> int:
    console = Console()
    try:
        trace = read_trace(data_file("philly/philly_jobs.csv"), format="philly")
        pools = read_pools(data_file("philly/pools_nov06_nov26.csv")).at(parse_time(TEST_FROM))
    except UserError as error:
        print(error)
        return 1
    begin, end = parse_time(TEST_FROM), parse_time(TEST_UNTIL)
    with tempfile.TemporaryDirectory(prefix="jobcast-bench-") as room:
        home = Path(room)
        for name in PREDICTORS:
            train_and_register(name, None, trace, parse_time(TRAIN_FROM), begin, TrainSettings(), home=home)
            console.note(f"trained {name}")
        scene = build_scene(trace, pools, from_s=begin, until_s=end, only_pools=True)
        pairs = [(policy, parse_forecasts(kind), label_of(policy, parse_forecasts(kind))) for policy, kind in CELLS]
        with console.progress("replay") as step:
            results = run_matrix([scene], matrix(pairs, 1, SEEDS), home=home, jobs=joblib.cpu_count(), progress=step)
    print(summary_table([one.row() for one in results]))
    random_jct = [one.figures["mean_jct_s"] for one in results if one.cell.label == "sia random"]
    print(f"sia random, mean JCT by seed (s): {', '.join(f'{jct:,.0f}' for jct in random_jct)}")
    ours, theirs = "sia registry", "sia random"
    bars = {
        "speedup above random's": mean_of(results, ours, "speedup_gmean") > mean_of(results, theirs, "speedup_gmean"),
        "mean JCT below random's": mean_of(results, ours, "mean_jct_s") < mean_of(results, theirs, "mean_jct_s"),
        "fewer slowed than random's": mean_of(results, ours, "slowed_pct") < mean_of(results, theirs, "slowed_pct"),
        "slowed under 1 %": mean_of(results, ours, "slowed_pct") < MOST_SLOWED_PCT,
        "none slowed with exact forecasts": mean_of(results, "sia oracle", "slowed_pct") == 0.0,
        "conservative equals fcfs": mean_of(results, "sia conservative", "speedup_gmean") == 1.0,
    }
    for bar, met in bars.items():
        print(f"{'met   ' if met else 'MISSED'}  {bar}")
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
