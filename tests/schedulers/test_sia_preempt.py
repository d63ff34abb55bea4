"""SIA with some jobs that may be stopped: by hand, and against SIA."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Job, Outcome, Pool
from jobcast.schedulers.pool_rules import Fcfs
from jobcast.schedulers.sia import Sia
from jobcast.schedulers.sia_preempt import ObservedErrors, SiaPreempt
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import Conservative, Oracle
from jobcast.simulator.workload import Workload

HORIZONS_MIN = (5, 10, 20)


def stoppable(made, *names, resume_s=0.0):
    jobs = [replace(job, preemptible=job.job_id in names) for job in made.jobs]
    return Workload(jobs, made.outcomes, made.pools, resume_s=resume_s)


def run(made, resume_s=0.0, source=None):
    source = source or Oracle(made)
    log = replay(made, SiaPreempt(source, resume_s), source)
    minutes = zip((log.start_s / 60).tolist(), (log.end_s / 60).tolist(), log.preemptions.tolist(), strict=True)
    return {job.job_id: row for job, row in zip(made.jobs, minutes, strict=True)}


def test_a_job_that_may_be_stopped_takes_what_is_reserved_and_gives_it_back(workload):
    made = workload([("x", "p", 0, 60, 2), ("a", "p", 1, 30, 2), ("b", "q", 4, 10, 2)], {"p": 2, "q": 2})
    # q's job is known to come at 4: a of p, 30 minutes long, may not take q's GPUs unless it can be stopped.
    assert run(made)["a"] == (14, 44, 0)
    # Stopped at 4 with 3 minutes done, it goes on where b leaves off at 14.
    assert run(stoppable(made, "a")) == {"x": (0, 60, 0), "a": (1, 41, 1), "b": (4, 14, 0)}


def test_going_on_costs_what_resuming_costs(workload):
    made = workload([("x", "p", 0, 60, 2), ("a", "p", 1, 30, 2), ("b", "q", 4, 10, 2)], {"p": 2, "q": 2})
    assert run(stoppable(made, "a", resume_s=60.0), resume_s=60.0)["a"] == (1, 42, 1)


def test_what_can_be_had_back_lets_rigid_jobs_take_more(workload):
    rows = [
        ("a", "p", 0, 100, 2),  # p is full
        ("s", "p", 0, 90, 2),  # on spare GPUs of q, may be stopped
        ("r", "p", 1, 19, 2),  # on spare GPUs of q, cannot be stopped
        ("b", "q", 15, 50, 2),
    ]
    made = workload(rows, {"p": 2, "q": 4})
    found = run(stoppable(made, "s"))
    assert found["s"][0] == 0  # two of q's four stay free, b needs them
    assert found["r"][0] == 1  # takes those two: s can be stopped for b
    assert found["b"][0] == 15
    assert found["s"][2] == 1


def test_a_later_job_of_the_pool_does_not_overtake_one_that_may_be_stopped(workload):
    rows = [
        ("x", "p", 0, 10, 2),
        ("s", "p", 1, 30, 2),  # spare at once, p's own GPUs are its turn's at 10
        ("k", "p", 2, 500, 2),
        ("b", "q", 12, 50, 2),
    ]
    found = run(stoppable(workload(rows, {"p": 2, "q": 2}), "s"))
    # At 10 s is made dedicated, so that b takes q's GPUs and k waits for s to end.
    assert found["s"] == (1, 31, 0)
    assert found["b"][0] == 12
    assert found["k"][0] == 31


def small_workloads(preemptible):
    def build(rows):
        jobs = [Job(0, f"j{i}", "pqr"[p], 30.0 * at, gpus, preemptible=stop) for i, (p, at, gpus, _, stop) in
                enumerate(rows)]  # fmt: skip
        return Workload(jobs, [Outcome(45.0 * row[3]) for row in rows], [Pool(name, 3) for name in "pqr"])

    row = st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(1, 3), st.integers(1, 60), preemptible)
    return st.lists(row, min_size=1, max_size=25).map(build)


@given(small_workloads(st.just(False)))
def test_without_jobs_that_may_be_stopped_it_is_sia(made):
    exact = Oracle(made, HORIZONS_MIN)
    ours = replay(made, SiaPreempt(exact), exact)
    exact = Oracle(made, HORIZONS_MIN)
    theirs = replay(made, Sia(exact), exact)
    assert ours.start_s.tolist() == theirs.start_s.tolist()
    assert ours.dedicated.tolist() == theirs.dedicated.tolist()


@given(small_workloads(st.booleans()))
def test_with_exact_forecasts_and_free_resuming_nobody_is_slowed(made):
    exact = Oracle(made, HORIZONS_MIN)
    ours, base = replay(made, SiaPreempt(exact), exact), replay(made, Fcfs())
    assert (ours.end_s <= base.end_s + 1e-6).all()


@given(small_workloads(st.just(False)))
def test_with_the_worst_forecasts_it_is_fcfs(made):
    worst = Conservative(made, HORIZONS_MIN)
    assert replay(made, SiaPreempt(worst), worst).start_s.tolist() == pytest.approx(replay(made, Fcfs()).start_s)


def arrive(errors, at_s, gpus, pool="p"):
    errors.arrived(Job(0, "a", pool, at_s, gpus))


def test_nothing_is_known_before_a_window_is_over():
    errors = ObservedErrors()
    assert errors.share("p", 300.0) == 0.0
    errors.forecast("p", 300.0, 0.0, 0.0, 8)
    arrive(errors, 10.0, 4)
    errors.forecast("p", 300.0, 299.0, 0.0, 8)
    assert errors.share("p", 300.0) == 0.0


def test_what_came_beyond_a_forecast_counts_as_a_share_of_what_it_left_free():
    errors = ObservedErrors()
    errors.forecast("p", 300.0, 0.0, 2.0, 10)  # leaves 8 free
    arrive(errors, 100.0, 3)
    arrive(errors, 300.0, 1)  # the end belongs to the window
    arrive(errors, 301.0, 5)  # this does not
    arrive(errors, 200.0, 5, pool="q")
    errors.forecast("p", 300.0, 400.0, 10.0, 10)
    assert errors.share("p", 300.0) == pytest.approx(2 / 8)
    errors.forecast("p", 300.0, 700.0, 0.0, 10)  # nothing was left free, nothing can have been taken of it
    assert errors.share("p", 300.0) == pytest.approx(2 / 8)
    assert errors.share("p", 3600.0) == 0.0


def test_load_beyond_the_quota_counts_no_more_than_the_quota():
    errors = ObservedErrors()
    errors.forecast("p", 60.0, 0.0, 0.0, 4)
    arrive(errors, 1.0, 100)
    errors.forecast("p", 60.0, 60.0, 0.0, 4)
    assert errors.share("p", 60.0) == 1.0


@given(st.lists(st.tuples(st.floats(0.1, 50.0), st.integers(1, 12), st.integers(0, 12)), max_size=40))
def test_a_share_stays_a_share(steps):
    errors, now_s = ObservedErrors(), 0.0
    for gap_s, gpus, told in steps:
        now_s += gap_s
        arrive(errors, now_s, gpus)
        errors.forecast("p", 60.0, now_s, float(told), 8)
        assert 0.0 <= errors.share("p", 60.0) <= 1.0


@given(st.lists(st.tuples(st.floats(0.1, 50.0), st.integers(1, 12)), max_size=40))
def test_forecasts_that_hold_err_never(steps):
    errors, arrivals, now_s = ObservedErrors(), [], 0.0
    for gap_s, gpus in steps:
        now_s += gap_s
        arrivals.append((now_s, gpus))
    for at_s, gpus in arrivals:
        arrive(errors, at_s, gpus)
        exact = sum(width for when_s, width in arrivals if at_s < when_s <= at_s + 60.0)
        errors.forecast("p", 60.0, at_s, float(exact), 8)
        assert errors.share("p", 60.0) == 0.0
