"""Registries that others share, for tests: an MLflow server and a PostgreSQL cluster of their own."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

REGISTER = """
import os, signal, sys
from pathlib import Path
from mlflow import MlflowClient
from jobcast.models.registry import ModelCard, open_registry

home, folder, stop, seed = sys.argv[1:]
real = getattr(MlflowClient, stop, None)
if real:
    def die(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(MlflowClient, stop, die)
card = ModelCard("new-load", "sliding-max", int(seed), "small", "5" * 64, 3, 0.0, 1.0)
version, made = open_registry(Path(home)).register_once(Path(folder), card)
print(version.version, made)
"""
HOST = "127.0.0.1"
STARTED_S = 300.0  # on a busy machine
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@dataclass
class Shared:
    """A registry and the environment by which its clients find it."""

    uri: str
    environ: Mapping[str, str]


def registering(home: Path, folder: Path, stop: str = "", seed: int = 9) -> subprocess.Popen[str]:
    """A process that registers a folder, killed where it calls a method of MLflow's client."""
    command = [sys.executable, "-c", REGISTER, str(home), str(folder), stop, str(seed)]
    return subprocess.Popen(command, stdout=-1, stderr=-1, text=True)


@contextmanager
def one_alias_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Interrupts whoever points a second alias."""
    from mlflow import MlflowClient

    set_alias, moved = MlflowClient.set_registered_model_alias, []

    def one_and_no_more(self, name, alias, version):
        if moved:
            raise KeyboardInterrupt
        moved.append(name)
        set_alias(self, name, alias, version)

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "set_registered_model_alias", one_and_no_more)
        with pytest.raises(KeyboardInterrupt):
            yield


def free_port() -> int:
    with socket.socket() as server:
        server.bind((HOST, 0))
        return int(server.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTED_S
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as client:
            client.settimeout(1.0)
            if client.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens on {port}")


@contextmanager
def ended(process: subprocess.Popen[bytes], how: int = signal.SIGTERM) -> Iterator[None]:
    """A server that leads a process group of its own, ended with all in it."""
    try:
        yield
    finally:
        os.killpg(process.pid, how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


@contextmanager
def mlflow_server(room: Path, port: int = 0, how: int = signal.SIGTERM) -> Iterator[Shared]:
    """`mlflow server` that serves artifacts, ended by a signal; one worker starts fastest."""
    port = port or free_port()
    options = [
        *("--host", HOST, "--port", str(port), "--workers", "1", "--serve-artifacts"),
        *("--backend-store-uri", f"sqlite:///{room}/server.db", "--artifacts-destination", str(room / "artifacts")),
    ]
    with open(room / "log", "ab") as log:
        # Without the processes that run jobs, which nobody asks for here.
        quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *options],
            stdout=log,
            stderr=log,
            cwd=room,
            env={**os.environ, **quiet},
            start_new_session=True,
        )
    with ended(process, how):
        wait_for(port, process)
        uri = f"http://{HOST}:{port}"
        yield Shared(uri, {"MLFLOW_TRACKING_URI": uri})


@contextmanager
def postgres() -> Iterator[Shared]:
    """A cluster of an unprivileged user, with one database that asks for a password."""
    with tempfile.TemporaryDirectory(prefix="jobcast-postgres-", ignore_cleanup_errors=True) as room:
        yield from _postgres(Path(room))


def _postgres(room: Path) -> Iterator[Shared]:
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    pytest.importorskip("psycopg", reason="no driver: pip install 'jobcast[postgres]'")
    port, data, owner = free_port(), room / "data", _owner(room)
    (room / "password").write_text("secret")
    made = [PROGRAMS[-1] / "initdb", "-D", data, "-U", "me", "-A", "scram-sha-256", "--pwfile", room / "password"]
    subprocess.run([*map(str, made), "-N"], check=True, capture_output=True, **owner)
    command = [PROGRAMS[-1] / "postgres", "-D", data, "-p", str(port), "-k", room, "-F", "-h", HOST]
    with open(room / "log", "wb") as log:
        process = subprocess.Popen([*map(str, command)], stdout=log, stderr=log, start_new_session=True, **owner)
    with ended(process, signal.SIGINT):
        wait_for(port, process)
        uri = f"postgresql://me:secret@{HOST}:{port}/postgres"
        yield Shared(uri, {"JOBCAST_REGISTRY": uri, "JOBCAST_ARTIFACTS": str(room / "artifacts")})


def _owner(room: Path) -> dict[str, object]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    shutil.chown(room, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
