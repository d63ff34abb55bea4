"""CPU seconds of each policy's own run on the Philly trace, and what sharing is worth there.

    JOBCAST_DATA=<folder that holds philly/> python benchmarks/bench_simulate.py [fcfs gssf mmfs sia ...]

First the whole trace (71,570 jobs), each pool's quota its mean load / 0.8, at least its widest job. Then the three
weeks from 2017-11-06 with their pools file: geometric-mean speedup and share of jobs slowed, against fcfs. The trace's
wall-clock times are read as UTC.
"""

import os
import resource
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl

from jobcast.domain.forecasts import ForecastSource
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Oracle, Random
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import against, figures
from jobcast.simulator.workload import Workload, pools_only

LOAD = 0.8
LIMITS_S = {"fcfs": 2.0, "gssf": 10.0, "mmfs": 10.0, "sia": 60.0}
WINDOW = (datetime(2017, 11, 6), datetime(2017, 11, 27))
SOURCES = {"oracle": Oracle, "conservative": Conservative}
RANDOM_SEEDS = range(5)
WINDOW_RUNS = (("mmfs", "oracle"), ("sia", "oracle"), ("sia", "random"), ("sia", "conservative"))


def read_philly(folder: Path) -> pl.DataFrame:
    rows = pl.read_csv(folder / "philly_jobs.csv", try_parse_dates=True).with_row_index("row")
    digits = len(str(len(rows)))
    return rows.with_columns(
        submit_s=pl.col("timestamp").dt.epoch("us") / 1e6,
        job_id=pl.col("row").cast(pl.String).str.zfill(digits),
    )


def workload_of(rows: pl.DataFrame, pools: list[Pool]) -> Workload:
    columns = rows.sort("submit_s", "job_id").select("job_id", "cluster", "submit_s", "num_gpus", "duration")
    jobs, outcomes = [], []
    for seq, (job_id, pool, submit_s, gpus, duration_s) in enumerate(columns.iter_rows()):
        jobs.append(Job(seq, job_id, pool, submit_s, gpus))
        outcomes.append(Outcome(duration_s))
    return Workload(jobs, outcomes, pools)


def derived_pools(rows: pl.DataFrame) -> list[Pool]:
    span_s = rows["submit_s"].max() - rows["submit_s"].min()
    by_pool = rows.group_by("cluster").agg(
        work=(pl.col("num_gpus") * pl.col("duration")).sum(), widest=pl.col("num_gpus").max()
    )
    return [Pool(name, max(widest, int(np.ceil(work / span_s / LOAD)))) for name, work, widest in by_pool.iter_rows()]


def timed(workload: Workload, policy: str, source: ForecastSource) -> tuple[RunLog, float]:
    rule = make_policy(policy, source, {})
    begin = time.process_time()
    log = replay(workload, rule, source)
    return log, time.process_time() - begin


def whole_trace(rows: pl.DataFrame, policies: list[str]) -> None:
    workload = workload_of(rows, derived_pools(rows))
    print(f"whole trace: {len(workload.jobs):,} jobs, {workload.total_gpus:,} GPUs", flush=True)
    base = None
    for policy in policies:
        log, cpu_s = timed(workload, policy, Oracle(workload))
        base = log if policy == "fcfs" else base
        limit = f"(limit {LIMITS_S[policy]:g})" if policy in LIMITS_S else ""
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        gain = f"gmean {against(log, base)['speedup_gmean']:.2f}" if base else ""
        jct_h = figures(log)["mean_jct_s"] / 3600
        print(
            f"  {policy:<6} {cpu_s:6.2f} s CPU {limit:<11} peak {peak_mb:.0f} MB  mean JCT {jct_h:.2f} h  {gain}",
            flush=True,
        )


def three_weeks(rows: pl.DataFrame, folder: Path) -> None:
    pools = [Pool(name, gpus) for name, gpus in pl.read_csv(folder / "pools_nov06_nov26.csv").iter_rows()]
    window = rows.filter(pl.col("timestamp").is_between(*WINDOW, closed="left"))
    workload, dropped = pools_only(workload_of(window, pools))
    earlier = workload_of(rows.filter(pl.col("timestamp") < WINDOW[0]), pools).jobs
    base, _ = timed(workload, "fcfs", Oracle(workload))
    print(f"2017-11-06 to 2017-11-26: {len(workload.jobs):,} jobs ({dropped} of other pools left out)", flush=True)
    for policy, kind in WINDOW_RUNS:
        seeds = RANDOM_SEEDS if kind == "random" else (0,)
        runs = []
        for seed in seeds:
            source = Random(workload, seed, earlier) if kind == "random" else SOURCES[kind](workload)
            log, cpu_s = timed(workload, policy, source)
            figures = against(log, base)
            runs.append((figures["speedup_gmean"], figures["slowed_pct"], figures["slowdown_max_min"], cpu_s))
        gmean, slowed, worst, cpu_s = np.median(runs, axis=0)
        print(
            f"  {policy:<5} {kind:<13} gmean {gmean:6.2f}  slowed {slowed:6.2f} %  worst {worst:8.1f} min"
            f"  {cpu_s:5.2f} s CPU{f'  (medians of {len(seeds)} seeds)' if len(seeds) > 1 else ''}",
            flush=True,
        )


def main() -> None:
    data = os.environ.get("JOBCAST_DATA")
    if not data:
        sys.exit("JOBCAST_DATA is not set: the benchmark needs the folder that holds philly/philly_jobs.csv")
    folder = Path(data) / "philly"
    rows = read_philly(folder)
    whole_trace(rows, sys.argv[1:] or ["fcfs", "ssf", "gssf", "mmfs", "sia"])
    three_weeks(rows, folder)


if __name__ == "__main__":
    main()
