"""Commands typed into jobcast in this process, and what every one of them must keep to, whatever it is given.

A command ends well or is the user's mistake: exit code 0 or 2, never 1, never a traceback; a mistake is told in one
line of bounded length without control characters; an output is whole or absent, and nothing else is left lying about;
JSON holds no NaN. A failing test names its kind and seed: `input_of(folder, KIND,
SEED)` of its module makes the same bytes and words again.
"""

import io
import json
import shutil
import signal
import unicodedata
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from jobcast.pipelines.cli.main import main

LONGEST_LINE = 4_100
CPU_S = 60
"""A command that takes longer hangs; the inputs are of a few jobs."""
FIGURES, JOBS = "figures.json", "log.csv"


class Hung(BaseException):
    """A command did not come back."""


@dataclass(frozen=True)
class Answer:
    """What a command left in the terminal; `crash` is what it should have caught."""

    code: int | None
    out: str
    err: str
    crash: BaseException | None = None


def typed(words) -> Answer:
    """Type a command."""
    out, err = io.StringIO(), io.StringIO()
    code, crash = None, None
    with redirect_stdout(out), redirect_stderr(err), _limited():
        try:
            main([str(word) for word in words])
        except SystemExit as left:
            code = left.code
        except BaseException as error:
            crash = error
    return Answer(code, out.getvalue(), err.getvalue(), crash)


@contextmanager
def _limited():
    """CPU time is limited, so that a command that hangs is told from a busy machine."""

    def stop(number, frame):
        raise Hung(f"more than {CPU_S} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def fault_of(answer: Answer, out: Path) -> str | None:
    """What a command did that none may do, with the folder that it wrote its outputs to; None where nothing."""
    if isinstance(answer.crash, KeyboardInterrupt):
        raise answer.crash
    if answer.crash is not None:
        return f"{type(answer.crash).__name__}: {str(answer.crash)[:300]}"
    if answer.code not in (0, 2):
        return f"code {answer.code}: {answer.err[-500:]}"
    if "Traceback" in answer.err or answer.err.startswith("jobcast: unexpected"):
        return f"told as our own fault: {answer.err[-500:]}"
    if answer.code == 2:
        return _fault_of_refusal(answer, out)
    return _fault_of_files(answer, out)


def _fault_of_refusal(answer: Answer, out: Path) -> str | None:
    line = answer.err
    if not (line.startswith("jobcast: ") and line.endswith("\n") and line.count("\n") == 1):
        return f"not one line: {line[:500]!r}"
    if len(line) > LONGEST_LINE:
        return f"a line of {len(line):,} characters: {line[:200]!r}"
    if strange := [char for char in line[:-1] if unicodedata.category(char) == "Cc"]:
        return f"control characters {strange[:5]} in {line[:300]!r}"
    left = sorted(path.name for path in out.iterdir())
    return f"left behind by a refusal: {left}" if left or answer.out else None


def _fault_of_files(answer: Answer, out: Path) -> str | None:
    for path in sorted(out.rglob("*")):
        if path.name.startswith(".") or path.suffix in (".tmp", ".part"):
            return f"left lying about: {path.name}"
        if path.suffix == ".json":
            try:
                json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
            except ValueError as error:
                return f"{path.name}: {error}"
        if path.suffix == ".parquet":
            pl.read_parquet(path)
        if path.suffix == ".csv" and not path.read_bytes().endswith(b"\n"):
            return f"{path.name}: half written"
    return None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} in JSON")


def check_inputs(folder: Path, input_of, kind: str, seeds: range) -> None:
    """Damage the file of each input, if there is one, type its words, look; some are refused."""
    out, outcomes = folder / "out", set()
    for seed in seeds:
        data, name, words = input_of(folder, kind, seed)
        if name:
            (folder / name).write_bytes(data)
        emptied(out)
        answer = typed(words)
        fault = fault_of(answer, out)
        assert fault is None, f"kind {kind!r}, seed {seed}: {fault}\n{' '.join(words)}\n{data[:200]!r}"
        assert not Path("owned").exists(), f"kind {kind!r}, seed {seed}: a file ran code"
        outcomes.add(answer.code)
        if name:
            (folder / name).unlink()
    # What is done to a file may spoil it always; of settings some are sound.
    assert 2 in outcomes
    assert name or outcomes == {0, 2}


def emptied(out: Path) -> Path:
    """The folder of outputs, without any."""
    out.mkdir(exist_ok=True)
    for path in out.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return out
