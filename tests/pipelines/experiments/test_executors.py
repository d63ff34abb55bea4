import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from joblib import delayed

from jobcast.pipelines.experiments.executors import results
from jobcast.traces.generators import generate
from jobcast.traces.pools import write_pools
from jobcast.traces.table_files import write_trace


def slept(seconds):
    time.sleep(seconds)
    return seconds


def test_whoever_stops_asking_for_results_is_not_warned_of_those_that_are_left():
    """Some are done and not asked for, some still run: joblib has a warning of each."""
    done = results([delayed(slept)(0.01 * (i % 2)) for i in range(12)], jobs=2, engine_name="local")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        next(done)
        time.sleep(0.2)
        done.close()
    assert [str(warning.message) for warning in heard] == []


PARENT = """
import os
import time
from joblib import delayed
from jobcast.pipelines.experiments.executors import results

def large():
    time.sleep(0.05)  # on a busy machine one worker is there long before the other
    return os.getpid(), b"x" * 1_000_000  # more than a pipe holds

pids = set()
done = results([delayed(large)() for _ in range(1000)], jobs=2, engine_name="local")
while len(pids) < 2:
    pids.add(next(done)[0])
print(*pids, flush=True)
input()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes end in another way there")
def test_workers_end_with_a_parent_that_is_killed():
    """They stand with results that nobody takes, and are deaf to what a terminal sends."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(pids) == 2
    until = time.monotonic() + 60.0
    while (left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]) and time.monotonic() < until:
        time.sleep(0.1)
    assert left == []


@pytest.mark.slow
def test_a_backtest_on_ray_gives_what_local_processes_give(tmp_path):
    """Ray begins a cluster of its own on this machine; tables are the same, byte for byte."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'jobcast[ray]'")
    trace, pools = generate("sia", 3, {"days": "1", "queues": "3"})
    write_trace(trace, tmp_path / "trace.parquet")
    write_pools(pools, tmp_path / "pools.csv")
    for name in ("local", "ray"):
        words = ["backtest", "--trace", tmp_path / "trace.parquet", "--pools", tmp_path / "pools.csv", "--jobs", "2"]
        words += ["--policies", "fcfs,mmfs,hived", "--forecasts", "oracle", "--engine", name, "--out", tmp_path / name]
        done = subprocess.run([sys.executable, "-m", "jobcast", *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    files = sorted(path.name for path in (tmp_path / "local").rglob("*") if path.suffix in {".csv", ".parquet"})
    assert files
    for name in files:
        assert (tmp_path / "local" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes(), name
