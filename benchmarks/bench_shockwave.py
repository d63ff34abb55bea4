"""Gap and seconds of Shockwave's solves at 100, 300 and 1,000 active jobs, on a sixth as many busy GPUs.

    python benchmarks/bench_shockwave.py [100 300 1000]

Windows are random: regimes, progress and weights as in a cluster that has been busy for a while, widths 1, 2, 4 and 8
in Gavel's mix (0.6, 0.3, 0.09, 0.01), GPUs 0.256 a job. The gap is relative to the value, which is a loss.
"""

import sys
import time

import numpy as np

from jobcast.schedulers.shockwave.programme import Programme
from jobcast.schedulers.shockwave.solver import Limits, solve
from jobcast.schedulers.shockwave.work import work_of

SIZES = (100, 300, 1000)
SEEDS = range(10)
GPUS_A_JOB = 0.256
LAMBDA = 3.0
FLOOR = 3.0


def window(jobs: int, seed: int) -> Programme:
    """A window in the middle of a busy day."""
    rng = np.random.default_rng(seed)
    gpus = int(GPUS_A_JOB * jobs)
    widths = rng.choice([1, 2, 4, 8], size=jobs, p=[0.6, 0.3, 0.09, 0.01])
    epochs = rng.integers(5, 120, size=(jobs, 3)).astype(float)
    epoch_s = rng.uniform(10.0, 150.0, size=(jobs, 1)) * np.array([1.0, 0.7, 0.5])
    stretches = [[(e, s, 32) for e, s in zip(*rows, strict=True)] for rows in zip(epochs, epoch_s, strict=True)]
    work = work_of(stretches, rng.uniform(0, 60, size=jobs))
    return Programme(
        work=work,
        cautious_s=work.left_s,
        loads=widths / gpus,
        weights=rng.uniform(0.6, 1.6, size=jobs) ** 5,
        floor=FLOOR,
        widths=widths,
        running=(rng.permutation(jobs) < gpus / 1.6),
        gpus=gpus,
        rounds=20,
        round_s=120.0,
        restart_s=20.0,
        makespan_price=LAMBDA / float(work.left_s.sum()),
    )


def main(sizes: list[int]) -> None:
    """Print one row a size."""
    print(f"{'jobs':>6} {'GPUs':>5} {'gap mean %':>11} {'gap max %':>10} {'s mean':>7} {'s max':>6}")
    for jobs in sizes:
        gaps, taken_s = [], []
        for seed in SEEDS:
            programme = window(jobs, seed)
            begun_s = time.perf_counter()
            gaps.append(100.0 * solve(programme, Limits()).gap)
            taken_s.append(time.perf_counter() - begun_s)
        row = (np.mean(gaps), np.max(gaps), np.mean(taken_s), np.max(taken_s))
        print(f"{jobs:6d} {programme.gpus:5d} {row[0]:11.4f} {row[1]:10.4f} {row[2]:7.3f} {row[3]:6.3f}")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or list(SIZES))
