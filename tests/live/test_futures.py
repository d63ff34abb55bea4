"""Futures of a queue: one copy a future, answers with their age, arrivals that overtake, what was known when."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.domain.jobs import Job, Outcome, Pool, Requirements
from jobcast.live.completion_forecasts import Future, RunTimeDraws, completions
from jobcast.live.futures import Futures, Spread
from jobcast.models.completion.intervals import Interval, Position
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import Simulation
from jobcast.simulator.forecast_sources import Oracle
from jobcast.simulator.history import EarlierJobs
from jobcast.simulator.workload import Workload
from tests.shared import refused


def run_of(rows, policy="fcfs", gpus=1):
    """Of (submission, run time) a job of one GPU each, gone to the last submission."""
    jobs = [Job(at, f"j{at}", "p", submit_s, 1) for at, (submit_s, _) in enumerate(rows)]
    workload = Workload(jobs, [Outcome(run_s) for _, run_s in rows], [Pool("p", gpus)])
    source = Oracle(workload)
    return Simulation(workload, make_policy(policy, source, {}), source).run(rows[-1][0])


def earlier(run_s, **rest):
    """Jobs that ended before, one every 10 s until the run begins."""
    count = len(run_s)
    jobs = [Job(at, f"e{at}", "p", 10.0 * (at - count), 1, **rest) for at in range(count)]
    at_s = np.array([job.submit_s for job in jobs])
    return EarlierJobs(jobs, at_s, at_s + 1.0, np.array(run_s))


QUEUE = [(0.0, 100.0), (1.0, 50.0), (2.0, 30.0)]


@pytest.fixture
def futures():
    """Of jobs of which sixty took 100 s."""
    return Futures(RunTimeDraws(earlier([100.0] * 60), futures=20, seed=0))


def believing(run, seconds, coming=None):
    return completions(run, [0, 1, 2], Future(seconds, coming))


def test_who_comes_later_overtakes_where_the_rule_has_it_so():
    """Under ssf a job of 10 s that comes at 5 s starts before those of 50 s and 30 s; under fcfs after them."""
    coming = (Job(0, "new", "p", 5.0, 1), 10.0)
    seconds = {0: 100.0, 1: 50.0, 2: 30.0}
    found = {policy: believing(run_of(QUEUE, policy), seconds, iter([coming])) for policy in ("ssf", "fcfs")}
    assert [found["ssf"][seq].end_s for seq in range(3)] == [100.0, 190.0, 140.0]
    assert [found["fcfs"][seq].end_s for seq in range(3)] == [100.0, 150.0, 180.0]


def test_the_run_does_not_hear_of_who_may_come():
    run = run_of(QUEUE, "ssf")
    believing(run, {0: 9.0, 1: 9.0, 2: 9.0}, iter([(Job(0, "new", "p", 5.0, 1), 10.0)]))
    run.run()
    assert [run.end_s(seq) for seq in range(3)] == [100.0, 180.0, 130.0]
    assert len(run.jobs) == 3


def test_a_future_may_have_more_jobs_than_the_workload():
    coming = ((Job(0, f"n{at}", "p", 3.0 + at, 1), 1.0) for at in range(50))
    found = believing(run_of(QUEUE, "ssf"), {0: 100.0, 1: 50.0, 2: 30.0}, coming)
    assert found[2].end_s == 180.0  # the fifty of a second each go first


@pytest.mark.parametrize("limit_s", [np.inf, 60.0])
def test_few_jobs_that_ended_leave_it_open_how_long_others_run(limit_s):
    """Of one alone nothing says whether the next is shorter or longer: either is as likely, and no limit hides it."""
    asks = Requirements(time_limit_s=limit_s)
    jobs = [Job(at, f"j{at}", "p", 0.0, 1, requirements=asks) for at in range(400)]
    run = Simulation(Workload(jobs, [Outcome(1.0)] * 400, [Pool("p", 1)]), make_policy("fcfs", None, {})).run(0.0)
    found = next(iter(RunTimeDraws(earlier([100.0], requirements=asks), futures=1, seed=0)(run, 0)))
    run_s = np.array([found(job) for job in run.jobs])
    assert np.mean(run_s < 50.0) == pytest.approx(0.25, abs=0.08)
    assert np.mean(run_s > 200.0) == pytest.approx(0.25 if limit_s == np.inf else 0.0, abs=0.08)


def test_answers_are_of_the_last_futures_and_tell_their_age(futures):
    run = run_of(QUEUE)
    assert np.isnan(futures.age_s(0.0))
    refused(TraceError, "no futures of it were played yet", futures.answer, "j1", 2.0)
    futures.refresh(run)
    told = futures.answer("j1", 12.0)
    assert told.age_s == 10.0
    assert told.start.intervals[1].low_s <= told.end.intervals[1].low_s
    assert 100.0 < told.end.median_s < 400.0  # two jobs of about 100 s
    assert futures.answer("j0", 2.0).start is None  # it runs already
    high_s = told.end.intervals[1].high_s
    later = futures.answer("j0", 2.0 + high_s)
    assert 0.0 < later.end.intervals[1].high_s < high_s
    refused(TraceError, "job j9: no futures of it were played at", futures.answer, "j9", 12.0)


def test_who_has_started_since_ends_after_its_run_whenever_it_was_to_start(futures):
    """Both take some 100 s, so that job 1 was to end after 200; it started after 10."""
    futures.refresh(run_of(QUEUE))
    run_s = futures._played.end_s["j1"] - futures._played.start_s["j1"]
    told = futures.answer("j1", 12.0, started_s=10.0)
    assert told.start is None
    assert told.end.drawn_s == pytest.approx(run_s - 2.0)
    assert 50.0 < told.end.median_s < 150.0


def test_a_start_that_is_late_is_as_likely_to_be_later_by_as_much_again(futures):
    """All futures had job 1 start by now, and nobody has heard of it."""
    futures.refresh(run_of(QUEUE))
    latest_s = futures._played.start_s["j1"].max()
    told = [futures.answer("j1", latest_s + late_s).start for late_s in (0.0, 50.0, 400.0)]
    assert [one.median_s for one in told] == pytest.approx([1.0, 50.0, 400.0], rel=0.06)
    low_s, high_s = zip(*((one.intervals[-1].low_s, one.intervals[-1].high_s) for one in told), strict=True)
    assert max(low_s) < 50.0
    assert high_s[2] > high_s[1] > 10 * 50.0
    # What was to start just now, and may have.
    assert high_s[0] == pytest.approx(1.0)


def test_nobody_ends_before_it_starts(futures):
    """However far starts and ends of others came from what was told, and though a start is late."""
    futures.starts.tracker.known = [Position(9.0, ended=True)] * 60
    futures.ends.tracker.known = [Position(-9.0, ended=True)] * 60
    futures.refresh(run_of(QUEUE))
    starts_s = futures._played.start_s["j1"]
    for now_s in (2.0, np.median(starts_s), starts_s.max() + 400.0):
        start, end, _ = futures.answer("j1", now_s)
        assert end.median_s >= start.median_s
        for one, other in zip(start.intervals, end.intervals, strict=True):
            assert (other.low_s >= one.low_s, other.high_s >= one.high_s) == (True, True)
    assert end.median_s == pytest.approx(start.median_s + 100.0, rel=0.1)


def test_all_ends_of_a_future_are_read_off_one_copy():
    """Under fcfs on one GPU each future's jobs end one after the other."""
    futures = Futures(RunTimeDraws(earlier([60.0, 140.0] * 30), futures=8, seed=1))
    futures.refresh(run_of(QUEUE))
    ends_s = np.array([futures._played.end_s[name] for name in ("j0", "j1", "j2")])
    assert (np.diff(ends_s, axis=0) > 0).all()
    assert np.diff(ends_s, axis=0) == pytest.approx(ends_s[1:] - np.array([ends_s[0], ends_s[1]]))


