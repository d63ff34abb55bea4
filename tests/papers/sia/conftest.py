"""A made-up Philly, and runs that nobody made."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest

from papers.results import Done

POOLS = {"a": (100, 24192.0, 1), "b": (100, 60480.0, 2), "c": (100, 12096.0, 1), "few": (99, 3600.0, 1)}
"""(jobs, duration in s, GPUs): over a fortnight 2, 10 and 1 GPUs in the mean, and a pool with too few jobs."""
PLAIN = {
    "speedup_gmean": 2.0, "speedup_mean": 8.0, "jct_ratio": 2.0, "speedup_p5": 1.0, "speedup_p90": 5.0,
    "speedup_p95": 9.0, "speedup_p99": 80.0, "slowed_pct": 0.0, "slowdown_total_min": 0.0, "slowdown_max_min": 0.0,
    "mean_wait_s": 600.0, "cpu_s": 1.0, "preemptions": 0.0, "milp_gap": 0.05, "milp_solve_s": 20.0,
}  # fmt: skip
"""Figures of a run that has all there are."""


def rows_of(name, count, duration_s, gpus, begin=datetime(2017, 11, 6), days=14):
    step = timedelta(days=days) / count
    return [f"{begin + i * step:%Y-%m-%d %H:%M:%S},{duration_s},{gpus},{name}" for i in range(count)]


@pytest.fixture(scope="session")
def philly(tmp_path_factory):
    """A folder of traces with four pools, written as Philly's flat file; `c` has one job of eight GPUs besides.

    Pool `a` has five jobs of three GPUs before the window, pool `few` its hundredth job after the fortnight.
    """
    folder = tmp_path_factory.mktemp("traces")
    lines = [line for name, pool in POOLS.items() for line in rows_of(name, *pool)]
    lines += rows_of("a", 5, 60.0, 3, datetime(2017, 10, 2)) + rows_of("few", 1, 3600.0, 1, datetime(2017, 11, 21))
    lines.remove(rows_of("c", *POOLS["c"])[7])
    lines.append("2017-11-07 12:00:00,1512.0,8,c")  # 12096 GPU-seconds as the others'
    (folder / "philly").mkdir()
    head = "timestamp,duration,num_gpus,cluster\n"
    (folder / "philly" / "philly_jobs.csv").write_text(head + "".join(f"{line}\n" for line in sorted(lines)))
    return folder


def made_up(told):
    """A bench whose runs are not made: `told(case, title, seed)` gives the figures that differ from `PLAIN`."""

    def run(workloads, rows, seeds):
        return [
            Done(one.name, row.title, PLAIN | told(one.name, row.title, seed), seed)
            for one in workloads
            for seed in seeds
            for row in rows
        ]

    return SimpleNamespace(run=run, seeds=2, draws=20, fewer=2, data=None, home=None, jobs=1)


def verdicts(page):
    """Claim -> (paper, here, verdict) of the last table of a page."""
    table = page.split("## Against the paper\n\n")[1].strip().splitlines()[2:]
    return {cells[0]: tuple(cells[1:]) for line in table for cells in [list(map(str.strip, line.split("|")[1:-1]))]}
