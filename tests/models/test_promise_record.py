"""What became of promises: by hand, at their edges, and how intervals are calibrated on it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.models.completion.intervals import IntervalTracker
from jobcast.models.promise_ledger import END, LOOK, START, Outcome, Promise
from jobcast.models.promise_record import (
    ENOUGH,
    HIGH,
    KEPT,
    LOW,
    OPEN,
    SHARES,
    calibrate,
    counts,
    outcomes_of,
    promised,
    recorded_kinds,
    state,
)
from jobcast.traces.table import Trace
from tests.scenarios import frame_of
from tests.shared import refused

TIMES = st.floats(0.0, 1000.0)


def promise(job_id="a", low_s=100.0, high_s=200.0, at_s=50.0, **changed):
    half = (0.5, low_s + 0.25 * (high_s - low_s), high_s - 0.25 * (high_s - low_s))
    told = {
        "job_id": job_id, "submit_s": 10.0, "kind": END, "pool": "p", "gpus": 4, "at_s": at_s, "asked_s": 1e9,
        "policy": "fcfs", "version": "jct 1", "sizes": "forecast", "point_s": None,
        "intervals": (half, (0.9, low_s, high_s)),
    }  # fmt: skip
    return Promise(**told | changed)


@pytest.mark.parametrize(
    ("event_s", "known_s", "as_of_s", "expected"),
    [
        (150.0, 150.0, 160.0, KEPT),
        (99.5, 99.5, 160.0, KEPT),  # a second is what accounting rounds to
        (98.5, 98.5, 160.0, LOW),
        (200.5, 200.5, 300.0, KEPT),
        (201.5, 201.5, 300.0, HIGH),
        (None, 150.0, 150.0, OPEN),
        (None, 201.0, 201.0, OPEN),
        (None, 201.5, 201.5, HIGH),  # the end has passed: nobody waits for the event
        (None, 150.0, 900.0, OPEN),  # nobody looked since
    ],
)
def test_kept_broken_or_open(event_s, known_s, as_of_s, expected):
    assert state(promise(), 0.9, Outcome(event_s, known_s), as_of_s) == expected


def test_a_level_that_was_not_promised():
    refused(ValueError, "job a: nothing was promised at 80%", state, promise(), 0.8, Outcome(None, 1.0), 1.0)


@given(TIMES, TIMES, TIMES, TIMES)
def test_a_state_never_changes_once_it_is_known(low_s, length_s, event_s, later_s):
    one = promise(low_s=low_s, high_s=low_s + length_s)
    now, then = (state(one, 0.9, Outcome(event_s, event_s), event_s + wait_s) for wait_s in (0.0, later_s))
    assert now == then != OPEN
    # Before it came it was open, unless the upper end had passed.
    before = state(one, 0.9, Outcome(None, event_s), event_s)
    assert before in (OPEN, HIGH)
    assert before == OPEN or now == HIGH


def test_what_is_judged():
    asked_twice = [promise(low_s=1.0), promise(low_s=2.0)]
    found = promised([*asked_twice, promise(what_if=True, at_s=60.0), promise(at_s=70.0, intervals=((0.5, 1, 2),))])
    assert found == [asked_twice[1]]


def trace(**columns):
    return Trace.from_frame(frame_of([10.0, 20.0, 30.0], job_id=["a", "b", "c"], **columns), name="t")


def test_outcomes_of_a_trace():
    recorded = trace(
        start_time=[12.0, 25.0, None],
        end_time=[40.0, 90.0, None],
        duration=[28.0, 65.0, None],
        known_time=[60.0, 95.0, None],
    )
    assert recorded.last_known_s == 95.0
    events = [(job_id, at_s, kind) for job_id, at_s in (("a", 10.0), ("b", 20.0), ("c", 30.0)) for kind in (START, END)]
    assert outcomes_of(recorded, [*events, ("z", 1.0, END), ("a", 11.0, END)], 95.0) == {
        events[0]: Outcome(12.0, 12.0),
        events[1]: Outcome(40.0, 60.0),
        events[2]: Outcome(25.0, 25.0),
        events[3]: Outcome(90.0, 95.0),
        events[4]: Outcome(None, 95.0),
        # Ends take up to 20 s to be told.
        events[5]: Outcome(None, 75.0),
    }
    # b's end had come by 92, and nobody knew.
    assert outcomes_of(recorded, events[3:4], 92.0) == {events[3]: Outcome(None, 72.0)}


def test_what_a_trace_records():
    assert recorded_kinds(trace(duration=[1.0] * 3)) == set()
    assert recorded_kinds(trace(duration=[1.0] * 3, start_time=[40.0] * 3)) == {START, END}
    elastic = trace(duration=[1.0] * 3, start_time=[40.0] * 3, min_gpus=[0] * 3)
    assert recorded_kinds(elastic) == {START}
    assert outcomes_of(elastic, [("a", 10.0, END)], 50.0) == {}


def test_counts_by_hand():
    """At 250 s: a was kept and is due, b is kept but not due, c is late, d came early, e is open, f is a start."""
    made = (
        [promise(name) for name in "acd"] + [promise(name, high_s=900.0) for name in "be"] + [promise("f", kind=START)]
    )
    came_s = {"a": 150.0, "b": 160.0, "c": None, "d": 60.0, "e": None, "f": 199.0}
    outcomes = {
        one.event: Outcome(came_s[one.job_id], 250.0 if came_s[one.job_id] is None else came_s[one.job_id])
        for one in made
    }
    start, end = counts(made, outcomes, 250.0, lambda one: one.pool)
    assert (start["group"], start["kind"], end["kind"]) == ("p", START, END)
    assert {name: end[name] for name in ("made", KEPT, LOW, HIGH, OPEN)} == {
        "made": 5, KEPT: 2, LOW: 1, HIGH: 1, OPEN: 1,
    }  # fmt: skip
    assert (end["due_90"], end["coverage_90_pct"]) == (3, pytest.approx(100 / 3))
    assert (start["due_90"], start["coverage_90_pct"], start["coverage_50_pct"]) == (1, 100.0, 0.0)


def test_an_end_that_nobody_was_told_of_yet_breaks_no_promise():
    """As of 250 s ends are known until 150 s: what should have come by 200 is open, and so not due; by 120 it is."""
    made = [promise(name) for name in "ab"] + [promise("c", high_s=120.0), promise("d", high_s=120.0)]
    found = [Outcome(None, 150.0), Outcome(110.0, 150.0), Outcome(None, 150.0), Outcome(110.0, 150.0)]
    outcomes = {one.event: outcome for one, outcome in zip(made, found, strict=True)}
    (row,) = counts(made, outcomes, 250.0, lambda one: one.pool)
    assert {name: row[name] for name in (KEPT, LOW, HIGH, OPEN)} == {KEPT: 2, LOW: 0, HIGH: 1, OPEN: 1}
    assert (row["due_90"], row["coverage_90_pct"]) == (2, 50.0)


def run_of(count, factor, seed=0):
    """Promises every 100 s whose events come `factor` times as late as a draw from their futures."""
    rng = np.random.default_rng(seed)
    promises, outcomes = [], {}
    for number in range(count):
        at_s = 1000.0 + 100.0 * number
        futures_s = at_s + np.exp(rng.normal(5.0, 0.5, 200))
        low_s, high_s = np.quantile(futures_s, [0.05, 0.95])
        quantiles = tuple(np.quantile(futures_s, SHARES))
        one = promise(str(number), float(low_s), float(high_s), at_s, futures_s=quantiles)
        event_s = at_s + factor * float(np.exp(rng.normal(5.0, 0.5)))
        promises.append(one)
        outcomes[one.event] = Outcome(event_s, event_s)
    # Somebody looked long after.
    return promises, outcomes | {LOOK: Outcome(None, 1e8)}


@pytest.mark.parametrize("factor", [1.0, 2.5, 0.4])
def test_calibrated_intervals_hold_what_they_promise(factor):
    """The next jobs' intervals, by the tracker, whichever way the futures are wrong."""
    promises, outcomes = run_of(400, factor)
    found = calibrate(promises, outcomes, 1e9)
    assert (found.due, found.kept) == (400, sum(state(one, 0.9, outcomes[one.event], 1e9) == KEPT for one in promises))
    rng, held = np.random.default_rng(1), 0
    for _ in range(1000):
        futures_s = np.exp(rng.normal(5.0, 0.5, 200))
        held += found.tracker().intervals(futures_s)[-1].holds(factor * float(np.exp(rng.normal(5.0, 0.5))))
    assert 860 <= held <= 970
    assert isinstance(found.tracker(), IntervalTracker)


