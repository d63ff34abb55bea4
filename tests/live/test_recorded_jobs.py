"""Jobs from events, by hand."""

from math import inf

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.live.event_log import CHANGE, END, QUOTA, REQUEUE, START, SUBMIT, Event, EventLog
from jobcast.live.growing_history import GrowingHistory
from jobcast.live.recorded_jobs import ClusterRecord, exported, in_order
from jobcast.models.forecasts import RegistryForecasts
from jobcast.schedulers.registry import make_policy
from jobcast.simulator.engine import Simulation
from jobcast.simulator.history import EarlierJobs, RunHistory
from jobcast.traces.readers import read_trace
from jobcast.traces.table import Trace
from jobcast.traces.table_files import write_plain
from tests.live.test_standing import POOLS, ByName, news, world
from tests.shared import refused

EVENTS = [
    Event(10.0, SUBMIT, "a", 10.0, {"pool": "p", "gpus": 2}),
    Event(5.0, SUBMIT, "b", 5.0, {"pool": "p", "gpus": 1}),
    Event(12.0, START, "a", 12.0),
    Event(25.0, END, "a", 20.0),
    Event(30.0, END, "a", 21.0),
    Event(9.0, END, "unknown", 9.0),
]


def recorded_jobs(events, now_s=inf):
    return ClusterRecord().take(in_order(events, now_s)).recorded()


@given(st.permutations(EVENTS))
def test_the_order_of_events_does_not_matter_and_corrections_count(events):
    jobs = recorded_jobs(events)
    assert [(job.seq, job.job_id, job.gpus) for job in jobs.jobs] == [(0, "b", 1), (1, "a", 2)]
    np.testing.assert_array_equal(jobs.start_s, [np.nan, 12.0])
    np.testing.assert_array_equal(jobs.known_s, [np.nan, 30.0])
    np.testing.assert_array_equal(jobs.duration_s, [np.nan, 9.0])


def test_what_is_known_later_is_not_there():
    assert recorded_jobs(EVENTS, now_s=25.0).duration_s.tolist()[1] == 8.0
    assert np.isnan(recorded_jobs(EVENTS, now_s=24.0).known_s).all()


def test_an_end_before_the_start_is_left_out():
    jobs = recorded_jobs([*EVENTS[:3], Event(40.0, END, "a", 11.0)])
    assert np.isnan(jobs.known_s).all()


def test_what_comes_late_has_that_job_alone_told_anew():
    record = ClusterRecord().take(EVENTS)
    other, places = record.jobs["b"], record.places
    # Known before its last end was: the name was used again by then.
    record.after([Event(26.0, SUBMIT, "a", 25.0, {"pool": "p", "gpus": 4})])
    assert record.jobs["b"] is other
    assert (record.jobs["a"].facts["gpus"], record.jobs["a until 20"].facts["gpus"]) == (4, 2)
    assert record.places == places + 1
    # The first job of that name turns out to have ended later, which gives it another name.
    record.after([Event(25.5, END, "a", 23.0)])
    assert record.jobs["a until 23"].ended_s == 23.0
    assert "a until 20" not in record.jobs
    assert [job.job_id for job in record.recorded().jobs] == ["b", "a until 23", "a"]


def test_a_quota_that_is_told_late_is_one_of_before():
    told = ClusterRecord().after([Event(9.0, QUOTA, "p", 9.0, {"gpus": 8})])
    assert told.after([Event(5.0, QUOTA, "p", 5.0, {"gpus": 4})]).quotas == {"p": 8}


def test_a_later_submission_corrects_the_one_before():
    told = ClusterRecord().take([*EVENTS[:1], Event(11.0, SUBMIT, "a", 10.5, {"pool": "q", "gpus": 3})])
    assert (told.jobs["a"].submit_s, told.jobs["a"].facts) == (10.5, {"pool": "q", "gpus": 3})


def test_a_change_that_is_told_before_the_submission_holds():
    told = ClusterRecord().take([Event(9.0, CHANGE, "a", 9.0, {"gpus": 4}), EVENTS[0]])
    assert told.jobs["a"].facts == {"pool": "p", "gpus": 4}


COLUMNS = ("arrival_s", "arrival_gpus", "start_s", "end_s", "completion_s", "completion_duration_s")
BEGIN_S = 1_700_000_000.0


