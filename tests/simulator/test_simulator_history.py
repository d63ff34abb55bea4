from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.jobs import Job
from jobcast.simulator.engine import replay
from jobcast.simulator.history import FIRST_ROOM, Column, EarlierJobs, RunHistory
from tests.simulator.pool_cases import Script

COLUMNS = ("arrival_s", "arrival_gpus", "start_s", "end_s", "completion_s", "completion_duration_s")


def earlier(rows):
    """Rows (pool, submit, start, end, gpus), by submission."""
    jobs = [Job(i, f"e{i}", pool, float(submit), gpus) for i, (pool, submit, _, _, gpus) in enumerate(rows)]
    start_s, end_s = (np.array([row[i] for row in rows], dtype=np.float64) for i in (2, 3))
    return EarlierJobs(jobs, start_s, end_s, end_s - start_s)


def shown(history, pool="p"):
    past = history.pool(pool)
    return {name: getattr(past, name).tolist() for name in COLUMNS}


def test_a_column_keeps_its_values_while_it_grows():
    column = Column()
    assert [column.append(value) for value in range(3 * FIRST_ROOM)] == list(range(3 * FIRST_ROOM))
    column.put(1, 7.0)
    assert column.view().tolist() == [0.0, 7.0, *range(2, 3 * FIRST_ROOM)]


def test_views_cannot_be_written_to():
    history = RunHistory(["p"], earlier([("p", 0, 1, 2, 1)]))
    history.advance(5.0)
    with pytest.raises(ValueError, match="read-only"):
        history.pool("p").arrival_s[0] = 9.0


def test_earlier_jobs_show_as_time_reaches_them():
    history = RunHistory(["p"], earlier([("p", 0, 1, 30, 4), ("p", 2, 12, 14, 1), ("x", 3, 3, 11, 2)]))
    history.advance(10.0)
    assert shown(history) == {
        "arrival_s": [0, 2],
        "arrival_gpus": [4, 1],
        "start_s": [1],
        "end_s": [inf],
        "completion_s": [],
        "completion_duration_s": [],
    }
    assert list(history.pools) == ["p"]
    assert history.finished_since(0) == []
    history.advance(15.0)
    assert shown(history)["start_s"] == [1, 12]
    assert shown(history)["end_s"] == [inf, 14]
    assert [(done.job.job_id, done.end_s, done.duration_s) for done in history.finished_since(0)] == [
        ("e2", 11, 8),
        ("e1", 14, 2),
    ]
    assert [done.job.job_id for done in history.finished_since(1)] == ["e1"]


def test_earlier_jobs_without_a_known_start_or_end_never_show_them():
    history = RunHistory(["p"], earlier([("p", 0, nan, nan, 4), ("p", 1, 2, inf, 1)]))
    history.advance(1e12)
    assert (shown(history)["start_s"], shown(history)["end_s"], shown(history)["completion_s"]) == ([2], [inf], [])


def test_the_run_is_told_on_top_of_earlier_jobs(workload):
    made = workload([("a", "p", 10, 5, 1), ("b", "p", 12, 1, 2)], {"p": 3}, preemptible=True)
    script = Script({10.0: {"a": 1}, 12.0: {"a": None, "b": 2}, 13.0: {"a": 1}})
    history = RunHistory(["p"], earlier([("p", 0, 1, 12.5, 4)]))
    replay(made, script, history=history)
    assert shown(history) == {
        "arrival_s": [0, 10, 12],
        "arrival_gpus": [4, 1, 2],
        "start_s": [1, 10, 12, 13],
        "end_s": [12.5, 12, 13, 16],
        "completion_s": [12.5, 13, 16],
        "completion_duration_s": [11.5, 1, 5],
    }


def test_an_end_is_known_late():
    history, job = RunHistory(["p"], known_after_s=10.0), Job(0, "a", "p", 1.0, 2)
    history.advance(1.0)
    history.arrived(job)
    history.started(job)
    history.advance(5.0)
    history.completed(job, 4.0)
    history.advance(14.9)
    assert shown(history)["end_s"] == [inf]
    history.advance(15.0)
    known = {"start_s": [1], "end_s": [15], "completion_s": [15], "completion_duration_s": [4]}
    assert {name: shown(history)[name] for name in known} == known
    assert [(done.end_s, done.duration_s) for done in history.finished_since(0)] == [(15.0, 4.0)]


JOBS = st.lists(
    st.tuples(st.sampled_from("pq"), st.integers(0, 20), st.integers(0, 9), st.integers(1, 9), st.integers(1, 3)),
    max_size=12,
)


@given(JOBS, st.lists(st.integers(0, 45), min_size=1, max_size=6))
def test_a_history_holds_what_happened_until_now_and_nothing_after(rows, instants):
    rows = sorted((p, at, at + wait, at + wait + run, gpus) for p, at, wait, run, gpus in rows)
    rows.sort(key=lambda row: row[1])
    history = RunHistory(["p", "q"], earlier(rows))
    for now in sorted(instants):
        history.advance(float(now))
        for pool in "pq":
            mine = [row for row in rows if row[0] == pool]
            past = shown(history, pool)
            assert past["arrival_s"] == [row[1] for row in mine if row[1] <= now]
            starts = sorted((row[2], row[3] if row[3] <= now else inf) for row in mine if row[2] <= now)
            assert sorted(zip(past["start_s"], past["end_s"], strict=True)) == starts
            assert past["start_s"] == sorted(past["start_s"])
            assert past["completion_s"] == sorted(row[3] for row in mine if row[3] <= now)
        assert len(history.finished_since(0)) == sum(row[3] <= now for row in rows)
