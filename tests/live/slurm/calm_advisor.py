"""`jobcast advise --apply` with forecasts of nobody to come, so that all that is idle is lent: a process to be killed.

python -m tests.live.slurm.calm_advisor HOME [--every 0.5] [--die-after CHANGES]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from jobcast.domain.errors import ClusterError
from jobcast.live.advice import advice_figures
from jobcast.live.advisor import Advisor, Rules
from jobcast.live.event_log import EventLog
from jobcast.live.forecasts import Asked
from jobcast.live.slurm import Slurm
from jobcast.live.state import LogReader
from jobcast.schedulers.registry import make_policy
from tests.live.imagined_slurm import Calm
from tests.live.slurm.slurm_cluster import SlurmCluster, free_ports, listens, wait_until


class Deadly(Slurm):
    """Kills this process (SIGKILL) when the cluster is about to be changed once more than so often."""

    def __init__(self, changes: int) -> None:
        super().__init__()
        self._left = changes

    def _run(self, *command: str, **environment: str) -> bytes:
        if {"modify", "update"} & set(command):
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1
        return super()._run(*command, **environment)


def calm_advisor(home: Path, preempt: bool = False, max_lent: int | None = None, slurm: Slurm | None = None) -> Advisor:
    """An advisor of the Slurm that the environment names."""
    rules = Rules(per_minute=1_000, preempt=preempt, max_lent=max_lent)
    cluster, known = slurm or Slurm(), LogReader(EventLog(home))
    return Advisor(cluster, known, lambda *_: Asked(Calm(), {}), lambda one: make_policy("sia", one), rules)


class OurProcess:
    """A program of ours beside a Slurm, to be killed and started anew."""

    def __init__(self, cluster: SlurmCluster, home: Path, *words: str) -> None:
        self._words = [sys.executable, "-m", *words]
        self._env = {**os.environ, **cluster.env, "JOBCAST_HOME": str(home)}
        home.mkdir(parents=True, exist_ok=True)
        self.log = home / "log"
        self.start()

    def start(self) -> None:
        """Start it; the process before is gone."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._words, env=self._env, stdout=log, stderr=log)

    def interrupt(self) -> None:
        """SIGINT, as by who runs it by hand; wait until it has ended."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()


class AdvisorProcess(OurProcess):
    """The loop below."""

    def __init__(self, cluster: SlurmCluster, home: Path) -> None:
        super().__init__(cluster, home, "tests.live.slurm.calm_advisor", str(home))


class ServeProcess(OurProcess):
    """`jobcast serve --slurm` on a port of its own."""

    def __init__(self, cluster: SlurmCluster, home: Path, *options: str) -> None:
        (self.port,) = free_ports(1)
        super().__init__(cluster, home, "jobcast", "serve", "--slurm", "--port", str(self.port), *options)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        super().start()
        wait_until(lambda: listens(self.port), "the server answers", 60.0)


def main() -> None:
    """Look, say and do until it is killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--every", type=float, default=0.5)
    parser.add_argument("--die-after", type=int, help="changes of the cluster")
    asked = parser.parse_args()
    advisor = calm_advisor(asked.home, slurm=None if asked.die_after is None else Deadly(asked.die_after))
    while True:
        try:
            snapshot = advisor.look(time.time())
            advice = advisor.advise(snapshot)
            failed = advisor.carry_out(advice, snapshot)
            print(json.dumps(advice_figures(advice) | {"failed": failed}), flush=True)
        except ClusterError as error:  # a daemon is down: it is asked again
            print(json.dumps({"failed": [str(error)]}), flush=True)
        time.sleep(asked.every)


if __name__ == "__main__":
    main()
