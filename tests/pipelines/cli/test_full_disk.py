"""A disk that is full, or that may not be written to: one line, nothing half written."""

import subprocess

import pytest

from jobcast.models.registry import open_registry


@pytest.fixture
def device(tmp_path):
    """A file system of its own in memory, and a function that changes its options."""
    place = tmp_path / "device"
    place.mkdir()
    try:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", place], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if made.returncode:
        pytest.skip("mounting is not allowed here")

    def remount(option):
        subprocess.run(["mount", "-o", f"remount,{option}", place], check=True)

    yield place, remount
    subprocess.run(["umount", "-l", place], check=True)


def train(run, *more):
    return ("train", "new-load", "--algorithm", "sliding-max", "--trace", run.trace, "--min-jobs", 50, *more)


def test_a_training_without_room_is_one_line_and_works_once_there_is(run, shell, store, device):
    place, remount = device
    subprocess.run(["cp", "-a", store.home, place / "home"], check=True)
    shell.home = place / "home"
    before = [str(version) for version in open_registry(shell.home).list()]
    used_kb = int(subprocess.run(["du", "-sk", place], capture_output=True, check=True).stdout.split()[0])
    remount(f"size={used_kb + 24}k")
    answer = shell(*train(run))
    assert (answer.code, answer.out) == (2, "")
    line = answer.err.splitlines()[-1]
    assert answer.err == f"{line}\n"
    assert "no space left on the device; free some or choose another place" in line
    assert [str(version) for version in open_registry(shell.home).list()] == before
    remount("size=16m")
    assert shell.json(*train(run))["version"] == 2


def test_a_read_only_home_can_be_read_and_refuses_what_writes(run, shell, store, device):
    place, remount = device
    subprocess.run(["cp", "-a", store.home, place / "home"], check=True)
    shell.home = place / "home"
    remount("ro")
    try:
        assert "new-load" in shell.works("models", "list").out
        for words in (train(run), ("models", "promote", "new-load:1"), ("models", "rollback", "new-load")):
            line = shell.refuses(*words)
            assert "read-only" in line.lower()
    finally:
        remount("rw")
