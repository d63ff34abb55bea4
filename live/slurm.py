"""A running Slurm: what it tells, and the three things that are done to it. Commands, never a shell.

slurm.schedmd.com: squeue, sacct, sacctmgr, scontrol. Every call has a time limit; nothing is kept here.
"""

import math
import os
import re
import secrets
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jobcast.domain.errors import ClusterError, NoJobsError, TraceError
from jobcast.traces.files import FileBytes
from jobcast.traces.owners import scratch_room
from jobcast.traces.readers.sacct import SacctReader
from jobcast.traces.readers.sacct_jobs import STAND_IN
from jobcast.traces.readers.sacct_pools import parse_tres
from jobcast.traces.readers.slurm_queue import GPU_TYPE, QueuedJob, named, queued_jobs
from jobcast.traces.table import Trace

TIMEOUT_S = 20.0
"""Of one command; Slurm's own message timeout is 10 s."""
MOST_TOLD = 300
"""Characters of what a command says that are passed on."""
HISTORY = "JobID,User,Account,Partition,QOS,JobName,State,Submit,Start,End,ElapsedRaw,AllocTRES,ReqTRES,Timelimit"
QOS = "name,grptres,preempt,priority,description"
DOWN = ("DOWN", "DRAIN", "FAIL", "INVAL", "MAINT", "NOT_RESPONDING", "RESERVED", "UNKNOWN")
"""Words in states of nodes, or in flags of them, on which nothing starts, or only what a reservation is for."""
PREEMPTS_BY_QOS = re.compile(rb"^PreemptType\s*=\s*preempt/qos\s*$", re.MULTILINE)
LINE_BREAK = re.compile(rb"\r?\n")
FIELD = re.compile(r"(?:^|\s)(NodeName|State|CfgTRES|AllocTRES|Gres|Partitions|ActiveFeatures)=(\S*)")


@dataclass(frozen=True, slots=True)
class Qos:
    """A quality of service.

    Attributes
    ----------
    gpus : that its jobs may hold together, None without a limit
    preempts : names of those whose jobs it may stop
    priority : what it adds to that of its jobs, before Slurm weighs it
    told : its description
    """

    gpus: int | None
    preempts: tuple[str, ...] = ()
    priority: int = 0
    told: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """GPUs of a node: in all, and how many jobs hold; `up` where jobs may start on it.

    `names`: its partitions, features and types of GPUs, see `QueuedJob.asks`; empty where nobody told.
    """

    gpus: int
    held: int
    up: bool
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a Slurm told, all of it at about one instant.

    Attributes
    ----------
    at_s : before the first question was asked, seconds from the epoch
    jobs : that its controller knows, ended ones too for a while
    qos, nodes : by name
    """

    at_s: float
    jobs: Sequence[QueuedJob]
    qos: Mapping[str, Qos]
    nodes: Mapping[str, Node]

    @property
    def gpus(self) -> int:
        """GPUs of nodes that are up, and those that jobs hold on others."""
        return sum(node.gpus if node.up else node.held for node in self.nodes.values())


class Slurm:
    """The Slurm that `SLURM_CONF` (or Slurm's own default) names. All methods raise ClusterError where it fails.

    Parameters
    ----------
    timeout_s : of each command
    """

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s

    def look(self, now_s: float) -> Snapshot:
        """The cluster as it is."""
        return Snapshot(now_s, self.queue(), self.qos(), self.nodes())

    def queue(self) -> list[QueuedJob]:
        """Jobs that the controller knows."""
        try:
            return queued_jobs(self._queue_document())
        except TraceError as error:
            raise ClusterError(str(error)) from error

    def _queue_document(self) -> FileBytes:
        # Else Slurm cuts off which tasks of an array wait after 64 characters.
        return FileBytes("squeue --json", self._run("squeue", "--json", SLURM_BITSTR_LEN="0"))

    def qos(self) -> dict[str, Qos]:
        """Limits as the accounting has them."""
        text = self._run("sacctmgr", "-nP", "show", "qos", f"format={QOS}").decode(errors="replace")
        # The description comes last: it may hold bars.
        rows = [line.split("|", 4) for line in text.splitlines() if line.count("|") >= 4]
        return {name: _qos(*rest) for name, *rest in rows}

    def nodes(self) -> dict[str, Node]:
        """GPUs of all nodes that have any."""
        text = self._run("scontrol", "-o", "show", "node").decode(errors="replace")
        # The first of each: what administrators write of a node comes last, and may look like another.
        found = [dict(reversed(FIELD.findall(line))) for line in text.splitlines()]
        nodes = {row["NodeName"]: node_of(row) for row in found if "NodeName" in row}
        return {name: node for name, node in nodes.items() if node.gpus}

    def history(self, from_s: float, pool_by: str) -> Trace | None:
        """Jobs that the accounting has since an instant; None where it has none that hold GPUs."""
        # Seconds from the epoch: a wall clock says one hour twice when summer time ends.
        since = f"--starttime=uts{int(from_s)}"
        mark = secrets.token_hex(8)
        asked = ("--parsable2", f"--delimiter={mark}", "--allusers", since, f"--format={HISTORY}")
        data = self._run("sacct", *asked, SLURM_TIME_FORMAT="%s")
        return history_of(with_bars(data, mark.encode()), pool_by)

    def limit(self, qos: str, gpus: int | None, told: str) -> None:
        """Set at once GPUs that jobs of a QOS may hold together, None for no limit, and its description."""
        self._set(qos, f"GrpTRES=gres/gpu={-1 if gpus is None else gpus}", told)

    def preempts(self, qos: str, others: Iterable[str], told: str) -> None:
        """Set at once whose jobs a QOS may stop, and its description."""
        self._set(qos, f"Preempt={','.join(others)}", told)

    def _set(self, qos: str, value: str, told: str) -> None:
        self._run("sacctmgr", "-i", "modify", "qos", qos, "set", value, f"Description={told}")

    def stops_by_qos(self) -> bool:
        """Whether a QOS may stop jobs of those that its `Preempt` names; Slurm's own default is that none may."""
        return PREEMPTS_BY_QOS.search(self._run("scontrol", "show", "config")) is not None

    def move(self, job_id: str, qos: str, mark: str, limit_s: float | None = None) -> None:
        """Put a job into a QOS, with a mark in its administrators' comment and, where told, a time limit.

        `limit_s` : seconds, infinite for none at all; Slurm counts minutes
        """
        limit = "UNLIMITED" if limit_s == math.inf else max(1, math.ceil((limit_s or 0.0) / 60.0))
        minutes = [] if limit_s is None else [f"TimeLimit={limit}"]
        self._run("scontrol", "update", f"jobid={job_id}", f"qos={qos}", f"admincomment={mark}", *minutes)

    def _run(self, *command: str, **environment: str) -> bytes:
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=self._timeout_s, check=False, env={**os.environ, **environment}
            )
        except FileNotFoundError:
            raise ClusterError(
                f"{command[0]}: not found; run this on a machine with Slurm's commands, or add them to PATH"
            ) from None
        except subprocess.TimeoutExpired:
            raise ClusterError(f"{command[0]}: no answer within {self._timeout_s:g} s") from None
        except OSError as error:
            raise ClusterError(f"{command[0]}: cannot be run ({error.strerror})") from error
        if done.returncode:
            words = " ".join((done.stderr or done.stdout).decode(errors="replace").split())[:MOST_TOLD]
            raise ClusterError(f"{' '.join(command[:3])}: Slurm says: {words or f'exit code {done.returncode}'}")
        return done.stdout


