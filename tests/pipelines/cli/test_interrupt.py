"""Ctrl-C or SIGTERM at any moment: one line, no half file, and a second run that ends like any other."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jobcast.models.registry import open_registry
from jobcast.pipelines.stages.plan import STAGES

LINE = "jobcast: interrupted; nothing was left half-written, the same command can be run again\n"
TERMINATED = LINE.replace("interrupted", "terminated")
PATIENCE_S = 600.0


def begun(*words: object, **how: Any) -> subprocess.Popen:
    """A command that runs by itself, in a process group of its own."""
    line = [sys.executable, "-m", "jobcast", *map(str, words)]
    return subprocess.Popen(line, stderr=subprocess.PIPE, text=True, start_new_session=True, **how)


def start(run, home: Path, out: Path, temporary: Path) -> subprocess.Popen:
    """`jobcast run` in a process group of its own, as a terminal would start it."""
    temporary.mkdir(exist_ok=True)
    where = {"JOBCAST_HOME": str(home), "TMPDIR": str(temporary)}
    return begun("run", *run.words, "--out", out, stdout=subprocess.PIPE, env={**os.environ, **where})


def interrupt(process: subprocess.Popen, at: str, after_s: float, number: int) -> str:
    """Send a signal to the group a while after the stage has begun; what was said before and after."""
    said = ""
    for line in process.stderr:
        said += line
        if line.startswith(at):
            break
    time.sleep(after_s)
    os.killpg(process.pid, number)
    rest_out, rest = process.communicate(timeout=PATIENCE_S)
    assert rest_out == ""
    return said + rest


def contents(out: Path) -> dict[str, bytes]:
    """Every file of a run that must be the same whenever it is run."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and "receipts" not in path.parts and path.name != "report.html"
    }


def hidden(folder: Path) -> list[Path]:
    """Drafts, which begin with a dot."""
    return list(folder.rglob(".*"))


@pytest.mark.slow
def test_a_run_interrupted_at_its_stages_can_be_run_again_and_ends_like_any_other(run, shell, tmp_path):
    shell.home, out, temporary = tmp_path / "home", tmp_path / "out", tmp_path / "scratch"
    sigint, sigterm = (signal.SIGINT, 130, LINE), (signal.SIGTERM, 143, TERMINATED)
    at = (("[2/10]", 0.0, sigint), ("[3/10]", 0.3, sigterm), ("[5/10]", 1.0, sigterm), ("[8/10]", 0.3, sigint))
    for stage, after_s, (number, code, line) in at:
        process = start(run, shell.home, out, temporary)
        said = interrupt(process, stage, after_s, number)
        assert process.returncode == code, said
        assert said.endswith(line)
        assert said.count("jobcast:") == 1
        assert "Traceback" not in said
        assert not [line for line in said.splitlines() if not line.strip()]
        assert hidden(out) == []
        assert list(temporary.iterdir()) == []
        assert shell.works("models", "list").err == ""
        for path in out.rglob("*.json"):
            json.loads(path.read_text())
    process = start(run, shell.home, out, temporary)
    said, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert f"report: {out / 'processed/report.html'}" in said
    assert contents(out) == contents(run.out)
    versions = [str(version) for version in open_registry(shell.home).list()]
    assert versions == ["job-duration:1", "new-load:1", "will-jobs-arrive:1"]


LONG_STAGES = {"care", "backtest", "evaluate"}


@pytest.mark.parametrize(
    ("stage", "item"),
    [
        pytest.param(stage.name, item, marks=[pytest.mark.slow] if stage.name in LONG_STAGES else [])
        for stage in STAGES
        for item in stage.items
        if item != "will-jobs-arrive"
    ],
)
def test_a_stage_interrupted_while_it_writes_leaves_the_old_files_or_the_new_ones(
    run, shell, store, tmp_path, monkeypatch, stage, item
):
    """The finished run's files stay as they were, byte for byte, whichever of them was being replaced."""
    out = tmp_path / "out"
    shutil.copytree(run.out, out)
    words = ("stage", stage, *([item] if item else []), "--out", out, "--params", run.params)
    if stage == "prepare":
        params = tmp_path / "params.yaml"
        params.write_text(run.params.read_text().replace("min_pool_jobs", f"trace: {run.trace}\n  min_pool_jobs"))
        words = (*words[:-1], params)
    replace, left = os.replace, [0]

    def interrupted(source, target):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    before = contents(out)
    earlier = {"train": 1, "backtest": 2}.get(stage, 0)  # the stage's folder and what is written in it
    for files in (earlier, earlier + 1):
        left[0] = files
        answer = shell(*words)
        assert (answer.code, answer.err[-len(LINE) :], answer.out) == (130, LINE, "")
        after = contents(out)
        assert after.keys() == before.keys()
        if stage != "prepare":
            assert after == before
        assert hidden(out) == []
        assert list((tmp_path / "temporary").iterdir()) == []
    assert len(open_registry(shell.home).list()) == 3


