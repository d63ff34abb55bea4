from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import DecisionError, TraceError
from jobcast.domain.jobs import Job, Outcome, Pool, Succession
from jobcast.schedulers.pool_rules import Fcfs, GlobalShortestServiceFirst, MaxMinFair
from jobcast.simulator.arrival_streams import ClosedArrivals, ForeseenArrivals, Later, OpenArrivals
from jobcast.simulator.engine import replay
from jobcast.simulator.forecast_sources import KnownDurations
from jobcast.simulator.history import RunHistory
from jobcast.simulator.metrics import against, ends_against_baseline, figures, same_jobs
from jobcast.simulator.workload import Workload
from tests.shared import refused
from tests.simulator.pool_cases import Script

COLUMNS = ("submit_s", "start_s", "end_s", "duration_s", "gpus", "pool", "preemptions", "dedicated")


def closed(made, **follows):
    """The workload in a closed loop; follows: job id -> (awaited ids, think time)."""
    successions = {name: Succession(tuple(awaited), float(think_s)) for name, (awaited, think_s) in follows.items()}
    return Workload(made.jobs, made.outcomes, made.pools, successions=successions)


def assert_same(log, other):
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(log, name), getattr(other, name))
    for name in ("job", "from_s", "until_s"):
        np.testing.assert_array_equal(getattr(log.spans, name), getattr(other.spans, name))
    assert log.events == other.events


def test_no_more_arrive_than_are_asked_for_and_all_that_are_due_at_the_instant(workload):
    made = workload([("a", "p", 1, 1, 1), ("b", "p", 1, 1, 1), ("c", "p", 2, 1, 1)], {"p": 4})
    foreseen = ForeseenArrivals(OpenArrivals(made), [(job, 1.0) for job in made.jobs], 9)
    for stream in (OpenArrivals(made), ClosedArrivals(closed(made)), foreseen):
        assert [[job.job_id for job in stream.due(1.0, most)] for most in (1, None)] == [["a"], ["b"]]
        assert stream.next_s == 2.0


@st.composite
def traces(draw, follow=True):
    """Jobs in two pools at whole seconds; some follow jobs that would have ended by then had nobody waited."""
    count = draw(st.integers(1, 14))
    jobs, outcomes, ends, follows = [], [], [], {}
    at = 0
    for number in range(count):
        at += draw(st.integers(0, 5))
        ended = [other for other, end in enumerate(ends) if end <= at]
        if follow and ended and draw(st.booleans()):
            awaited = draw(st.lists(st.sampled_from(ended), min_size=1, max_size=3, unique=True))
            think_s = at - max(ends[other] for other in awaited)
            follows[f"{number:02d}"] = Succession(tuple(f"{other:02d}" for other in awaited), float(think_s))
        duration = draw(st.integers(1, 9))
        ends.append(at + duration)
        pool = draw(st.sampled_from(["p", "q"]))
        jobs.append(Job(0, f"{number:02d}", pool, float(at), draw(st.integers(1, 3))))
        outcomes.append(Outcome(float(duration)))
    return jobs, outcomes, follows


def workload_of(trace, quota):
    jobs, outcomes, follows = trace
    return Workload(jobs, outcomes, [Pool("p", quota), Pool("q", quota)], successions=follows)


def test_an_open_stream_gives_jobs_when_the_trace_says(workload):
    made = workload([("a", "p", 0, 5, 1), ("b", "p", 3, 1, 1), ("c", "p", 3, 1, 1)], {"p": 1})
    stream = OpenArrivals(made)
    taken = []
    while stream.next_s < inf:
        at = stream.next_s
        taken.append((at, [job.job_id for job in stream.due(at)]))
    assert taken == [(0, ["a"]), (3, ["b", "c"])]
    assert list(stream.due(100.0)) == []


