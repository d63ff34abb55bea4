"""What is known: jobs by their ids, starts, ends and limits, GPUs beyond a quota."""

from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Pool
from jobcast.live.event_log import CHANGE, END, GPUS, LOOK, QUOTA, REQUEUE, START, SUBMIT, Event, EventLog
from jobcast.live.growing_history import GrowingHistory, Window
from jobcast.live.state import LogReader, State
from jobcast.simulator.history import Happening, RunHistory

ROWS = [
    Event(10.0, SUBMIT, "a", 0.0, {"pool": "p", "gpus": 2, "time_limit_s": 60.0}),
    Event(20.0, START, "a", 15.0, {"dedicated": False}),
    Event(25.0, SUBMIT, "b", 25.0, {"pool": "p", "gpus": 1}),
    Event(90.0, END, "a", 75.0),
    Event(95.0, END, "b", 95.0),
]


def after(count):
    return State().after(list(enumerate(ROWS[:count], 1)))


def test_a_job_starts_and_ends_when_it_did_not_when_that_was_known():
    known = after(4).job("a")
    assert (known.start_s, known.end_s) == (15.0, 75.0)
    assert known.job.requirements.time_limit_s == 60.0
    assert np.isnan(after(3).job("b").start_s)
    assert after(3).job("c") is None
    assert list(after(3).active) == ["a", "b"]
    assert list(after(4).active) == ["b"]


def test_what_is_kept_is_known_to_all_who_share_a_reader_once(tmp_path):
    reader = LogReader(EventLog(tmp_path))
    assert (reader.keep(ROWS[:3]), reader.keep(ROWS[:3])) == (3, 0)
    assert list(reader.state.active) == ["a", "b"]
    # What another process writes is known when it is read.
    EventLog(tmp_path).append(ROWS[3:])
    assert np.isnan(reader.state.job("a").end_s)
    reader.read()
    assert reader.state.job("a").end_s == 75.0
    assert LogReader(EventLog(tmp_path)).state.number == reader.state.number == 5


def test_of_one_that_never_ran_only_the_end_is_known():
    known = after(5).job("b")
    assert np.isnan(known.start_s)
    assert known.end_s == 95.0


def test_the_last_start_tells_whose_gpus_they_are():
    assert after(2).lends
    again = after(2).after([(3, Event(30.0, START, "a", 30.0))])
    assert not again.lends
    assert (again.number, again.known_s) == (3, 30.0)


def test_a_look_at_which_nothing_happened_leaves_the_jobs_as_they_are():
    before = after(3)
    again = before.after([(4, Event(30.0, LOOK, "", 30.0))])
    assert again.past is before.past
    assert (again.number, again.known_s, again.active) == (4, 30.0, before.active)


POOLS = [Pool("p", 8), Pool("q", 8)]
COLUMNS = ("arrival_s", "arrival_gpus", "start_s", "end_s", "completion_s", "completion_duration_s")
FACTS = {
    SUBMIT: [{"pool": pool, "gpus": gpus, "user": "u"} for pool in "pq" for gpus in (1, 2)],
    CHANGE: [{"gpus": 3}, {"pool": "q"}, {"time_limit_s": 60.0}, {"held": True, "granted": True}],
    START: [{}, {"dedicated": False}],
    REQUEUE: [{}, {"lent": True, "lost_s": 5.0}],
    END: [{}, {"duration_s": 4.0}, {"duration_s": 0.0}],
    LOOK: [{}],
    QUOTA: [{"gpus": 8}, {"gpus": 9}],
    GPUS: [{"gpus": 16}, {"gpus": 15}],
}
JOB = (SUBMIT, SUBMIT, CHANGE, START, START, REQUEUE, END, END)


def events_of(seed, count=80):
    """As a log has them, numbered: of few jobs and instants, so that they tie, are corrected, come late and again."""
    draw, now_s, kept = Random(seed), 100.0, {}
    for _ in range(count):
        kind = draw.choice((*JOB, *JOB, *JOB, LOOK, QUOTA, GPUS))
        name = draw.choice("abcdef" if kind in JOB else {LOOK: [""], QUOTA: "pq", GPUS: [""]}[kind])
        now_s += draw.choice((0.0, 0.0, 1.0))
        known_s = now_s - draw.choice((0.0,) * 9 + (3.0,))
        event = Event(known_s, kind, name, known_s - draw.choice((0.0, 0.0, 1.0, 2.0)), draw.choice(FACTS[kind]))
        kept.setdefault((name, kind, event.at_s), event)
    return list(enumerate(kept.values(), 1))