def test_an_interrupted_registration_leaves_the_versions_as_they_were(run, shell, store, tmp_path, monkeypatch):
    from mlflow import MlflowClient

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    words = ("train", "new-load", "--trace", run.trace, "--until", run.trained_until, "--min-jobs", 50)
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "create_logged_model", interrupted)
        answer = shell(*words, "--json", "figures.json")
    assert (answer.code, answer.err, answer.out) == (130, LINE, "")
    assert not Path("figures.json").exists()
    assert list((tmp_path / "temporary").iterdir()) == []
    (version,) = store.show("new-load").versions
    assert (version.version, version.aliases) == (1, ("challenger", "champion"))
    assert shell.json(*words)["version"] == 2


def test_an_interrupted_simulation_writes_nothing(run, shell, tmp_path, monkeypatch):
    from jobcast.schedulers.pool_rules import Fcfs

    decide, left = Fcfs.decide, [50]

    def interrupted(self, view):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return decide(self, view)

    monkeypatch.setattr(Fcfs, "decide", interrupted)
    for words in (
        ("simulate", "--policy", "fcfs", "--out", "out.csv"),
        ("backtest", "--policies", "fcfs", "--jobs", 1, "--out", "out"),
    ):
        left[0] = 50
        places = ("--trace", run.trace, "--pools", run.pools, "--json", "figures.json")
        answer = shell(*words, *places)
        assert (answer.code, answer.err, answer.out) == (130, LINE, "")
        assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


def test_a_backtest_that_is_terminated_ends_its_workers_too(run, tmp_path):
    """The signal reaches the parent alone, as from `kill PID` or docker."""
    words = ("backtest", "--trace", run.trace, "--pools", run.pools, "--policies", "fcfs,sia", "--forecasts", "random")
    more = ("--seeds", 60, "--jobs", 2, "--out", tmp_path / "out")
    process = begun(*words, *more)
    while len(members(process.pid)) < 4:  # itself, joblib's tracker and two workers
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()
    _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (143, TERMINATED)
    assert list(tmp_path.iterdir()) == []
    until = time.monotonic() + PATIENCE_S
    while members(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert members(process.pid) == []


CTRL_C = "signal.raise_signal(signal.SIGINT)"
ENDED = "os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)"
STRUCK = {
    "in a library that makes an error of it": f"""
try:
    {CTRL_C}
except KeyboardInterrupt:
    raise TypeError("expected a message argument")
""",
    "while a text is executed, as for a dataclass": f"exec({CTRL_C!r})",
    "while nothing but jobcast runs": CTRL_C,
    "in a callback of C, which lets nothing out": f"""
ctypes.CFUNCTYPE(None)(lambda: exec({CTRL_C!r}))()
time.sleep(60)
""",
    "in a library that catches everything": f"""
try:
    {ENDED}
except BaseException:
    pass
time.sleep(60)
""",
    "in a finaliser": f"""
class Last:
    def __del__(self):
        {ENDED}
one = Last()
del one
time.sleep(60)
""",
    "before a clean-up that takes long": f"""
try:
    {ENDED}
finally:
    time.sleep(3 * main.AGAIN_S)
    open("cleaned", "w").close()
""",
}


@pytest.mark.parametrize("when", STRUCK)
def test_a_signal_is_told_as_such_wherever_it_strikes_and_cuts_no_clean_up_short(tmp_path, when):
    """What comes to nothing is raised again."""
    program = f"""
import click, ctypes, os, signal, sys, time
from jobcast.pipelines.cli import main
sys.argv = ["jobcast", "run"]
main.Commands.get_command = lambda *_: click.Command("run", callback=lambda: exec({STRUCK[when]!r}, globals()))
main.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    told = (130, LINE) if CTRL_C in STRUCK[when] else (143, TERMINATED)
    assert (done.returncode, done.stderr, done.stdout) == (*told, "")
    assert (tmp_path / "cleaned").exists() == ("cleaned" in STRUCK[when])


def members(group: int) -> list[int]:
    """Living processes of a process group."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("this system has no /proc")
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = file.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it has ended meanwhile
            continue
        if state != "Z" and int(its_group) == group:
            found.append(int(file.parent.name))
    return found
