"""The registry is killed while jobs, a server and an advisor run: they go on with what they have, and say so.

JOBCAST_TIMES=20 pytest -s -m slow tests/live/slurm/test_registry_kills.py tells figures of 20 kills.
"""

import json
import os
import random
import signal
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest

from jobcast.models.registry import open_registry
from tests.live.slurm.calm_advisor import OurProcess, ServeProcess
from tests.live.slurm.kills import JOBS, Toll, limits_of, reckon, submit
from tests.live.slurm.slurm_cluster import wait_until
from tests.models.registry_servers import free_port, mlflow_server

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]
TIMES = int(os.environ.get("JOBCAST_TIMES", "2"))
TOLD_S, HEALED_S = 60.0, 120.0
SILENT = "the registry has not answered since "


class Asked:
    """A server, asked again and again: all that it answered."""

    def __init__(self, port: int) -> None:
        self._port, self.answers = port, 0

    def degraded(self) -> list[str]:
        """What is told of now; each answer is one, by the versions that there are."""
        for path in ("/v1/forecasts", "/v1/overview"):
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}") as answer:
                told = json.loads(answer.read())
            assert told["versions"] == {"will-jobs-arrive": 1, "new-load": 1, "job-duration": 1}
            self.answers += 1
        return [one for one in told["degraded"] if "registry" in one]


def advised(file: Path, after_s: float = 0.0) -> list[str]:
    """What the advisor says of the registry, by its last look after an instant."""
    last = json.loads(file.read_text().splitlines()[-1]) if file.exists() and file.stat().st_size else {}
    if not last.get("versions") or file.stat().st_mtime <= after_s:
        return ["nothing was said yet"]
    return [one for one in last["degraded"] if "registry" in one]


def test_a_registry_that_is_killed_stops_nobody(slurm, saved, card, tmp_path, monkeypatch):
    room, port, out = tmp_path / "registry", free_port(), tmp_path / "advice.jsonl"
    room.mkdir()
    monkeypatch.setenv("JOBCAST_REGISTRY", f"http://127.0.0.1:{port}")
    registry, told_s, healed_s = ExitStack(), [], []
    toll, jobs, limits, draw = Toll("registry", TIMES), list[str](), limits_of(slurm), random.Random(1)
    registry.enter_context(mlflow_server(room, port, signal.SIGKILL))
    for name, folder in saved.items():
        open_registry(tmp_path / "home").register(folder, card(name=name))
    server = ServeProcess(slurm, tmp_path / "serve")
    words = ("jobcast", "advise", "--slurm", "--apply", "--every", "1", "--json", str(out))
    advisor = OurProcess(slurm, tmp_path / "advise", *words)
    asked = Asked(server.port)
    try:
        wait_until(lambda: asked_well(asked), "the server answers by the champions", HEALED_S)
        wait_until(lambda: advised(out) == [], "the advisor asks the champions", HEALED_S)
        for _ in range(TIMES):
            jobs += [submit(slurm, draw) for _ in range(JOBS)]
            registry.close()
            began_s, at_s = time.monotonic(), time.time()
            wait_until(lambda: says(asked.degraded()), "the server says so", TOLD_S)
            wait_until(lambda: says(advised(out, at_s)), "the advisor says so", TOLD_S)  # noqa: B023
            told_s.append(time.monotonic() - began_s)
            registry.enter_context(mlflow_server(room, port, signal.SIGKILL))
            began_s, at_s = time.monotonic(), time.time()
            wait_until(lambda: not asked.degraded() and not advised(out, at_s), "all is well", HEALED_S)  # noqa: B023
            healed_s.append(time.monotonic() - began_s)
        reckon(slurm, toll, jobs, limits)
    finally:
        advisor.kill()
        server.kill()
        registry.close()
    assert toll.nothing_lost, toll
    assert not toll.otherwise
    print(f"{TIMES} kills, {len(jobs)} jobs, none lost or stuck; {asked.answers} answers")
    print(f"told after {max(told_s):.1f} s, well after {max(healed_s):.1f} s")


def asked_well(asked: Asked) -> bool:
    """Whether the champions are loaded."""
    try:
        return asked.degraded() == []
    except AssertionError:
        return False


def says(told: list[str]) -> bool:
    return any(one.startswith(SILENT) for one in told)