def test_outcomes_teach_the_tracker_when_the_next_futures_are_played():
    run = run_of(QUEUE)
    futures = Futures(RunTimeDraws(earlier([20.0] * 60), futures=20, seed=0))
    futures.refresh(run)
    assert futures.ends.tracker.known == []
    run.wait(140.0)
    futures.refresh(run)
    (ended,) = futures.ends.tracker.known  # job 0 took 100 s, where others took 20
    assert ended.ended
    assert ended.place > 0.9
    (started,) = futures.starts.tracker.known  # job 1 waited for it
    assert started.place > 0.9


def test_what_came_may_be_told_by_others_and_who_was_cancelled_teaches_nothing():
    futures = Futures(RunTimeDraws(earlier([20.0] * 60), futures=20, seed=0))
    futures.refresh(run_of(QUEUE))
    # Another run that stands where the cluster does, 100 s later, and knows of j0 alone.
    other = run_of([(102.0, 5.0)])
    futures.refresh(other, {"j1": (50.0, 90.0), "j2": (np.nan, np.nan)})
    assert [len(kind.tracker.known) for kind in (futures.starts, futures.ends)] == [1, 1]


def test_no_draw_runs_beyond_its_limit_nor_knows_what_has_not_ended():
    jobs = [Job(0, "a", "p", 0.0, 1, requirements=Requirements(time_limit_s=40.0))]
    workload = Workload(jobs, [Outcome(30.0)], [Pool("p", 1)])
    run = Simulation(workload, make_policy("fcfs", None, {})).run(0.0)
    found = [one(jobs[0]) for one in RunTimeDraws(earlier([10.0, 1000.0] * 20), futures=30, seed=0)(run, 0)]
    assert max(found) == 40.0
    assert min(found) < 20.0


