"""A running Slurm as slurmrestd tells it, for who reads it where Slurm's commands are not at hand.

slurm.schedmd.com/rest_api.html, version 0.0.38 (Slurm 22.05): jobs as `squeue --json` and `sacct --json` write them.
"""

import base64
import json
import socket
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jobcast.domain.errors import ClusterError, ConfigError
from jobcast.live.slurm import TIMEOUT_S, Node, Qos, Slurm, history_of, node_of
from jobcast.traces.files import FileBytes, reason
from jobcast.traces.table import Trace

VERSION = "v0.0.38"
AGREES = f"slurmctld runs, the token holds (scontrol token) and slurmrestd has {VERSION} of its API"


class SlurmRest(Slurm):
    """Asks slurmrestd; what changes the cluster is left to Slurm's commands. Methods raise ClusterError.

    Parameters
    ----------
    address : http://HOST:PORT, https://HOST:PORT or unix:PATH
    token_file : holds what `scontrol token` prints; read at each question, since tokens end. None: no token is sent

    Raises ConfigError for an address of another form.
    """

    def __init__(self, address: str, token_file: Path | None = None) -> None:
        super().__init__()
        parts = urlsplit(address)
        if not (parts.scheme in ("http", "https") and parts.hostname) and not (parts.scheme == "unix" and parts.path):
            raise ConfigError(f"--slurm-rest {address}: no address of slurmrestd; give http://HOST:PORT or unix:PATH")
        self._parts, self._token_file = parts, token_file

    def _queue_document(self) -> FileBytes:
        return FileBytes("slurmrestd", self._get("slurm", "jobs"))

    def qos(self) -> dict[str, Qos]:
        """Limits as the accounting has them."""
        return {row["name"]: _qos(row) for row in self._rows("slurmdb", "qos", "QOS")}

    def nodes(self) -> dict[str, Node]:
        """GPUs of all nodes that have any."""
        nodes = {row["name"]: _node(row) for row in self._rows("slurm", "nodes", "nodes")}
        return {name: node for name, node in nodes.items() if node.gpus}

    def history(self, from_s: float, pool_by: str) -> Trace | None:
        """Jobs that the accounting has since an instant; None where it has none that hold GPUs."""
        # Seconds from the epoch: slurmrestd may run in another time zone.
        data = self._get("slurmdb", f"jobs?start_time=uts{int(from_s)}")
        return history_of(data, pool_by) if _read(data).get("jobs") else None

    def _rows(self, part: str, what: str, key: str) -> list[dict[str, Any]]:
        rows = _read(self._get(part, what)).get(key)
        if not isinstance(rows, list) or not all(isinstance(row, dict) and "name" in row for row in rows):
            raise ClusterError(f"slurmrestd: {what}: holds no list of {key}; {VERSION} of its API is read")
        return rows

    def _get(self, part: str, what: str) -> bytes:
        headers, connection = self._headers(), self._connection()
        try:
            connection.request("GET", f"/{part}/{VERSION}/{what}", headers=headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, HTTPException) as error:
            raise ClusterError(f"slurmrestd: cannot be asked ({reason(error)})") from error
        finally:
            connection.close()
        if answer.status != 200:
            what = what.partition("?")[0]
            raise ClusterError(f"slurmrestd: {what}: answers with status {answer.status}; see that {AGREES}")
        return data

    def _connection(self) -> HTTPConnection:
        host = self._parts.netloc or "localhost"
        if self._parts.scheme == "unix":
            return _UnixConnection(self._parts.path)
        return (HTTPSConnection if self._parts.scheme == "https" else HTTPConnection)(host, timeout=TIMEOUT_S)

    def _headers(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        try:
            token = self._token_file.read_text().strip().removeprefix("SLURM_JWT=")
            claims = token.split(".")[1]
            user = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sun"]
        except (OSError, ValueError, LookupError, TypeError) as error:
            # The token itself is not told.
            raise ClusterError(f"{self._token_file}: holds no token of `scontrol token` ({reason(error)})") from None
        return {"X-SLURM-USER-NAME": str(user), "X-SLURM-USER-TOKEN": token}


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self._path)


def _read(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ClusterError("slurmrestd: its answer is no whole JSON document") from error
    return found if isinstance(found, dict) else {}


def _qos(row: Mapping[str, Any]) -> Qos:
    try:
        total = row["limits"]["max"]["tres"]["total"]
        gpus = [int(one["count"]) for one in total if (one["type"], one["name"]) == ("gres", "gpu")]
        preempts, told = tuple(row["preempt"]["list"]), row.get("description") or ""
        return Qos(gpus[0] if gpus else None, preempts, int(row["priority"]), str(told))
    except (LookupError, TypeError, ValueError) as error:
        raise ClusterError(f"slurmrestd: qos {row['name']}: its limits cannot be read") from error


def _node(row: Mapping[str, Any]) -> Node:
    states = [row.get("state"), *(row.get("state_flags") or ())]
    told = {"CfgTRES": "tres", "AllocTRES": "tres_used", "Gres": "gres", "ActiveFeatures": "active_features"}
    texts = {theirs: str(row.get(key) or "") for theirs, key in told.items()}
    partitions = ",".join(map(str, row.get("partitions") or ()))
    return node_of({"State": " ".join(map(str, states)), "Partitions": partitions, **texts})
