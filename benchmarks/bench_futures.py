"""What futures of a whole queue cost: a refresh with so many jobs pending, and an answer from the last one.

    python benchmarks/bench_futures.py [--jobs 5000] [--futures 40]

CPU seconds of a refresh, and the 50th and 99th percentile of an answer in milliseconds, by policy; policies that are
not there are left out.
"""

import argparse
import time

import numpy as np

from jobcast.domain.jobs import Job, Outcome, Pool, Requirements
from jobcast.live.completion_forecasts import RunTimeDraws
from jobcast.live.futures import Futures
from jobcast.schedulers.policies import POOLS
from jobcast.schedulers.registry import make_policy, names_of
from jobcast.simulator.engine import Simulation
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.history import EarlierJobs
from jobcast.simulator.workload import Workload

QUOTAS = 20
PAST = 4000
ASKED = 2000
LIMITED = Requirements(time_limit_s=86400.0)


def queue(pending):
    """Jobs of many pools that all come at once; a tenth of them runs."""
    rng = np.random.default_rng(0)
    widths, run_s = rng.choice([1, 2, 4, 8], pending), rng.lognormal(8.0, 2.0, pending)
    jobs = [
        Job(
            at,
            f"{at:06}",
            f"p{at % QUOTAS:02}",
            at / 1000,
            int(gpus),
            requirements=Requirements(time_limit_s=2 * run),
        )
        for at, (gpus, run) in enumerate(zip(widths, run_s, strict=True))
    ]
    pools = [Pool(f"p{at:02}", max(8, int(widths.sum()) // (10 * QUOTAS))) for at in range(QUOTAS)]
    return Workload(jobs, [Outcome(float(one)) for one in run_s], pools)


def before(workload):
    """Jobs of the past, which all ended."""
    rng = np.random.default_rng(1)
    jobs = [
        Job(at, f"e{at:05}", f"p{at % QUOTAS:02}", 20.0 * (at - PAST), int(rng.choice([1, 2, 4])), requirements=LIMITED)
        for at in range(PAST)
    ]
    at_s = np.array([job.submit_s for job in jobs])
    return EarlierJobs(jobs, at_s, np.minimum(at_s + 10.0, -1.0), rng.lognormal(8.0, 2.0, PAST))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--futures", type=int, default=40)
    options = parser.parse_args()
    print(f"{'policy':<22} {'active':>7} {'refresh, s':>11} {'answer p50, ms':>15} {'p99':>8}")
    for policy in (name for name in ("fcfs", "easy", "conservative_backfill", "sia") if name in names_of(POOLS)):
        workload = queue(options.jobs)
        source = Oracle(workload)
        run = Simulation(workload, make_policy(policy, source, {}), source)
        run.run(workload.jobs[-1].submit_s)
        futures = Futures(RunTimeDraws(before(workload), options.futures, seed=0))
        began_s = time.process_time()
        futures.refresh(run)
        refresh_s = time.process_time() - began_s
        ids, took_s = [job.job_id for job in run.cluster.active.values()], []
        for at in range(ASKED):
            began_s = time.process_time()
            futures.answer(ids[at % len(ids)], run.now_s + 60.0)
            took_s.append(time.process_time() - began_s)
        middle, most = 1000.0 * np.percentile(took_s, [50, 99])
        print(f"{policy:<22} {len(ids):>7} {refresh_s:>11.1f} {middle:>15.2f} {most:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
