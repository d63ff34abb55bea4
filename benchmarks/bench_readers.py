"""How long and in how much memory large traces convert: a Helios log of 3.4 million rows, a Philly log of 117,000 jobs.

    python benchmarks/bench_readers.py [helios|philly ...]

The files are generated from a seed into a temporary folder (some 400 MB), by a process of its own: a child's largest
resident set begins with its parent's. Figures are those of a child that runs the command line.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl

HELIOS_ROWS = 3_400_000
PHILLY_JOBS = 117_000
BAR_S = 60.0
BAR_GB = 2.0
SEED = 0
CPU_SHARE = 0.53
"""Of Helios's jobs (Hu et al., SC 2021, Table 1: 3.36 million jobs, 1.58 million of them with GPUs)."""
HELIOS_DAYS = 183
PHILLY_DAYS = 75
STATES = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a child process took."""

    wall_s: float
    cpu_s: float
    peak_gb: float


def main(names: list[str]) -> None:
    missed = []
    with tempfile.TemporaryDirectory() as room:
        for name in names or list(GENERATORS):
            source = generated(name, Path(room))
            usage = convert(name, source, Path(room) / f"{name}.parquet")
            size_mb = source.stat().st_size / 1e6
            print(
                f"{name:<8}{size_mb:>8,.0f} MB {usage.wall_s:>8.1f} s (bar {BAR_S:g}) {usage.cpu_s:>8.1f} CPU s "
                f"{usage.peak_gb:>7.2f} GB (bar {BAR_GB:g})"
            )
            missed += [name] * (usage.wall_s > BAR_S or usage.peak_gb > BAR_GB)
            source.unlink()
    if missed:
        sys.exit(f"over the bar: {', '.join(missed)}")


def generated(name: str, room: Path) -> Path:
    """Generate a file in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(GENERATORS[name], room).result()


def convert(name: str, source: Path, out: Path) -> Usage:
    """Run `jobcast trace convert` in a child and measure it."""
    words = [sys.executable, "-m", "jobcast", "trace", "convert", name, str(source), "--out", str(out)]
    began_s = time.perf_counter()
    child = subprocess.Popen(words)
    _, status, used = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - began_s
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(words)}: exit code {child.returncode}")
    return Usage(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9)


def helios_log(room: Path, rows: int = HELIOS_ROWS) -> Path:
    """A log in Helios's schema: ascending submissions, CPU jobs, cancelled jobs that never ran."""
    rng = np.random.default_rng(SEED)
    submit_s = np.sort(rng.integers(0, HELIOS_DAYS * 86400, rows))
    queue_s = rng.exponential(600.0, rows).astype(np.int64)
    duration_s = rng.lognormal(6.0, 2.0, rows).astype(np.int64)
    gpus = np.where(rng.random(rows) < CPU_SHARE, 0, 2 ** rng.integers(0, 6, rows))
    state = rng.choice(len(STATES), rows, p=[0.6, 0.2, 0.17, 0.02, 0.01])
    never_ran = (state == 1) & (rng.random(rows) < 0.3)
    start_s = submit_s + queue_s
    began = datetime(2020, 4, 1)
    frame = pl.DataFrame(
        {
            "job_id": np.arange(rows) + 1_000_000,
            "user": "u" + pl.Series(rng.integers(0, 400, rows)).cast(pl.String),
            "vc": "vc" + pl.Series(rng.integers(0, 30, rows)).cast(pl.String),
            "gpu_num": gpus,
            "cpu_num": rng.integers(1, 64, rows),
            "node_num": np.maximum(1, gpus // 8),
            "state": pl.Series(state).replace_strict(dict(enumerate(STATES)), return_dtype=pl.String),
            "submit_time": submit_s,
            "start_time": pl.Series(start_s).set(pl.Series(never_ran), None),
            "end_time": pl.Series(start_s + duration_s).set(pl.Series(never_ran), None),
            "duration": pl.Series(duration_s).set(pl.Series(never_ran), None),
            "queue": queue_s,
        }
    )
    times = [
        (pl.lit(began) + pl.duration(seconds=pl.col(name))).dt.strftime("%Y-%m-%d %H:%M:%S").alias(name)
        for name in ("submit_time", "start_time", "end_time")
    ]
    path = room / "cluster_log.csv"
    frame.with_columns(times).write_csv(path)
    return path


def philly_log(room: Path, jobs: int = PHILLY_JOBS) -> Path:
    """A log in Philly's schema: retries, jobs without attempts, without times, still running; indented as published."""
    rng = random.Random(SEED)
    began = datetime(2017, 8, 7)
    path = room / "cluster_job_log"
    with open(path, "w") as file:
        file.write("[\n")
        for number in range(jobs):
            submitted = began + timedelta(seconds=rng.randrange(PHILLY_DAYS * 86400))
            record = _philly_job(number, submitted, rng)
            file.write(f"{json.dumps(record, indent=4)}{',' if number + 1 < jobs else ''}\n")
        file.write("]\n")
    return path


def _philly_job(number: int, submitted: datetime, rng: random.Random) -> dict[str, object]:
    attempts = []
    at = submitted
    gpus = rng.choice([1, 1, 1, 2, 4, 8, 16])
    for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 1, 1, 2, 3])):
        start = at + timedelta(seconds=rng.randrange(600))
        at = start + timedelta(seconds=int(rng.lognormvariate(6, 2)))
        nodes = [min(8, gpus - 8 * node) for node in range((gpus + 7) // 8)]
        detail = [{"ip": f"m{rng.randrange(550)}", "gpus": [f"gpu{gpu}" for gpu in range(width)]} for width in nodes]
        attempts.append({"start_time": f"{start}", "end_time": f"{at}", "detail": detail})
    if attempts and rng.random() < 0.01:
        attempts[-1]["end_time"] = None
    return {
        "status": rng.choice(["Pass", "Killed", "Failed"]),
        "vc": f"{rng.randrange(15):06x}",
        "jobid": f"application_1506638472019_{number:05d}",
        "attempts": attempts,
        "submitted_time": "None" if rng.random() < 0.005 else f"{submitted}",
        "user": f"{rng.randrange(320):06x}",
    }


GENERATORS: dict[str, Callable[[Path], Path]] = {"helios": helios_log, "philly": philly_log}

if __name__ == "__main__":
    main(sys.argv[1:])
