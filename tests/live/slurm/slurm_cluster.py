"""A whole Slurm on one machine, for tests: munge, MariaDB, slurmdbd, slurmctld, some slurmd with fake GPUs, slurmrestd.

    python -m tests.live.slurm.slurm_cluster FOLDER [--preempt] [--hooks integrations/slurm]

It needs root and the packages of `PROGRAMS`, as Debian 12 has them (Slurm 22.05). Everything lies in one folder and
listens on 127.0.0.1, on ports that were free; neither systemd, cgroups nor GPUs are needed. Jobs are of the
system's own users, so that nothing is added to /etc/passwd.
"""

import argparse
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live.slurm.layout import CLUSTER, HOST, Layout

PROGRAMS = {
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "slurmdbd": "slurmdbd",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmrestd": "slurmrestd",
    "sbatch": "slurm-client",
}
"""What has to be there, and the package of Debian that brings it."""
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
SYSTEM_USERS = ("games", "news", "mail", "backup", "lp", "uucp", "irc", "list")
"""Users of every Debian: two of them for each pool, in turn."""
QUICK = "bf_interval=2,bf_resolution=10,bf_window=10080,sched_min_interval=200000,sched_interval=5"
"""Slurm looks for jobs to start every 5 s; with its own values a limit raised alone starts a job after a minute."""
SAVED_S = 6.0
"""After which slurmctld has written a change down: it waits up to 5 s (SAVE_MAX_WAIT of its state_save.c), and a kill
before loses a job for which sbatch already told an id."""
STARTED_S, ENDED_S, ANSWERED_S = 120.0, 30.0, 60.0  # on a busy machine

DATABASE = (
    "create database if not exists slurm_acct_db;"
    "create user if not exists slurm@'127.0.0.1' identified by 'slurm';"
    "grant all on slurm_acct_db.* to slurm@'127.0.0.1';"
)


@dataclass(frozen=True)
class Daemon:
    """How a daemon is started, and how one sees that it answers."""

    command: tuple[str, ...]
    answers: Callable[[], bool]
    user: str = "root"


