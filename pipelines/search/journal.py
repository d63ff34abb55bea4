"""What a search has simulated already, kept on disk as it goes: JSON lines that an interruption cannot spoil."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobcast.domain.errors import ConfigError
from jobcast.traces.files import reason

SUFFIX = ".journal.jsonl"


def journal_beside(out: Path) -> Path:
    """Where the journal of a front lies.

    >>> journal_beside(Path("found/front.parquet")).as_posix()
    'found/front.journal.jsonl'
    """
    return out.with_name(out.stem + SUFFIX)


class Journal:
    """Values by simulation, of one run among those in a file.

    A line holds `run` (hash of the workload, the settings and the seed), `what` (the configuration's hash and the
    sample) and `values`. Lines of other runs, and a last line that was cut off, are left alone.

    Parameters
    ----------
    path : the file, which need not be there; None keeps nothing
    run : the run's hash

    Raises ConfigError when the file cannot be read or written to.
    """

    def __init__(self, path: Path | None, run: str) -> None:
        self._path, self._run = path, run
        self._known: dict[str, list[float]] = {}
        if path is not None and path.exists():
            self._read(path)
        self.resumed = len(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, what: str) -> list[float] | None:
        """Values of a simulation, None when it was not done."""
        return self._known.get(what)

    def add(self, what: str, values: Sequence[float]) -> None:
        """Note a simulation, on disk at once. Raises ConfigError when the file cannot be written to."""
        self._known[what] = list(values)
        if self._path is None:
            return
        line = json.dumps({"run": self._run, "what": what, "values": list(values)}) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as lines:
                lines.write(line)
        except OSError as error:
            raise ConfigError(f"{self._path}: cannot be written ({reason(error)}); check the folder") from error

    def _read(self, path: Path) -> None:
        try:
            text = path.read_bytes().decode("utf-8", errors="replace")
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({reason(error)}); check its permissions") from error
        for line in text.splitlines():
            told = _parsed(line)
            if told is not None and told.get("run") == self._run:
                self._known[str(told["what"])] = [float(one) for one in told["values"]]
        if text and not text.endswith("\n"):
            with path.open("a", encoding="utf-8") as lines:
                lines.write("\n")  # what an interruption cut off must not swallow the next line


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        told = json.loads(line)
    except json.JSONDecodeError:
        return None  # a line that an interruption cut off: its simulation is done again
    return told if isinstance(told, dict) and {"what", "values"} <= told.keys() else None
