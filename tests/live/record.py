"""Records what a real Slurm says of a workload: its queue in the middle of the run, and what became of all jobs.

    SLURM_CONF=.../slurm.conf python tests/live/record.py OUT [--jobs N] [--seed N] [--plain]

It needs root (jobs are of several users) and a Slurm without other jobs, whose nodes have 32 GPUs in all (`gres/gpu`)
and whose accounting enforces limits. Jobs sleep; what they ask for is drawn from the seed. `--plain`: one account, no
quotas, nothing but batch jobs, for comparing starts with a scheduler's definition.

OUT then holds, gzipped: NOW.squeue.json, NOW.sacct.json, NOW.sacct.txt, NOW.sprio.txt, NOW.sshare.txt (NOW = early,
late: two instants of the run) and end.*, the same when the last job has ended; submitted.csv, what was asked for;
partition.txt, qos.txt and config.txt, by what rules.
"""

import argparse
import csv
import gzip
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

FIELDS = (
    "JobID,JobIDRaw,User,Account,QOS,Partition,JobName,State,Submit,Eligible,Start,End,ElapsedRaw,Timelimit,NodeList,"
    "NNodes,Priority,AllocTRES,ReqTRES"
)
QUOTAS = {"vision": 20, "speech": 12, "urgent": 8}
"""GPUs that jobs of a QOS may hold together."""
USERS = {"games": "vision", "news": "vision", "mail": "speech", "backup": "speech"}
"""Debian's system users, and their accounts."""
WIDTHS, SHARES = (1, 2, 4, 8), (8, 5, 4, 3)
LIMITS_MIN = (1, 2, 3, 5, 10)
SHORTEST_S, LONGEST_S = 5, 90
SNAPSHOTS = {"early": 0.35, "late": 0.7}
"""When the queue is looked at, as shares of the time in which jobs arrive."""


@dataclass(frozen=True)
class Request:
    """One call of sbatch: when, by whom, with which options, and how long the job sleeps."""

    at_s: float
    user: str
    options: tuple[str, ...]
    sleep_s: int
    script: str = ""
    then: Callable[[str], None] = field(default=lambda job_id: None)


def said(*command: str, given: str | None = None) -> str:
    """What a command prints; whatever goes wrong ends the recording."""
    return subprocess.run(command, check=True, capture_output=True, text=True, input=given).stdout


def as_user(user: str, *command: str, given: str | None = None) -> str:
    return said("runuser", "-u", user, "--", "env", f"SLURM_CONF={os.environ['SLURM_CONF']}", *command, given=given)


def set_up(quotas: dict[str, int]) -> None:
    """Accounts, users, QOS with their limits, and a second partition for short jobs."""
    for qos, gpus in quotas.items():
        subprocess.run(["sacctmgr", "-i", "-Q", "add", "qos", qos], check=False, capture_output=True)
        priority = "200" if qos == "urgent" else "100"
        said("sacctmgr", "-i", "modify", "qos", qos, "set", f"GrpTRES=gres/gpu={gpus}", f"Priority={priority}")
    for account in sorted(set(USERS.values())):
        subprocess.run(["sacctmgr", "-i", "-Q", "add", "account", account], check=False, capture_output=True)
        if quotas:
            said(
                "sacctmgr", "-i", "modify", "account", account, "set", f"qos={account},urgent", f"DefaultQOS={account}"
            )
    for user, account in USERS.items():
        subprocess.run(["sacctmgr", "-i", "add", "user", user, f"account={account}"], check=False, capture_output=True)
    said("scontrol", "update", "partitionname=gpu", "maxtime=UNLIMITED")
    if quotas:
        nodes = said("sinfo", "-h", "-p", "gpu", "-o", "%N").strip()
        subprocess.run(["scontrol", "create", "partitionname=short", f"nodes={nodes}", "maxtime=5"], check=False)


def drawn(jobs: int, rate_s: float, seed: int, plain: bool) -> Iterator[Request]:
    """Plain batch jobs, of which half come in bursts; limits are longer than run times but for one in twelve."""
    random_ = random.Random(seed)
    at_s = 0.0
    for number in range(jobs):
        at_s += 0.2 if random_.random() < 0.5 else random_.expovariate(0.5 / rate_s)
        sleep_s = round(SHORTEST_S * (LONGEST_S / SHORTEST_S) ** random_.random())
        fits = [minutes for minutes in LIMITS_MIN if 60 * minutes > sleep_s]
        limit_min = 1 if random_.random() < 1 / 12 else random_.choice(fits)
        width, user = random_.choices(WIDTHS, SHARES)[0], random_.choice(sorted(USERS))
        options = [f"-J{'train' if width > 1 else 'test'}{number % 7}", f"--gres=gpu:{width}", "-c1", f"-t{limit_min}"]
        options += ["--mem=1G"] if width == 1 else []
        if not plain and limit_min <= 5 and random_.random() < 0.2:
            options.append("-pshort,gpu")
        if not plain and random_.random() < 0.1:
            options.append("--qos=urgent")
        yield Request(at_s, user, tuple(options), sleep_s)