def test_the_log_is_in_the_traces_order_though_arrivals_are_not(workload):
    """a ends at 103 only, so that b comes after c; the policy sees them numbered as they come."""
    rows = [("x", "p", 0, 100, 1), ("a", "p", 1, 3, 1), ("b", "p", 5, 7, 1), ("c", "q", 50, 2, 2)]
    made = closed(workload(rows, {"p": 1, "q": 2}), b=("a", 1))
    seen = []

    class Seeing(Fcfs):
        def lane(self, job):
            seen.append((job.seq, job.job_id, job.submit_s))
            return 0

    log = replay(made, Seeing())
    assert seen == [(0, "x", 0), (1, "a", 1), (2, "c", 50), (3, "b", 104)]
    assert log.duration_s.tolist() == [100, 3, 7, 2]
    assert log.gpus.tolist() == [1, 1, 1, 2]
    assert log.end_s.tolist() == [100, 103, 111, 52]
    spans = zip(log.spans.job, log.spans.from_s, log.spans.until_s, strict=True)
    assert sorted(spans) == [(0, 0, 100), (1, 100, 103), (2, 104, 111), (3, 50, 52)]


def test_the_history_is_told_the_runs_own_arrivals(workload):
    rows = [("x", "p", 0, 20, 1), ("a", "p", 1, 10, 1), ("b", "p", 16, 4, 3)]
    history = RunHistory(["p"])
    replay(closed(workload(rows, {"p": 3}), b=("a", 5)), Fcfs(), history=history)
    past = history.pool("p")
    assert past.arrival_s.tolist() == [0, 1, 16]
    assert past.arrival_gpus.tolist() == [1, 1, 3]
    assert [(one.job.job_id, one.end_s) for one in history.finished_since(0)] == [("a", 11), ("x", 20), ("b", 24)]


def test_a_job_that_has_not_arrived_cannot_be_started(workload):
    made = closed(workload([("a", "p", 0, 5, 1), ("b", "p", 6, 1, 1)], {"p": 2}), b=("a", 1))
    with pytest.raises(DecisionError, match="cannot change job number 1: it is none of this run's jobs"):
        replay(made, Script({0.0: {"a": 1, 1: 1}}))


def test_jobs_left_pending_for_ever_are_told(workload):
    made = closed(workload([("a", "p", 0, 5, 1), ("b", "p", 6, 1, 1)], {"p": 2}), b=("a", 1))
    refused(DecisionError, r"1 jobs are pending, job a first.*nothing will arrive", replay, made, Script({}))


@pytest.mark.parametrize(
    ("awaited", "think_s"), [(("c",), 1), (("a",), 1), (("nobody",), 1), (("x",), -1), (("x",), inf), ((), 1)]
)
def test_successions_of_jobs_that_could_never_arrive_are_refused(workload, awaited, think_s):
    made = workload([("x", "p", 0, 1, 1), ("a", "p", 1, 1, 1), ("c", "p", 2, 1, 1)], {"p": 1})
    refused(TraceError, "job a: must follow jobs before it", replay, closed(made, a=(awaited, think_s)), Fcfs())


def test_open_and_closed_runs_are_not_compared_and_the_traces_submissions_decide_who_counts(workload):
    rows = [("a", "p", 0, 10, 1), ("b", "p", 1, 10, 1), ("c", "p", 12, 1, 1)]
    made = workload(rows, {"p": 1})
    looped = closed(made, c=("b", 1))
    log, fast = replay(looped, Fcfs()), replay(closed(workload(rows, {"p": 2}), c=("b", 1)), Fcfs())
    refused(ValueError, "not of the same jobs", same_jobs, log, replay(made, Fcfs()))
    # Arrivals of c: 21 and 12. It counts in both though, and takes 1 s in both; b takes 19 s and 10 s.
    assert figures(log, 12.0)["jobs"] == figures(fast, 12.0)["jobs"] == 1
    assert against(log, fast, 12.0)["slowed_pct"] == 0.0
    assert against(log, fast)["slowed_pct"] == pytest.approx(100 / 3)
    assert against(log, fast)["slowdown_total_min"] == pytest.approx(9 / 60)


@given(traces(follow=False), st.integers(3, 6), st.sampled_from([Fcfs, MaxMinFair]))
def test_a_closed_loop_in_which_nobody_follows_is_an_open_one(trace, quota, policy):
    looped = workload_of(trace, quota)
    made = Workload(looped.jobs, looped.outcomes, looped.pools)
    assert_same(replay(looped, policy()), replay(made, policy()))


