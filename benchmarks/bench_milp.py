"""Size, seconds and gap of the oracle's programme on the base workload of SIA, appendix A.1, and what it is worth.

    python benchmarks/bench_milp.py [grid_s ...] [--limits 30 120] [--seeds 0 1 2] [--exact] [--tries 50000]
        [--days 3]

Waits are hours, summed over all jobs of a draw, every policy on the workload rounded to the grid. CPU seconds are those
of the whole plan on one core; a time limit is by the clock, for HiGHS alone.
"""

import argparse
import time

import numpy as np

from jobcast.domain.clock import HOUR_S
from jobcast.domain.jobs import Outcome
from jobcast.schedulers.milp.instance import on_grid
from jobcast.schedulers.milp.solve import Settings, plan
from jobcast.simulator.workload import Workload
from jobcast.traces.generators import generate

DEFAULTS = Settings()
COLUMNS = "  {:>4} {:>5} {:>7} {:>6} {:>6} {:>8} {:>8} {:>9} {:>8} {:>8} {:>6} {:>9} {:>9}"
HEAD = ("seed", "jobs", "columns", "rows", "CPU s", "clock s", "fcfs h", "sia_vc h", "first h", "milp h", "gap %")


def gridded(seed: int, grid_s: float, days: float) -> Workload:
    trace, pools = generate("sia", seed, {"variant": "base", "days": days})
    jobs, durations_s = trace.to_jobs()
    return Workload(*on_grid(jobs, [Outcome(float(duration_s)) for duration_s in durations_s], grid_s), pools)


def row(seed: int, workload: Workload, settings: Settings) -> list[str]:
    durations_s = [outcome.duration_s for outcome in workload.outcomes]
    cpu_s = time.process_time()
    found = plan(workload.jobs, durations_s, workload.pools, settings)
    cpu_s = time.process_time() - cpu_s
    assert found.accepted, "HiGHS refused the incumbent"
    waits_s = (found.fcfs_wait_s, found.virtual_clock_wait_s, found.incumbent_s, found.total_wait_s)
    jct_s = found.total_wait_s + sum(durations_s)
    jct_gap = (found.objective_s - found.bound_s) / jct_s
    speedup = np.mean(durations_s) + found.fcfs_wait_s / len(workload.jobs)
    speedup /= jct_s / len(workload.jobs)
    return [
        f"{seed}",
        f"{len(workload.jobs)}",
        f"{found.variables:,}",
        f"{found.rows:,}",
        f"{cpu_s:.1f}",
        f"{found.solve_s:.1f}",
        *(f"{wait_s / HOUR_S:,.1f}" for wait_s in waits_s),
        f"{100 * found.gap:.1f}",
        f"{100 * jct_gap:.2f}",
        f"{speedup:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("grids", nargs="*", type=float, default=[600.0, 300.0, 60.0])
    parser.add_argument("--limits", nargs="+", type=float, default=[30.0, 120.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--tries", type=int, default=DEFAULTS.search_tries)
    parser.add_argument("--starts", type=int, default=DEFAULTS.starts_per_duration)
    parser.add_argument("--days", type=float, default=3.0)
    parser.add_argument("--exact", action="store_true")
    asked = parser.parse_args()
    for grid_s in asked.grids:
        for limit_s in asked.limits:
            offered = "every step" if asked.exact else f"{asked.starts} starts a duration"
            print(f"grid {grid_s:g} s, {offered}, limit {limit_s:g} s", flush=True)
            print(COLUMNS.format(*HEAD, "of JCT %", "JCT gain"), flush=True)
            for seed in asked.seeds:
                settings = Settings(
                    grid_s=grid_s,
                    time_limit_s=limit_s,
                    exact=asked.exact,
                    starts_per_duration=asked.starts,
                    search_tries=asked.tries,
                )
                print(COLUMNS.format(*row(seed, gridded(seed, grid_s, asked.days), settings)), flush=True)


if __name__ == "__main__":
    main()