def odd_jobs(until_s: float) -> Iterator[Request]:
    """What else a log may hold: arrays, heterogeneous, held, requeued, cancelled, failed and unlimited jobs, steps."""
    gpu, at = ("--gres=gpu:1", "-c1", "-t3"), [until_s * share / 10 for share in range(10)]
    yield Request(at[1], "mail", ("--array=0-5%2", *gpu, "-Jsweep"), 25)
    yield Request(at[2], "games", ("--array=1-9:2%1", "--gres=gpu:2", "-c1", "-t2", "-Jlong_sweep"), 60)
    parts = "#SBATCH --gres=gpu:1 -c1 -t2\n#SBATCH hetjob\n#SBATCH --gres=gpu:2 -c1 -t2\n"
    yield Request(at[1], "news", ("-Jpair",), 30, script=parts)
    yield Request(at[3], "news", ("-Jpair2",), 45, script=parts)
    yield Request(at[2], "backup", (*gpu, "--hold", "-Jheld"), 20)
    yield Request(at[2], "backup", (*gpu, f"--begin=now+{int(until_s * 0.6)}", "-Jlater"), 20)
    yield Request(at[1], "games", ("-c4", "-t4", "-Jcpu_only"), 40)
    yield Request(at[1], "games", ("-c2", "-t4", "-N2", "-Jtwo_nodes", "--gres=gpu:2"), 50)
    yield Request(at[3], "mail", (*gpu[:2], "-tUNLIMITED", "-Jendless"), 80)
    yield Request(at[2], "mail", (*gpu, "-Jnotes|and more"), 15)
    yield Request(at[1], "news", (*gpu, "-Jfails"), 10, script="sleep 12; exit 3\n")
    yield Request(at[1], "news", (*gpu, "-Jstep"), 10, script="srun sleep 15\n")
    yield Request(at[0], "mail", (*gpu, "-Jagain", "--requeue"), 70, then=lambda job: said("scontrol", "requeue", job))
    yield Request(at[1], "mail", (*gpu, "-Jcut"), 80, then=lambda job: said("scancel", job))
    yield Request(at[2], "news", (*gpu, "--hold", "-Jnever"), 20, then=lambda job: said("scancel", job))


def submit(request: Request, begin_s: float, out: "csv.DictWriter[str]") -> str:
    sleep = f"#!/bin/sh\n{request.script}exec sleep {request.sleep_s}\n"
    told = as_user(request.user, "sbatch", "--parsable", "-D/tmp", "-o/dev/null", *request.options, given=sleep)
    job_id = told.strip().partition(";")[0]
    out.writerow(
        {"job_id": job_id, "at_s": round(time.time() - begin_s, 3), "user": request.user, "sleep_s": request.sleep_s}
        | {"options": " ".join(request.options), "script": request.script}
    )
    return job_id


def write(out: Path, name: str, text: str) -> None:
    """One file, gzipped, without the folder that this Slurm lives in, the same bytes for the same text."""
    home = str(Path(os.environ["SLURM_CONF"]).resolve().parent.parent)
    with (out / f"{name}.gz").open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        packed.write(text.replace(home, "/slurm").encode())


def snapshot(out: Path, name: str, since: str) -> None:
    """Queue, accounting, priorities and shares of one moment. Times in epochs: no zone matters."""
    write(out, f"{name}.squeue.json", said("squeue", "--json"))
    selected = ("--allusers", "--duplicates", f"--starttime={since}", "--endtime=now")
    os.environ["SLURM_TIME_FORMAT"] = "%s"
    write(out, f"{name}.sacct.txt", said("sacct", "--parsable2", *selected, f"--format={FIELDS}"))
    del os.environ["SLURM_TIME_FORMAT"]
    write(out, f"{name}.sacct.json", said("sacct", "--json", *selected))
    write(out, f"{name}.sprio.txt", said("sprio", "-l"))
    write(out, f"{name}.sshare.txt", said("sshare", "-a", "-l", "-P"))


def wait_for_the_last() -> None:
    """Until no job runs, and none waits but held ones, which then go."""
    while any(
        line.split("|")[1] != "JobHeldUser" for line in said("squeue", "-h", "-t", "R,CG,PD", "-o", "%i|%r").split()
    ):
        time.sleep(3)
    for job_id in said("squeue", "-h", "-t", "PD", "-o", "%A").split():
        said("scancel", job_id)
    time.sleep(10)  # accounting is told with a delay


def record(out: Path, jobs: int, seed: int, rate_s: float, plain: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    set_up({} if plain else QUOTAS)
    requests = list(drawn(jobs, rate_s, seed, plain))
    until_s = requests[-1].at_s
    requests += [] if plain else odd_jobs(until_s)
    begin_s, since = time.time(), time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - 1))
    work: list[tuple[float, int, Callable[[], object]]] = []
    order = count()  # of equal times
    with (out / "submitted.csv").open("w", newline="") as file:
        asked = csv.DictWriter(file, ["job_id", "at_s", "user", "sleep_s", "options", "script"], lineterminator="\n")
        asked.writeheader()

        def begin(request: Request) -> None:
            job_id = submit(request, begin_s, asked)
            # half a minute later it runs or waits, and what is to become of it is done
            work.append((request.at_s + 30.0, next(order), lambda: request.then(job_id)))

        work += [(request.at_s, next(order), lambda one=request: begin(one)) for request in requests]
        for name, share in SNAPSHOTS.items():
            work.append((until_s * share, next(order), lambda name=name: snapshot(out, name, since)))
        while work:
            work.sort()
            at_s, _, do = work.pop(0)
            time.sleep(max(0.0, begin_s + at_s - time.time()))
            try:
                do()
            except subprocess.CalledProcessError as error:
                print(f"{at_s:.0f} s: {' '.join(error.cmd)}: {error.stderr.strip()}", file=sys.stderr)
    wait_for_the_last()
    snapshot(out, "end", since)
    for name, command in {
        "partition": ("scontrol", "show", "partition"),
        "qos": ("sacctmgr", "-P", "show", "qos", "format=Name,Priority,GrpTRES"),
        "config": ("scontrol", "show", "config"),
    }.items():
        write(out, f"{name}.txt", said(*command))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=180)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=1.5, help="seconds between arrivals on average")
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    record(given.out, given.jobs, given.seed, given.every, given.plain)


if __name__ == "__main__":
    main()
