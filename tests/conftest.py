"""What all tests share: examples are drawn anew from the same seed, and a busy machine fails none of them."""

import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before any library starts threads: they sleep while they wait

from hypothesis import settings

settings.register_profile("jobcast", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("jobcast")


def pytest_configure(config):
    """Compile what is compiled once, half in each of two processes, before workers start that would all do so."""
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        return
    house = Path(__file__).parents[1]
    rooms = [house / "src/jobcast" / room for room in ("features", "models", "simulator", "schedulers")]
    files = [file for room in rooms for file in sorted(room.resolve().rglob("*.py")) if "numba" in file.read_text()]
    names = [".".join(("jobcast", *file.relative_to(house).with_suffix("").parts)) for file in files]
    halves = [f"import {', '.join(names[start::2])}" for start in (0, 1)]
    compiling = [subprocess.Popen([sys.executable, "-c", half], cwd=house) for half in halves]
    assert [one.wait() for one in compiling] == [0, 0]