def batches(events, seed):
    """The same, some at a time."""
    draw, at = Random(seed), 0
    while at < len(events):
        count = draw.choice((1, 1, 1, 2, 9))
        yield events[at : at + count]
        at += count


def seen(state):
    """All that a state tells, as text: NaN is NaN."""
    names = sorted({row.name for row in state.past.rows[Happening.ARRIVAL].since(0)} | {*"abcdef"})
    jobs = [(name, state.job(name)) for name in names]
    pools = {name: [getattr(pool, one).tolist() for one in COLUMNS] for name, pool in sorted(state.past.pools.items())}
    pools = {name: columns for name, columns in pools.items() if any(columns)}
    rows = [[row.name for row in of.since(0)] for of in state.past.rows.values()]
    ended = [[job.job_id for job in state.ended(most, now_s).jobs] for most in (2, 99) for now_s in (103.0, 999.0)]
    active = {name: one._replace(place=0, last=None) for name, one in sorted(state.active.items())}
    waits_s = sorted(state.waits_s(100.0, 110.0))
    return str((state.number, state.known_s, jobs, pools, rows, ended, active, waits_s)) + str(
        (state.gpus, state.lends, state.limited)
    )


@given(seed=st.integers(0, 2**32))
def test_after_any_events_a_state_is_what_all_of_them_at_once_make(seed):
    events, state, before = events_of(seed), State(), []
    for some in batches(events, seed):
        state = state.after(some)
        whole = State().after(events[: some[-1][0]])
        assert seen(state) == seen(whole)
        for name in ("quotas", "limits", "lent"):
            assert getattr(state.record, name) == getattr(whole.record, name)
        assert sorted(state.record.stopped) == sorted(whole.record.stopped)
        before.append((state, seen(state)))
    # Who holds one of before reads on what was known then.
    for earlier, told in before:
        assert seen(earlier) == told


def run_until(jobs, now_s):
    """A history of these jobs, come to an instant."""
    history = RunHistory(["p", "q"], jobs)
    history.advance(now_s)
    return history


def ran(history):
    """Jobs that have started and ended, whatever their numbers."""
    started = [(replace(one.job, seq=0), one.start_s) for one in history.started_since(0)]
    return started, [(replace(one.job, seq=0), one.end_s, one.duration_s) for one in history.finished_since(0)]


@given(seed=st.integers(0, 2**32))
def test_a_past_is_told_as_a_run_of_these_jobs_tells_it(seed):
    state, growing, draw, last, read = State(), GrowingHistory(), Random(seed), None, ([], [])
    for some in batches(events_of(seed), seed):
        state = state.after(some)
        now_s, jobs = state.known_s + draw.choice((-9.0, -1.0, 0.0, 0.0, 2.0)), state.record.recorded()
        whole, window, grown = (
            run_until(jobs, now_s),
            Window(POOLS, state.past, now_s),
            growing.at(state.past, POOLS, now_s),
        )
        for pool, name in product("pq", COLUMNS):
            expected = getattr(whole.pool(pool), name)
            np.testing.assert_array_equal(getattr(window.pool(pool), name), expected)
            np.testing.assert_array_equal(getattr(grown.pool(pool), name), expected)
        assert ran(window) == ran(whole)
        # One that grows tells no more of jobs than anybody asks; who reads on where it stopped has read the same.
        asked_s = max(now_s - now_s % 300.0, *(job.submit_s for job in jobs.jobs if job.submit_s <= now_s), 0.0)
        assert ran(grown) == ran(run_until(jobs, asked_s))
        read = read if grown is last else ([], [])
        for rows, since in zip(read, (grown.started_since, grown.finished_since), strict=True):
            rows += since(len(rows))
        assert [[one.job.job_id for one in rows] for rows in read] == [
            [job.job_id for job, *_ in of] for of in ran(grown)
        ]
        last = grown
