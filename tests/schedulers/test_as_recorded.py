"""Recorded starts, replayed."""

from math import nan

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.workload import Workload


def starts(rows, *pools):
    """Rows of pool, submission, GPUs, duration, recorded start."""
    jobs = [Job(0, f"{at:02}", pool, submit_s, gpus) for at, (pool, submit_s, gpus, _, _) in enumerate(rows)]
    workload = Workload(jobs, [Outcome(row[3], start_s=row[4]) for row in rows], pools)
    source = Oracle(workload)
    return replay(workload, make_policy("as_recorded", source), source).start_s.tolist()


def test_jobs_start_when_the_trace_says():
    rows = [("p", 0.0, 2, 100.0, 7.5), ("p", 0.0, 1, 5.0, 3.25), ("p", 1.0, 2, 10.0, 107.5), ("p", 50.0, 1, 1.0, 50.0)]
    assert starts(rows, Pool("p", 3)) == [7.5, 3.25, 107.5, 50.0]


def test_quotas_do_not_bind():
    rows = [("p", 0.0, 2, 10.0, 0.0), ("p", 0.0, 2, 10.0, 1.0), ("q", 0.0, 2, 10.0, 20.0)]
    assert starts(rows, Pool("p", 2), Pool("q", 2)) == [0.0, 1.0, 20.0]


def test_who_finds_no_room_starts_when_there_is_some_and_who_has_no_start_at_once():
    rows = [("p", 0.0, 2, 10.0, 0.0), ("p", 0.0, 2, 10.0, 5.0), ("p", 1.0, 1, 10.0, 6.0), ("p", 30.0, 1, 1.0, nan)]
    assert starts(rows, Pool("p", 2)) == [0.0, 10.0, 20.0, 30.0]
