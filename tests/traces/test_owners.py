"""Whose a temporary file is, and that a sweep takes what dead processes left and nothing else."""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.traces.files import disk_trouble, replacing, unwritable
from jobcast.traces.owners import (
    FORGOTTEN_S,
    Owner,
    draft_room,
    is_left_over,
    scratch_room,
    sweep_drafts,
    sweep_drafts_below,
    sweep_scratch,
)
from tests.shared import refused

HERE = Owner.here()
REUSED = replace(HERE, start="1")  # another process had the number before
ABROAD = replace(HERE, machine="00000000")


def make(folder: Path, name: str, owner: Owner | str) -> Path:
    """A draft as a process would leave it."""
    room = folder / f".{name}.{owner}.abcd1234"
    room.mkdir(parents=True)
    (room / name).write_text("half")
    return room


def age(room: Path, seconds: float) -> None:
    then = time.time() - seconds
    for path in (*room.iterdir(), room):
        os.utime(path, (then, then))


def test_a_process_is_known_again_by_number_and_start():
    assert Owner.parse(str(HERE)) == HERE
    assert HERE.lives
    assert HERE.is_local
    assert not REUSED.lives
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    assert not replace(HERE, pid=int(ended.stdout)).lives


def test_a_killed_process_that_nobody_has_waited_for_is_dead():
    process = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(100)"], stdout=-1)
    assert process.stdout is not None
    process.stdout.readline()
    started = Path(f"/proc/{process.pid}/stat")
    if not started.exists():
        pytest.skip("this system has no /proc")
    owner = replace(HERE, pid=process.pid, start=started.read_text().rpartition(")")[2].split()[19])
    assert owner.lives
    process.kill()
    while "Z" not in started.read_text().rpartition(")")[2].split()[0]:
        time.sleep(0.01)
    assert not owner.lives
    process.wait()


@pytest.mark.parametrize(
    ("owner", "silent_s", "left"),
    [
        (HERE, 10 * FORGOTTEN_S, False),
        (REUSED, 0.0, True),
        (ABROAD, 0.5 * FORGOTTEN_S, False),
        (ABROAD, 2 * FORGOTTEN_S, True),
        (None, 0.5 * FORGOTTEN_S, False),
        (None, 2 * FORGOTTEN_S, True),
    ],
)
def test_what_is_left_over(owner, silent_s, left):
    assert is_left_over(owner, time.time() - silent_s) == left


def test_a_sweep_takes_what_dead_processes_left_and_nothing_else(tmp_path):
    dead, old = make(tmp_path, "a.json", REUSED), make(tmp_path / "deep", "b", ABROAD)
    age(old, 2 * FORGOTTEN_S)
    kept = [make(tmp_path, "a.json", HERE), make(tmp_path, "a.json", ABROAD), make(tmp_path, "mine", "no-owner")]
    age(kept[2], 2 * FORGOTTEN_S)
    assert sweep_drafts(tmp_path, "b.json") == 0
    assert sweep_drafts_below(tmp_path) == 2
    assert not dead.exists()
    assert not old.exists()
    assert all((room / "mine" if room is kept[2] else room / "a.json").exists() for room in kept)
    assert sweep_drafts(tmp_path / "nowhere") == 0


def test_a_new_attempt_at_a_file_removes_what_the_killed_one_left(tmp_path):
    dead, other = make(tmp_path, "out.json", REUSED), make(tmp_path, "other.json", REUSED)
    with replacing(tmp_path / "out.json") as draft:
        draft.write_text("{}")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "out.json", other])
    assert not dead.exists()


def test_temporary_folders_tell_whose_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "jobcast-experiments").mkdir()  # a user's own
    (tmp_path / f"jobcast-{REUSED}-model-abcd1234").mkdir()
    with scratch_room("model") as room, draft_room(tmp_path / "x") as draft:
        assert sweep_scratch() == 1
        assert sweep_drafts(tmp_path) == 0
        assert room.is_dir()
        assert draft.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["jobcast-experiments"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(28, "No space left on device"), "out: no space left on the device; free some or choose another place"),
        (OSError(122, "Disk quota exceeded"), "out: no space left on the device; free some or choose another place"),
        (RuntimeError("(sqlite3.OperationalError) database or disk is full"), "out: no space left on the device"),
        (OSError(30, "Read-only file system"), "out: cannot be written (its file system is read-only)"),
        (RuntimeError("attempt to write a readonly database"), "out: cannot be written (its file system is read-only)"),
        (PermissionError(13, "Permission denied"), "out: cannot be written (Permission denied); check the folder"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_told_in_one_line(error, line):
    assert unwritable("out", error).startswith(line)
    wrapped = ValueError("something else")
    wrapped.__cause__ = error
    assert disk_trouble(wrapped) == disk_trouble(error)


def test_a_full_disk_leaves_the_old_file(tmp_path):
    (tmp_path / "out.json").write_text("old")
    refused(ConfigError, "no space left on the device", _write_half, tmp_path / "out.json")
    assert (tmp_path / "out.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def _write_half(path):
    with replacing(path) as draft:
        draft.write_text("new, half")
        raise OSError(28, "No space left on device")
