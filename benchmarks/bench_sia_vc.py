"""What SIA_VC and the policies beside it gain on Philly, 2017-10-02 to 2017-11-12, and the CPU seconds that they take.

    JOBCAST_DATA=<folder that holds philly/> python benchmarks/bench_sia_vc.py [jobs]

Exact durations; quotas of philly/pools_oct02_nov12.csv. Exits with 1 if sia_vc slows a job, needs more than 30 s or
does not bring the mean JCT below a ninth of that of fcfs. With a number of jobs that many of SIA's synthetic workload
in 60 pools follow, for the growth of time and memory.
"""

import os
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.domain.policy import Policy
from jobcast.schedulers.pool_rules import Fcfs, HiveD, ShortestJobFirst
from jobcast.schedulers.sia_vc import SiaVc
from jobcast.schedulers.themis_np import ThemisNp
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.log import RunLog
from jobcast.simulator.metrics import against
from jobcast.simulator.workload import Workload, pools_only
from jobcast.traces.pools import read_pools
from jobcast.traces.readers import read_trace

FROM_S, UNTIL_S = (datetime(2017, *day, tzinfo=UTC).timestamp() for day in ((10, 2), (11, 13)))
LIMIT_S = 30.0
LEAST_RATIO = 9.0
POLICIES: dict[str, Callable[[Oracle], Policy]] = {
    "sia_vc": SiaVc,
    "themis_np": ThemisNp,
    "hived": lambda _: HiveD(),
    "sjf": ShortestJobFirst,
}
POOLS, QUOTA, LOAD = 60, 16, 0.85
WIDTHS, SHARES = (1, 2, 4, 8), (0.7, 0.1, 0.15, 0.05)  # SIA, appendix A.1
SHORT_MIN, LONG_MIN, SHORT_SHARE = (10**0.5, 100.0), (100.0, 1000.0), 0.8


def philly(folder: Path) -> Workload:
    trace = read_trace(folder / "philly_jobs.csv").between(FROM_S, UNTIL_S)
    jobs, durations_s = trace.to_jobs()
    pools = read_pools(folder / "pools_oct02_nov12.csv").at(FROM_S)
    workload, _ = pools_only(Workload(jobs, [Outcome(float(duration_s)) for duration_s in durations_s], pools))
    return workload


def synthetic(count: int) -> Workload:
    """Durations and widths of SIA, appendix A.1; bursts of up to 20 jobs in one of 60 pools."""
    rng = np.random.default_rng(0)
    short = rng.random(count) < SHORT_SHARE
    minutes = np.where(short, rng.uniform(*SHORT_MIN, count), rng.uniform(*LONG_MIN, count))
    gpus = rng.choice(WIDTHS, count, p=SHARES)
    horizon_s = float(60.0 * (minutes * gpus).sum() / (LOAD * POOLS * QUOTA))
    burst = np.repeat(np.arange(count), rng.integers(1, 21, count))[:count]
    submit_s = np.sort(rng.uniform(0.0, horizon_s, burst[-1] + 1))[burst]
    pool = rng.integers(0, POOLS, burst[-1] + 1)[burst]
    rows = zip(pool.tolist(), submit_s.tolist(), gpus.tolist(), strict=True)
    jobs = [Job(seq, f"{seq:07}", f"p{of:02}", at, width) for seq, (of, at, width) in enumerate(rows)]
    outcomes = [Outcome(60.0 * duration) for duration in minutes.tolist()]
    return Workload(jobs, outcomes, [Pool(f"p{index:02}", QUOTA) for index in range(POOLS)])


def timed(workload: Workload, policy: Policy, source: Oracle) -> tuple[RunLog, float]:
    begin = time.process_time()
    log = replay(workload, policy, source)
    return log, time.process_time() - begin


def report(name: str, log: RunLog, base: RunLog, cpu_s: float) -> None:
    figures = against(log, base)
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:<10} {base.jct_s.mean() / log.jct_s.mean():12.2f} {figures['speedup_gmean']:14.2f} "
        f"{figures['slowed_pct']:9.2f} {cpu_s:6.1f} {peak_gb:8.2f}",
        flush=True,
    )


def compare(workload: Workload, names: tuple[str, ...]) -> tuple[RunLog, RunLog, float]:
    """Logs of sia_vc and fcfs, and the CPU seconds of sia_vc."""
    print(f"{len(workload.jobs):,} jobs, {workload.total_gpus} GPUs")
    print("policy     fcfs JCT / JCT  gmean speedup  slowed %  CPU s  peak GB")
    base, cpu_s = timed(workload, Fcfs(), Oracle(workload))
    report("fcfs", base, base, cpu_s)
    runs = {}
    for name in names:
        source = Oracle(workload)
        runs[name] = timed(workload, POLICIES[name](source), source)
        report(name, runs[name][0], base, runs[name][1])
    return runs["sia_vc"][0], base, runs["sia_vc"][1]


def main() -> int:
    data = os.environ.get("JOBCAST_DATA")
    if not data:
        sys.exit("JOBCAST_DATA is not set: the benchmark needs the folder that holds philly/philly_jobs.csv")
    log, base, cpu_s = compare(philly(Path(data) / "philly"), tuple(POLICIES))
    bars = {
        "sia_vc slows nobody": bool((log.end_s <= base.end_s).all()),
        f"mean JCT under 1/{LEAST_RATIO:g} of that of fcfs": log.jct_s.mean() * LEAST_RATIO < base.jct_s.mean(),
        f"within {LIMIT_S:g} s CPU": cpu_s <= LIMIT_S,
    }
    for bar, met in bars.items():
        print(f"{'met   ' if met else 'MISSED'}  {bar}")
    if len(sys.argv) > 1:
        compare(synthetic(int(sys.argv[1])), ("sia_vc",))
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
