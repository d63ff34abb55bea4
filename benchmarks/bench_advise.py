"""What advice costs: from grant to start on a real Slurm, and with thousands of jobs that wait.

    PYTHONPATH=. python benchmarks/bench_advise.py [--grants 20]
    PYTHONPATH=. python benchmarks/bench_advise.py --preempts 20
    PYTHONPATH=. python benchmarks/bench_advise.py --home FOLDER --pending 5000

The first brings up a Slurm (tests/live/slurm) and tells in seconds how long a job that its quota holds back waits from
the decision to lend to its start, and how long a limit takes to fall once its lease is over. The second tells how long
an owner waits whose GPUs are all lent, from submission to start, where owners may stop jobs on lease, and the GPU-hours
that were lost, by the advisor and by Slurm's accounts. The third takes the champions of a home and a Slurm in memory:
CPU seconds of reading `squeue --json` and of advice.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from jobcast.live.advice import Advice
from jobcast.live.advisor import Advisor
from jobcast.live.champions import ARRIVALS, DURATIONS, LOADS, ChampionWatch
from jobcast.live.event_log import EventLog
from jobcast.live.forecasts import ChampionForecasts
from jobcast.live.slurm import Slurm
from jobcast.live.state import LogReader
from jobcast.models.registry import open_registry
from jobcast.schedulers.registry import make_policy
from jobcast.traces.files import FileBytes
from jobcast.traces.readers.slurm_queue import queued_jobs
from tests.live.imagined_slurm import ImaginedSlurm
from tests.live.slurm.calm_advisor import calm_advisor
from tests.live.slurm.slurm_cluster import SlurmCluster

WIDE = ("--gres=gpu:8", "-c1", "-t", "60", "--wrap", "sleep 3000")


@contextmanager
def slurm_there(preempt: bool) -> Iterator[tuple[SlurmCluster, Advisor]]:
    """A Slurm with pool b at its quota, and who lends all that is idle."""
    with tempfile.TemporaryDirectory(prefix="jobcast-bench-") as scratch:
        Path(scratch).chmod(0o755)
        cluster = SlurmCluster(Path(scratch), preempt=preempt)
        cluster.start()
        os.environ |= cluster.env
        try:
            for _ in range(2):
                cluster.sbatch("mail", *WIDE)
            time.sleep(5.0)
            yield cluster, calm_advisor(Path(scratch) / "advisor", preempt)
        finally:
            cluster.stop()


def look(advisor: Advisor) -> Advice:
    """See, and do what is to be done."""
    snapshot = advisor.look(time.time())
    advice = advisor.advise(snapshot)
    assert advisor.carry_out(advice, snapshot) == []
    return advice


def grants(count: int) -> dict[str, Any]:
    """Seconds on a real Slurm: median, p95 and longest of `count` grants, one after another."""
    started, fallen = [], []
    with slurm_there(preempt=False) as (cluster, advisor):
        for _ in range(count):
            job = cluster.sbatch("mail", *WIDE)
            snapshot = advisor.look(time.time())
            advice = advisor.advise(snapshot)
            begun = time.monotonic()
            assert advisor.carry_out(advice, snapshot) == []
            started.append(cluster.wait_for(job, "RUNNING") and time.monotonic() - begun)
            cluster.run("scancel", job)
            cluster.wait_for(job, "CANCELLED")
            begun = time.monotonic()
            look(advisor)
            assert Slurm().qos()["lent_poolb"].gpus == 0
            fallen.append(time.monotonic() - begun)
    return {"grant_to_start_s": told(started), "over_to_limit_s": told(fallen)}


def preempts(count: int) -> dict[str, Any]:
    """Seconds from an owner's submission to its start where all that was idle is lent, and what was lost."""
    waited: list[float] = []
    with slurm_there(preempt=True) as (cluster, advisor):
        look(advisor)
        for _ in range(count):
            borrowers = [cluster.sbatch("mail", *WIDE) for _ in range(2)]
            look(advisor)
            for job in borrowers:
                cluster.wait_for(job, "RUNNING")
            look(advisor)
            begun = time.monotonic()
            owner = cluster.sbatch("games", *WIDE)
            cluster.wait_for(owner, "RUNNING")
            waited.append(time.monotonic() - begun)
            stopped = look(advisor).stopped
            assert stopped["jobs"] == len(waited), stopped
            for job in (owner, *borrowers):
                cluster.run("scancel", job)
                cluster.wait_for(job, "CANCELLED")
            look(advisor)
        form = ("--duplicates", "--format=State,ElapsedRaw")
        lines = cluster.run("sacct", "-nPX", "--allusers", "--starttime=now-1days", *form).splitlines()
        rows = (line.split("|") for line in lines)
        run_s = [float(seconds) for state, seconds in rows if state.startswith(("PREEMPTED", "REQUEUED"))]
    accounted = {"jobs": len(run_s), "gpu_hours": 8.0 * sum(run_s) / 3600.0}
    return {"owner_submitted_to_started_s": told(waited), "advisor": dict(stopped), "accounts": accounted}


