"""How the CPU time and the memory of a replay grow with its jobs: 10,000 to a million of them in 60 pools.

    python benchmarks/bench_growth.py [--policies fcfs sia] [--sizes 10000 100000] [--queue-gpus 16] [--plot growth.svg]

The workload is SIA's synthetic one (appendix A.1, base variant) in 60 pools of 16 GPUs, each at a load of 0.8: bursts
of jobs 1 to 8 GPUs wide, two and a half hours long on average, some 3,850 jobs a day. More jobs are more days of the
same. Each run has a process of its own, so that its peak is its own too. CPU seconds are those of the replay alone; the
peak includes drawing the trace. Exits with 1 when a bar is missed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

POLICIES = ("fcfs", "ssf", "gssf", "mmfs", "sia")
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
QUEUES, QUEUE_GPUS, LOAD = 60, 16, 0.8
JOBS_PER_GPU_DAY = 4.0
"""At a load of 0.8: 0.8 x 1440 min / (1.9 GPUs x 151 min), the means of the base variant."""
SPARE_DAYS = 1.1
"""Draws differ by some percent: so much longer a trace is drawn, and its first jobs are taken."""
BARS_S = {("fcfs", 1_000_000): 30.0, ("sia", 1_000_000): 600.0}
BAR_MB = 4096.0


def one_run(policy: str, size: int, queue_gpus: int, seed: int) -> dict[str, float]:
    """Draw the workload and replay it, in this process."""
    from jobcast.domain.jobs import Outcome
    from jobcast.schedulers.registry import make_policy
    from jobcast.simulator.engine import replay
    from jobcast.simulator.forecast_sources import Oracle
    from jobcast.simulator.workload import Workload
    from jobcast.traces.generators import generate

    begin = time.process_time()
    days = SPARE_DAYS * size / (JOBS_PER_GPU_DAY * QUEUES * queue_gpus)
    settings = {"queues": QUEUES, "queue_gpus": queue_gpus, "load_low": LOAD, "load_high": LOAD, "days": days}
    trace, pools = generate("sia", seed, settings)
    jobs, durations_s = trace.to_jobs()
    if len(jobs) < size:
        raise SystemExit(f"the draw holds {len(jobs)} jobs, {size} are wanted; raise SPARE_DAYS")
    workload = Workload(jobs[:size], [Outcome(float(one)) for one in durations_s[:size]], pools)
    del trace, jobs, durations_s
    drawn = time.process_time()
    source = Oracle(workload)
    replay(workload, make_policy(policy, source, {}), source)
    cpu_s = time.process_time() - drawn
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu_s": cpu_s, "drawing_s": drawn - begin, "peak_mb": peak_mb}


def in_own_process(policy: str, size: int, queue_gpus: int, seed: int) -> dict[str, float]:
    """The same in a fresh process."""
    command = [sys.executable, __file__, "--one", policy, str(size), "--queue-gpus", str(queue_gpus)]
    found = subprocess.run([*command, "--seed", str(seed)], check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(found)
    return result


def slope(sizes: list[int], cpu_s: list[float]) -> float:
    """Exponent of growth: 1 where twice the jobs take twice as long."""
    return float(np.polyfit(np.log(sizes), np.log(cpu_s), 1)[0]) if len(sizes) > 1 else float("nan")


def plot(rows: dict[str, list[tuple[int, dict[str, float]]]], path: Path) -> None:
    """CPU seconds against jobs, both axes logarithmic, a line a policy with its slope."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for policy, runs in rows.items():
        sizes, cpu_s = [size for size, _ in runs], [described["cpu_s"] for _, described in runs]
        axes.loglog(sizes, cpu_s, marker="o", label=f"{policy} (slope {slope(sizes, cpu_s):.2f})")
    axes.set(xlabel="jobs", ylabel="CPU seconds of the replay", title="Growth with the number of jobs, 60 pools")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def verdicts(rows: dict[str, list[tuple[int, dict[str, float]]]]) -> bool:
    """Print which bars are met; whether all are."""
    fine = True
    for policy, runs in rows.items():
        for size, described in runs:
            limit_s = BARS_S.get((policy, size))
            if limit_s is None:
                continue
            for what, value, limit in (
                ("CPU s", described["cpu_s"], limit_s),
                ("peak MB", described["peak_mb"], BAR_MB),
            ):
                met = value < limit
                fine &= met
                print(
                    f"{'met   ' if met else 'MISSED'}  {policy} {size:,} jobs: {value:,.1f} {what} (bar {limit:,.0f})"
                )
    return fine


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--queue-gpus", type=int, default=QUEUE_GPUS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, default=Path("growth.svg"))
    parser.add_argument("--one", nargs=2, metavar=("POLICY", "JOBS"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    asked = options()
    if asked.one:
        print(json.dumps(one_run(asked.one[0], int(asked.one[1]), asked.queue_gpus, asked.seed)))
        return 0
    print(f"{QUEUES} pools of {asked.queue_gpus} GPUs at a load of {LOAD}, seed {asked.seed}, {os.cpu_count()} cores")
    print(f"{'policy':<6} {'jobs':>10} {'CPU s':>9} {'us/job':>8} {'peak MB':>9} {'drawing s':>10}", flush=True)
    rows: dict[str, list[tuple[int, dict[str, float]]]] = {}
    for policy in asked.policies:
        for size in asked.sizes:
            result = in_own_process(policy, size, asked.queue_gpus, asked.seed)
            rows.setdefault(policy, []).append((size, result))
            print(
                f"{policy:<6} {size:>10,} {result['cpu_s']:>9.2f} {1e6 * result['cpu_s'] / size:>8.1f} "
                f"{result['peak_mb']:>9.0f} {result['drawing_s']:>10.1f}",
                flush=True,
            )
    for policy, runs in rows.items():
        exponent = slope([size for size, _ in runs], [result["cpu_s"] for _, result in runs])
        print(f"{policy:<6} grows as jobs ^ {exponent:.2f}")
    plot(rows, asked.plot)
    print(f"plot: {asked.plot}")
    return 0 if verdicts(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
