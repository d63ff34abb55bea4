"""Compiling is told of once, only where it happens, and no clock of progress runs meanwhile."""

import os
import subprocess
import sys

from jobcast.pipelines.report import compiling

KERNEL = """
import numba

@numba.njit(cache=True)
def inner(x):
    return x + 1

@numba.njit(cache=True)
def outer(x):
    return inner(x) + inner(2 * x)
"""
ASK = """
import sys
from jobcast.pipelines.report import compiling
compiling.LASTS_S = 0.01
compiling.tell_compiling(lambda text: print(text))
assert "numba" not in sys.modules
import kernel
print(kernel.outer(1), kernel.outer(1.5), compiling.COMPILING.spent_s > 0)
"""


def printed(script, folder, times):
    """Lines that each of some runs prints, which share a cache and complain of nothing."""
    (folder / "kernel.py").write_text(KERNEL)
    where = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    runs = [
        subprocess.run([sys.executable, "-c", script], cwd=folder, env=where, capture_output=True, text=True)
        for _ in range(times)
    ]
    assert {run.stderr for run in runs} == {""}
    return [run.stdout.splitlines() for run in runs]


def test_the_first_run_of_a_compiled_part_is_told_and_later_ones_are_not(tmp_path):
    """Of four functions that are compiled, one line; what the second run finds in numba's cache is none."""
    assert printed(ASK, tmp_path, 2) == [[compiling.NOTICE, "5 6.5 True"], ["5 6.5 False"]]


WORKERS = """
from joblib import delayed
from jobcast.pipelines.experiments.executors import results
from jobcast.pipelines.report import compiling

compiling.tell_compiling(lambda text: print(text, flush=True))


def asked(x):
    import time
    import kernel
    from jobcast.pipelines.report import compiling
    compiling.LASTS_S = 0.01
    time.sleep(0.5)  # both workers have one
    return kernel.outer(x)


print(sorted(results([delayed(asked)(x) for x in (1, 1)], jobs=2, engine_name="local")))
"""


def test_compiling_in_workers_is_told_once_by_who_has_begun_them(tmp_path):
    """Both workers compile; one line, by the process that a person has asked."""
    assert printed(WORKERS, tmp_path, 1) == [[compiling.NOTICE, "[5, 5]"]]


def test_the_clock_of_progress_stands_still_while_something_is_compiled(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(compiling.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(compiling, "COMPILING", compiling.Compiling())
    begun = compiling.working_s()
    now[0] += 3.0
    compiling.COMPILING.begin()
    compiling.COMPILING.begin()  # a function that the first one calls
    now[0] += 20.0
    assert compiling.working_s() == begun + 3.0
    compiling.COMPILING.end()
    compiling.COMPILING.end()
    now[0] += 2.0
    assert compiling.working_s() == begun + 5.0