def available() -> str:
    """Why no Slurm can be started here; empty where it can."""
    if os.geteuid() != 0:
        return "a Slurm of the tests needs root"
    lacking = {package for program, package in PROGRAMS.items() if not shutil.which(program, path=PATH)}
    if not list(Path("/usr").glob("lib*/**/auth_jwt.so")):
        lacking.add("slurm-wlm-jwt-plugin")
    return f"a Slurm of the tests needs {' '.join(sorted(lacking))}" if lacking else ""


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on, below those that the system gives to clients."""
    found: list[int] = []
    while len(found) < count:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as server, suppress(OSError):
            server.bind((HOST, port))
            found += [port] if port not in found else []
    return found


def listens(port: int) -> bool:
    """Whether a port takes connections."""
    with socket.socket() as client:
        client.settimeout(1.0)
        return client.connect_ex((HOST, port)) == 0


def wait_until(check: Callable[[], bool], what: str, within_s: float = ANSWERED_S) -> float:
    """Seconds until something was so; AssertionError where it is not in time."""
    start = time.monotonic()
    while not check():
        assert time.monotonic() < start + within_s, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.1)
    return time.monotonic() - start


class SlurmCluster:
    """A Slurm in a folder, which its users must be able to enter.

    Each pool is an account and a QOS that bounds its GPUs, with a QOS `lent_<pool>` that every account may use and that
    holds no GPU.

    Parameters
    ----------
    home : an empty folder, or one that was a cluster's before.
    nodes, gpus : nodes `n1`, `n2`..., and GPUs of each.
    pools : GPUs by pool; names in lower case, as Slurm keeps them.
    users : pool by user; default two of the system's own users a pool.
    roles : Slurm's AdminLevel, `Operator` or `Admin`, of some of the users.
    scheduler_parameters : Slurm's `SchedulerParameters`.
    preempt : whether a pool's QOS may preempt jobs of `lent_<pool>` from the start; who is preempted is requeued.
    hooks : folder of `job_submit.lua` and `cli_filter.lua`.
    """

    def __init__(
        self,
        home: Path,
        nodes: int = 4,
        gpus: int = 8,
        pools: Mapping[str, int] | None = None,
        users: Mapping[str, str] | None = None,
        roles: Mapping[str, str] | None = None,
        scheduler_parameters: str = QUICK,
        preempt: bool = False,
        hooks: Path | None = None,
    ) -> None:
        self.home = home.resolve()
        self.pools = dict(pools or {"poola": 16, "poolb": 16})
        self.users = dict(users or zip(SYSTEM_USERS, sorted([*self.pools] * 2), strict=False))
        self.roles = dict(roles or {})
        self.preempt, self.hooks = preempt, hooks
        names = tuple(f"n{number}" for number in range(1, nodes + 1))
        listening = ("mariadbd", "slurmdbd", "slurmctld", "slurmrestd", *(f"slurmd-{name}" for name in names))
        self.ports = dict(zip(listening, free_ports(len(listening)), strict=True))
        self.layout = Layout(self.home, names, gpus, self.ports, scheduler_parameters, hooks is not None)
        self.env = {
            "SLURM_CONF": str(self.home / "etc/slurm.conf"),
            "JOBCAST_HOOK_CONF": str(self.home / "etc/hook.conf"),
            "JOBCAST_TOLD_FILE": str(self.home / "run/told"),
        }
        self.daemons = self._daemons()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def rest(self) -> str:
        """Address of slurmrestd."""
        return f"http://{HOST}:{self.ports['slurmrestd']}"

    def start(self) -> None:
        """Bring all daemons up, in the order in which they need each other, with pools and users."""
        self._write()
        try:
            for name in self.daemons:
                self._launch(name)
                if name == "mariadbd":
                    self.run(*self._sql(DATABASE))
                elif name == "slurmdbd":
                    self.outcome("sacctmgr", "-i", "-Q", "add", "cluster", CLUSTER)  # it may be there
            wait_until(self._all_idle, "all nodes are idle", STARTED_S)
            self._account()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End jobs and daemons, last started first, and whatever they left behind."""
        if "slurmctld" in self._running:
            for state in ("PENDING", "RUNNING"):
                with suppress(subprocess.TimeoutExpired):
                    self.outcome("scancel", f"--state={state}", within_s=10)
        for name in reversed(list(self._running)):
            self._end(name, signal.SIGTERM)
        for pid in self.leftovers():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.leftovers(), "what jobs started has ended", ENDED_S)

    def kill(self, daemon: str) -> None:
        """End a daemon at once, as a crash would (SIGKILL); what it started goes on."""
        self._end(daemon, signal.SIGKILL)

    def restart(self, daemon: str) -> None:
        """Start a daemon anew and wait until it answers; one that runs is asked to end before."""
        if daemon in self._running:
            self._end(daemon, signal.SIGTERM)
        self._launch(daemon)

    def pid(self, daemon: str) -> int:
        """Of a daemon that runs."""
        return self._running[daemon].pid

    def run(self, *command: str, user: str = "root", within_s: float = ANSWERED_S) -> str:
        """What a command prints, as a user; CalledProcessError with what it said where it fails."""
        done = self.outcome(*command, user=user, within_s=within_s)
        if done.returncode:
            told = f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}"
            raise subprocess.CalledProcessError(done.returncode, told, done.stdout, done.stderr)
        return done.stdout

    def outcome(
        self,
        *command: str,
        user: str = "root",
        within_s: float = ANSWERED_S,
        environ: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """A command's exit code and what it printed, as a user; TimeoutExpired where it hangs."""
        whole = {"PATH": PATH, **self.env, **(environ or {})}
        where = self.home / "jobs"
        return subprocess.run(
            command, capture_output=True, text=True, timeout=within_s, env=whole, cwd=where, **_as(user)
        )

    def sbatch(self, user: str, *options: str) -> str:
        """Id of a job that a user submits: `sbatch("mail", "--gres=gpu:8", "-t", "10", "--wrap", "sleep 60")`."""
        return self.run("sbatch", "--parsable", "-o", "/dev/null", *options, user=user).strip()

    def state(self, job_id: str) -> str:
        """Of a job, as slurmctld has it: PENDING, RUNNING, COMPLETED and so on."""
        return self.run("squeue", "-h", "--states=all", "-o", "%T", "-j", job_id).strip()

    def wait_for(self, job_id: str, *states: str, within_s: float = ANSWERED_S) -> float:
        """Seconds until a job is in one of some states."""
        return wait_until(lambda: self.state(job_id) in states, f"job {job_id} is {' or '.join(states)}", within_s)

    def _daemons(self) -> dict[str, Daemon]:
        home, ports = self.home, self.ports
        munge = home / "munge"
        munged = (
            *("munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket"),
            *(f"--pid-file={munge}/pid", f"--log-file={home}/log/munged.log", f"--seed-file={munge}/seed"),
        )
        mariadbd = (
            *("mariadbd", "--no-defaults", "--user=root", f"--datadir={home}/db", f"--socket={home}/run/mysql.sock"),
            *(f"--pid-file={home}/run/mysql.pid", f"--bind-address={HOST}", f"--port={ports['mariadbd']}"),
            *("--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900"),
        )
        slurmrestd = ("slurmrestd", "-a", "rest_auth/jwt", f"{HOST}:{ports['slurmrestd']}")
        return {
            "munged": Daemon(munged, lambda: self._well("munge", "-S", f"{munge}/socket", "-n")),
            "mariadbd": Daemon(mariadbd, lambda: self._well(*self._sql("select 1"))),
            "slurmdbd": Daemon(("slurmdbd", "-D"), lambda: self._well("sacctmgr", "-n", "show", "cluster")),
            "slurmctld": Daemon(("slurmctld", "-D"), lambda: self._well("scontrol", "ping")),
            **{f"slurmd-{node}": self._slurmd(node) for node in self.layout.nodes},
            "slurmrestd": Daemon(slurmrestd, lambda: listens(ports["slurmrestd"]), "nobody"),
        }

    def _slurmd(self, node: str) -> Daemon:
        port = self.ports[f"slurmd-{node}"]
        return Daemon(("slurmd", "-D", "-N", node), lambda: listens(port))

    def _well(self, *command: str) -> bool:
        try:
            return self.outcome(*command, within_s=3).returncode == 0
        except subprocess.TimeoutExpired:  # its server hangs, or it asks again and again
            return False

    def _sql(self, text: str) -> tuple[str, ...]:
        return ("mariadb", "--no-defaults", "-S", str(self.home / "run/mysql.sock"), "-e", text)

    def _all_idle(self) -> bool:
        return self.run("sinfo", "-h", "-N", "-o", "%t").split() == ["idle"] * len(self.layout.nodes)

    def _launch(self, name: str) -> None:
        daemon = self.daemons[name]
        environ = {"PATH": PATH, **self.env, "JOBCAST_SLURM_HOME": str(self.home)}
        if name == "slurmrestd":
            environ["SLURM_JWT"] = "daemon"
        with (self.home / "log" / f"{name}.out").open("ab") as said:
            process = subprocess.Popen(
                daemon.command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=environ,
                cwd=self.home,
                start_new_session=True,
                **_as(daemon.user),
            )
        self._running[name] = process
        wait_until(lambda: process.poll() is not None or daemon.answers(), f"{name} answers", STARTED_S)
        if process.returncode is not None:
            last = (self.home / "log" / f"{name}.out").read_text(errors="replace").splitlines()[-5:]
            raise RuntimeError(f"{name} ended with {process.returncode}: {' / '.join(last)}; see {self.home}/log")

    def _end(self, name: str, how: signal.Signals) -> None:
        process = self._running.pop(name)
        process.send_signal(how)
        try:
            process.wait(ENDED_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def leftovers(self) -> list[int]:
        """Steps of slurmd and what jobs started: they carry our folder in their environment."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                environ = set((folder / "environ").read_bytes().split(b"\0"))
                ours = f"SLURM_CONF={self.env['SLURM_CONF']}".encode() in environ
                daemon = f"JOBCAST_SLURM_HOME={self.home}".encode() in environ
                if ours and (daemon or any(one.startswith(b"SLURM_JOB_ID=") for one in environ)):
                    found.append(int(folder.name))
        return found

    def _write(self) -> None:
        self.layout.write()
        for path in (self.home, *self.home.parents):
            assert path.stat().st_mode & 0o001, f"{path} must be open for users whose jobs run here: chmod o+x"
        if self.hooks:
            for name in ("job_submit.lua", "cli_filter.lua"):
                shutil.copy(self.hooks / name, self.home / "etc" / name)
        if not (self.home / "db/mysql").exists():
            where = ("--no-defaults", "--user=root", f"--datadir={self.home}/db")
            self.run("mariadb-install-db", *where, "--auth-root-authentication-method=normal", "--skip-test-db")

    def _account(self) -> None:
        """Accounts, users and QOS, where they are not there yet."""
        there = set(self.run("sacctmgr", "-n", "-P", "show", "qos", "format=name").split())
        if there >= set(self.pools):
            return
        lent = ",".join(f"lent_{pool}" for pool in self.pools)
        self._add("qos", lent, "set", "GrpTRES=gres/gpu=0", "Priority=10", "Flags=DenyOnLimit,OverPartQOS")
        for pool, gpus in self.pools.items():
            self._add("qos", pool, "set", f"GrpTRES=gres/gpu={gpus}", "Priority=100")
            self._add("account", pool, "set", f"qos={pool},{lent}", f"DefaultQOS={pool}")
            if self.preempt:
                self._modify("qos", f"lent_{pool}", "PreemptMode=requeue")
                self._modify("qos", pool, f"preempt=lent_{pool}")
        for user, pool in self.users.items():
            self._add("user", user, f"account={pool}")
        for user, level in self.roles.items():
            self._modify("user", user, f"AdminLevel={level}")

    def _add(self, kind: str, name: str, *values: str) -> None:
        self.run("sacctmgr", "-i", "-Q", "add", kind, name, *values)

    def _modify(self, kind: str, name: str, *values: str) -> None:
        self.run("sacctmgr", "-i", "-Q", "modify", kind, name, "set", *values)


def _as(user: str) -> dict[str, Any]:
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def main() -> None:
    """A cluster for use by hand, until a signal ends it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("home", type=Path, nargs="?", help="default: a temporary folder")
    parser.add_argument("--preempt", action="store_true")
    parser.add_argument("--hooks", type=Path)
    asked = parser.parse_args()
    home = asked.home or Path(tempfile.mkdtemp(prefix="slurm-"))
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o755)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cluster = SlurmCluster(home, preempt=asked.preempt, hooks=asked.hooks)
    cluster.start()
    try:
        print(f"export SLURM_CONF={cluster.env['SLURM_CONF']} REST={cluster.rest}", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        cluster.stop()


if __name__ == "__main__":
    main()
