"""Kills daemons of a Slurm while jobs run (SIGKILL), and asks in the end that no job is lost or stuck.

    python -m tests.live.slurm.kills [--daemon slurmctld]... [--times 20] [--seed 1]

Each round submits some jobs, kills the daemon, and starts it anew after a while. Then each job must have run to its end
(it writes that down itself) and be over for the queue and the accounts, GPUs be free, and limits be what they were. A
line of JSON a daemon; exit code 1 where anything is lost.

A slurmctld that is killed forgets what happened in the 5 s before, whoever else is there: jobs that had just been
submitted are gone, some that had just started run twice or drain their node, some that had just ended run on in its
books until their time limit, or are FAILED there. So it is killed when nothing has started, ended, come or been moved
for `SAVED_S`, and nothing is about to start.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from jobcast.live.leases import LENT, mark_of
from tests.live.slurm.calm_advisor import AdvisorProcess, ServeProcess
from tests.live.slurm.slurm_cluster import SAVED_S, SlurmCluster, available, wait_until

DAEMONS = ("slurmctld", "slurmdbd", "mariadbd", "munged", "slurmd-n1", "slurmrestd")
ADVISE, SERVE = "advise", "serve"
"""`jobcast advise --apply` with calm forecasts, `jobcast serve --slurm`: there beside whatever else is killed, too."""
WIDTHS, SHORTEST_S, LONGEST_S = (1, 2, 4, 8), 2, 20
JOBS = 4
"""Submitted in a round."""
DOWN_S = 2.0
"""For which a daemon is dead, at most."""
QUIET_S = 120.0
"""Within which nothing has happened for a while."""
DRAINED_S, ACCOUNTED_S = 300.0, 60.0
"""Within which all jobs are over when no more come, and the accounts know it."""
NOT_OVER = {"PENDING", "RUNNING", "COMPLETING", None}
"""A job that is not known is not over either."""


@dataclass(frozen=True)
class Victim:
    """What is killed, and how it comes back.

    Attributes
    ----------
    kill, restart : SIGKILL; start it, and wait until it answers
    spare : waits until a kill takes nothing but what is asked about
    """

    kill: Callable[[], None]
    restart: Callable[[], None]
    spare: Callable[[], None] = lambda: None


@dataclass
class Toll:
    """What a daemon's kills cost.

    Attributes
    ----------
    lost : jobs that did not run to their end
    stuck, unaccounted : jobs that are not over for the queue, with its reason, for the accounts
    otherwise : jobs that ran to their end, and of which Slurm says another end
    unmarked : jobs in a QOS of leases without a mark
    gpus_held, limits_changed : nodes with GPUs that nobody uses, QOS with other limits than before
    not_idle : nodes that take no jobs, and why; it tells where jobs are stuck
    restart_s : seconds until it answered again
    """

    daemon: str
    kills: int = 0
    jobs: int = 0
    lost: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    unaccounted: list[str] = field(default_factory=list)
    otherwise: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)
    gpus_held: list[str] = field(default_factory=list)
    not_idle: list[str] = field(default_factory=list)
    limits_changed: list[str] = field(default_factory=list)
    restart_s: list[float] = field(default_factory=list)

    @property
    def nothing_lost(self) -> bool:
        """Whether all jobs ran and are over, all GPUs are free and all limits are what they were."""
        return not (
            self.lost or self.stuck or self.unaccounted or self.unmarked or self.gpus_held or self.limits_changed
        )


def victims(cluster: SlurmCluster) -> dict[str, Victim]:
    """The daemons of a cluster; whoever has others to kill adds them."""

    def one(name: str) -> Victim:
        spare = partial(wait_for_quiet, cluster) if name == "slurmctld" else lambda: None
        return Victim(partial(cluster.kill, name), partial(cluster.restart, name), spare)

    return {name: one(name) for name in cluster.daemons}


@contextmanager
def advised(cluster: SlurmCluster, home: Path) -> Iterator[dict[str, Victim]]:
    """The victims of a cluster, and an advisor that lends what is idle meanwhile, and a server."""
    ours = {ADVISE: AdvisorProcess(cluster, home / ADVISE), SERVE: ServeProcess(cluster, home / SERVE)}
    try:
        yield {**victims(cluster), **{name: Victim(one.kill, one.start) for name, one in ours.items()}}
    finally:
        for one in ours.values():
            one.kill()


def wait_for_quiet(cluster: SlurmCluster) -> None:
    """Wait until no job has come, started, ended or been moved for as long as slurmctld takes to save what it knows."""

    def seen() -> tuple[list[list[str]], Mapping[str, str]]:
        # An advisor changes limits and moves jobs, which start a moment later.
        lines = cluster.run("squeue", "-h", "--states=all", "-o", "%i|%T|%q|%r").splitlines()
        return [line.split("|") for line in lines], limits_of(cluster)

    queued, since_s = seen(), time.monotonic()

    def quiet() -> bool:
        nonlocal queued, since_s
        asked_s, now = time.monotonic(), seen()
        # Who waits for no limit of its QOS starts any moment: Slurm looks every 5 s, and later on a busy machine.
        starts = any(state == "PENDING" and not reason.startswith("QOS") for _, state, _, reason in now[0])
        if starts or now != queued:
            queued, since_s = now, time.monotonic()
        return asked_s - since_s >= SAVED_S

    wait_until(quiet, f"nothing happens for {SAVED_S:.0f} s", QUIET_S)


def trial(cluster: SlurmCluster, name: str, victim: Victim, times: int, seed: int) -> Toll:
    """Kill one daemon some times; jobs are drawn from the seed."""
    rng, toll, limits = random.Random(seed), Toll(name), limits_of(cluster)
    jobs: list[str] = []
    for _ in range(times):
        jobs += [submit(cluster, rng) for _ in range(JOBS)]
        time.sleep(rng.uniform(0.0, 1.0))
        victim.spare()
        victim.kill()
        toll.kills += 1
        time.sleep(rng.uniform(0.0, DOWN_S))
        start = time.monotonic()
        victim.restart()
        toll.restart_s.append(round(time.monotonic() - start, 2))
    toll.jobs = len(jobs)
    reckon(cluster, toll, jobs, limits)
    return toll


def submit(cluster: SlurmCluster, rng: random.Random) -> str:
    """Id of a job of anyone, of any width, that sleeps for some seconds and writes down that it ran."""
    user, gpus, sleep_s = rng.choice(sorted(cluster.users)), rng.choice(WIDTHS), rng.uniform(SHORTEST_S, LONGEST_S)
    script = f"sleep {sleep_s:.1f} && touch {cluster.home}/jobs/ran.$SLURM_JOB_ID"
    return cluster.sbatch(user, f"--gres=gpu:{gpus}", "-t", "1", "--wrap", script)


def reckon(cluster: SlurmCluster, toll: Toll, jobs: Sequence[str], limits: Mapping[str, str]) -> None:
    """Wait until all that can end has ended, and write down what has not, or not well."""
    queued = ended(lambda: queue_of(cluster), jobs, DRAINED_S)
    accounted = ended(lambda: accounts_of(cluster), jobs, ACCOUNTED_S)
    toll.stuck = [f"{job}: {reason_of(cluster, job)}" for job in jobs if queued.get(job) in NOT_OVER]
    toll.unaccounted = [f"{job}: {accounted.get(job)}" for job in jobs if accounted.get(job) in NOT_OVER]
    ran = {job for job in jobs if (cluster.home / f"jobs/ran.{job}").exists()}
    toll.lost = [f"{job}: {queued.get(job)}" for job in jobs if job not in ran]
    toll.otherwise = [f"{job}: {queued.get(job)}" for job in jobs if job in ran and queued.get(job) != "COMPLETED"]
    nodes = cluster.run("scontrol", "-o", "show", "node").splitlines()
    toll.gpus_held = [line.split()[0] for line in nodes if "AllocTRES= " not in line]
    seen = cluster.run("sinfo", "-h", "-N", "-o", "%N %T %E").splitlines()
    toll.not_idle = [line for line in seen if line.split()[1] != "idle"]
    with suppress(AssertionError):
        # An advisor lowers them when it looks next.
        wait_until(lambda: limits_of(cluster) == limits, "limits are what they were", ACCOUNTED_S)
    now = limits_of(cluster)
    toll.unmarked = [job for job in unmarked_of(cluster) if job in jobs]
    toll.limits_changed = [
        f"{name}: {was}, now {now.get(name)}" for name, was in limits.items() if now.get(name) != was
    ]


def ended(states: Callable[[], Mapping[str, str]], jobs: Sequence[str], within_s: float) -> Mapping[str, str]:
    """State by job when all are over, or when the time is."""
    with suppress(AssertionError):
        wait_until(lambda: not [one for one in map(states().get, jobs) if one in NOT_OVER], "jobs are over", within_s)
    return states()


def queue_of(cluster: SlurmCluster) -> dict[str, str]:
    """State by job, as slurmctld has it."""
    lines = cluster.run("squeue", "-h", "--states=all", "-o", "%i %T").splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def reason_of(cluster: SlurmCluster, job: str) -> str:
    """State of a job, with why it waits and where it is or shall be."""
    return cluster.outcome("squeue", "-h", "--states=all", "-o", "%T %r %N %R", "-j", job).stdout.strip()


def accounts_of(cluster: SlurmCluster) -> dict[str, str]:
    """State by job, as slurmdbd has it."""
    asked = ("sacct", "-n", "-P", "-X", "--allusers", "--starttime=now-1days", "--format=JobID,State")
    return dict(line.split("|", 1) for line in cluster.run(*asked).splitlines())


def unmarked_of(cluster: SlurmCluster) -> list[str]:
    """Jobs in a QOS of leases that no lease accounts for."""
    jobs = json.loads(cluster.run("squeue", "--json"))["jobs"]
    return [str(job["job_id"]) for job in jobs if job["qos"].startswith(LENT) and not mark_of(job["admin_comment"])]


def limits_of(cluster: SlurmCluster) -> dict[str, str]:
    """GPUs by QOS."""
    lines = cluster.run("sacctmgr", "-n", "-P", "show", "qos", "format=name,grptres").splitlines()
    return dict(line.split("|", 1) for line in lines)


def main() -> int:
    """Kill each daemon that is asked for; 1 where anything was lost."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--daemon", action="append", choices=(*DAEMONS, ADVISE, SERVE), help="default: each")
    parser.add_argument("--advised", action="store_true", help="lend what is idle meanwhile")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if reason := available():
        parser.error(reason)
    home = Path(tempfile.mkdtemp(prefix="slurm-"))
    home.chmod(0o755)
    cluster, well = SlurmCluster(home), True
    cluster.start()
    try:
        names = asked.daemon or DAEMONS
        lends = asked.advised or {ADVISE, SERVE} & set(names)
        with advised(cluster, home / "ours") if lends else nullcontext(victims(cluster)) as there:
            for name in names:
                toll = trial(cluster, name, there[name], asked.times, asked.seed)
                print(json.dumps(asdict(toll)), flush=True)
                well = well and toll.nothing_lost
    finally:
        cluster.stop()
        shutil.rmtree(home)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
