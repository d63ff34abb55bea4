"""From a messy sacct dump of 5,000 jobs to a page with a recommendation: which commands, and how long they take.

The dump is of a campus under fcfs, written as a Slurm's accounting has it: job steps, array tasks, some that wait,
jobs that run, cancelled before they ran, requeued under the same number, without AllocTRES, in two partitions, with |
in their names, in the cluster's wall clock. The commands are those of README's "Your own cluster"; each starts in a
new process and the home is an empty one, so that nothing is trained before.

    python benchmarks/bench_own_cluster.py [--dump FOLDER]     # --dump: write the dump there, run nothing
    python benchmarks/bench_own_cluster.py [--page FILE]       # --page: keep the page there

Exits with 1 when there are more than four commands, one fails, they take more than three minutes, or the page holds no
recommendation.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from jobcast import generate, simulate
from jobcast.domain.arrays import Floats

JOBS, POOLS, WEEKS = 5000, 4, 5
MOST_COMMANDS, MOST_S = 4, 180.0
ZONE = "Europe/Berlin"
FIELDS = (
    *("JobID", "User", "Account", "QOS", "Partition", "JobName", "State", "Submit", "Eligible", "Start", "End"),
    *("ElapsedRaw", "Timelimit", "NodeList", "Priority", "AllocTRES", "ReqTRES"),
)
COMMANDS = (
    f"trace convert sacct sacct.txt partitions.txt --out jobs.parquet --pools-out pools.csv --timezone {ZONE}",
    f"choose --trace jobs.parquet --pools pools.csv --train --html choice.html --timezone {ZONE}",
)
PAGE = Path("choice.html")


def write_dump(folder: Path, seed: int = 0) -> tuple[Path, Path]:
    """sacct.txt and partitions.txt of one campus."""
    trace, pools = generate("campus", seed=seed, settings={"jobs": JOBS, "pools": POOLS, "weeks": WEEKS})
    log = simulate(trace, "fcfs", pools, baseline="none").ran.log
    rows = _rows(trace.jobs, log.start_s, log.end_s, np.random.default_rng(seed))
    dump, partitions = folder / "sacct.txt", folder / "partitions.txt"
    dump.write_text("\n".join("|".join(row) for row in (FIELDS, *rows)) + "\n", encoding="utf-8")
    partitions.write_text(
        "\n".join(
            f"PartitionName={pool.name}\n   State=UP TotalCPUs={8 * pool.quota} TotalNodes={pool.quota}\n"
            f"   TRES=cpu={8 * pool.quota},mem=1T,node={pool.quota},gres/gpu={pool.quota}\n"
            for pool in pools
        ),
        encoding="utf-8",
    )
    return dump, partitions


def _rows(jobs: pl.DataFrame, started: Floats, ended: Floats, rng: np.random.Generator) -> Iterator[tuple[str, ...]]:
    now_s = float(jobs["submit_time"].dt.epoch("us").to_numpy().max() / 1e6)
    for number, job in enumerate(jobs.iter_rows(named=True)):
        kind, submit_s = rng.random(), job["submit_time"].timestamp()
        start_s, end_s = (float(one[number]) for one in (started, ended))
        name = f"{100_000 + number // 5}_{number % 5}" if kind < 0.15 else str(200_000 + number)
        tag = f"sweep|lr={kind:.3f}" if kind > 0.97 else job["tag"].split("/")[-1]
        partition = f"{job['pool']},preempt" if 0.60 < kind < 0.63 else job["pool"]
        tres = f"billing=8,cpu=8,gres/gpu={job['gpus']},mem=64G,node=1"

        def row(state: str, start: str, end: str, ran_s: float, name: str = name, alloc: str = tres) -> tuple[str, ...]:
            wall = (_wall(submit_s), _wall(submit_s), start, end)  # noqa: B023
            return (
                name, job["user"], "lab", "normal", partition, tag, state, *wall, f"{ran_s:.0f}", "2-00:00:00",  # noqa: B023
                "node1", "1", alloc, tres,  # noqa: B023
            )  # fmt: skip

        if start_s > now_s:
            yield row("PENDING", "Unknown", "Unknown", 0.0, alloc="")
        elif end_s > now_s:
            yield row("RUNNING", _wall(start_s), "Unknown", now_s - start_s)
        else:
            state = "COMPLETED" if job["state"] == "completed" else "FAILED"
            yield row(state, _wall(start_s), _wall(end_s), end_s - start_s, alloc="" if 0.4 < kind < 0.43 else tres)
            if kind < 0.5:
                yield row(state, _wall(start_s), _wall(end_s), end_s - start_s, name=f"{name}.batch")
        if 0.70 < kind < 0.73:
            yield row(
                f"CANCELLED by {number}", "None", _wall(submit_s + 60.0), 0.0, name=f"{300_000 + number}", alloc=""
            )
        if 0.80 < kind < 0.82 and end_s < now_s:
            yield row("NODE_FAIL", _wall(start_s), _wall(start_s + 60.0), 60.0)


def _wall(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, ZoneInfo(ZONE)):%Y-%m-%dT%H:%M:%S}"


def main() -> int:
    """Make the dump, run the commands, look at the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dump", type=Path)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args()
    if asked.dump:
        asked.dump.mkdir(parents=True, exist_ok=True)
        print(*write_dump(asked.dump), sep="\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="jobcast-own-") as room:
        folder = Path(room)
        dump, _ = write_dump(folder)
        print(f"{JOBS} jobs, {sum(1 for _ in dump.open()) - 1} rows of sacct")
        began = time.perf_counter()
        for line in COMMANDS:
            at, spent = time.perf_counter(), os.times()
            done = subprocess.run(
                [sys.executable, "-m", "jobcast", *line.split()], cwd=folder, env={**os.environ, "JOBCAST_HOME": room},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            after = os.times()
            cpu_s = after.children_user - spent.children_user + after.children_system - spent.children_system
            print(f"jobcast {line}\n  {time.perf_counter() - at:.0f} s, {cpu_s:.0f} s of CPU, exit {done.returncode}")
            if done.returncode:
                print(done.stdout, done.stderr)
                return 1
        took_s, page = time.perf_counter() - began, (folder / PAGE).read_text(encoding="utf-8")
        if asked.page:
            asked.page.write_text(page, encoding="utf-8")
        print(f"{len(COMMANDS)} commands, {took_s:.0f} s; the page has {len(page) / 1e6:.1f} MB")
        return int(len(COMMANDS) > MOST_COMMANDS or took_s > MOST_S or "Recommended" not in page)


if __name__ == "__main__":
    sys.exit(main())