@given(traces())
def test_where_nobody_waits_the_loop_reproduces_the_trace(trace):
    made = workload_of(trace, 1000)
    log = replay(made, Fcfs())
    np.testing.assert_array_equal(log.submit_s, [job.submit_s for job in made.jobs])
    np.testing.assert_array_equal(log.start_s, log.submit_s)
    np.testing.assert_array_equal(log.end_s, log.submit_s + log.duration_s)


@given(traces(), st.integers(3, 6))
def test_each_job_runs_once_and_arrives_its_think_time_after_what_it_awaits(trace, quota):
    made = workload_of(trace, quota)
    for policy in (Fcfs(), MaxMinFair(), GlobalShortestServiceFirst(KnownDurations(made))):
        log = replay(made, policy)
        assert sorted(log.spans.job) == list(range(len(made.jobs)))
        ends = {job.job_id: end for job, end in zip(made.jobs, log.end_s.tolist(), strict=True)}
        for place, job in enumerate(made.jobs):
            one = made.successions.get(job.job_id)
            arrival_s = job.submit_s if one is None else max(ends[name] for name in one.awaited) + one.think_s
            assert log.submit_s[place] == arrival_s
            assert log.start_s[place] >= arrival_s
            assert log.end_s[place] == log.start_s[place] + log.duration_s[place]


def test_ends_are_compared_whenever_jobs_were_submitted(workload):
    """By hand: b takes 9 s longer on one GPU, and c, which follows it, comes and ends 9 s later but takes as long."""
    rows = [("a", "p", 0, 10, 1), ("b", "p", 1, 10, 1), ("c", "p", 12, 1, 1)]
    slow, fast = (replay(closed(workload(rows, {"p": gpus}), c=("b", 1)), Fcfs()) for gpus in (1, 2))
    assert ends_against_baseline(fast, slow) == {"ends_earlier_mean_s": pytest.approx(18 / 3), "ends_later_pct": 0.0}
    assert ends_against_baseline(slow, fast)["ends_later_pct"] == pytest.approx(200 / 3)
    assert ends_against_baseline(slow, fast, 12.0) == {"ends_earlier_mean_s": -9.0, "ends_later_pct": 100.0}
    assert np.isnan(ends_against_baseline(slow, fast, 1e9)["ends_later_pct"])


def test_who_may_start_later_arrives_when_others_have_ended_or_its_time_has_come(workload):
    """Of a's end b may start at 9 s, of two ends among a and b c may; d may from 2 s on. New ones come behind them."""
    made = workload([("a", "p", 0, 1, 1)], {"p": 4})
    run = OpenArrivals(made)
    (a,) = run.due(0.0)
    b, c, d = (Job(0, name, "p", 0.0, 1) for name in "bcd")
    later = [Later(b, 9.0, frozenset("a"), 1), Later(c, 0.0, frozenset("ab"), 2), Later(d, 2.0)]
    # One that is believed to come is called like one that is awaited.
    coming = [(Job(0, "a", "p", 3.0, 1), 7.0)]
    stream = ForeseenArrivals(run, coming, 9, [(one, 5.0) for one in later])
    assert (stream.first, stream.next_s, stream.waits_for_ends) == (4, 2.0, True)
    assert [(job.job_id, job.seq) for job in stream.due(3.0, 1)] == [("d", 3)]
    (new,) = stream.due(3.0)
    assert (new.seq, stream.outcomes[4], stream.next_s) == (4, Outcome(7.0), inf)
    stream.completed(new, 3.5)
    assert stream.next_s == inf
    stream.completed(a, 4.0)
    assert stream.next_s == 9.0
    (found,) = stream.due(9.0)
    assert (found.job_id, stream.outcomes[found.seq]) == ("b", Outcome(5.0))
    stream.completed(found, 14.0)
    assert [(job.job_id, job.submit_s) for job in stream.due(14.0)] == [("c", 0.0)]