def test_run_times_are_drawn_from_jobs_of_the_same_limit_first():
    """Half of the past was allowed 1,000 s and took 10 s, the other half was allowed 2,000 s and took 900 s."""
    short, long = (Requirements(time_limit_s=limit_s) for limit_s in (1000.0, 2000.0))
    past = earlier([10.0, 900.0] * 100)
    past = replace(past, jobs=[replace(job, requirements=(short, long)[job.seq % 2]) for job in past.jobs])
    jobs = [Job(0, "a", "p", 0.0, 1, requirements=short), Job(0, "b", "p", 0.0, 1, requirements=long)]
    workload = Workload(jobs, [Outcome(30.0), Outcome(30.0)], [Pool("p", 2)])
    run = Simulation(workload, make_policy("fcfs", None, {})).run(0.0)
    found = np.array([[one(job) for job in run.jobs] for one in RunTimeDraws(past, futures=40, seed=0)(run, 0)])
    # A sixth of the weight is that of all jobs, half of which are of the other limit.
    assert (found[:, 0] < 100.0).mean() > 0.75
    assert (found[:, 1] > 100.0).mean() > 0.75


@given(st.integers(0, 10**6))
def test_pools_that_do_not_touch_are_left_out_of_each_others_futures(seed):
    """Starts and ends of one pool's jobs are the same to the bit where the others are played, too."""
    rng = np.random.default_rng(seed)
    policy, count = ("easy", "conservative_backfill")[seed % 2], 24
    limit_s = 10.0 * rng.integers(1, 20, 2 * count)
    run_s = limit_s * rng.uniform(0.2, 1.0, 2 * count)
    submit_s = np.sort(rng.uniform(0.0, 200.0, 2 * count))
    jobs = [
        Job(at, f"j{at:02}", "pq"[int(rng.integers(2))], submit_s[at], int(rng.integers(1, 4)),
            requirements=Requirements(time_limit_s=limit_s[at]))
        for at in range(2 * count)
    ]  # fmt: skip
    workload = Workload(jobs[:count], [Outcome(one) for one in run_s[:count]], [Pool("p", 3), Pool("q", 4)])
    run = Simulation(workload, make_policy(policy, None, {})).run(submit_s[count - 1])
    active = list(run.cluster.active.values())
    of_p = [job.seq for job in active if job.pool == "p"]
    believed_s = {job.seq: run_s[job.seq] for job in active}
    coming = list(zip(jobs[count:], run_s[count:], strict=True))
    alone = completions(run, of_p, Future(believed_s, iter(coming)))
    # Asked about all, both pools are played.
    both = completions(run, [job.seq for job in active], Future(believed_s, iter(coming)))
    assert alone == {seq: both[seq] for seq in of_p}


class Odds(Oracle):
    """Of whom it is known that all run long."""

    def duration_probabilities(self, job):
        return (0.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize(("probable", "least", "most"), [(True, 0.97, 1.0), (False, 0.2, 0.8)])
def test_run_times_lie_in_bins_as_often_as_job_duration_says(probable, least, most):
    """Half of the past took 60 s, half 1,200 s, which lies in the second bin (5 to 60 minutes)."""
    run = run_of(QUEUE)
    run.source = Odds(run.workload)
    draws = RunTimeDraws(earlier([60.0, 1200.0] * 60), futures=40, seed=0, probable=probable)
    long = np.mean([[one(job) > 300.0 for job in run.jobs] for one in draws(run, 0)])
    assert least <= long <= most


def test_what_is_told_first_lies_within_the_intervals_beside_it():
    """Outcomes may have moved these beyond all futures."""
    intervals = (Interval(0.5, 300.0, 400.0), Interval(0.9, 200.0, 500.0))
    assert Spread(intervals, np.array([90.0, 100.0, 110.0])).median_s == 300.0
    assert Spread(intervals, np.array([340.0, 350.0, 360.0])).median_s == 350.0


@pytest.mark.parametrize(
    ("ended_s", "runs_s"), [([30.0] * 60, (143.0, 200.0, 680.0)), ([30.0] * 60 + [190.0] * 60, (190.0, 190.0, 190.0))]
)
def test_a_job_that_has_outlived_its_limit_ends_as_others_that_did(ended_s, runs_s):
    """It ran for 140 s of 80: it ends where such jobs ended, else within as much again as likely as not."""
    asks = Requirements(time_limit_s=80.0)
    jobs = [Job(0, "a", "p", 0.0, 1, requirements=asks), Job(1, "b", "p", 140.0, 1, requirements=asks)]
    run = Simulation(Workload(jobs, [Outcome(900.0)] * 2, [Pool("p", 2)]), make_policy("fcfs", None, {})).run(140.0)
    draws = RunTimeDraws(earlier(ended_s, requirements=asks), futures=400, seed=0)
    found = np.array([[one(job) for job in run.jobs] for one in draws(run, 0)])
    assert found[:, 0].min() > 140.0
    assert np.quantile(found[:, 0], (0.05, 0.5, 0.9)) == pytest.approx(runs_s, rel=0.2)
    # Within its limit a job ends by it.
    assert found[:, 1].max() <= 80.0
