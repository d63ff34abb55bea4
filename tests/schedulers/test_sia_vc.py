"""SIA_VC against Figure 6 of SIA as it is written, against `fcfs`, and by hand."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from jobcast.domain import tolerance
from jobcast.domain.errors import ConfigError
from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.fcfs import Fcfs
from jobcast.schedulers.sia_vc import SiaVc
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle, Random
from jobcast.simulator.metrics import against
from jobcast.simulator.workload import Workload, pools_only
from jobcast.traces.generators import generate
from jobcast.traces.pools import read_pools
from jobcast.traces.readers import read_trace
from tests.schedulers.events_driver import reference, starts, workloads


def built(rows, quotas):
    """Workload from rows (pool, submit s, duration s, gpus); job ids count from 0."""
    jobs = [Job(0, f"{index:03}", pool, float(at), gpus) for index, (pool, at, _, gpus) in enumerate(rows)]
    outcomes = [Outcome(float(duration)) for _, _, duration, _ in rows]
    return Workload(jobs, outcomes, [Pool(name, quota) for name, quota in quotas.items()])


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


@given(workloads())
def test_every_start_is_that_of_figure_6(workload):
    assert starts(workload, SiaVc) == reference(workload, figure_6(workload))


@given(workloads(max_jobs=30))
def test_every_start_is_that_of_figure_6_on_longer_queues(workload):
    assert starts(workload, SiaVc) == reference(workload, figure_6(workload))


@given(workloads(max_jobs=40, durations=(1e-8, 1, 2, 3, 4, 5, 6, 9, 11, 20, 40)))
def test_no_job_finishes_later_than_under_fcfs(workload):
    """SIA, Theorem 1, but for events that are one; 1e-8 s after the epoch is no time at all."""
    oracle = Oracle(workload)
    log, base = replay(workload, SiaVc(oracle), oracle), replay(workload, Fcfs())
    assert (log.start_s <= base.start_s + tolerance.EVENT_S).all()
    assert (log.end_s <= base.end_s + tolerance.EVENT_S).all()


def test_virtual_starts_are_not_worked_out_anew():
    # If they were, from the pools as they are at each event, job 2 would start at 5; under fcfs it starts at 2.
    rows = [("b", 0, 2, 3), ("a", 1, 2, 2), ("b", 1, 1, 3), ("b", 1, 4, 1), ("a", 2, 6, 3)]
    workload = built(rows, {"a": 3, "b": 3})
    assert starts(workload, lambda _: Fcfs()) == [0, 1, 2, 3, 3]
    # job 3 runs beside b's job 0 from 1 on: at 2 job 2 needs 3 GPUs, job 1 holds 2, and 1 is left
    assert starts(workload, SiaVc) == [0, 1, 2, 1, 3]


def test_jobs_to_come_reserve_too():
    # At 1 p's second job would find 2 GPUs, but q needs them at 4; it starts when q's job is over, before its own 10.
    rows = [("p", 0, 10, 2), ("p", 1, 5, 2), ("q", 4, 1, 2)]
    assert starts(built(rows, {"p": 2, "q": 2}), SiaVc) == [0, 5, 4]
    # of 3 s it is over when they are needed
    rows[1] = ("p", 1, 3, 2)
    assert starts(built(rows, {"p": 2, "q": 2}), SiaVc) == [0, 1, 4]


def test_later_virtual_starts_do_not_stand_in_the_way():
    # q's job comes at 12 and reserves from then on; p's job of virtual start 10 has reserved until 30 before it, and
    # keeps to that from 1 on, over at 21
    rows = [("p", 0, 10, 2), ("p", 1, 20, 2), ("q", 12, 1, 2)]
    assert starts(built(rows, {"p": 2, "q": 2}), SiaVc) == [0, 1, 12]


def test_only_the_oracle_knows_every_job():
    workload = built([("p", 0, 1, 1)], {"p": 1})
    with pytest.raises(ConfigError, match="sia_vc needs each single job's future; pass --forecasts oracle"):
        SiaVc(Random(workload))


def test_arrivals_that_were_not_known_are_refused():
    workload = built([("p", 0, 1, 1), ("p", 5, 1, 1)], {"p": 1})
    policy = SiaVc(Oracle(workload))
    with pytest.raises(ConfigError, match=r"job 001 arrives at 7\.0+ s, which was not known before"):
        policy.lane(replace(workload.jobs[1], submit_s=7.0))


def workload_of(trace, pools):
    jobs, durations_s = trace.to_jobs()
    return Workload(jobs, [Outcome(float(duration_s)) for duration_s in durations_s], pools)


def test_the_synthetic_workload_of_sia():
    """SIA, Figure 5 and appendix A.1: speedups near 5 in geometric mean, medians of ten draws; nobody slowed."""
    speedups = []
    for seed in range(10):
        workload = workload_of(*generate("sia", seed, {}))
        oracle = Oracle(workload)
        log, base = replay(workload, SiaVc(oracle), oracle), replay(workload, Fcfs())
        assert (log.end_s <= base.end_s).all()
        speedups.append(against(log, base)["speedup_gmean"])
    assert 4 < np.median(speedups) < 6


@pytest.mark.slow
def test_six_weeks_of_philly():
    data = os.environ.get("JOBCAST_DATA")
    if not data:
        pytest.skip("JOBCAST_DATA is not set: this test replays philly/philly_jobs.csv")
    folder = Path(data) / "philly"
    from_s, until_s = (datetime(2017, *day, tzinfo=UTC).timestamp() for day in ((10, 2), (11, 13)))
    trace = read_trace(folder / "philly_jobs.csv").between(from_s, until_s)
    workload, _ = pools_only(workload_of(trace, read_pools(folder / "pools_oct02_nov12.csv").at(from_s)))
    oracle = Oracle(workload)
    log, base = replay(workload, SiaVc(oracle), oracle), replay(workload, Fcfs())
    assert len(log) == 55_853
    assert (log.end_s <= base.end_s).all()
    assert log.jct_s.mean() < base.jct_s.mean() / 9
