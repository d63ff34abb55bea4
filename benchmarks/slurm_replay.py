"""A day of a generated trace on a real Slurm, with or without `jobcast advise`, run by hand: an hour and more.

    python -m benchmarks.slurm_replay prepare FOLDER --seed 12
    python -m benchmarks.slurm_replay arm FOLDER --day 2024-03-05 --out none-1.json
    python -m benchmarks.slurm_replay arm FOLDER --day 2024-03-05 --advise --out advise.json
    python -m benchmarks.slurm_replay compare FOLDER --day 2024-03-05 advise.json none-1.json none-2.json none-3.json
    python -m benchmarks.slurm_replay arm FOLDER --day 2024-03-05 --etas --out etas.json
    python -m benchmarks.slurm_replay etas FOLDER etas.json

The workload is `campus` (docs/generators.md) with four pools, jobs of at most 8 GPUs, run times between 12 minutes and
an hour; the cluster has 4 nodes of 8 GPUs. A second of the cluster is `SCALE` of the trace, so that jobs run for at
least 30 s. Slurm starts what fits a pool's quota, past a job that does not; the simulator with `backfill`.
Forecasts are trained on the nine weeks before the week of the day; the log begins with what happened before the day.
With `--etas` a `jobcast serve` beside it is asked every 10 s when each job that waits or runs starts and ends; `etas`
tells how many were answered, and which intervals held.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.told_etas import EtaWatch, eta_figures
from jobcast.live.event_log import EventLog
from jobcast.live.news import past
from jobcast.live.recorded_jobs import ClusterRecord
from jobcast.traces.readers import read_trace
from tests.live.slurm.calm_advisor import OurProcess, ServeProcess
from tests.live.slurm.slurm_cluster import SlurmCluster

SCALE = 24.0
POOLS = {"debug-1": 4, "production-1": 8, "research-1": 8, "wide-1": 12}
SETTINGS = ["pools=4", "weeks=10", "widest=8", "failure_share=0.0", "widest_quota_share=1.0", "duration_median_min=8"]
SHORTEST_S, LONGEST_S = 720.0, 3_600.0
TRAINED_UNTIL = "2024-03-04"
LATER_S, LATER_SHARE = 5.0, 0.02
"""A job is later where it ends by more than so many seconds, and this share of its time, after all runs without."""


def limits(cluster: SlurmCluster) -> str:
    """What QOS may hold."""
    return cluster.run("sacctmgr", "-nP", "show", "qos", "format=name,grptres")


def prepare(folder: Path, seed: int, jobs: int) -> None:
    """The trace, its pools, and a home with predictors."""
    folder.mkdir(parents=True, exist_ok=True)
    raw, trace = folder / "raw.parquet", folder / "jobs.parquet"
    settings = [word for one in (*SETTINGS, f"jobs={jobs}") for word in ("--set", one)]
    jobcast(folder, "trace", "generate", "campus", "--out", str(raw), "--seed", str(seed), *settings)
    pl.read_parquet(raw).with_columns(pl.col("duration").clip(SHORTEST_S, LONGEST_S)).write_parquet(trace)
    (folder / "pools.csv").write_text("pool,gpus\n" + "".join(f"{pool},{gpus}\n" for pool, gpus in POOLS.items()))
    for predictor in ("will-jobs-arrive", "new-load", "job-duration"):
        blended = ["--algorithm", "blended"] if predictor == "job-duration" else []
        jobcast(folder, "train", predictor, "--trace", str(trace), "--until", TRAINED_UNTIL, *blended)


def jobcast(folder: Path, *words: str) -> str:
    """What a command says."""
    (folder / "home").mkdir(exist_ok=True)
    env = {**os.environ, "JOBCAST_HOME": str(folder / "home")}
    return subprocess.run(
        [sys.executable, "-m", "jobcast", *words], check=True, stdout=subprocess.PIPE, text=True, env=env
    ).stdout


def begin_of(day: str) -> float:
    """When a day begins here, seconds from the epoch."""
    return datetime.fromisoformat(f"{day}T08:00+00:00").timestamp()


def arm(folder: Path, day: str, hours: float, advise: bool, etas: bool, out: Path) -> None:
    """Run some hours of a day, and write when each job was submitted, started and ended, in seconds of the cluster."""
    trace = read_trace(folder / "jobs.parquet")
    from_s = begin_of(day)
    rows = trace.jobs.with_columns(at_s=pl.Series(trace.submit_s))
    rows = rows.filter((pl.col("at_s") >= from_s) & (pl.col("at_s") < from_s + 3_600.0 * hours)).sort("at_s", "job_id")
    with tempfile.TemporaryDirectory(prefix="jobcast-replay-") as scratch:
        Path(scratch).chmod(0o755)
        cluster = SlurmCluster(Path(scratch), pools=POOLS)
        cluster.start()
        ours: dict[str, OurProcess] = {}
        try:
            before, watch = limits(cluster), None
            if etas:
                home = home_beside(folder, Path(scratch, "server"), trace, day)
                server = ours["server"] = ServeProcess(cluster, home, "--every", "2", *clock_of(day))
                watch = EtaWatch(cluster, server, EventLog(home))
            if advise:
                ours["advisor"] = advisor_of(folder, Path(scratch), cluster, trace, day, out)
            begin_s = time.time() + 5.0
            named = submit(cluster, rows, from_s, begin_s)
            wait_for_all(cluster)
            if advise:
                time.sleep(12.0)  # the last limits fall
                ours["advisor"].interrupt()
            result = {"begin_s": begin_s, "jobs": times(cluster, named), "limits": [before, limits(cluster)]}
            if watch is not None:
                result["etas"] = [{**row, "job_id": named.get(row["job_id"], "")} for row in watch.stop()]
                shutil.copy(home / "live/live.sqlite", out.with_suffix(".sqlite"))
            out.write_text(json.dumps(result))
        finally:
            for one in ours.values():
                shutil.copy(one.log, f"{out.with_suffix('')}-{one.log.parent.name}.log")
                one.kill()
            cluster.stop()


def home_beside(folder: Path, home: Path, trace: Any, day: str) -> Path:
    """A home with the predictors, whose log knows what happened before the day."""
    home.mkdir()
    (home / "mlruns").symlink_to((folder / "home" / "mlruns").absolute())
    EventLog(home).append(past(trace, ClusterRecord(), begin_of(day)))
    return home


def clock_of(day: str) -> tuple[str, ...]:
    """Options of our processes: the day begins when they do."""
    return "--clock-scale", f"{SCALE:g}", "--clock-start", f"{day}T08:00:00+00:00"


def advisor_of(folder: Path, scratch: Path, cluster: SlurmCluster, trace: Any, day: str, out: Path) -> OurProcess:
    """`jobcast advise --apply`."""
    words = ["jobcast", "advise", "--slurm", "--apply", "--every", "2", *clock_of(day)]
    words += ["--actions-per-minute", "120", "--json", str(out.with_suffix(".jsonl").absolute())]
    return OurProcess(cluster, home_beside(folder, scratch / "advisor", trace, day), *words)


def submit(cluster: SlurmCluster, rows: pl.DataFrame, from_s: float, begin_s: float) -> dict[str, str]:
    """Submit jobs when it is their time; the trace's names by Slurm's."""
    members = {pool: user for user, pool in cluster.users.items()}
    named = {}
    for row in rows.iter_rows(named=True):
        time.sleep(max(0.0, begin_s + (row["at_s"] - from_s) / SCALE - time.time()))
        pool, run_s = row["pool"], row["duration"] / SCALE
        options = [f"--gres=gpu:{row['gpus']}", "-c1", "-t", "60", "-A", pool, "-J", row["tag"] or "job"]
        options += ["-D", str(cluster.home / "jobs"), "--wrap", f"sleep {run_s:.3f}"]
        named[cluster.sbatch(members[pool], *options)] = row["job_id"]
    return named


def wait_for_all(cluster: SlurmCluster) -> None:
    """Until no job waits or runs."""
    while cluster.run("squeue", "-h", "-t", "pending,running,completing", "-o", "%i").split():
        time.sleep(5.0)


def times(cluster: SlurmCluster, named: dict[str, str]) -> dict[str, list[float]]:
    """Submission, start and end of each job, seconds from the epoch, and whether it was on lease."""
    jobs = json.loads(cluster.run("squeue", "--json"))["jobs"]
    return {
        named[str(job["job_id"])]: [
            job["submit_time"], job["start_time"], job["end_time"], job["qos"].startswith("lent_")
        ]
        for job in jobs
        if str(job["job_id"]) in named
    }  # fmt: skip


def compare(folder: Path, day: str, advised: Path, without: list[Path]) -> dict[str, Any]:
    """The bars: idle arm against simulated fcfs, speedup against the simulator's, who is later, limits."""
    ours, others = json.loads(advised.read_text()), [json.loads(path.read_text()) for path in without]
    taken = {name: row[2] - row[0] for name, row in ours["jobs"].items()}
    plain = [{name: row[2] - row[0] for name, row in one["jobs"].items()} for one in others]
    mean = statistics.fmean
    simulated = {
        policy: json.loads(
            jobcast(
                folder, "simulate", "--trace", str(folder / "jobs.parquet"), "--pools", str(folder / "pools.csv"),
                "--from", f"{day}T08:00", "--until", f"{day}T20:00", "--policy", policy, "--json", "-",
                "--set", "backfill=true",
                *(["--forecasts", "registry"] if policy == "sia" else []),
            )
        )
        for policy in ("fcfs", "sia")
    }  # fmt: skip
    gains = [math.log(mean(one[name] for one in plain) / taken[name]) for name in taken]
    later = [
        name for name in taken if all(taken[name] > one[name] + max(LATER_S, LATER_SHARE * one[name]) for one in plain)
    ]
    # Both are told against `fcfs` without overtaking.
    expected = simulated["sia"]["speedup_gmean"] / simulated["fcfs"]["speedup_gmean"]
    real = math.exp(mean(gains))
    return {
        "jobs": len(taken),
        "on_lease": sum(row[3] for row in ours["jobs"].values()),
        "mean_jct_s": {"advised": mean(taken.values()), "without": [mean(one.values()) for one in plain]},
        "simulated_fcfs_jct_s": simulated["fcfs"]["mean_jct_s"] / SCALE,
        "speedup_gmean": {"real": real, "simulated": expected, "share_of_log": math.log(real) / math.log(expected)},
        "later": later,
        "later_pct": 100.0 * len(later) / len(taken),
        "limits_as_before": ours["limits"][0] == ours["limits"][1],
    }


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "arm", "compare", "etas"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path, nargs="*")
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=36_000)
    parser.add_argument("--day", default="2024-03-05")
    parser.add_argument("--hours", type=float, default=12.0)
    parser.add_argument("--advise", action="store_true")
    parser.add_argument("--etas", action="store_true")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_intermixed_args()
    if asked.what == "prepare":
        prepare(asked.folder, asked.seed, asked.jobs)
    elif asked.what == "arm":
        arm(asked.folder, asked.day, asked.hours, asked.advise, asked.etas, asked.out)
    elif asked.what == "etas":
        for path in asked.results:
            result = json.loads(path.read_text())
            came_s = {name: (row[1], row[2]) for name, row in result["jobs"].items()}
            print(json.dumps({"of": path.name, **eta_figures(result["etas"], came_s)}, indent=2))
    else:
        print(json.dumps(compare(asked.folder, asked.day, asked.results[0], asked.results[1:]), indent=2))


if __name__ == "__main__":
    main()