def seen(seed, count, late_s):
    """Events of a simulated cluster, ends known up to so much later; times in milliseconds, as they are kept."""
    source = ByName(world(seed, count))
    run = Simulation(source_workload := world(seed, count), make_policy("sia", source), source)
    told, events = {}, []
    draw = np.random.default_rng(seed)
    while run.look() is not None:
        events += news(run, told)
        run.carry_out(run.policy.decide(run.cluster))
        events += news(run, told)
    events += news(run, told)
    assert len(events) == 3 * len(source_workload.jobs)
    at = {id(event): round(BEGIN_S + event.at_s, 3) for event in events}
    return [
        Event(
            round(at[id(one)] + (float(draw.uniform(0, late_s)) if one.kind == END else 0.0), 3),
            one.kind,
            one.job_id,
            at[id(one)],
            {**one.facts, **({"user": "ada", "tag": "x"} if one.kind == SUBMIT else {})},
        )
        for one in events
    ]


def offline(path, now_s):
    """The past as a replay of the exported trace has it."""
    trace = read_trace(path)
    jobs, durations = trace.to_jobs()
    history = RunHistory([pool.name for pool in POOLS], EarlierJobs(jobs, trace.start_s, trace.known_s, durations))
    history.advance(now_s)
    return history


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_features_and_forecasts_are_the_same(tmp_path, predictors, suffix):
    arrivals, loads, durations = (predictors[name] for name in ("will-jobs-arrive", "new-load", "job-duration"))
    log = EventLog(tmp_path)
    events = seen(3, 60, 900.0)
    log.append(events)
    record, growing = ClusterRecord(), GrowingHistory()
    path = tmp_path / f"seen.{suffix}"
    write_plain(exported(ClusterRecord().take(in_order(one for _, one in log.since(0)))), path)
    ordered, before_s = in_order(events), 0.0
    for now_s in np.quantile([one.known_s for one in events], np.linspace(0.1, 1.0, 7)).tolist():
        record.take(one for one in ordered if before_s < one.known_s <= now_s)
        before_s = now_s
        live, past = growing.at(record.past, POOLS, now_s), offline(path, now_s)
        for pool in POOLS:
            for name in COLUMNS:
                ours, theirs = (getattr(each.pool(pool.name), name) for each in (live, past))
                assert ours.tobytes() == theirs.tobytes(), (pool.name, name)
        answers = [asked(RegistryForecasts(each, arrivals, loads, durations, POOLS), now_s) for each in (live, past)]
        assert answers[0] == answers[1]


def asked(source, now_s):
    source.advance(now_s)
    return [
        (source.arrival_probability(pool.name, 60.0 * horizon), source.new_load(pool.name, 60.0 * horizon))
        for pool in POOLS
        for horizon in source.horizons_min
    ]


def test_what_never_ran_is_left_out_and_what_runs_has_no_end():
    events = [
        Event(1.0, SUBMIT, "ran", 1.0, {"pool": "p", "gpus": 2, "user": "", "tag": ""}),
        Event(1.0, SUBMIT, "cancelled", 1.0, {"pool": "p", "gpus": 2}),
        Event(2.0, START, "ran", 2.0),
        Event(3.0, END, "cancelled", 3.0),
        Event(4.0, REQUEUE, "ran", 4.0),
        Event(5.0, CHANGE, "ran", 5.0, {"gpus": 4, "time_limit_s": 60.0}),
        Event(6.0, START, "ran", 6.0),
    ]
    frame = exported(ClusterRecord().take(events))
    assert frame.rows(named=True) == [
        {
            "job_id": "ran", "pool": "p", "submit_time": at(1), "start_time": at(6), "end_time": None,
            "known_time": None, "duration": None, "gpus": 4, "user": None, "tag": None, "time_limit_s": 60.0,
        }
    ]  # fmt: skip


def test_what_is_exported_can_be_read():
    """A job that ran for no time, and one that by a sender's clock started, or ended, before it came."""
    events = [Event(9.0, SUBMIT, name, 9.0, {"pool": "p", "gpus": 2}) for name in ("nothing", "early", "gone")]
    events += [Event(9.0, START, "nothing", 9.0), Event(9.0, END, "nothing", 9.0, {"duration_s": 0.0})]
    events += [Event(9.0, START, "early", 8.0), Event(9.0, START, "gone", 7.0), Event(9.0, END, "gone", 8.5)]
    trace = Trace.from_frame(exported(ClusterRecord().take(events)), name="live")
    assert (trace.jobs["job_id"].to_list(), trace.start_s.tolist()) == (["early", "gone"], [9.0, 9.0])
    assert trace.jobs["duration"].to_list() == [None, 1.5]


def at(seconds):
    return pl.Series([seconds * 1_000_000]).cast(pl.Datetime("us", "UTC"))[0]


def test_an_empty_log_has_no_trace():
    refused(TraceError, "nothing was seen", exported, ClusterRecord())
