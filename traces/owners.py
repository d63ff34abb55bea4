"""Who makes a temporary file: a process, told in the file's name, so that what a dead one left can be swept.

A process is known by its number and the time it started, since numbers are used again; and by its machine, since a
folder may be shared between machines (or containers), which cannot see each other's processes.
"""

import hashlib
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FORGOTTEN_S = 7 * 86400.0
"""What no process of this machine owns is left over once nothing in it has changed for so long."""
OWNER = r"(?P<pid>\d+)-(?P<start>\d+)-(?P<machine>[0-9a-f]{8})"
DRAFT = re.compile(rf"\.(?P<name>.+)\.{OWNER}\.\w+", re.ASCII)
SCRATCH = re.compile(rf"jobcast-{OWNER}-.+", re.ASCII)
GONE, UNTOLD = "gone", "0"  # in place of a process's start


@dataclass(frozen=True, slots=True)
class Owner:
    """A process.

    Attributes
    ----------
    pid : its number
    start : when it started, in the system's own unit; `0` where the system does not tell
    machine : hash of the machine's name and of the process's namespace
    """

    pid: int
    start: str
    machine: str

    def __str__(self) -> str:
        return f"{self.pid}-{self.start}-{self.machine}"

    @classmethod
    def here(cls) -> "Owner":
        """This process."""
        return cls(os.getpid(), _start_of(os.getpid()), _machine())

    @classmethod
    def parse(cls, text: str) -> "Owner | None":
        """The owner that a text names; None where it names none.

        >>> Owner.parse("812-99-0a1b2c3d")
        Owner(pid=812, start='99', machine='0a1b2c3d')
        >>> Owner.parse("somebody") is None
        True
        """
        found = re.fullmatch(OWNER, text, re.ASCII)
        return _owner(found) if found else None

    @property
    def is_local(self) -> bool:
        """Whether this machine can tell if the process lives."""
        return self.machine == _machine()

    @property
    def lives(self) -> bool:
        """Whether a local process still runs. What cannot be told counts as living."""
        try:
            # signal 0 only asks whether the process is there
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            pass  # it is another user's
        # a number is given anew some day: the start tells whether it is the same process
        return _start_of(self.pid) in (self.start, UNTOLD)


def is_left_over(owner: Owner | None, changed_s: float) -> bool:
    """Whether nobody will come back for something: its process is dead, or cannot be known and is long silent.

    Parameters
    ----------
    owner : None = nobody said who it was
    changed_s : of the last change, seconds from the epoch
    """
    if owner is not None and owner.is_local:
        return not owner.lives
    # of another machine nothing can be asked, so only long silence counts
    return time.time() - changed_s > FORGOTTEN_S


@contextmanager
def draft_room(target: Path) -> Iterator[Path]:
    """A folder beside `target` for what is to take its place; removed at the end."""
    # beside the target: a rename works within one file system only
    room = Path(tempfile.mkdtemp(prefix=f".{target.name}.{Owner.here()}.", dir=target.parent))
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


@contextmanager
def scratch_room(kind: str) -> Iterator[Path]:
    """A folder among the system's temporary ones, named after what it is for; removed at the end."""
    with tempfile.TemporaryDirectory(prefix=f"jobcast-{Owner.here()}-{kind}-") as room:
        yield Path(room)


def sweep_drafts(folder: Path, name: str | None = None) -> int:
    """Remove drafts in a folder (those of one target, by its name) that dead processes left; how many there were."""
    return _sweep(folder, DRAFT, name)


def sweep_drafts_below(root: Path) -> int:
    """Remove drafts that dead processes left anywhere below a folder; how many there were."""
    return sum(sweep_drafts(Path(folder)) for folder, _, _ in os.walk(root))


def sweep_scratch() -> int:
    """Remove temporary folders that dead processes left; how many there were."""
    return _sweep(Path(tempfile.gettempdir()), SCRATCH)


def _sweep(folder: Path, form: re.Pattern[str], name: str | None = None) -> int:
    """What cannot be removed, another user's for instance, stays and is not counted."""
    swept = 0
    for place, found in _named(folder, form):
        # drafts of other targets may be at work right now
        wanted = name is None or found["name"] == name
        if wanted and is_left_over(_owner(found), _last_change_s(place)):
            shutil.rmtree(place, ignore_errors=True)
            swept += not place.exists()
    return swept


def _named(folder: Path, form: re.Pattern[str]) -> list[tuple[Path, re.Match[str]]]:
    try:
        names = os.listdir(folder)
    except OSError:  # it is gone, or not ours to read: nothing there is ours to sweep
        return []
    return [(folder / name, found) for name in sorted(names) if (found := form.fullmatch(name))]


def _last_change_s(place: Path) -> float:
    """Of a folder and all in it; now where it vanishes meanwhile."""
    try:
        return max(path.lstat().st_mtime for path in (place, *place.rglob("*")))
    except OSError:
        return time.time()


def _owner(found: re.Match[str]) -> Owner:
    return Owner(int(found["pid"]), found["start"], found["machine"])


def _start_of(pid: int) -> str:
    """When a process started, in clock ticks from the machine's start."""
    try:
        result = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no such table on this system, or another user's processes are hidden in it
        return UNTOLD
    state, *fields = result.rpartition(")")[2].split()  # the name before it may hold anything
    return GONE if state in "ZX" else fields[18]


@cache
def _machine() -> str:
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return hashlib.sha256(f"{socket.gethostname()} {namespace}".encode()).hexdigest()[:8]