def test_too_few_promises_calibrate_nothing():
    promises, outcomes = run_of(ENOUGH - 1, 1.0)
    assert calibrate(promises, outcomes, 1e9) is None
    assert calibrate(*run_of(ENOUGH, 1.0), 1e9).due == ENOUGH
    assert calibrate(promises, {}, 1e9) is None


def test_nothing_after_the_instant_is_used():
    """Later promises and what was known later change nothing."""
    promises, outcomes = run_of(300, 1.0)
    at_s = 1000.0 + 100.0 * 150
    known = {event: one for event, one in outcomes.items() if one.known_s <= at_s}
    found = calibrate(promises, known, at_s)
    assert found == calibrate([one for one in promises if one.at_s < at_s], known, at_s)
    assert found.due < 150
    assert max(one.at_s for one in promises) > at_s


def test_jobs_that_outlive_their_upper_end_count_though_they_have_not_ended():
    promises, outcomes = run_of(100, 1.0)
    bare = calibrate(promises, outcomes, 20_000.0)
    waits = {one.event: Outcome(None, 20_000.0) if number % 4 == 0 else outcomes[one.event]
             for number, one in enumerate(promises)}  # fmt: skip
    found = calibrate(promises, waits, 20_000.0)
    assert (bare.due, found.due) == (100, 100)
    assert found.kept < bare.kept
    highs = [one.tracker().intervals(np.exp(np.linspace(4.0, 6.0, 50)))[-1].high_s for one in (bare, found)]
    assert highs[1] > highs[0]


def test_where_all_futures_agree_the_share_is_counted_from_either_side():
    """Half of the futures at once, the event too: intervals go on holding it."""
    at_s = 1000.0
    quantiles = tuple(at_s + (1.0 if share <= 0.5 else 100.0 * share) for share in SHARES)
    promises = [
        replace(promise(str(number), at_s=at_s, low_s=1001.0, high_s=1100.0), futures_s=quantiles)
        for number in range(60)
    ]
    found = calibrate(
        promises,
        {one.event: Outcome(at_s + 1.0, at_s + 1.0 if number else 5000.0) for number, one in enumerate(promises)},
        1e9,
    )
    assert found.tracker().intervals(np.array(quantiles) - at_s)[-1].holds(1.0)