def told(seconds: list[float]) -> dict[str, float]:
    """Median, p95 and longest."""
    values = np.array(seconds)
    return {"p50": float(np.median(values)), "p95": float(np.quantile(values, 0.95)), "max": float(values.max())}


def pending(home: Path, count: int) -> dict[str, Any]:
    """CPU seconds of one look at a queue of so many jobs, and of advice about it, the first time and again."""
    slurm, registry = ImaginedSlurm(), open_registry(home)
    slurm.now_s = time.time()
    for number in range(4):
        slurm.submit(f"{number}", "ab"[number % 2], 8)
    one = slurm.jobs["3"]
    for number in range(4, count + 4):
        pool, gpus, tag = "ab"[number % 2], 1 + number % 8, f"t{number % 50}"
        more = {"account": pool, "qos": pool, "gpus": gpus, "name": tag, "state": "PENDING", "reason": "QOSGrpGRES"}
        slurm.jobs[f"{number}"] = replace(one, job_id=f"{number}", start_s=float("nan"), **more)
    watch = ChampionWatch(registry, lambda _: None, needed=(ARRIVALS, LOADS, DURATIONS))
    watch.poll()
    result: dict[str, Any] = {"pending": count, "trouble": watch.trouble}
    with tempfile.TemporaryDirectory() as scratch:
        known = LogReader(EventLog(Path(scratch)))
        advisor = Advisor(slurm, known, ChampionForecasts(watch), lambda one: make_policy("sia", one))
        for turn in ("first", "again"):
            begun = time.process_time()
            snapshot = advisor.look(slurm.now_s)
            looked = time.process_time()
            advisor.advise(snapshot)
            result[turn] = {"look_cpu_s": looked - begun, "advice_cpu_s": time.process_time() - looked}
            slurm.pass_time(5.0)
    document = json.dumps({"jobs": [_squeue(asdict(job)) for job in slurm.queue()]}).encode()
    begun = time.process_time()
    queued_jobs(FileBytes("squeue --json", document))
    return result | {"read_json_cpu_s": time.process_time() - begun}


def _squeue(job: dict[str, Any]) -> dict[str, Any]:
    """A job as squeue writes it, as far as it is read."""
    gpus = f"cpu=1,node=1,gres/gpu={job['gpus']}"
    return {
        "job_id": int(job["job_id"]), "job_state": job["state"], "state_reason": job["reason"],
        "account": job["account"], "qos": job["qos"], "partition": "gpu", "name": job["name"], "user_name": "u",
        "node_count": 1, "submit_time": int(job["submit_s"]), "start_time": 0, "end_time": 0, "time_limit": 60,
        "tres_req_str": gpus,
        "tres_alloc_str": gpus, "admin_comment": "", "comment": "", "array_job_id": 0, "het_job_id": 0,
        "filler": "x" * 1500,
    }  # fmt: skip


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grants", type=int, default=20)
    parser.add_argument("--preempts", type=int, default=0)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--pending", type=int, default=5_000)
    asked = parser.parse_args()
    if asked.home is not None:
        result = pending(asked.home, asked.pending)
    else:
        result = preempts(asked.preempts) if asked.preempts else grants(asked.grants)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