def with_bars(data: bytes, mark: bytes) -> bytes:
    """A table of sacct that separates fields by `mark`, as one that does so by "|" and where each row is a line.

    Slurm writes names of jobs as they are: with separators, line breaks, even whole rows of other jobs in them. A mark
    that nobody could know when naming a job tells where fields end.

    >>> with_bars(b"JobID<>JobName<>State\\n7<>a|b\\n8|c|FAILED<>RUNNING\\n", b"<>")
    b'JobID|JobName|State\\n7|a|b 8|c|FAILED|RUNNING\\n'
    """
    a_row = data.partition(b"\n")[0].count(mark)
    if not a_row:  # no table: what reads it says so
        return data
    # "\ufffd" stands for what is no UTF-8; the reader's own stand-in must not be there
    fields = data.decode(errors="replace").replace(STAND_IN, " ").encode().split(mark)
    # the last field of a row, a line break and the first one of the next are one piece
    return b"|".join(
        piece if number % a_row == 0 else LINE_BREAK.sub(b" ", piece) for number, piece in enumerate(fields)
    )


def history_of(data: bytes, pool_by: str) -> Trace | None:
    """Jobs of what sacct, or slurmdbd by REST, tells; None where none ran. Raises ClusterError."""
    with scratch_room("sacct") as room:
        table = room / "sacct.txt"
        table.write_bytes(data)
        try:
            return SacctReader().read([table]).trace.pooled_by(pool_by)
        except NoJobsError:  # a new cluster, or one on which all were cancelled while they waited
            return None
        except TraceError as error:
            raise ClusterError(str(error).replace(str(table), "sacct")) from error


def _qos(tres: str, others: str, priority: str, told: str) -> Qos:
    rank = int(priority) if priority.isdecimal() else 0
    return Qos(parse_tres(tres).gpus, tuple(filter(None, others.split(","))), rank, told)


def node_of(row: Mapping[str, str]) -> Node:
    """A node from what scontrol writes: State, CfgTRES, AllocTRES, Gres, Partitions, ActiveFeatures."""
    # A node that Slurm has powered down to save energy comes up for the job that starts on it.
    state = row.get("State", "UNKNOWN").upper().replace("POWERED_DOWN", "")
    gpus, held = (parse_tres(row.get(key, "")).gpus or 0 for key in ("CfgTRES", "AllocTRES"))
    types = GPU_TYPE.findall(f"{row.get('Gres', '')},{row.get('CfgTRES', '')}")
    texts = (row.get(key, "").replace("(null)", "") for key in ("Partitions", "ActiveFeatures"))
    partitions, features = (text.split(",") for text in texts)
    names = [*named("gpu", types), *named("partition", partitions), *named("feature", features)]
    up = not any(word in state for word in DOWN) and "*" not in state
    return Node(gpus, held, up, frozenset(names if partitions != [""] else ()))
