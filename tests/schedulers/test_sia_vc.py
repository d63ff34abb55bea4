"""SIA_VC against Figure 6 of SIA as it is written, against `fcfs`, and by hand."""

from dataclasses import replace
from datetime import UTC, datetime
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Outcome
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.schedulers.registry import make_policy
from jobcast.schedulers.sia_vc import EMPTY, ResourceTimePlan, SiaVc, add, first_above, virtual_starts_s
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle, Random
from jobcast.simulator.metrics import against
from jobcast.simulator.workload import Workload, pools_only
from jobcast.traces.generators import generate
from jobcast.traces.pools import read_pools
from jobcast.traces.readers import read_trace
from tests.schedulers.events_driver import reference, starts, workloads


def figure_6(workload):
    """The rule with lists alone; virtual starts are taken from the log of `fcfs`."""
    virtual_s = starts(workload, lambda _: Fcfs())
    durations_s = [outcome.duration_s for outcome in workload.outcomes]
    total = sum(workload.quotas().values())
    order = sorted(workload.jobs, key=lambda job: (virtual_s[job.seq], job.seq))

    def schedulable(cluster, job, reserved):
        if job not in cluster.pending:
            return False
        end_s = cluster.now + durations_s[job.seq]
        busy = [(begin, end, run.gpus) for begin, end, run, _ in cluster.running] + reserved
        edges = {cluster.now, *(edge for begin, end, _ in busy for edge in (begin, end))}
        return all(
            sum(gpus for begin, end, gpus in busy if begin <= at < end) + job.gpus <= total
            for at in edges
            if cluster.now <= at < end_s
        )

    def rule(cluster):
        some_job_started = True
        while some_job_started:
            some_job_started = False
            reserved = []
            for job in order:
                if job.seq in cluster.start_s:
                    continue
                if schedulable(cluster, job, reserved):
                    cluster.start(job)
                    some_job_started = True
                    break
                begin_s = virtual_s[job.seq]
                reserved.append((begin_s, begin_s + durations_s[job.seq], job.gpus))

    return rule


@given(workloads(max_jobs=30))
def test_every_start_is_that_of_figure_6_on_longer_queues(workload):
    assert starts(workload, SiaVc) == reference(workload, figure_6(workload))


def test_arrivals_that_were_not_known_are_refused(workload):
    made = workload([("000", "p", 0, 1, 1), ("001", "p", 5, 1, 1)], {"p": 1})
    policy = SiaVc(Oracle(made))
    with pytest.raises(ConfigError, match=r"job 001 arrives at 420\.0+ s, which was not known before"):
        policy.lane(replace(made.jobs[1], submit_s=420.0))
    with pytest.raises(ConfigError, match=r"job 002 arrives at 300\.0+ s, which was not known before"):
        policy.lane(replace(made.jobs[1], seq=2, job_id="002"))  # beyond the last that was known


def workload_of(trace, pools):
    jobs, durations_s = trace.to_jobs()
    return Workload(jobs, [Outcome(float(duration_s)) for duration_s in durations_s], pools)


@pytest.mark.slow
def test_six_weeks_of_philly(philly):
    from_s, until_s = (datetime(2017, *day, tzinfo=UTC).timestamp() for day in ((10, 2), (11, 13)))
    trace = read_trace(philly / "philly_jobs.csv").between(from_s, until_s)
    workload, _ = pools_only(workload_of(trace, read_pools(philly / "pools_oct02_nov12.csv").at(from_s)))
    oracle = Oracle(workload)
    log, base = replay(workload, SiaVc(oracle), oracle), replay(workload, Fcfs())
    assert len(log) == 55_853
    assert (log.end_s <= base.end_s).all()
    assert log.jct_s.mean() < base.jct_s.mean() / 9


@given(workloads(max_jobs=30, durations=(1e-8, 1, 2, 3, 5, 9, 20, 40)))
def test_virtual_starts_are_those_of_fcfs(workload):
    durations_s = [outcome.duration_s for outcome in workload.outcomes]
    found = virtual_starts_s(workload.jobs, durations_s, workload.quotas())
    assert found.tolist() == starts(workload, lambda _: Fcfs())


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_the_tree_is_an_array(count, seed):
    rng = np.random.default_rng(seed)
    size = 1 << (count - 1).bit_length()
    peak, added = np.full(2 * size, EMPTY), np.zeros(2 * size, dtype=np.int64)
    add(peak, added, 0, count, -EMPTY)  # zeros where jobs are
    plain = np.zeros(count, dtype=np.int64)
    for _ in range(12):
        begin, end = sorted(rng.integers(0, count + 1, 2).tolist())
        gpus = int(rng.integers(-5, 6))
        add(peak, added, begin, end, gpus)
        plain[begin:end] += gpus
        for begin in range(count + 1):
            most = int(rng.integers(-8, 9))
            above = np.flatnonzero(plain[begin:] > most)
            assert first_above(peak, added, begin, most) == (begin + above[0] if len(above) else size)


def test_a_plan_starts_what_leaves_all_reservations_their_gpus():
    # 4 GPUs; jobs by seq: (virtual start, run time, GPUs)
    rows = [(0.0, 10.0, 2), (10.0, 5.0, 2), (15.0, 3.0, 1), (4.0, 1.0, 2)]
    begin_s, duration_s, gpus = (np.array(column) for column in zip(*rows, strict=True))
    plan = ResourceTimePlan(begin_s, duration_s, gpus, 4)
    assert plan.start(range(0, 1), 0.0, 4) == [0]
    # job 3 is to come at 4 and needs 2 GPUs then: job 1 would run into that, job 2 is over
    assert plan.start(range(1, 3), 1.0, 2) == [2]
    assert plan.start(range(3, 4), 4.0, 2) == [3]
    assert plan.start(range(4, 4), 5.0, 2) == [1]
    # Virtual starts are asked for after an instant; after the last one there is none.
    assert [plan.next_start_s(at_s) for at_s in (-1.0, 0.0, 14.0, 15.0)] == [0.0, 4.0, 15.0, np.inf]


# What policies are worth on workloads whose figures are known.

FROM_S, UNTIL_S = (datetime(2017, 11, day, tzinfo=UTC).timestamp() for day in (6, 27))


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
def test_three_weeks_of_philly(philly):
    trace = read_trace(philly / "philly_jobs.csv")
    pools = read_pools(philly / "pools_nov06_nov26.csv").at(FROM_S)
    workload, _ = pools_only(workload_of(trace.between(FROM_S, UNTIL_S), pools))
    earlier, _ = trace.between(None, FROM_S).to_jobs()
    base = replay(workload, make_policy("fcfs", None, {}))
    mmfs, sia = gains(workload, base, "mmfs"), gains(workload, base, "sia")
    assert (mmfs["speedup_gmean"], mmfs["slowed_pct"]) == (pytest.approx(13.9, abs=0.05), pytest.approx(11.7, abs=0.05))
    assert (sia["speedup_gmean"], sia["slowed_pct"]) == (pytest.approx(22.6, abs=0.05), 0)
    drawn = gains(workload, base, "sia", Random(workload, 0, earlier))
    assert 5 < drawn["speedup_gmean"] < 9
    assert 2 < drawn["slowed_pct"] < 5
