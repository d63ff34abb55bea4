"""A few of the trials of `benchmarks/crash_trials.py`: commands that are killed, terminated or run out of disk."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "crash_trials.py"


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_left_behind(tmp_path):
    probe = tmp_path / "probe"
    probe.mkdir()
    if os.name != "posix" or subprocess.run(["mount", "-t", "tmpfs", "tmpfs", probe], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    subprocess.run(["umount", "-l", probe], check=True)
    words = ("--work", tmp_path / "work", "--trials", 2, "--seed", 7, "--stages", "train", "promote", "backtest")
    done = subprocess.run([sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "trials / that hit a running command / that failed a check" in done.stdout
