"""What policies are worth on workloads whose figures are known."""

import os
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import pytest

from jobcast.domain.jobs import Outcome
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle, Random
from jobcast.simulator.metrics import against
from jobcast.simulator.workload import Workload, pools_only
from jobcast.traces.generators import generate
from jobcast.traces.pools import read_pools
from jobcast.traces.readers import read_trace

FROM_S, UNTIL_S = (datetime(2017, 11, day, tzinfo=UTC).timestamp() for day in (6, 27))


def workload_of(trace, pools):
    jobs, durations_s = trace.to_jobs()
    return Workload(jobs, [Outcome(float(duration_s)) for duration_s in durations_s], pools)


def gains(workload, base, policy, source=None):
    source = source or Oracle(workload)
    return against(replay(workload, make_policy(policy, source, {}), source), base)


def test_the_synthetic_workload_of_sia():
    """SIA, figure 5 and appendix A.1: sharing speeds jobs up, and anticipation alone slows none of them."""
    found = {policy: [] for policy in ("gssf", "mmfs", "ssf", "sia", "sia_vc")}
    for seed in range(10):
        workload = workload_of(*generate("sia", seed, {}))
        base = replay(workload, make_policy("fcfs", None, {}))
        for policy, figures in found.items():
            figures.append(gains(workload, base, policy))
    speedup = {policy: median(f["speedup_gmean"] for f in figures) for policy, figures in found.items()}
    slowed = {policy: median(f["slowed_pct"] for f in figures) for policy, figures in found.items()}
    assert speedup["gssf"] > speedup["mmfs"] > speedup["ssf"] > speedup["sia"] > 1.8
    assert 4 < speedup["gssf"] < 6
    assert 2.5 < speedup["ssf"] < 4.5
    assert slowed["ssf"] > 2 * max(slowed["gssf"], slowed["mmfs"]) > 0
    assert speedup["gssf"] > speedup["sia_vc"] > speedup["ssf"]
    assert 4 < speedup["sia_vc"] < 6
    for anticipating in ("sia", "sia_vc"):
        assert max(f["slowed_pct"] for f in found[anticipating]) == 0


@pytest.mark.slow
def test_three_weeks_of_philly():
    data = os.environ.get("JOBCAST_DATA")
    if not data:
        pytest.skip("JOBCAST_DATA is not set: this test replays philly/philly_jobs.csv")
    folder = Path(data) / "philly"
    trace = read_trace(folder / "philly_jobs.csv")
    pools = read_pools(folder / "pools_nov06_nov26.csv").at(FROM_S)
    workload, _ = pools_only(workload_of(trace.between(FROM_S, UNTIL_S), pools))
    earlier, _ = trace.between(None, FROM_S).to_jobs()
    base = replay(workload, make_policy("fcfs", None, {}))
    mmfs, sia = gains(workload, base, "mmfs"), gains(workload, base, "sia")
    assert (mmfs["speedup_gmean"], mmfs["slowed_pct"]) == (pytest.approx(13.9, abs=0.05), pytest.approx(11.7, abs=0.05))
    assert (sia["speedup_gmean"], sia["slowed_pct"]) == (pytest.approx(22.6, abs=0.05), 0)
    drawn = gains(workload, base, "sia", Random(workload, 0, earlier))
    assert 5 < drawn["speedup_gmean"] < 9
    assert 2 < drawn["slowed_pct"] < 5
